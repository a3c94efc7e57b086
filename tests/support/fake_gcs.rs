//! A fake Google Cloud Storage: an HTTP server that speaks the requests of its XML API that the crate
//! `object_store` sends, since no emulator was found that checks the condition on them.
//!
//! It checks the generation and writes under one lock, and answers 429 to a second write of an object
//! within a second, as the service does.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::{DateTime, SecondsFormat, Utc};
use http::header::{CONTENT_TYPE, ETAG, LAST_MODIFIED};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use object_store::StaticCredentialProvider;
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const BUCKET: &str = "fake-bucket";
const GENERATION: &str = "x-goog-generation";
const CONDITION: &str = "x-goog-if-generation-match";
/// How long an object takes no second write.
const PACE: Duration = Duration::from_secs(1);
/// How many names one answer to a list has. Few, so that lists have several.
const LISTED: usize = 3;

/// The fake. It ends when dropped.
#[derive(Debug)]
pub(crate) struct FakeGcs {
    address: SocketAddr,
    objects: Arc<Objects>,
    _serving: JoinSet<io::Result<()>>,
}

#[derive(Debug)]
struct Objects {
    state: Mutex<State>,
    pace: Duration,
    put_off: AtomicUsize,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, Object>,
    /// When each name was last written, also after its deletion.
    written: BTreeMap<String, Instant>,
    generation: u64,
}

#[derive(Debug, Clone)]
struct Object {
    body: Bytes,
    content_type: String,
    generation: u64,
    modified: DateTime<Utc>,
}

impl FakeGcs {
    /// A fake on a free loopback port that takes one write per second of one object.
    pub(crate) async fn start() -> Self {
        Self::with_pace(PACE).await
    }

    /// One that takes writes as they come.
    pub(crate) async fn without_pace() -> Self {
        Self::with_pace(Duration::ZERO).await
    }

    /// One that takes one write of one object in that time.
    pub(crate) async fn with_pace(pace: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let objects = Arc::new(Objects { state: Mutex::default(), pace, put_off: AtomicUsize::new(0) });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, objects.clone()));
        Self { address, objects, _serving: serving }
    }

    /// Its address, as `host:port`.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// How many writes were answered 429.
    pub(crate) fn put_off(&self) -> usize {
        self.objects.put_off.load(Ordering::SeqCst)
    }

    /// The content type of an object, and its body.
    pub(crate) fn object(&self, name: &str) -> Option<(String, Bytes)> {
        let state = lock(&self.objects.state);
        state.objects.get(name).map(|object| (object.content_type.clone(), object.body.clone()))
    }

    /// Deletes an object, as a lifecycle rule would.
    pub(crate) fn delete(&self, name: &str) {
        lock(&self.objects.state).objects.remove(name);
    }
}

/// The library's client of the fake, or of what stands before it at `host`.
pub(crate) fn client(host: &str) -> GoogleCloudStorageBuilder {
    let nobody = GcpCredential { bearer: String::new() };
    GoogleCloudStorageBuilder::new()
        .with_bucket_name(BUCKET)
        .with_base_url(&format!("http://{host}"))
        .with_credentials(Arc::new(StaticCredentialProvider::new(nobody)))
}

async fn serve(listener: TcpListener, objects: Arc<Objects>) -> io::Result<()> {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await?;
        socket.set_nodelay(true)?;
        let objects = objects.clone();
        let service = service_fn(move |request| answer(request, objects.clone()));
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
        while connections.try_join_next().is_some() {}
    }
}

type Answer = Response<Full<Bytes>>;

