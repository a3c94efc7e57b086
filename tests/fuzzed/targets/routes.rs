//! The submit routes: no request breaks them, and a key with its input is one task, however often it is sent.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::BodyExt as _;
use pushonce::Store;
use pushonce::idempotent::{End, Follow as _};
use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Filter, Maintain as _, Memory, Page};
use pushonce::submit::{Denied, Submitter, routes};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::input::Input;
use super::runtime;

/// Of each error the documented code. Nothing fails here, so that none is a 5xx.
const CODES: [(u16, &str); 13] = [
    (400, "INVALID_BODY"),
    (400, "INVALID_PATH"),
    (400, "INVALID_SUBMISSION"),
    (400, "IDEMPOTENCY_KEY_INVALID"),
    (401, "UNAUTHENTICATED"),
    (403, "FORBIDDEN"),
    (404, "TASK_NOT_FOUND"),
    (405, "METHOD_NOT_ALLOWED"),
    (409, "IDEMPOTENCY_IN_PROGRESS"),
    (409, "TASK_OVER"),
    (413, "BODY_TOO_LARGE"),
    (415, "BODY_ENCODED"),
    (422, "IDEMPOTENCY_CONFLICT"),
];

/// In bytes. Small, so that it is met.
const BODY_LIMIT: usize = 2048;

#[derive(Debug, Default)]
struct Published(Mutex<Vec<Message>>);

impl Publisher for Published {
    fn publish<'a>(
        &'a self,
        _: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        self.0.lock().unwrap().push(message.clone());
        Box::pin(async { Ok("1".into()) })
    }
}

struct World {
    store: Arc<Memory>,
    published: Arc<Published>,
    submitter: Submitter,
    app: Router,
}

/// What came back; the body of an answer to `HEAD` is `null`.
struct Answer {
    status: u16,
    headers: HeaderMap,
    json: Value,
}

impl Answer {
    fn text(&self, member: &str) -> &str {
        self.json[member].as_str().unwrap_or_default()
    }

    fn told(&self) -> (u16, &str) {
        (self.status, self.text("code"))
    }
}

pub(crate) fn run(input: &[u8]) -> &'static str {
    runtime(sent(Input::read(input)))
}

async fn sent(input: Input) -> &'static str {
    let (method, path) = input.line.split_once(' ').unwrap_or(("", &input.line));
    let path = path.strip_suffix(" HTTP/1.1").unwrap_or(path);
    let (Ok(method), Ok(path)) = (Method::from_bytes(method.as_bytes()), path.parse::<Uri>()) else {
        return "no request";
    };
    let world = World::new();
    let send = async |body: &[u8]| {
        let mut request = Request::new(Body::from(body.to_vec()));
        (*request.method_mut(), *request.uri_mut()) = (method.clone(), path.clone());
        *request.headers_mut() = input.headers.clone();
        world.answer(request).await
    };
    let first = send(&input.body).await;
    if first.status != 202 {
        let again = send(&input.body).await;
        assert_eq!(first.told(), again.told());
        world.untouched().await;
        return if first.status == 404 { "nothing there" } else { "refused" };
    }
    let id = first.text("task_id");
    world.published(&[id]);
    let mut spaced = input.body.to_vec();
    if spaced.len() < BODY_LIMIT {
        spaced.insert(0, b'\n');
    }
    if first.json["idempotency_key"].is_null() {
        let second = send(&spaced).await;
        assert_eq!(second.status, 202);
        assert_ne!(second.text("task_id"), id);
        world.published(&[id, second.text("task_id")]);
        return "task";
    }
    for body in [&input.body[..], &spaced] {
        let second = send(body).await;
        assert_eq!(second.told(), (409, "IDEMPOTENCY_IN_PROGRESS"));
        assert_eq!(second.text("task_id"), id);
    }
    if let Some(other) = other_input(&input.body) {
        assert_eq!(send(&other).await.told(), (422, "IDEMPOTENCY_CONFLICT"));
    }
    world.submitter.tasks().ended(id, End::Completed).await.unwrap();
    for body in [&input.body[..], &spaced] {
        let replay = send(body).await;
        assert_eq!((replay.status, &replay.json["duplicate"]), (200, &json!(true)));
        assert_eq!((replay.text("task_id"), replay.text("state")), (id, "completed"));
        assert_eq!(replay.headers["idempotent-replayed"], "true");
    }
    world.published(&[id]);
    "replayed"
}

