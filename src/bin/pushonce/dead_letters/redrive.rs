//! `pushonce dead-letters redrive`.

use std::io::{self, Write as _};
use std::ops::ControlFlow;
use std::sync::Arc;

use clap::Args;
use pushonce::dead_letter::{DeadLetterState, DeadLetters};
use pushonce::publish::Publisher;
use pushonce::store::{Maintain, Page};
use pushonce::submit::Tasks;

use super::became::{Became, is_shared};
use super::is_of;
use crate::output::{line, plain, unless_closed};
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
        let mut unreadable = None;
        loop {
            let listed = again(async || self.letters.list(&page).await).await?;
            for entry in listed.found {
                let entry = match entry {
                    Ok(entry) => entry,
                    // It hides no other.
                    Err(error) => {
                        unreadable = Some(error);
                        continue;
                    }
                };
                let wanted = entry.state == DeadLetterState::Kept && is_of(&entry, subscription);
                if wanted && self.one(asked, &entry.id).await? == ControlFlow::Break(()) {
                    return Ok(());
                }
            }
            let Some(next) = listed.next else { return unreadable.map_or(Ok(()), |error| Err(error.into())) };
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
