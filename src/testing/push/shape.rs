//! The shapes of a push: its body, its headers, and the request that they make.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use serde_json::{Map, Value, json};

use super::super::impossible;
use super::Push;

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

/// Which of the shapes it is.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    Wrapped,
    Unwrapped,
    Bare,
    Eventarc,
    Structured,
}

impl Push {
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

/// A header that a test has named.
pub(super) fn header(name: &str, value: &str) -> (HeaderName, HeaderValue) {
    match (name.parse(), HeaderValue::from_bytes(value.as_bytes())) {
        (Ok(name), Ok(value)) => (name, value),
        _ => impossible(format_args!("HTTP has no header {name:?} with the value {value:?}")),
    }
}