async fn answer(request: Request<Incoming>, objects: Arc<Objects>) -> Result<Answer, hyper::Error> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let path = decoded(parts.uri.path().trim_start_matches('/'));
    let (bucket, name) = path.split_once('/').unwrap_or((&path, ""));
    if bucket != BUCKET {
        return Ok(error(StatusCode::NOT_FOUND, "NoSuchBucket"));
    }
    let header = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let Ok(answer): Result<_, Infallible> = Ok(match parts.method {
        Method::GET if name.is_empty() => objects.list(parts.uri.query().unwrap_or_default()),
        Method::GET => objects.get(name),
        Method::PUT => {
            let content_type = header(CONTENT_TYPE.as_str()).unwrap_or_default();
            objects.put(name, header(CONDITION), content_type, body)
        }
        _ => error(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
    });
    Ok(answer)
}

impl Objects {
    fn get(&self, name: &str) -> Answer {
        let Some(object) = lock(&self.state).objects.get(name).cloned() else {
            return error(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        Response::builder()
            .header(ETAG, object.e_tag())
            .header(GENERATION, object.generation)
            // In whole seconds, as HTTP has it.
            .header(LAST_MODIFIED, object.modified.format("%a, %d %b %Y %H:%M:%S GMT").to_string())
            .header(CONTENT_TYPE, &object.content_type)
            .body(Full::new(object.body))
            .unwrap()
    }

    fn put(&self, name: &str, condition: Option<&str>, content_type: &str, body: Bytes) -> Answer {
        let mut state = lock(&self.state);
        if state.written.get(name).is_some_and(|written| written.elapsed() < self.pace) {
            self.put_off.fetch_add(1, Ordering::SeqCst);
            return error(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
        }
        // Zero means: no object.
        let stands = state.objects.get(name).map_or(0, |object| object.generation);
        if condition.is_some_and(|condition| condition.parse() != Ok(stands)) {
            return error(StatusCode::PRECONDITION_FAILED, "PreconditionFailed");
        }
        let modified = Utc::now();
        state.generation = u64::try_from(modified.timestamp_micros()).unwrap().max(state.generation + 1);
        let object =
            Object { body, content_type: content_type.to_owned(), generation: state.generation, modified };
        let answer = Response::builder()
            .header(ETAG, object.e_tag())
            .header(GENERATION, object.generation)
            .body(Full::default())
            .unwrap();
        state.written.insert(name.to_owned(), Instant::now());
        state.objects.insert(name.to_owned(), object);
        answer
    }

    fn list(&self, query: &str) -> Answer {
        let parameters: BTreeMap<String, String> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .map(|(name, value)| (decoded(name), decoded(value)))
            .collect();
        let of = |name: &str| parameters.get(name).map(String::as_str).unwrap_or_default();
        let after = of("continuation-token").max(of("start-after"));
        let state = lock(&self.state);
        let mut names =
            state.objects.iter().filter(|(name, _)| name.starts_with(of("prefix")) && name.as_str() > after);
        let mut document = "<ListBucketResult>".to_owned();
        let mut last = "";
        for (name, object) in names.by_ref().take(LISTED) {
            let modified = object.modified.to_rfc3339_opts(SecondsFormat::Millis, true);
            write!(
                document,
                "<Contents><Key>{name}</Key><LastModified>{modified}</LastModified><ETag>{}</ETag><Size>{}</Size></Contents>",
                object.e_tag(),
                object.body.len()
            )
            .unwrap();
            last = name;
        }
        if names.next().is_some() {
            write!(document, "<NextContinuationToken>{last}</NextContinuationToken>").unwrap();
        }
        document.push_str("</ListBucketResult>");
        Response::new(Full::new(document.into()))
    }
}

impl Object {
    /// Of the content, as the service's is: two objects of one content have one ETag.
    fn e_tag(&self) -> String {
        let digest = Sha256::digest(&self.body);
        format!("\"{}\"", digest[..16].iter().map(|byte| format!("{byte:02x}")).collect::<String>())
    }
}

fn error(status: StatusCode, code: &str) -> Answer {
    let document =
        format!("<?xml version='1.0'?><Error><Code>{code}</Code><Message>of the fake</Message></Error>");
    Response::builder().status(status).body(Full::new(document.into())).unwrap()
}

/// Undoes percent-encoding.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).unwrap()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
