//! Where the messages go: to Pub/Sub, or straight to the worker of this process.

use std::sync::Arc;

use pushonce::publish::{InProcess, Publisher};

use super::{BoxError, variable};

/// The names of the topics that are none.
const TASKS: &str = "projects/in-process/topics/tasks";
const DEAD_LETTERS: &str = "projects/in-process/topics/dead-letters";

/// Where messages go.
pub(super) struct Published {
    pub(super) publisher: Arc<dyn Publisher>,
    pub(super) topic: String,
    pub(super) dead_letters: Option<String>,
    /// To be connected to the service, once that is made.
    pub(super) in_process: Option<InProcess>,
}

pub(super) fn from_env() -> Result<Published, BoxError> {
    match variable("PUSHONCE_TOPIC") {
        Some(topic) => pubsub(topic),
        None => {
            let in_process = InProcess::unconnected().path("/push").topic(DEAD_LETTERS, "/dead-letters");
            Ok(Published {
                publisher: Arc::new(in_process.clone()),
                topic: TASKS.to_owned(),
                dead_letters: Some(DEAD_LETTERS.to_owned()),
                in_process: Some(in_process),
            })
        }
    }
}

#[cfg(feature = "publish")]
fn pubsub(topic: String) -> Result<Published, BoxError> {
    let publisher = Arc::new(pushonce::publish::CloudPubSub::from_env()?);
    let dead_letters = variable("PUSHONCE_DEAD_LETTER_TOPIC");
    Ok(Published { publisher, topic, dead_letters, in_process: None })
}

#[cfg(not(feature = "publish"))]
fn pubsub(_: String) -> Result<Published, BoxError> {
    Err("`PUSHONCE_TOPIC` is set: switch on the feature `publish`".into())
}
