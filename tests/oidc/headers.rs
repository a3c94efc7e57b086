//! How the token comes: one bearer token in `Authorization`, and nothing else.

use http::header::HOST;
use http::{HeaderName, HeaderValue};

use crate::world::{AUDIENCE, Mode, Row, World, authorization, bearer, table};

const SERVERLESS: HeaderName = HeaderName::from_static("x-serverless-authorization");

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap()
}

const ROWS: &[Row] = &[
    ("the right token", |w| bearer(&w.token()), 200, ""),
    ("the scheme in lower case", |w| authorization(&[format!("bearer {}", w.token()).as_bytes()]), 200, ""),
    ("the scheme in capitals", |w| authorization(&[format!("BEARER {}", w.token()).as_bytes()]), 200, ""),
    ("blanks around", |w| authorization(&[format!("Bearer  \t {} \t", w.token()).as_bytes()]), 200, ""),
    ("no header", |_| authorization(&[]), 401, "missing"),
    ("an empty header", |_| authorization(&[b""]), 401, "missing"),
    ("another scheme", |_| authorization(&[b"Basic cHVzaGVyOnBhNTV3MHJk"]), 401, "missing"),
    ("no scheme", |w| authorization(&[w.token().as_bytes()]), 401, "missing"),
    ("a longer scheme", |w| authorization(&[format!("Bearers {}", w.token()).as_bytes()]), 401, "missing"),
    ("the scheme alone", |_| authorization(&[b"Bearer"]), 401, "malformed"),
    ("the scheme and blanks", |_| authorization(&[b"Bearer   "]), 401, "malformed"),
    ("two headers", two_headers, 401, "malformed"),
    ("a good header and another", good_and_other, 401, "malformed"),
    ("two tokens in one", two_in_one, 401, "malformed"),
    ("a token in quotes", |w| bearer(&format!("\"{}\"", w.token())), 401, "malformed"),
    ("not ASCII", |w| bearer(&format!("{}é", w.token())), 401, "malformed"),
    ("too long", |w| bearer(&w.keys.token(&w.claims().set("pad", "x".repeat(8000)))), 401, "malformed"),
    ("nearly too long", |w| bearer(&w.keys.token(&w.claims().set("pad", "x".repeat(4000)))), 200, ""),
    ("a word", |_| bearer("secret"), 401, "malformed"),
    ("only for Cloud Run", serverless, 401, "elsewhere"),
    ("one for Cloud Run too", both, 200, ""),
    ("one for Cloud Run, and Basic", basic_and_serverless, 401, "missing"),
    ("a `Host` that is the token's audience", forged_host, 401, "audience"),
];

fn two_headers(w: &World) -> http::HeaderMap {
    let header = format!("Bearer {}", w.token());
    authorization(&[header.as_bytes(), header.as_bytes()])
}

fn good_and_other(w: &World) -> http::HeaderMap {
    authorization(&[format!("Bearer {}", w.token()).as_bytes(), b"Basic cHVzaGVyOnBhNTV3MHJk"])
}

fn two_in_one(w: &World) -> http::HeaderMap {
    authorization(&[format!("Bearer {0}, Bearer {0}", w.token()).as_bytes()])
}

fn serverless(w: &World) -> http::HeaderMap {
    [(SERVERLESS, value(&format!("Bearer {}", w.token())))].into_iter().collect()
}

fn both(w: &World) -> http::HeaderMap {
    let mut headers = bearer(&w.token());
    headers.insert(SERVERLESS, value("Bearer whatever"));
    headers
}

fn basic_and_serverless(w: &World) -> http::HeaderMap {
    let mut headers = serverless(w);
    headers.extend(authorization(&[b"Basic cHVzaGVyOnBhNTV3MHJk"]));
    headers
}

// F37: what the caller chooses is no audience.
fn forged_host(w: &World) -> http::HeaderMap {
    let mut headers = bearer(&w.keys.token(&w.claims().set("aud", "https://evil.example.com")));
    headers.insert(HOST, HeaderValue::from_static("evil.example.com"));
    headers.insert("x-forwarded-host", HeaderValue::from_static("evil.example.com"));
    headers
}

#[tokio::test]
async fn one_bearer_token_is_taken_and_nothing_else() {
    table(Mode::Verify, ROWS).await;
}

#[tokio::test]
async fn the_callers_own_word_of_itself_is_replaced() {
    let world = World::new(Mode::Verify).await;
    assert_eq!(world.push(&world.token()).await.status, 200);
    let [caller] = &world.callers()[..] else { panic!("one caller") };
    assert_eq!(
        (caller.audience.as_str(), caller.subject.as_deref()),
        (AUDIENCE, Some("112233445566778899001"))
    );
}
