//! `pushonce dead-letters redrive`.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use clap::Args;
use pushonce::dead_letter::{DeadLetterState, DeadLetters, RedriveError, Redriven, Republished};
use pushonce::publish::Publisher;
use pushonce::store::{Maintain, Page};
use pushonce::submit::Tasks;
use serde::Serialize;

use super::is_of;
use crate::output::{chain, line, moment, plain, unless_closed};
use crate::place::again;
use crate::progress::Progress;
use crate::{Answer, Failed};

#[derive(Debug, Args)]
pub(super) struct Redrive {
    /// Their ids
    #[arg(value_name = "ID", required_unless_present = "all")]
    ids: Vec<String>,
    /// All that are kept of one subscription, instead
    #[arg(long, requires = "subscription", conflicts_with = "ids")]
    all: bool,
    /// The subscription that gave them up, by its short or its full name
    #[arg(long, value_name = "NAME", requires = "all")]
    subscription: Option<String>,
    /// The topic that they came from: projects/PROJECT/topics/TOPIC
    #[arg(long, value_name = "TOPIC", value_parser = topic)]
    topic: String,
    /// Only says what would be done
    #[arg(long)]
    dry_run: bool,
}

/// What became of one. The fields are a promise to scripts: none is renamed.
#[derive(Debug, Default, Serialize)]
struct Became {
    id: String,
    outcome: &'static str,
    #[serde(flatten)]
    republished: Option<Republished>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    consumer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip)]
    words: String,
}

/// How it went with all of them so far.
struct Run {
    letters: DeadLetters,
    tasks: Tasks,
    publisher: Arc<dyn Publisher>,
    progress: Progress,
    json: bool,
    refused: bool,
}

impl Redrive {
    pub(super) async fn run(&self, store: Arc<dyn Maintain>, json: bool) -> Result<Answer, Failed> {
        let total = (!self.all).then_some(self.ids.len());
        let mut run = Run {
            letters: DeadLetters::new(store.clone()),
            tasks: Tasks::new(store),
            publisher: publisher()?,
            progress: Progress::of(total, "redriven"),
            json,
            refused: false,
        };
        match &self.subscription {
            None => {
                for id in &self.ids {
                    if run.one(self, id).await? == ControlFlow::Break(()) {
                        break;
                    }
                }
            }
            Some(subscription) => run.all(self, subscription).await?,
        }
        Ok(Answer { text: String::new(), refused: run.refused })
    }
}

impl Run {
    async fn all(&mut self, asked: &Redrive, subscription: &str) -> Result<(), Failed> {
        let mut page = Page::default();
        loop {
            let listed = again(async || self.letters.list(&page).await).await?;
            for entry in listed.found {
                let entry = entry?;
                let wanted = entry.state == DeadLetterState::Kept && is_of(&entry, subscription);
                if wanted && self.one(asked, &entry.id).await? == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            let Some(next) = listed.next else { return Ok(()) };
            page.after = Some(next);
        }
    }

    /// Ends where nobody reads any more.
    async fn one(&mut self, asked: &Redrive, id: &str) -> Result<ControlFlow<()>, Failed> {
        let redrive = self.letters.redrive(id).follow(self.tasks.clone());
        let redrive = if asked.dry_run { redrive.dry_run() } else { redrive };
        let done = redrive.to(&self.publisher, &asked.topic).await;
        let shared = done.as_ref().is_err_and(is_shared);
        self.refused |= done.is_err();
        let became = Became::of(id, &done);
        let text =
            if self.json { line(&became)? } else { format!("{}: {}\n", plain(id), plain(&became.words)) };
        let flow = self.progress.beside(|| unless_closed(io::stdout().write_all(text.as_bytes())))?;
        self.progress.add(1);
        match done {
            Err(error) if shared => Err(error.into()),
            _ => Ok(flow),
        }
    }
}

/// Whether the next one would meet it too.
fn is_shared(error: &RedriveError) -> bool {
    !matches!(
        error,
        RedriveError::Unknown { .. }
            | RedriveError::Discarded { .. }
            | RedriveError::TooLarge { .. }
            | RedriveError::InProgress { .. }
            | RedriveError::Held { .. }
            | RedriveError::Done { .. }
    )
}

impl Became {
    fn of(id: &str, done: &Result<Redriven, RedriveError>) -> Self {
        let became = Self { id: id.to_owned(), ..Self::default() };
        match done {
            Ok(Redriven::Published(to)) => {
                let words = format!("published to {} as message {}", to.topic, to.message_id);
                Self { outcome: "published", republished: Some(to.clone()), words, ..became }
            }
            Ok(Redriven::Before(to)) => {
                let at = moment(Some(to.at));
                let words =
                    format!("nothing to do: published to {} as message {}, {at}", to.topic, to.message_id);
                Self { outcome: "before", republished: Some(to.clone()), words, ..became }
            }
            Ok(Redriven::WouldPublish { topic, key, task, bytes }) => {
                let reset = key.as_ref().map(|key| format!(", after a reset of {key}")).unwrap_or_default();
                let moved = task.as_ref().map(|task| format!(", with task {task} set to processing"));
                let moved = moved.unwrap_or_default();
                Self {
                    outcome: "would-publish",
                    topic: Some(topic.clone()),
                    consumer: key.as_ref().map(|key| key.consumer().to_string()),
                    key: key.as_ref().map(|key| key.text().to_owned()),
                    task: task.clone(),
                    bytes: Some(*bytes),
                    words: format!("would be published to {topic} ({bytes} bytes){reset}{moved}"),
                    ..became
                }
            }
            // The enumeration may grow.
            Ok(other) => Self { outcome: "published", words: format!("{other:?}"), ..became },
            Err(error) => {
                let outcome = if is_shared(error) { "failed" } else { "refused" };
                let words = chain(error);
                Self { outcome, error: Some(words.clone()), words, ..became }
            }
        }
    }
}

/// A topic by its full name.
fn topic(text: &str) -> Result<String, String> {
    let parts: Vec<_> = text.split('/').collect();
    match parts[..] {
        ["projects", project, "topics", topic] if !project.is_empty() && !topic.is_empty() => {
            Ok(text.to_owned())
        }
        _ => Err("expected projects/PROJECT/topics/TOPIC".to_owned()),
    }
}

#[cfg(feature = "publish")]
fn publisher() -> Result<Arc<dyn Publisher>, Failed> {
    Ok(Arc::new(pushonce::publish::CloudPubSub::from_env()?))
}

#[cfg(not(feature = "publish"))]
fn publisher() -> Result<Arc<dyn Publisher>, Failed> {
    Err("nothing can be published from here: build the program with the feature `publish` of pushonce".into())
}
