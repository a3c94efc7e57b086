//! What the token says: each claim, wrong or missing.

use serde_json::{Value, json};

use crate::world::{CALLER, CUSTOM, Mode, OTHER_CALLER, Row, World, bearer, table};

fn with(w: &World, name: &str, value: impl Into<Value>) -> http::HeaderMap {
    bearer(&w.keys.token(&w.claims().set(name, value)))
}

fn without(w: &World, name: &str) -> http::HeaderMap {
    bearer(&w.keys.token(&w.claims().without(name)))
}

/// A null, which is in the token.
fn null(w: &World, name: &str) -> http::HeaderMap {
    let now = w.now();
    let mut claims = json!({
        "iss": "https://accounts.google.com", "aud": CUSTOM, "email": CALLER, "email_verified": true,
        "iat": now, "exp": now + 3600,
    });
    claims[name] = Value::Null;
    bearer(&w.keys.sign(&json!({ "alg": "RS256", "kid": w.keys.kid() }), &claims))
}

const ISSUERS: &[Row] = &[
    ("without the scheme", |w| with(w, "iss", "accounts.google.com"), 200, ""),
    ("another issuer", |w| with(w, "iss", "https://issuer.example.com"), 401, "issuer"),
    ("with a slash", |w| with(w, "iss", "https://accounts.google.com/"), 401, "issuer"),
    ("without TLS", |w| with(w, "iss", "http://accounts.google.com"), 401, "issuer"),
    ("longer", |w| with(w, "iss", "https://accounts.google.com.example.com"), 401, "issuer"),
    ("in capitals", |w| with(w, "iss", "https://Accounts.google.com"), 401, "issuer"),
    ("empty", |w| with(w, "iss", ""), 401, "issuer"),
    ("of Firebase", |w| with(w, "iss", "https://securetoken.google.com/project"), 401, "issuer"),
    ("a list", |w| with(w, "iss", json!(["https://accounts.google.com"])), 401, "malformed"),
    ("no issuer", |w| without(w, "iss"), 401, "claim-missing"),
    ("a null", |w| null(w, "iss"), 401, "claim-missing"),
];

// F33, F37
const AUDIENCES: &[Row] = &[
    ("the other one of ours", |w| with(w, "aud", CUSTOM), 200, ""),
    ("a list with ours", |w| with(w, "aud", json!(["https://a.example.com", CUSTOM])), 200, ""),
    ("a list of ours alone", |w| with(w, "aud", json!([CUSTOM])), 200, ""),
    ("a list without ours", |w| with(w, "aud", json!(["https://a.example.com", "b"])), 401, "audience"),
    ("an empty list", |w| with(w, "aud", json!([])), 401, "audience"),
    ("another service", |w| with(w, "aud", "https://billing.example.run.app"), 401, "audience"),
    ("with a path", |w| with(w, "aud", "https://orders.example.run.app/push"), 401, "audience"),
    ("with a slash", |w| with(w, "aud", "https://orders.example.run.app/"), 401, "audience"),
    ("with a query", |w| with(w, "aud", "https://orders.example.run.app?a=b"), 401, "audience"),
    ("with a port", |w| with(w, "aud", "https://orders.example.run.app:443"), 401, "audience"),
    ("without TLS", |w| with(w, "aud", "http://orders.example.run.app"), 401, "audience"),
    ("without a scheme", |w| with(w, "aud", "orders.example.run.app"), 401, "audience"),
    ("in capitals", |w| with(w, "aud", "https://Orders.example.run.app"), 401, "audience"),
    ("the service's second URL", |w| with(w, "aud", "https://orders-123.run.app"), 401, "audience"),
    ("the first part of it", |w| with(w, "aud", "https://orders.example"), 401, "audience"),
    ("both in one text", |w| with(w, "aud", "https://orders.example.run.app, orders"), 401, "audience"),
    ("with a blank", |w| with(w, "aud", "orders "), 401, "audience"),
    ("empty", |w| with(w, "aud", ""), 401, "audience"),
    ("a number", |w| with(w, "aud", 7), 401, "malformed"),
    ("a list of lists", |w| with(w, "aud", json!([[CUSTOM]])), 401, "malformed"),
    ("no audience", |w| without(w, "aud"), 401, "claim-missing"),
    ("a null", |w| null(w, "aud"), 401, "claim-missing"),
];

