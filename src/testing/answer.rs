//! What a push was answered.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt as _;

use crate::pubsub::Outcome;
use crate::pubsub::outcome::HEADER;
use crate::store::BoxError;

/// What a [`Push`](super::Push) was answered.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The outcome that the header `pushonce-outcome` names; `None` where no layer answered.
    pub outcome: Option<Outcome>,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    pub(super) async fn read<R>(response: Response<R>) -> Result<Self, BoxError>
    where
        R: Body<Error: Into<BoxError>>,
    {
        let (parts, body) = response.into_parts();
        let outcome = parts.headers.get(HEADER).and_then(|name| Outcome::from_name(name.to_str().ok()?));
        let body = body.collect().await.map_err(Into::into)?.to_bytes();
        Ok(Self { status: parts.status, outcome, headers: parts.headers, body })
    }

    /// Whether Pub/Sub takes it for an ack: 102, 200, 201, 202 and 204 (Pub/Sub's documentation of
    /// push subscriptions). For everything else it sends the message again.
    pub fn acked(&self) -> bool {
        matches!(self.status.as_u16(), 102 | 200 | 201 | 202 | 204)
    }
}
