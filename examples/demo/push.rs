//! The sender's side: bodies as Pub/Sub writes them, and the answers that come back.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use http::{Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use pushonce::Outcome;
use serde_json::{Value, json};

use crate::BoxError;

/// A published message.
pub(crate) struct Message {
    order: Option<String>,
    id: String,
    published: String,
    data: Value,
}

impl Message {
    /// An order, published now under a message id of its own.
    pub(crate) fn order(number: &str, amount: &str) -> Self {
        let data = json!({ "po_id": number, "amount": amount, "currency": "EUR" });
        Self { order: Some(number.to_owned()), ..Self::published(data) }
    }

    /// A message that is no order.
    pub(crate) fn note(text: &str) -> Self {
        Self::published(json!({ "note": text }))
    }

    fn published(data: Value) -> Self {
        // As long as Pub/Sub's own.
        static NEXT: AtomicU64 = AtomicU64::new(10_945_555_000_011_112);
        let id = NEXT.fetch_add(37, Ordering::Relaxed).to_string();
        let now = DateTime::<Utc>::from(SystemTime::now());
        Self { order: None, id, published: now.to_rfc3339_opts(SecondsFormat::Millis, true), data }
    }

    pub(crate) fn order_id(&self) -> Option<&str> {
        self.order.as_deref()
    }

    /// The body of one delivery. Pub/Sub writes ids and times in both spellings.
    pub(crate) fn push(&self, attempt: u32) -> Bytes {
        let body = json!({
            "message": {
                "attributes": { "origin": "webshop" },
                "data": BASE64_STANDARD.encode(self.data.to_string()),
                "messageId": self.id,
                "message_id": self.id,
                "publishTime": self.published,
                "publish_time": self.published,
            },
            "deliveryAttempt": attempt,
            "subscription": "projects/demo/subscriptions/orders-push",
        });
        body.to_string().into()
    }
}

/// What no Pub/Sub would send.
pub(crate) fn no_envelope(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

/// What came back, if anything did.
pub(crate) struct Answer(Option<Response<Bytes>>);

impl Answer {
    pub(crate) fn status(&self) -> Option<StatusCode> {
        self.0.as_ref().map(Response::status)
    }

    pub(crate) fn outcome(&self) -> Option<Outcome> {
        Outcome::from_name(self.header("pushonce-outcome")?)
    }

    pub(crate) fn retry_after(&self) -> Option<Duration> {
        self.header("retry-after")?.parse().ok().map(Duration::from_secs)
    }

    #[cfg(feature = "submit")]
    pub(crate) fn body(&self) -> &[u8] {
        self.0.as_ref().map_or(&[], |answer| answer.body())
    }

    /// Whether the connection broke before an answer came.
    pub(crate) fn died(&self) -> bool {
        self.0.is_none()
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.0.as_ref()?.headers().get(name)?.to_str().ok()
    }
}

/// Sends pushes.
pub(crate) struct Sender(Client<HttpConnector, Full<Bytes>>);

impl Sender {
    pub(crate) fn new() -> Self {
        Self(Client::builder(TokioExecutor::new()).build_http())
    }

    pub(crate) fn send(&self, to: Uri, body: Bytes) -> impl Future<Output = Answer> + use<> {
        let client = self.0.clone();
        async move {
            let mut request = Request::new(Full::new(body));
            *request.method_mut() = http::Method::POST;
            *request.uri_mut() = to;
            let headers = request.headers_mut();
            headers.insert("content-type", http::HeaderValue::from_static("application/json"));
            headers.insert("user-agent", http::HeaderValue::from_static("APIs-Google"));
            Answer(answered(client, request).await.ok())
        }
    }
}

async fn answered(
    client: Client<HttpConnector, Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>, BoxError> {
    let (parts, body) = client.request(request).await?.into_parts();
    Ok(Response::from_parts(parts, body.collect().await?.to_bytes()))
}
