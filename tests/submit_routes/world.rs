//! What the tests share: a store and a publisher that can be made to fail, requests, and their answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request};
use http_body_util::BodyExt as _;
use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::chaos::Chaos;
use pushonce::store::{BoxFuture, Memory};
use pushonce::submit::{Submitter, routes};
use serde_json::Value;
use tokio::sync::Semaphore;
use tower::ServiceExt as _;

pub(crate) const TOPIC: &str = "projects/p/topics/tasks";
pub(crate) const PROBLEM: &str = "application/problem+json";

/// What becomes of one publish.
#[derive(Debug)]
pub(crate) enum Fate {
    Refused,
    Unavailable,
    /// It is stored, and its answer lost.
    Unanswered,
    Panics,
    /// It waits until the world lets it go.
    Waits,
}

/// A publisher that keeps what it is given, but for planned faults.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) fates: Mutex<VecDeque<Fate>>,
    messages: Mutex<Vec<Message>>,
    /// One permit for each publish that waits.
    pub(crate) gate: Semaphore,
    /// One permit for each publish that came to wait.
    pub(crate) waiting: Semaphore,
}

impl Publisher for Recorder {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        assert_eq!(topic, TOPIC);
        Box::pin(async move {
            // An error of a publisher may name what it was given.
            let what = format!("{:?}", message.attributes);
            let fate = self.fates.lock().unwrap().pop_front();
            match fate {
                Some(Fate::Refused) => return Err(PublishError::Refused { what: "no".into(), source: None }),
                Some(Fate::Unavailable) => {
                    return Err(PublishError::Unavailable { what: "not now".into(), source: None });
                }
                Some(Fate::Panics) => panic!("a planned panic"),
                Some(Fate::Waits) => {
                    self.waiting.add_permits(1);
                    self.gate.acquire().await.unwrap().forget();
                }
                Some(Fate::Unanswered) | None => {}
            }
            let mut messages = self.messages.lock().unwrap();
            messages.push(message.clone());
            if matches!(fate, Some(Fate::Unanswered)) {
                return Err(PublishError::Unanswered { what, source: None });
            }
            Ok(messages.len().to_string().into())
        })
    }
}

/// The memory store behind one that makes faults to order, a recording publisher, and the routes.
pub(crate) struct World {
    pub(crate) chaos: Arc<Chaos>,
    pub(crate) publisher: Arc<Recorder>,
    pub(crate) submitter: Submitter,
    pub(crate) app: Router,
}

impl World {
    pub(crate) fn new() -> Self {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let publisher = Arc::new(Recorder {
            fates: Mutex::default(),
            messages: Mutex::default(),
            gate: Semaphore::new(0),
            waiting: Semaphore::new(0),
        });
        let submitter = Submitter::new(chaos.clone(), publisher.clone(), TOPIC);
        Self { chaos, publisher, app: routes(submitter.clone()).router(), submitter }
    }

    /// The next publishes, in order; further ones succeed.
    pub(crate) fn plan(&self, fates: impl IntoIterator<Item = Fate>) {
        self.publisher.fates.lock().unwrap().extend(fates);
    }

    pub(crate) fn messages(&self) -> Vec<Message> {
        self.publisher.messages.lock().unwrap().clone()
    }

    /// That attribute of each message.
    pub(crate) fn attributes(&self, name: &str) -> Vec<Option<String>> {
        self.messages().iter().map(|message| message.attributes.get(name).cloned()).collect()
    }

    /// A task comes to its end, as its worker's layer says it.
    pub(crate) async fn end(&self, id: &str, end: End) {
        self.submitter.tasks().ended(id, end).await.unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        send(&self.app, request).await
    }

    /// Submits with these headers.
    pub(crate) async fn submit(&self, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send(request(Method::POST, path, headers, body)).await
    }

    /// Submits `{"input": 1}` of the type `charge` with a key.
    pub(crate) async fn keyed(&self, key: &str) -> Answer {
        self.submit("/tasks/charge", &[("idempotency-key", key)], r#"{"input":1}"#).await
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(request(Method::GET, path, &[], "")).await
    }

    pub(crate) async fn post(&self, path: &str) -> Answer {
        self.send(request(Method::POST, path, &[], "")).await
    }

    /// Nothing was written and nothing published.
    #[track_caller]
    pub(crate) fn untouched(&self) {
        assert_eq!((self.chaos.trips().swaps, self.messages().len()), (0, 0));
    }
}

pub(crate) fn request(method: Method, path: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    let request =
        headers.iter().fold(Request::builder().method(method).uri(path), |request, (name, value)| {
            request.header(*name, *value)
        });
    request.body(Body::from(body.to_owned())).unwrap()
}

/// What came back. An error is checked to be problem details, a task to be one.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
    pub(crate) json: Value,
}

impl Answer {
    /// A header; empty where there is none.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// A member that is a text; empty where there is none.
    pub(crate) fn text(&self, member: &str) -> &str {
        self.json[member].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> String {
        assert_eq!(self.text("task_id").len(), 36, "{}", self.text);
        self.text("task_id").to_owned()
    }

    /// Status and code.
    pub(crate) fn told(&self) -> (u16, &str) {
        (self.status, self.text("code"))
    }
}

pub(crate) async fn send(app: &Router, request: Request<Body>) -> Answer {
    let head = request.method() == Method::HEAD;
    let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    let (status, headers) = (parts.status.as_u16(), parts.headers);
    let json = serde_json::from_str(&text).unwrap_or_default();
    let answer = Answer { status, headers, text, json };
    if head {
        assert_eq!(answer.text, "");
    } else if answer.status >= 400 {
        assert_eq!(answer.header("content-type"), PROBLEM, "{answer:?}");
        assert_eq!(answer.json["status"], answer.status, "{answer:?}");
        let of_the_code = answer.text("code").to_lowercase().replace('_', "-");
        assert_eq!(answer.text("type"), format!("urn:pushonce:problem:{of_the_code}"), "{answer:?}");
        assert!(!answer.text("title").is_empty() && answer.text("detail").ends_with('.'), "{answer:?}");
    } else {
        assert_eq!(answer.header("content-type"), "application/json", "{answer:?}");
        assert!(answer.json["duplicate"].is_boolean() && !answer.text("state").is_empty(), "{answer:?}");
        assert!(answer.header("location").ends_with(&format!("/tasks/{}", answer.id())), "{answer:?}");
    }
    assert_eq!(answer.header("cache-control"), "no-store", "{answer:?}");
    answer
}