/// The same submission of something else. Written anew, so only where that is read as the same.
fn other_input(body: &[u8]) -> Option<Vec<u8>> {
    let mut json = serde_json::from_slice::<Value>(body).ok()?;
    let another = Value::from("another");
    match &mut json["input"] {
        // At its end, so that all of it has to count.
        Value::Object(members) => drop(members.insert("~".to_owned(), another)),
        Value::Array(items) => items.push(another),
        Value::String(text) => text.push('~'),
        other => *other = another,
    }
    Some(json.to_string().into_bytes()).filter(|body| body.len() <= BODY_LIMIT)
}

impl World {
    fn new() -> Self {
        let (store, published) = (Arc::new(Memory::new()), Arc::<Published>::default());
        let submitter =
            Submitter::new(store.clone() as Arc<dyn Store>, published.clone(), "projects/p/topics/t");
        let tenant = |parts: &http::request::Parts| match parts.headers.get("x-tenant") {
            None => Ok(None),
            Some(name) if name == "forbidden" => Err(Denied::Forbidden),
            Some(name) => {
                name.to_str().map(|name| Some(name.to_owned())).map_err(|_| Denied::Unauthenticated)
            }
        };
        let app = routes(submitter.clone()).tenant(tenant).body_limit(BODY_LIMIT).router();
        Self { store, published, submitter, app }
    }

    /// Sends a request and checks that its answer is one of the documented ones.
    async fn answer(&self, request: Request<Body>) -> Answer {
        let head = request.method() == Method::HEAD;
        let (parts, body) = self.app.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let json = serde_json::from_slice(&body).unwrap_or_default();
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, json };
        let kind = answer.headers.get("content-type").map(|kind| kind.to_str().unwrap()).unwrap_or_default();
        assert!(!parts.status.is_server_error(), "{:?}", answer.told());
        if head || (parts.status == StatusCode::NOT_FOUND && kind.is_empty()) {
            assert!(body.is_empty(), "{:?}", answer.told());
        } else if parts.status.is_success() {
            assert!([200, 202].contains(&answer.status) && kind == "application/json", "{}", answer.status);
            let address = format!("/tasks/{}", answer.text("task_id"));
            assert_eq!(answer.headers["location"], address);
            self.shown(&address, &answer).await;
        } else {
            assert!(CODES.contains(&answer.told()), "{:?}", answer.told());
            assert_eq!(kind, "application/problem+json");
            assert_eq!(answer.json["status"], answer.status);
            assert!(answer.text("detail").ends_with('.'), "{:?}", answer.text("detail"));
        }
        answer
    }

    /// The task that an answer tells of is there for whoever it belongs to.
    async fn shown(&self, address: &str, told: &Answer) {
        let mut request = Request::get(address);
        if let Some(tenant) = told.json["tenant"].as_str() {
            request = request.header("x-tenant", tenant);
        }
        let answer = self.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), 200);
    }

    /// One message for each of these tasks, and no other.
    fn published(&self, tasks: &[&str]) {
        let messages = self.published.0.lock().unwrap();
        let ids: Vec<_> = messages.iter().map(|message| message.attributes["task-id"].as_str()).collect();
        assert_eq!(ids, tasks);
        for message in messages.iter() {
            assert!(serde_json::from_slice::<&serde_json::value::RawValue>(&message.data).is_ok());
            let long = message.attributes.iter().find(|(name, value)| name.len() > 256 || value.len() > 1024);
            assert_eq!(long, None, "Pub/Sub would refuse it");
        }
    }

    /// What is refused leaves nothing behind.
    async fn untouched(&self) {
        self.published(&[]);
        let listing = self.store.list(&Filter::default(), &Page::default()).await.unwrap();
        assert!(listing.found.is_empty(), "{:?}", listing.found);
    }
}
