//! `Push`: one delivery as Pub/Sub or Eventarc sends it, in a line of a test.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};

use axum_core::body::Body;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, Uri};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tower_service::Service;

use super::{Answer, Spelling, impossible};
use crate::random;
use crate::store::BoxError;

/// What Pub/Sub calls itself.
const AGENT: HeaderValue =
    HeaderValue::from_static("APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const ATTEMPT: HeaderName = HeaderName::from_static("x-goog-pubsub-delivery-attempt");
const STRUCTURED: HeaderValue = HeaderValue::from_static("application/cloudevents+json; charset=utf-8");
/// The attributes of the CloudEvent around an envelope, but for its id and its time.
const EVENT: [(&str, &str); 3] = [
    ("specversion", "1.0"),
    ("source", "//pubsub.googleapis.com/projects/test/topics/test"),
    ("type", "google.cloud.pubsub.topic.v1.messagePublished"),
];

#[derive(Debug, Clone, Copy)]
enum Form {
    Wrapped,
    Unwrapped,
    Bare,
    Eventarc,
    Structured,
}

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

    /// The body alone.
    pub fn body(&self) -> Bytes {
        match self.form {
            Form::Wrapped | Form::Eventarc => self.envelope().to_string().into(),
            Form::Unwrapped | Form::Bare => self.data.clone(),
            Form::Structured => {
                let mut event: Map<String, Value> =
                    self.event().map(|(name, value)| (name.to_owned(), value.into())).collect();
                event.insert("datacontenttype".to_owned(), "application/json".into());
                event.insert("data".to_owned(), self.envelope());
                Value::Object(event).to_string().into()
            }
        }
    }

    /// The request, for a client of one's own: `B` is whatever body that client takes.
    ///
    /// # Panics
    /// If the path is none, or if the push is unwrapped and has an attribute that HTTP has no header for.
    pub fn request<B: From<Bytes>>(&self) -> Request<B> {
        let mut request = Request::new(B::from(self.body()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = match Uri::try_from(&self.path) {
            Ok(path) => path,
            Err(error) => impossible(format_args!("the push's path {:?}: {error}", self.path)),
        };
        let headers = request.headers_mut();
        headers.insert(USER_AGENT, AGENT);
        match self.form {
            Form::Wrapped => drop(headers.insert(CONTENT_TYPE, JSON)),
            Form::Structured => drop(headers.insert(CONTENT_TYPE, STRUCTURED)),
            Form::Unwrapped => {
                headers.extend(self.metadata().map(|(name, value)| header(name, value)));
                headers.extend(self.attempt.map(|attempt| (ATTEMPT, attempt.into())));
            }
            Form::Bare => {}
            Form::Eventarc => {
                headers.insert(CONTENT_TYPE, JSON);
                headers.extend(self.event().map(|(name, value)| header(&format!("ce-{name}"), value)));
            }
        }
        headers.extend(self.headers.clone());
        request
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

    /// Pub/Sub's envelope. What is empty is left out.
    fn envelope(&self) -> Value {
        let mut message = self.spelling.of(&self.id, &self.publish_time);
        if !self.data.is_empty() {
            message["data"] = BASE64_STANDARD.encode(&self.data).into();
        }
        if !self.attributes.is_empty() {
            message["attributes"] = json!(self.attributes);
        }
        if let Some(key) = &self.ordering_key {
            message["orderingKey"] = key.as_str().into();
        }
        let mut envelope = json!({ "message": message, "subscription": self.subscription });
        if let Some(attempt) = self.attempt {
            envelope["deliveryAttempt"] = attempt.into();
        }
        envelope
    }

    /// The CloudEvent's attributes.
    fn event(&self) -> impl Iterator<Item = (&str, &str)> {
        EVENT.into_iter().chain([("id", self.id.as_str()), ("time", self.publish_time.as_str())])
    }

    /// What `write_metadata` puts into headers.
    fn metadata(&self) -> impl Iterator<Item = (&str, &str)> {
        let known = [
            ("x-goog-pubsub-subscription-name", Some(&self.subscription)),
            ("x-goog-pubsub-message-id", Some(&self.id)),
            ("x-goog-pubsub-publish-time", Some(&self.publish_time)),
            ("x-goog-pubsub-ordering-key", self.ordering_key.as_ref()),
        ];
        let known = known.into_iter().filter_map(|(name, value)| Some((name, value?.as_str())));
        known.chain(self.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())))
    }
}

fn header(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    match (name.parse(), HeaderValue::from_bytes(value.as_bytes())) {
        (Ok(name), Ok(value)) => (name, value),
        _ => impossible(format_args!("HTTP has no header {name:?} with the value {value:?}")),
    }
}
