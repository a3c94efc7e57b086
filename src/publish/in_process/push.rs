//! One message as Pub/Sub pushes it, and one attempt to deliver it.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use futures_util::FutureExt as _;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::uri::InvalidUri;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower_service::Service;

use crate::publish::Message;
use crate::random;
use crate::store::{BoxError, BoxFuture};

/// What Pub/Sub calls itself.
const AGENT: HeaderValue =
    HeaderValue::from_static("APIs-Google; (+https://developers.google.com/webmasters/APIs-Google.html)");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// The service, of whatever type.
pub(super) type Target =
    Arc<dyn Fn(Request<Full<Bytes>>) -> BoxFuture<'static, Result<StatusCode, BoxError>> + Send + Sync>;

pub(super) fn erased<S, R>(service: S) -> Target
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>, Error: Into<BoxError>, Future: Send>,
    S: Clone + Send + Sync + 'static,
    R: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    Arc::new(move |request| {
        let mut service = service.clone();
        Box::pin(async move {
            poll_fn(|context| service.poll_ready(context)).await.map_err(Into::into)?;
            let (parts, body) = service.call(request).await.map_err(Into::into)?.into_parts();
            // An answer whose body breaks off is none.
            let mut body = pin!(body);
            while let Some(frame) = body.frame().await {
                frame.map_err(Into::into)?;
            }
            Ok(parts.status)
        })
    })
}

/// A message on its way.
#[derive(Debug)]
pub(super) struct Push {
    topic: Arc<str>,
    path: Uri,
    id: Arc<str>,
    order: Option<String>,
    envelope: Value,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) enum Attempt {
    Acked,
    Nacked(StatusCode),
    Unanswered(BoxError),
}

impl Push {
    pub(super) fn new(
        topic: &str,
        path: &str,
        message: &Message,
        published: SystemTime,
    ) -> Result<Self, InvalidUri> {
        // Random, since a store may outlive the process: a second message of an id would be dropped.
        let id: Arc<str> = random::id().to_string().into();
        let published = DateTime::<Utc>::from(published).to_rfc3339_opts(SecondsFormat::Millis, true);
        // Pub/Sub sends both spellings, and leaves out what is empty.
        let mut inner = json!({
            "messageId": &*id,
            "message_id": &*id,
            "publishTime": published,
            "publish_time": published,
        });
        if !message.data.is_empty() {
            inner["data"] = BASE64_STANDARD.encode(&message.data).into();
        }
        if !message.attributes.is_empty() {
            inner["attributes"] = json!(message.attributes);
        }
        if let Some(key) = &message.ordering_key {
            inner["orderingKey"] = key.as_str().into();
        }
        let subscription = topic.replacen("/topics/", "/subscriptions/", 1);
        Ok(Self {
            topic: topic.into(),
            path: path.parse()?,
            id,
            order: message.ordering_key.clone(),
            envelope: json!({ "message": inner, "subscription": subscription }),
        })
    }

    pub(super) fn id(&self) -> &Arc<str> {
        &self.id
    }

    pub(super) fn topic(&self) -> &Arc<str> {
        &self.topic
    }

    /// Within what it waits for those before it.
    pub(super) fn order(&self) -> Option<(Arc<str>, String)> {
        Some((self.topic.clone(), self.order.clone()?))
    }

    /// Delivers it once, and hangs up at the deadline.
    pub(super) async fn attempt(&mut self, target: &Target, attempt: u32, deadline: Duration) -> Attempt {
        // A panic closes the connection, as it does under a server.
        let answered = AssertUnwindSafe(target(self.request(attempt))).catch_unwind();
        match tokio::time::timeout(deadline, answered).await {
            // Pub/Sub's documentation of push subscriptions.
            Ok(Ok(Ok(status))) if matches!(status.as_u16(), 102 | 200 | 201 | 202 | 204) => Attempt::Acked,
            Ok(Ok(Ok(status))) => Attempt::Nacked(status),
            Ok(Ok(Err(error))) => Attempt::Unanswered(error),
            Ok(Err(_)) => Attempt::Unanswered("the service panicked".into()),
            Err(_) => Attempt::Unanswered("no answer by the ack deadline".into()),
        }
    }

    fn request(&mut self, attempt: u32) -> Request<Full<Bytes>> {
        self.envelope["deliveryAttempt"] = attempt.into();
        let mut request = Request::new(Full::new(self.envelope.to_string().into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.path.clone();
        request.headers_mut().extend([(CONTENT_TYPE, JSON), (USER_AGENT, AGENT)]);
        request
    }
}
