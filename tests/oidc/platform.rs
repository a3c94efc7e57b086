//! The mode in which Cloud Run has checked the signature.

use http::HeaderName;
use serde_json::{Value, json};

use crate::world::{Mode, Row, World, bearer, table};

fn with(w: &World, name: &str, value: impl Into<Value>) -> http::HeaderMap {
    bearer(&w.keys.stripped(&w.claims().set(name, value)))
}

fn without(w: &World, name: &str) -> http::HeaderMap {
    bearer(&w.keys.stripped(&w.claims().without(name)))
}

/// The right token with another signature.
fn ending(w: &World, signature: &str) -> http::HeaderMap {
    bearer(&format!("{}.{signature}", w.token().rsplit_once('.').unwrap().0))
}

/// The right claims under another header.
fn under(w: &World, header: &Value) -> http::HeaderMap {
    let claims = json!({ "aud": "orders", "exp": w.now() + 60 });
    let token = w.keys.sign(header, &claims);
    bearer(&format!("{}.SIGNATURE_REMOVED_BY_GOOGLE", token.rsplit_once('.').unwrap().0))
}

// F30
const ROWS: &[Row] = &[
    ("removed", |w| bearer(&w.keys.stripped(&w.claims())), 200, ""),
    ("issuer without the scheme", |w| with(w, "iss", "accounts.google.com"), 200, ""),
    ("a list with our audience", |w| with(w, "aud", json!(["a", "orders"])), 200, ""),
    ("no start", |w| without(w, "iat"), 200, ""),
    ("a good signature", |w| bearer(&w.token()), 401, "signature-present"),
    ("a forged signature", |w| ending(w, "AAAA"), 401, "signature-present"),
    ("no signature", |w| ending(w, ""), 401, "signature-present"),
    ("in lower case", |w| ending(w, "signature_removed_by_google"), 401, "signature-present"),
    ("and more", |w| ending(w, "SIGNATURE_REMOVED_BY_GOOGLE_"), 401, "signature-present"),
    ("and less", |w| ending(w, "SIGNATURE_REMOVED_BY_GOOGL"), 401, "signature-present"),
    ("and padding", |w| ending(w, "SIGNATURE_REMOVED_BY_GOOGLE="), 401, "signature-present"),
    ("and a part more", |w| ending(w, "AAAA.SIGNATURE_REMOVED_BY_GOOGLE"), 401, "malformed"),
    ("as another part", |w| ending(w, "SIGNATURE_REMOVED_BY_GOOGLE.AAAA"), 401, "malformed"),
    ("no algorithm", |w| under(w, &json!({ "kid": "1" })), 401, "malformed"),
    ("none", |w| under(w, &json!({ "alg": "none" })), 401, "malformed"),
    ("HS256", |w| under(w, &json!({ "alg": "HS256", "kid": "1" })), 401, "algorithm"),
    ("an extension", |w| under(w, &json!({ "alg": "RS256", "crit": ["exp"] })), 401, "malformed"),
    ("another audience", |w| with(w, "aud", "https://billing.example.run.app"), 401, "audience"),
    ("with a path", |w| with(w, "aud", "https://orders.example.run.app/push"), 401, "audience"),
    ("another account", |w| with(w, "email", "x@other.iam.gserviceaccount.com"), 403, "caller"),
    ("not verified", |w| with(w, "email_verified", false), 401, "email-unverified"),
    ("verified by a text", |w| with(w, "email_verified", "true"), 401, "email-unverified"),
    ("another issuer", |w| with(w, "iss", "https://issuer.example.com"), 401, "issuer"),
    ("expired", |w| with(w, "exp", w.now() - 30), 401, "expired"),
    ("issued in the future", |w| with(w, "iat", w.now() + 31), 401, "not-yet-valid"),
    ("no audience", |w| without(w, "aud"), 401, "claim-missing"),
    ("no issuer", |w| without(w, "iss"), 401, "claim-missing"),
    ("no end", |w| without(w, "exp"), 401, "claim-missing"),
    ("no e-mail", |w| without(w, "email"), 401, "claim-missing"),
    ("not said to be verified", |w| without(w, "email_verified"), 401, "email-unverified"),
    ("no header", |_| http::HeaderMap::new(), 401, "missing"),
    ("a word", |_| bearer("SIGNATURE_REMOVED_BY_GOOGLE"), 401, "malformed"),
    ("only for Cloud Run", serverless, 401, "elsewhere"),
    ("one for Cloud Run too, so ours was not checked", both, 401, "elsewhere"),
];

fn serverless(w: &World) -> http::HeaderMap {
    let token = format!("Bearer {}", w.keys.stripped(&w.claims()));
    let name = HeaderName::from_static("x-serverless-authorization");
    [(name, token.parse().unwrap())].into_iter().collect()
}

fn both(w: &World) -> http::HeaderMap {
    let mut headers = serverless(w);
    headers.extend(bearer(&w.keys.stripped(&w.claims())));
    headers
}

#[tokio::test]
async fn only_what_cloud_run_has_checked_is_let_in_and_its_claims_still_count() {
    table(Mode::Platform, ROWS).await;
}

#[tokio::test]
async fn a_token_with_its_signature_is_refused_with_what_that_means() {
    let world = World::new(Mode::Platform).await;
    world.push(&world.token()).await;
    let line = world.log.outcome();
    let text = line.field("error");
    for said in ["still has a signature", "has not checked it", "`allUsers`", "`verify`"] {
        assert!(text.contains(said), "{text}");
    }
}

#[tokio::test]
async fn no_keys_are_asked_for() {
    let world = World::new(Mode::Platform).await;
    assert_eq!(world.push(&world.keys.stripped(&world.claims())).await.status, 200);
    assert_eq!(world.push(&world.token()).await.status, 401);
    assert_eq!(world.keys.fetches(), 0);
}
