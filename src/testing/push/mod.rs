//! `Push`: one delivery as Pub/Sub or Eventarc sends it, in a line of a test.

mod shape;

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};

use axum_core::body::Body;
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde::Serialize;
use tower_service::Service;

use self::shape::{Form, header};
use super::{Answer, Spelling, impossible};
use crate::random;
use crate::store::BoxError;

/// One push, to be sent to a service or taken as a request.
///
/// Without setters: a wrapped push of a message with a fresh id, published on the first of January
/// 2026, of the subscription `projects/test/subscriptions/test`, without a delivery attempt (Pub/Sub
/// counts them only where a dead-letter topic is set), to the path `/`. It may be sent often: that
/// is a redelivery.
#[derive(Debug, Clone)]
#[must_use = "a push does nothing until it is sent"]
pub struct Push {
    data: Bytes,
    form: Form,
    path: String,
    headers: HeaderMap,
    id: String,
    publish_time: String,
    ordering_key: Option<String>,
    attributes: BTreeMap<String, String>,
    subscription: String,
    attempt: Option<u32>,
    spelling: Spelling,
}

impl Push {
    /// A message whose data is this, as JSON.
    ///
    /// # Panics
    /// If it cannot be written as JSON.
    pub fn json(data: &(impl Serialize + ?Sized)) -> Self {
        match serde_json::to_vec(data) {
            Ok(data) => Self::bytes(data),
            Err(error) => impossible(format_args!("the push's data is no JSON: {error}")),
        }
    }

    /// A message with this data.
    pub fn bytes(data: impl Into<Bytes>) -> Self {
        Self {
            data: data.into(),
            form: Form::Wrapped,
            path: "/".to_owned(),
            headers: HeaderMap::new(),
            // As long as Pub/Sub's own, and with no more meaning.
            id: format!("1{:016}", random::number() % 10_000_000_000_000_000),
            publish_time: "2026-01-01T00:00:00.000Z".to_owned(),
            ordering_key: None,
            attributes: BTreeMap::new(),
            subscription: "projects/test/subscriptions/test".to_owned(),
            attempt: None,
            spelling: Spelling::Both,
        }
    }

    /// A message without data, as one that is all attributes.
    pub fn empty() -> Self {
        Self::bytes(Bytes::new())
    }

    /// The message's id.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = id.into();
        self
    }

    /// Sets an attribute.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// The ordering key.
    pub fn ordering_key(mut self, key: impl Into<String>) -> Self {
        self.ordering_key = Some(key.into());
        self
    }

    /// When it was published, in RFC 3339.
    pub fn publish_time(mut self, time: impl Into<String>) -> Self {
        self.publish_time = time.into();
        self
    }

    /// The full name of the subscription: `projects/../subscriptions/..`.
    pub fn subscription(mut self, name: impl Into<String>) -> Self {
        self.subscription = name.into();
        self
    }

    /// Which delivery of the message this is, from 1.
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// How id and time are spelled in an envelope. Default: both ways at once, as Pub/Sub does.
    pub fn spelling(mut self, spelling: Spelling) -> Self {
        self.spelling = spelling;
        self
    }

    /// The next delivery of the same message: one attempt more, if attempts are counted.
    pub fn again(mut self) -> Self {
        self.attempt = self.attempt.map(|attempt| attempt.saturating_add(1));
        self
    }

    /// Where it is sent. Default `/`.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// A header of the request, such as a token.
    ///
    /// # Panics
    /// If HTTP has no such header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        let (name, value) = header(name, value);
        self.headers.insert(name, value);
        self
    }

    /// Payload unwrapping with `write_metadata`: the data is the body, all else is headers. Has no
    /// content type, as Pub/Sub sends none.
    pub fn unwrapped(mut self) -> Self {
        self.form = Form::Unwrapped;
        self
    }

    /// Payload unwrapping without `write_metadata`: the data is the body, all else is lost.
    pub fn unwrapped_without_metadata(mut self) -> Self {
        self.form = Form::Bare;
        self
    }

    /// Eventarc's Pub/Sub trigger: a CloudEvent in binary mode, whose data is the envelope.
    pub fn eventarc(mut self) -> Self {
        self.form = Form::Eventarc;
        self
    }

    /// The same event in structured mode: all of it in one JSON object.
    pub fn structured(mut self) -> Self {
        self.form = Form::Structured;
        self
    }

    /// Sends it to an `axum::Router`, or to any service that takes axum's body (another takes
    /// [`request`](Self::request)), and reads the whole answer. The future borrows nothing, so that
    /// pushes can be spawned to be sent at once.
    ///
    /// # Panics
    /// If the service fails instead of answering, which a router never does, or if the answer's body
    /// breaks off, which under the layer it never does.
    pub fn send<S, R>(&self, service: &S) -> impl Future<Output = Answer> + use<S, R>
    where
        S: Service<Request<Body>, Response = Response<R>, Error: Into<BoxError>> + Clone,
        R: http_body::Body<Error: Into<BoxError>>,
    {
        let answered = self.answered(service);
        async move {
            let answered = answered.await;
            answered.unwrap_or_else(|error| impossible(format_args!("the push got no answer: {error}")))
        }
    }

    /// The same; an error where the service fails instead of answering.
    pub(super) fn answered<S, R>(
        &self,
        service: &S,
    ) -> impl Future<Output = Result<Answer, BoxError>> + use<S, R>
    where
        S: Service<Request<Body>, Response = Response<R>, Error: Into<BoxError>> + Clone,
        R: http_body::Body<Error: Into<BoxError>>,
    {
        let (mut service, request) = (service.clone(), self.request());
        async move {
            poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
            Answer::read(service.call(request).await.map_err(Into::into)?).await
        }
    }

    /// Which delivery this is, where that is counted.
    pub(super) fn counted(mut self, attempt: Option<u32>) -> Self {
        self.attempt = attempt;
        self
    }

    pub(super) fn message_id(&self) -> &str {
        &self.id
    }

    pub(super) fn order(&self) -> Option<&str> {
        self.ordering_key.as_deref()
    }
}
