//! What became of a dead letter that was to be redriven.

use pushonce::dead_letter::{RedriveError, Redriven, Republished};
use serde::Serialize;

use crate::output::{chain, moment};

/// What became of one. The fields are a promise to scripts: none is renamed.
#[derive(Debug, Default, Serialize)]
pub(super) struct Became {
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
    pub(super) words: String,
}

/// Whether the next one would meet it too.
pub(super) fn is_shared(error: &RedriveError) -> bool {
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
    pub(super) fn of(id: &str, done: &Result<Redriven, RedriveError>) -> Self {
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
