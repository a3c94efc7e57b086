//! What Pub/Sub takes: refused here, where the text can say what is too large.

use super::{Message, PublishError};

/// Pub/Sub's quotas and limits, "Resource limits": <https://cloud.google.com/pubsub/quotas#resource_limits>.
const MESSAGE: usize = 10_000_000;
const ATTRIBUTES: usize = 100;
const NAME: usize = 256;
const VALUE: usize = 1024;
const ORDERING_KEY: usize = 1024;

/// Refuses what Pub/Sub would refuse. No text says what a value or the data is.
pub(super) fn check(topic: &str, message: &Message) -> Result<(), PublishError> {
    let what = match refusal(message) {
        _ if !is_topic(topic) => format!("{topic:?} is no topic: expected projects/PROJECT/topics/TOPIC"),
        None => return Ok(()),
        Some(what) => what,
    };
    Err(PublishError::Refused { what, source: None })
}

/// `projects/p/topics/t`, each a single part.
fn is_topic(topic: &str) -> bool {
    let part =
        |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
    topic
        .strip_prefix("projects/")
        .and_then(|rest| rest.split_once("/topics/"))
        .is_some_and(|(project, name)| part(project) && part(name))
}

fn refusal(message: &Message) -> Option<String> {
    let Message { data, attributes, ordering_key } = message;
    if data.is_empty() && attributes.is_empty() {
        return Some("a message needs data or an attribute".to_owned());
    }
    if attributes.len() > ATTRIBUTES {
        return Some(format!("{} attributes, and Pub/Sub takes {ATTRIBUTES}", attributes.len()));
    }
    if let Some(key) = ordering_key.as_deref().filter(|key| key.is_empty() || key.len() > ORDERING_KEY) {
        return Some(format!(
            "an ordering key of {} bytes, and Pub/Sub takes 1 to {ORDERING_KEY}",
            key.len()
        ));
    }
    for (name, value) in attributes {
        if name.is_empty() || name.len() > NAME {
            return Some(format!(
                "an attribute's name of {} bytes, and Pub/Sub takes 1 to {NAME}",
                name.len()
            ));
        }
        if value.len() > VALUE {
            let length = value.len();
            return Some(format!("the attribute {name:?} of {length} bytes, and Pub/Sub takes {VALUE}"));
        }
    }
    let texts: usize = attributes.iter().map(|(name, value)| name.len() + value.len()).sum();
    let size = data.len() + texts + ordering_key.as_ref().map_or(0, String::len);
    (size > MESSAGE).then(|| format!("a message of {size} bytes, and Pub/Sub takes {MESSAGE}"))
}
