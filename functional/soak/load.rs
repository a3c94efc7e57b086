//! The load: real pushes over connections that stay, so many a second, some of them twice.

use std::collections::HashSet;
use std::fmt;
use std::net::Ipv4Addr;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use pushonce::store::record::State;
use pushonce::store::{Filter, Page, open};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// As many as Pub/Sub may open to a small service.
const CONNECTIONS: u64 = 8;
/// One message in so many is delivered twice.
const TWICE: usize = 10;
/// A message's data, in bytes.
const DATA: usize = 512;
/// Enough to see what is wrong.
const SHOWN: usize = 5;

/// A load that runs.
pub(crate) struct Load(JoinSet<Sent>);

/// What was sent, and what was answered otherwise than it should.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) messages: usize,
    pub(crate) duplicates: usize,
    pub(crate) refused: Vec<String>,
    took: Duration,
}

impl Load {
    /// Begins to send `rate` pushes a second, in all.
    pub(crate) fn begin(port: u16, rate: u64, length: Duration) -> Self {
        let every = Duration::from_secs(CONNECTIONS) / u32::try_from(rate).unwrap();
        let mut sending = JoinSet::new();
        for connection in 0..CONNECTIONS {
            sending.spawn(send(port, connection, every, length));
        }
        Self(sending)
    }

    pub(crate) async fn ended(self) -> Sent {
        let mut all = Sent::default();
        for sent in self.0.join_all().await {
            all.messages += sent.messages;
            all.duplicates += sent.duplicates;
            all.refused.extend(sent.refused);
            all.took = all.took.max(sent.took);
        }
        all.refused.truncate(SHOWN);
        all
    }
}

/// One connection's share. It waits for each answer, so that a service that is slow gets less.
async fn send(port: u16, connection: u64, every: Duration, length: Duration) -> Sent {
    let mut sent = Sent::default();
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    let (mut to, driven) = handshake(TokioIo::new(stream)).await.unwrap();
    let driven = tokio::spawn(driven);
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let began = Instant::now();
    while began.elapsed() < length {
        ticks.tick().await;
        sent.messages += 1;
        let body = body(&format!("{connection}-{}", sent.messages));
        sent.judge(push(&mut to, body.clone()).await, (200, "ran"));
        if sent.messages % TWICE == 0 {
            ticks.tick().await;
            sent.duplicates += 1;
            sent.judge(push(&mut to, body).await, (204, "duplicate"));
        }
    }
    sent.took = began.elapsed();
    drop(to);
    driven.await.unwrap().unwrap();
    sent
}

fn body(id: &str) -> Bytes {
    let data = BASE64_STANDARD.encode(format!("{id:.<DATA$}"));
    format!(
        r#"{{"message":{{"messageId":"{id}","data":"{data}"}},"subscription":"projects/p/subscriptions/s"}}"#
    )
    .into()
}

async fn push(to: &mut SendRequest<Full<Bytes>>, body: Bytes) -> (u16, String) {
    let request = Request::post("/").header("host", "localhost").header("content-type", "application/json");
    let answer = to.send_request(request.body(Full::new(body)).unwrap()).await.unwrap();
    let outcome = answer.headers().get("pushonce-outcome").map_or("", |name| name.to_str().unwrap());
    let told = (answer.status().as_u16(), outcome.to_owned());
    answer.into_body().collect().await.unwrap();
    told
}

impl Sent {
    fn judge(&mut self, (status, outcome): (u16, String), expected: (u16, &str)) {
        if (status, outcome.as_str()) != expected && self.refused.len() < SHOWN {
            self.refused.push(format!("answered {status} {outcome:?}, and not {expected:?}"));
        }
    }
}

impl fmt::Display for Sent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { messages, duplicates, took, .. } = self;
        let rate = (messages + duplicates) as f64 / took.as_secs_f64();
        write!(f, "{messages} messages and {duplicates} duplicates, {rate:.0} a second")
    }
}

/// How many keys a store has as done.
pub(crate) async fn done(store: &str) -> usize {
    let store = open(store).unwrap();
    let filter = Filter { prefix: "messages:".to_owned(), state: Some(State::Done) };
    let mut page = Page { after: None, limit: 1000 };
    // A page of Redis may bring a key again.
    let mut keys = HashSet::new();
    loop {
        let listing = store.list(&filter, &page).await.unwrap();
        keys.extend(listing.found.into_iter().filter(|found| found.stored.is_ok()).map(|found| found.key));
        match listing.next {
            Some(next) => page.after = Some(next),
            None => return keys.len(),
        }
    }
}
