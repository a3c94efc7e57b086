//! The route of a receiver: reads a push, keeps it, answers, and logs one line.

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use http::StatusCode;

use super::{DeadLetterEntry, NotKept, Received, Receiver};
use crate::chain::{OneLine, chain};
use crate::key::{Key, KeyInLogs, hidden};
use crate::pubsub::{Delivery, NotExtracted};

impl Receiver {
    /// The route, at `/`, for every shape of a push: nest it where the subscription pushes to, and wrap it
    /// in the layer that checks the push token. It acks by 204 what is kept, and nacks all else: 400 for
    /// what is no push or has no message id, 413 for what is too large, 503 where the store is out. Each
    /// push is one line in the log, without payload, and with the key's hash instead of the key.
    pub fn router(self) -> Router {
        Router::new().route("/", post(receive)).with_state(self)
    }
}

async fn receive(State(receiver): State<Receiver>, push: Result<Delivery, NotExtracted>) -> Response {
    let delivery = match push {
        Ok(delivery) => delivery,
        Err(refused) => {
            tracing::error!(event = "refused", error = chain(&refused), "no push of a dead letter");
            return refused.into_response();
        }
    };
    match receiver.keep(&delivery).await {
        Ok(Received::Kept(entry)) => tell(&entry),
        Ok(Received::Copy(entry)) => {
            let message_id = delivery.message_id();
            tracing::info!(event = "dead-letter-copy", dead_letter = entry.id, message_id, state = %entry.state, "a copy of dead letter {}, which is {}", entry.id, entry.state);
        }
        Err(not_kept) => {
            let error = chain(&not_kept);
            let (message_id, subscription) = (delivery.message_id(), delivery.subscription());
            tracing::error!(
                event = "dead-letter-not-kept",
                message_id,
                subscription,
                error,
                "a dead letter is not acked: {}",
                OneLine(&error)
            );
            return not_kept.status().into_response();
        }
    }
    StatusCode::NO_CONTENT.into_response()
}

impl NotKept {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unnamed | Self::Data(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::InProgress { .. } | Self::Follow(_) | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
        }
    }
}

fn tell(entry: &DeadLetterEntry) {
    // Whether the layer shows the key in its own lines is not told here, so it is hashed.
    let key = entry.named_key().map(|key| key.in_logs(KeyInLogs::Hashed));
    let reason = entry.reason.as_deref().map(|reason| hidden(&key, reason));
    tracing::warn!(
        event = "dead-letter-kept",
        dead_letter = entry.id,
        source = %entry.source,
        consumer = entry.consumer,
        key = key.as_ref().map(Key::to_string),
        message_id = entry.message_id,
        source_message_id = entry.source_message_id,
        subscription = entry.subscription,
        attempts = entry.attempts,
        reason,
        "dead letter {}: {}",
        entry.id,
        OneLine(reason.as_deref().unwrap_or("given up after its attempts")),
    );
}
