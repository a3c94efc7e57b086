//! Header and signature: forged, tricked, cut, and removed.

use base64::Engine as _;
use base64::prelude::{BASE64_URL_SAFE, BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use pushonce::testing::KeyServer;
use serde_json::{Value, json};

use crate::world::{AUDIENCE, CALLER, Mode, Row, World, bearer, table};

/// The right claims, as JSON.
fn claims(w: &World) -> Value {
    let now = w.now();
    json!({
        "iss": "https://accounts.google.com", "aud": AUDIENCE, "email": CALLER, "email_verified": true,
        "iat": now, "exp": now + 3600,
    })
}

/// The right claims under another header, signed by the right key.
fn under(w: &World, header: &Value) -> http::HeaderMap {
    bearer(&w.keys.sign(header, &claims(w)))
}

/// The header that is right but for these members.
fn header(w: &World, members: &Value) -> Value {
    let mut header = json!({ "alg": "RS256", "kid": w.keys.kid(), "typ": "JWT" });
    for (name, value) in members.as_object().unwrap() {
        header[name] = value.clone();
    }
    header
}

fn algorithm(w: &World, name: &str) -> http::HeaderMap {
    under(w, &header(w, &json!({ "alg": name })))
}

/// Three parts of any text: the first two are encoded.
fn parts(header: &str, claims: &str, signature: &str) -> http::HeaderMap {
    let text = |part: &str| BASE64_URL_SAFE_NO_PAD.encode(part);
    bearer(&format!("{}.{}.{signature}", text(header), text(claims)))
}

/// The right token with one of its parts changed.
fn changed(w: &World, part: usize, change: impl FnOnce(&str) -> String) -> http::HeaderMap {
    let token = w.token();
    let mut parts: Vec<String> = token.split('.').map(str::to_owned).collect();
    parts[part] = change(&parts[part]);
    bearer(&parts.join("."))
}

/// A token of another key, which its header offers.
fn of_another_key(w: &World, kid: &str, members: &Value) -> http::HeaderMap {
    let another = ANOTHER.with(Clone::clone);
    let mut members = members.clone();
    members["kid"] = kid.into();
    members["jwk"] = another.keys()["keys"][0].clone();
    bearer(&another.sign(&header(w, &members), &claims(w)))
}

thread_local! {
    /// A key server of somebody else, with a key of its own.
    static ANOTHER: KeyServer = {
        let another = futures_util::FutureExt::now_or_never(KeyServer::start()).expect("a free port at once");
        another.rotate();
        another.retire();
        another
    };
}

/// HS256 with what everybody knows of the key as the secret.
fn hs256(w: &World, secret: &[u8]) -> http::HeaderMap {
    let header = Header { kid: Some(w.keys.kid()), ..Header::new(Algorithm::HS256) };
    bearer(&jsonwebtoken::encode(&header, &claims(w), &EncodingKey::from_secret(secret)).unwrap())
}

/// The modulus of the right key.
fn modulus(w: &World) -> String {
    w.keys.keys()["keys"][0]["n"].as_str().unwrap().to_owned()
}

// F32
const ALGORITHMS: &[Row] = &[
    ("none", |w| parts(r#"{"alg":"none"}"#, &claims(w).to_string(), ""), 401, "malformed"),
    ("None", |w| parts(r#"{"alg":"None"}"#, &claims(w).to_string(), ""), 401, "malformed"),
    ("none, and signed", |w| algorithm(w, "none"), 401, "malformed"),
    ("no algorithm", |w| under(w, &json!({ "kid": w.keys.kid() })), 401, "malformed"),
    ("in lower case", |w| algorithm(w, "rs256"), 401, "malformed"),
    ("of no name", |w| algorithm(w, ""), 401, "malformed"),
    ("a list", |w| under(w, &header(w, &json!({ "alg": ["RS256"] }))), 401, "malformed"),
    (
        "HS256 by the modulus",
        |w| hs256(w, &BASE64_URL_SAFE_NO_PAD.decode(modulus(w)).unwrap()),
        401,
        "algorithm",
    ),
    ("HS256 by the modulus as text", |w| hs256(w, modulus(w).as_bytes()), 401, "algorithm"),
    ("HS256 by the key set", |w| hs256(w, w.keys.keys().to_string().as_bytes()), 401, "algorithm"),
    ("HS512", |w| algorithm(w, "HS512"), 401, "algorithm"),
    ("RS384", |w| algorithm(w, "RS384"), 401, "algorithm"),
    ("RS512", |w| algorithm(w, "RS512"), 401, "algorithm"),
    ("PS256", |w| algorithm(w, "PS256"), 401, "algorithm"),
    ("ES256", |w| algorithm(w, "ES256"), 401, "algorithm"),
    ("EdDSA", |w| algorithm(w, "EdDSA"), 401, "algorithm"),
];

const HEADERS: &[Row] = &[
    ("no type", |w| under(w, &json!({ "alg": "RS256", "kid": w.keys.kid() })), 200, ""),
    ("a key elsewhere, which nobody asks", jku, 200, ""),
    ("an extension", |w| under(w, &header(w, &json!({ "crit": ["exp"] }))), 401, "malformed"),
    ("no extension", |w| under(w, &header(w, &json!({ "crit": [] }))), 401, "malformed"),
    (
        "an unencoded payload",
        |w| under(w, &header(w, &json!({ "b64": false, "crit": ["b64"] }))),
        401,
        "malformed",
    ),
    ("no key id", |w| under(w, &json!({ "alg": "RS256" })), 401, "unknown-key"),
    ("a null as key id", |w| under(w, &header(w, &json!({ "kid": null }))), 401, "unknown-key"),
    ("an empty key id", |w| under(w, &header(w, &json!({ "kid": "" }))), 401, "unknown-key"),
    ("a path as key id", |w| under(w, &header(w, &json!({ "kid": "../../dev/null" }))), 401, "unknown-key"),
    ("a number as key id", |w| under(w, &header(w, &json!({ "kid": 7 }))), 401, "malformed"),
    ("a key of its own", |w| of_another_key(w, &w.keys.kid(), &json!({})), 401, "signature"),
    ("a key of its own, by its own id", |w| of_another_key(w, "mine", &json!({})), 401, "unknown-key"),
    ("a key server of its own", own_server, 401, "unknown-key"),
    (
        "two algorithms",
        |w| parts(r#"{"alg":"RS256","alg":"none","kid":"1"}"#, &claims(w).to_string(), "AA"),
        401,
        "malformed",
    ),
];

fn jku(w: &World) -> http::HeaderMap {
    let elsewhere = json!({ "jku": "http://127.0.0.1:1/", "x5u": "http://127.0.0.1:1/" });
    under(w, &header(w, &elsewhere))
}

fn own_server(w: &World) -> http::HeaderMap {
    let url = ANOTHER.with(KeyServer::url);
    of_another_key(w, &ANOTHER.with(KeyServer::kid), &json!({ "jku": url, "x5u": url }))
}

const FORGED: &[Row] = &[
    (
        "other claims",
        |w| changed(w, 1, |_| BASE64_URL_SAFE_NO_PAD.encode(claims(w).to_string())),
        401,
        "signature",
    ),
    (
        "another header",
        |w| {
            changed(w, 0, |_| {
                BASE64_URL_SAFE_NO_PAD
                    .encode(json!({ "alg": "RS256", "kid": w.keys.kid(), "a": 1 }).to_string())
            })
        },
        401,
        "signature",
    ),
    ("no signature", |w| changed(w, 2, |_| String::new()), 401, "signature"),
    ("half a signature", |w| changed(w, 2, |text| text[..text.len() / 2].to_owned()), 401, "signature"),
    ("a longer signature", |w| changed(w, 2, |text| format!("{text}AAAA")), 401, "signature"),
    ("a signature of nothing but zeros", |w| changed(w, 2, |text| "A".repeat(text.len())), 401, "signature"),
    ("the signature of another token", another_tokens, 401, "signature"),
    ("a padded signature", |w| changed(w, 2, |text| format!("{text}==")), 401, "signature"),
    ("a signature in odd letters", |w| changed(w, 2, |_| "****".to_owned()), 401, "signature"),
    ("padded claims", |w| changed(w, 1, padded), 401, "malformed"),
    ("claims in odd letters", |w| changed(w, 1, |text| format!("{text}*")), 401, "malformed"),
    ("two parts", |w| bearer(w.token().rsplit_once('.').unwrap().0), 401, "malformed"),
    ("four parts", |w| bearer(&format!("{}.AAAA", w.token())), 401, "malformed"),
    ("five parts, as of an encrypted token", |_| bearer("e30.AAAA.AAAA.AAAA.AAAA"), 401, "malformed"),
    ("dots", |_| bearer(".."), 401, "malformed"),
    ("no JSON in front", |w| parts("RS256", &claims(w).to_string(), "AAAA"), 401, "malformed"),
    (
        "claims that are no JSON",
        |_| parts(r#"{"alg":"RS256","kid":"1"}"#, "claims", "AAAA"),
        401,
        "malformed",
    ),
    ("claims that are no object", |_| parts(r#"{"alg":"RS256","kid":"1"}"#, "7", "AAAA"), 401, "malformed"),
    (
        "claims that are not UTF-8",
        |w| changed(w, 1, |_| BASE64_URL_SAFE_NO_PAD.encode(b"{\"aud\":\"\xff\"}")),
        401,
        "malformed",
    ),
    ("a token in a token", nested, 401, "malformed"),
    ("two audiences by two members", twice, 401, "malformed"),
];

/// The same claims and blanks, of a length that asks for padding.
fn padded(text: &str) -> String {
    let mut json = BASE64_URL_SAFE_NO_PAD.decode(text).unwrap();
    json.resize(json.len().next_multiple_of(3) + 1, b' ');
    BASE64_URL_SAFE.encode(json)
}

fn another_tokens(w: &World) -> http::HeaderMap {
    let other = w.keys.token(&w.claims().set("email", "x@example.com"));
    changed(w, 2, |_| other.rsplit_once('.').unwrap().1.to_owned())
}

fn nested(w: &World) -> http::HeaderMap {
    let header = header(w, &json!({ "cty": "JWT" }));
    bearer(&w.keys.sign(&header, &w.token().into()))
}

fn twice(w: &World) -> http::HeaderMap {
    let claims = claims(w).to_string().replacen('{', r#"{"aud":"https://billing.example.run.app","#, 1);
    parts(&header(w, &json!({})).to_string(), &claims, "AAAA")
}

// F30
const REMOVED: &[Row] = &[
    ("removed", |w| bearer(&w.keys.stripped(&w.claims())), 401, "signature-removed"),
    (
        "removed in lower case",
        |w| changed(w, 2, |_| "signature_removed_by_google".to_owned()),
        401,
        "signature",
    ),
    ("removed, and more", |w| changed(w, 2, |_| "SIGNATURE_REMOVED_BY_GOOGLEA".to_owned()), 401, "signature"),
    ("removed, and less", |w| changed(w, 2, |_| "SIGNATURE_REMOVED_BY_GOOGL".to_owned()), 401, "signature"),
    ("removed from a token of no algorithm", none_removed, 401, "malformed"),
];

fn none_removed(w: &World) -> http::HeaderMap {
    parts(r#"{"alg":"none"}"#, &claims(w).to_string(), "SIGNATURE_REMOVED_BY_GOOGLE")
}

#[tokio::test]
async fn the_algorithm_is_rs256_whatever_the_token_says() {
    table(Mode::Verify, ALGORITHMS).await;
}

#[tokio::test]
async fn the_header_names_a_key_of_google_and_nothing_else() {
    table(Mode::Verify, HEADERS).await;
}

#[tokio::test]
async fn what_was_changed_or_cut_is_refused() {
    table(Mode::Verify, FORGED).await;
}

#[tokio::test]
async fn a_token_that_cloud_run_has_checked_is_refused_where_we_check() {
    table(Mode::Verify, REMOVED).await;
    let world = World::new(Mode::Verify).await;
    world.push(&world.keys.stripped(&world.claims())).await;
    let line = world.log.outcome();
    let text = line.field("error");
    for said in ["Cloud Run has removed", "requires authentication", "`platform`", "`allUsers`", "`verify`"] {
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(world.keys.fetches(), 0);
}

#[tokio::test]
async fn no_key_is_looked_for_where_a_token_says() {
    let world = World::new(Mode::Verify).await;
    let before = ANOTHER.with(KeyServer::fetches);
    assert_eq!(world.send(own_server(&world)).await.status, 401);
    assert_eq!((ANOTHER.with(KeyServer::fetches), world.keys.fetches()), (before, 1));
}
