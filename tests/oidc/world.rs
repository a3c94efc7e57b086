//! What the tests share: a guarded route behind the layer, and a table of requests with their answers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::routing::post;
use axum::{Extension, Router};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::BodyExt as _;
use pushonce::oidc::{Caller, PushAuthLayer};
use pushonce::store::{Memory, Metered, Totals};
use pushonce::testing::{Claims, KeyServer, ManualClock, Push};
use pushonce::{Clock, IdempotentLayer};
use tower::ServiceExt as _;
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use crate::log::{Line, Log};

pub(crate) const AUDIENCE: &str = "https://orders.example.run.app";
pub(crate) const CUSTOM: &str = "orders";
pub(crate) const CALLER: &str = "pusher@project.iam.gserviceaccount.com";
pub(crate) const OTHER_CALLER: &str = "eventarc@project.iam.gserviceaccount.com";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Verify,
    Platform,
}

/// A route under both layers, with the clock of all of them in hand.
pub(crate) struct World {
    pub(crate) keys: KeyServer,
    pub(crate) clock: ManualClock,
    pub(crate) log: Log,
    pub(crate) auth: PushAuthLayer,
    app: Router,
    store: Arc<Metered<Memory>>,
    callers: Arc<std::sync::Mutex<Vec<Caller>>>,
    ids: AtomicUsize,
    _logging: DefaultGuard,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl World {
    pub(crate) async fn new(mode: Mode) -> Self {
        let clock = ManualClock::new();
        let shared: Arc<dyn Clock> = Arc::new(clock.clone());
        let keys = KeyServer::start().await.clock(shared.clone());
        let (audiences, callers) = ([AUDIENCE, CUSTOM], [CALLER, OTHER_CALLER]);
        let auth = match mode {
            Mode::Verify => PushAuthLayer::verify(audiences, callers),
            Mode::Platform => PushAuthLayer::platform(audiences, callers),
        };
        let auth = auth.keys_url(keys.url()).clock(shared);
        let store = Arc::new(Metered::new(Memory::new()));
        let callers = Arc::<std::sync::Mutex<Vec<Caller>>>::default();
        let seen = callers.clone();
        let handler = async move |Extension(caller): Extension<Caller>| seen.lock().unwrap().push(caller);
        let once = IdempotentLayer::new("orders", store.clone());
        let app = Router::new().route("/", post(handler).layer((auth.clone(), once)));
        let (log, logging) = Log::capture();
        Self { keys, clock, log, auth, app, store, callers, ids: AtomicUsize::new(0), _logging: logging }
    }

    /// The right claims.
    pub(crate) fn claims(&self) -> Claims {
        Claims::new(AUDIENCE, CALLER)
    }

    /// The right token.
    pub(crate) fn token(&self) -> String {
        self.keys.token(&self.claims())
    }

    pub(crate) fn now(&self) -> u64 {
        self.clock.wall().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs()
    }

    /// Sends a push with these headers, each a message of its own.
    pub(crate) fn send(&self, headers: HeaderMap) -> impl Future<Output = Answer> + use<> {
        let id = self.ids.fetch_add(1, Ordering::SeqCst);
        let mut request: Request<Body> = Push::bytes("hello").id(format!("m-{id}")).request();
        request.headers_mut().extend(headers);
        let app = self.app.clone();
        async move {
            let (parts, body) = app.oneshot(request).await.unwrap().into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = String::from_utf8(body.to_vec()).unwrap();
            Answer { status: parts.status.as_u16(), headers: parts.headers, body }
        }
    }

    /// Sends a push with this token.
    pub(crate) fn push(&self, token: &str) -> impl Future<Output = Answer> + use<> {
        self.send(bearer(token))
    }

    /// Who reached the handler, in order.
    pub(crate) fn callers(&self) -> Vec<Caller> {
        self.callers.lock().unwrap().clone()
    }

    pub(crate) fn trips(&self) -> Totals {
        self.store.totals()
    }

    /// The lines of refusals, in order.
    pub(crate) fn refusals(&self) -> Vec<Line> {
        let lines = self.log.outcomes().into_iter();
        lines.filter(|line| line.field("event") == "unauthorized").collect()
    }
}

/// `Authorization: Bearer`.
pub(crate) fn bearer(token: &str) -> HeaderMap {
    authorization(&[format!("Bearer {token}").as_bytes()])
}

/// As many `Authorization` headers.
pub(crate) fn authorization(values: &[&[u8]]) -> HeaderMap {
    values.iter().map(|value| (AUTHORIZATION, HeaderValue::from_bytes(value).unwrap())).collect()
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A row of the table: a request, and what becomes of it. An empty reason: it is let in.
pub(crate) type Row = (&'static str, fn(&World) -> HeaderMap, u16, &'static str);

/// Sends each row to a world of its own, and looks at all that may give it away.
pub(crate) async fn table(mode: Mode, rows: &[Row]) {
    for (name, headers, status, reason) in rows {
        let world = World::new(mode).await;
        let headers = headers(&world);
        let sent: Vec<String> =
            headers.values().map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).collect();
        let answer = world.send(headers).await;
        let lines = world.refusals();
        let why = lines.first().map(|line| line.field("error").to_owned());
        assert_eq!(answer.status, *status, "{name}: {why:?}");
        assert_eq!(answer.body, "", "{name}");
        if reason.is_empty() {
            assert_eq!(answer.header("pushonce-outcome"), "ran", "{name}");
            assert_eq!((world.callers().len(), world.trips().creates.made.count), (1, 1), "{name}");
            assert!(lines.is_empty(), "{name}: {lines:?}");
            continue;
        }
        assert_eq!(answer.header("pushonce-outcome"), "unauthorized", "{name}");
        assert_eq!(world.trips(), Totals::default(), "{name} touched the store");
        assert_eq!(world.callers(), [], "{name} reached the handler");
        let [line] = &lines[..] else { panic!("{name}: expected one line: {lines:?}") };
        assert_eq!((line.field("reason"), line.level), (*reason, Level::ERROR), "{name}: {why:?}");
        assert_eq!(line.field("status"), status.to_string(), "{name}");
        assert_eq!(line.field("expected_audience"), format!("{AUDIENCE}, {CUSTOM}"), "{name}");
        told(name, &answer, reason);
        silent(name, &world.log, &sent);
    }
}

/// What RFC 6750 asks of the answer.
fn told(name: &str, answer: &Answer, reason: &str) {
    let challenge = match (answer.status, reason) {
        (401, "missing" | "elsewhere") => "Bearer",
        (401, _) => "Bearer error=\"invalid_token\"",
        _ => "",
    };
    assert_eq!(answer.header("www-authenticate"), challenge, "{name}");
    assert_eq!(answer.headers.contains_key("retry-after"), answer.status == 503, "{name}");
}

/// No line has a part of a token that could be used.
fn silent(name: &str, log: &Log, sent: &[String]) {
    let lines = format!("{:?}", log.lines());
    for part in sent.iter().flat_map(|value| value.split(['.', ' '])).filter(|part| part.len() > 30) {
        assert!(!lines.contains(part), "{name}: the log has {part}");
    }
}