const TIMES: &[Row] = &[
    ("expired 29 s ago", |w| with(w, "exp", w.now() - 29), 200, ""),
    ("expired 30 s ago", |w| with(w, "exp", w.now() - 30), 401, "expired"),
    ("expired an hour ago", |w| with(w, "exp", w.now() - 3600), 401, "expired"),
    ("expired in 1970", |w| with(w, "exp", 0), 401, "expired"),
    ("never expires", |w| with(w, "exp", u64::MAX), 200, ""),
    ("expires before 1970", |w| with(w, "exp", -1), 401, "malformed"),
    ("expires in parts of a second", |w| with(w, "exp", 4_102_444_800.5), 401, "malformed"),
    ("expires by a text", |w| with(w, "exp", "4102444800"), 401, "malformed"),
    ("no end", |w| without(w, "exp"), 401, "claim-missing"),
    ("a null as end", |w| null(w, "exp"), 401, "claim-missing"),
    ("issued in 30 s", |w| with(w, "iat", w.now() + 30), 200, ""),
    ("issued in 31 s", |w| with(w, "iat", w.now() + 31), 401, "not-yet-valid"),
    ("issued at the end of time", |w| with(w, "iat", u64::MAX), 401, "not-yet-valid"),
    ("issued by a text", |w| with(w, "iat", "1"), 401, "malformed"),
    ("no start", |w| without(w, "iat"), 401, "claim-missing"),
    ("a null as start", |w| null(w, "iat"), 401, "claim-missing"),
    ("valid since a moment", |w| with(w, "nbf", w.now() - 1), 200, ""),
    ("valid in 31 s", |w| with(w, "nbf", w.now() + 31), 401, "not-yet-valid"),
];

// F31
const CALLERS: &[Row] = &[
    ("the other one", |w| with(w, "email", OTHER_CALLER), 200, ""),
    ("no id", |w| without(w, "sub"), 200, ""),
    ("another account", |w| with(w, "email", "x@other.iam.gserviceaccount.com"), 403, "caller"),
    ("a person", |w| with(w, "email", "somebody@gmail.com"), 403, "caller"),
    ("in capitals", |w| with(w, "email", "Pusher@project.iam.gserviceaccount.com"), 403, "caller"),
    ("longer", |w| with(w, "email", format!("{CALLER}.example.com")), 403, "caller"),
    ("the first part of it", |w| with(w, "email", "pusher@project"), 403, "caller"),
    ("both in one text", |w| with(w, "email", format!("{CALLER},{OTHER_CALLER}")), 403, "caller"),
    ("another, its id the right e-mail", sub_is_caller, 403, "caller"),
    ("empty", |w| with(w, "email", ""), 403, "caller"),
    ("a list", |w| with(w, "email", json!([CALLER])), 401, "malformed"),
    ("no e-mail", |w| without(w, "email"), 401, "claim-missing"),
    ("a null", |w| null(w, "email"), 401, "claim-missing"),
    ("not verified", |w| with(w, "email_verified", false), 401, "email-unverified"),
    ("verified by a text", |w| with(w, "email_verified", "true"), 401, "email-unverified"),
    ("verified by a number", |w| with(w, "email_verified", 1), 401, "email-unverified"),
    ("verified in a list", |w| with(w, "email_verified", json!([true])), 401, "email-unverified"),
    ("not said to be verified", |w| without(w, "email_verified"), 401, "email-unverified"),
    ("verified by a null", |w| null(w, "email_verified"), 401, "email-unverified"),
    ("another, not verified", other_unverified, 401, "email-unverified"),
];

fn sub_is_caller(w: &World) -> http::HeaderMap {
    bearer(&w.keys.token(&w.claims().set("email", "x@example.com").set("sub", CALLER).set("azp", CALLER)))
}

fn other_unverified(w: &World) -> http::HeaderMap {
    bearer(&w.keys.token(&w.claims().set("email", "x@example.com").set("email_verified", false)))
}

#[tokio::test]
async fn the_issuer_is_google_in_both_spellings() {
    table(Mode::Verify, ISSUERS).await;
}

#[tokio::test]
async fn the_audience_is_one_of_ours_as_a_whole() {
    table(Mode::Verify, AUDIENCES).await;
}

#[tokio::test]
async fn the_times_are_right_within_thirty_seconds() {
    table(Mode::Verify, TIMES).await;
}

#[tokio::test]
async fn the_caller_is_one_that_is_expected_and_verified() {
    table(Mode::Verify, CALLERS).await;
}
