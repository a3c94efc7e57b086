//! The two spellings of what every envelope has.

use serde_json::{Value, json};

/// How the id and the publish time of a message are spelled in an envelope. Pub/Sub sends both spellings at
/// once; an emulator, a proxy or an old recording may know one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Spelling {
    /// `messageId` and `message_id`, `publishTime` and `publish_time`.
    #[default]
    Both,
    /// `messageId` and `publishTime`.
    Camel,
    /// `message_id` and `publish_time`.
    Snake,
}

impl Spelling {
    /// The message so far.
    pub(super) fn of(self, id: &str, time: &str) -> Value {
        match self {
            Self::Both => json!({
                "messageId": id,
                "message_id": id,
                "publishTime": time,
                "publish_time": time,
            }),
            Self::Camel => json!({ "messageId": id, "publishTime": time }),
            Self::Snake => json!({ "message_id": id, "publish_time": time }),
        }
    }
}
