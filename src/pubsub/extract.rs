//! What axum sees: the extractors `PubSub<T>`, `Delivery` and `Lease`, and the answers `Ack` and `Failure`.

use std::convert::Infallible;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use axum_core::extract::{
    DefaultBodyLimit, FromRequest, FromRequestParts, OptionalFromRequestParts, Request,
};
use axum_core::response::{IntoResponse, Response};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use serde::de::DeserializeOwned;

use super::delivery::Delivery;
use super::outcome::{HEADER, Verdict, outcome_of};
use super::refused::{BadData, Refused};
use crate::lease::{DeadLetter, Lease};
use crate::store::BoxError;

/// The most that a push's body may have: a message of 10 MB in base64, and room for its attributes.
pub(crate) const BODY_LIMIT: usize = 16 * 1024 * 1024;

/// The message's data as JSON of a `T`, whatever shape the push has and whatever its content type.
///
/// Works with and without the layer. Data that is not JSON of a `T` is answered 422: a nack, so that a
/// corrected deploy can still read the message.
///
/// ```
/// use pushonce::{Ack, Failure, PubSub};
///
/// #[derive(serde::Deserialize)]
/// struct Order { po_id: String }
///
/// async fn place(PubSub(order): PubSub<Order>) -> Result<Ack, Failure> {
///     if order.po_id.is_empty() {
///         return Err("an order without an id".into());
///     }
///     Ok(Ack)
/// }
/// # let _ = axum::routing::post::<_, _, ()>(place);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PubSub<T>(pub T);

impl<T> Deref for PubSub<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> DerefMut for PubSub<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for PubSub<T> {
    type Rejection = NotExtracted;

    async fn from_request(request: Request, state: &S) -> Result<Self, NotExtracted> {
        let delivery = Delivery::from_request(request, state).await?;
        delivery.json().map(PubSub).map_err(NotExtracted::Data)
    }
}

impl<S: Send + Sync> FromRequest<S> for Delivery {
    type Rejection = NotExtracted;

    async fn from_request(request: Request, _: &S) -> Result<Self, NotExtracted> {
        if let Some(delivery) = request.extensions().get::<Self>() {
            return Ok(delivery.clone());
        }
        let (parts, body) = request.into_parts();
        let body = Limited::new(body, BODY_LIMIT).collect().await.map_err(NotExtracted::unread)?.to_bytes();
        Self::decode(&parts.headers, body).map_err(NotExtracted::Refused)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Lease {
    type Rejection = NotExtracted;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, NotExtracted> {
        parts.extensions.get::<Self>().cloned().ok_or(NotExtracted::NoLease)
    }
}

impl<S: Send + Sync> OptionalFromRequestParts<S> for Lease {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Option<Self>, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned())
    }
}

/// Why an extractor of ours gave nothing. Every answer is a nack.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotExtracted {
    /// The request is no push: 400.
    #[error(transparent)]
    Refused(Refused),
    /// The data is not what was asked for: 422.
    #[error(transparent)]
    Data(BadData),
    /// The body ended early or could not be read: 400.
    #[error("the body ended early or could not be read")]
    Body(#[source] BoxError),
    /// The body has more than 16 MiB, which no push has: 413.
    #[error("the body has more than 16 MiB")]
    TooLarge,
    /// There is no lease: 500. Wrap the route in `IdempotentLayer`, or ask for `Option<Lease>`, also
    /// where `PUSHONCE_DISABLED` may be set or the layer allows messages without a key.
    #[error(
        "`Lease` was asked for where no lease is: wrap the route in `IdempotentLayer`, or ask for `Option<Lease>`"
    )]
    NoLease,
}

impl NotExtracted {
    fn unread(error: BoxError) -> Self {
        if error.is::<LengthLimitError>() { Self::TooLarge } else { Self::Body(error) }
    }
}

impl IntoResponse for NotExtracted {
    fn into_response(self) -> Response {
        let status = match self {
            Self::Refused(_) | Self::Body(_) => StatusCode::BAD_REQUEST,
            Self::Data(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::NoLease => StatusCode::INTERNAL_SERVER_ERROR,
        };
        // None of the texts holds what was sent.
        let text = self.to_string();
        let mut response = (status, text).into_response();
        response.extensions_mut().insert(Cause(Arc::new(self.into())));
        response
    }
}

/// A handler's success: 200, with no body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ack;

impl IntoResponse for Ack {
    fn into_response(self) -> Response {
        StatusCode::OK.into_response()
    }
}

/// A handler's failure: any error, by `?`. It is an answer, not an error, and does not implement `Error`.
///
/// [`outcome_of`] finds the verbs' errors in its chain, so a handler that ends in
/// `mutex(..).run(..).await?` answers a quiet 503 while somebody else holds the key. All else is
/// 500. Under the layer the error goes to the log and to its hooks, with all its sources; it never
/// goes into the answer.
pub struct Failure(BoxError);

impl Failure {
    /// A message that can never succeed: [`DeadLetter`].
    pub fn dead_letter(reason: impl Into<String>) -> Self {
        Self(DeadLetter { reason: reason.into() }.into())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Failure").field(&self.0).finish()
    }
}

impl<E: Into<BoxError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let verdict = outcome_of(&*self.0);
        let mut response = verdict.status.into_response();
        response.headers_mut().insert(HEADER, HeaderValue::from_static(verdict.outcome.name()));
        response.extensions_mut().insert(verdict);
        response.extensions_mut().insert(Cause(Arc::new(self.0)));
        response
    }
}

/// What is behind a failing answer, for the layer's log line.
#[derive(Debug, Clone)]
pub(crate) struct Cause(pub(crate) Arc<BoxError>);

/// What a handler's answer says of itself, if it came from a [`Failure`].
pub(crate) fn verdict(extensions: &http::Extensions) -> Option<Verdict> {
    extensions.get::<Verdict>().copied()
}

/// Where axum's extractors stop reading a body, whatever a layer allows.
pub(crate) const AXUM_LIMIT: usize = 2_000_000;

/// Lifts that limit: the layer has counted already.
pub(crate) fn lift_body_limit<B>(request: &mut http::Request<B>) {
    DefaultBodyLimit::disable().apply(request);
}
