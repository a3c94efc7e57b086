//! The push token: whatever is sent, only who has the right token of a right caller comes in.

use std::cell::OnceCell;
use std::sync::Arc;

use axum::body::Body;
use axum::routing::post;
use axum::{Extension, Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::BodyExt as _;
use pushonce::Clock;
use pushonce::oidc::{Caller, PushAuthLayer};
use pushonce::testing::{Claims, KeyServer, ManualClock};
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::input::Input;
use super::runtime;

const AUDIENCES: [&str; 2] = ["https://orders.example.run.app", "orders"];
const CALLERS: [&str; 2] =
    ["pusher@project.iam.gserviceaccount.com", "eventarc@project.iam.gserviceaccount.com"];
const REMOVED: &str = "SIGNATURE_REMOVED_BY_GOOGLE";
/// What the clock of the layers shows: the first of January 2026, and how much it may be off.
const NOW: u64 = 1_767_225_600;
const LEEWAY: u64 = 30;

thread_local! {
    static WORLD: OnceCell<World> = const { OnceCell::new() };
}

/// One route in each mode, with the keys at hand.
#[derive(Clone)]
struct World {
    keys: KeyServer,
    verify: Router,
    platform: Router,
}

/// The token that an input asks for. Nobody else has the key, so no other token has a signature.
struct Token {
    header: Value,
    claims: Value,
    /// Header and claims, as they are signed.
    message: String,
    signature: String,
}

pub(crate) fn run(input: &[u8]) -> &'static str {
    let world = WORLD.with(|world| world.get_or_init(|| runtime(World::new())).clone());
    runtime(world.asked(Input::read(input)))
}

impl World {
    async fn new() -> Self {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let keys = KeyServer::start().await.clock(clock.clone());
        let app = |layer: PushAuthLayer| {
            let told = async |Extension(caller): Extension<Caller>| {
                Json(json!({ "email": caller.email, "sub": caller.subject, "aud": caller.audience }))
            };
            let layer = layer.keys_url(keys.url()).clock(clock.clone());
            Router::new().route("/", post(told).layer(layer))
        };
        let verify = app(PushAuthLayer::verify(AUDIENCES, CALLERS));
        let platform = app(PushAuthLayer::platform(AUDIENCES, CALLERS));
        Self { verify, platform, keys }
    }

    /// The first line names the mode. The body is a token's header in one line, and its claims in the rest; headers
    /// of the request take it, or a part of it, by names in braces.
    async fn asked(&self, input: Input) -> &'static str {
        let is_platform = input.line == "platform";
        let token = self.token(&String::from_utf8_lossy(&input.body));
        let mut headers = HeaderMap::new();
        for (name, value) in &input.headers {
            let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
                headers.append(name, value.clone());
                continue;
            };
            if let Ok(value) = HeaderValue::from_str(&token.put_into(text)) {
                headers.append(name, value);
            }
        }
        let mut request = Request::post("/").body(Body::empty()).unwrap();
        *request.headers_mut() = headers.clone();
        let app = if is_platform { &self.platform } else { &self.verify };
        let (parts, body) = app.clone().oneshot(request).await.unwrap().into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let header = |name: &str| parts.headers.get(name).map_or("", |value| value.to_str().unwrap());
        if parts.status == 200 {
            let caller: Value = serde_json::from_slice(&body).unwrap();
            token.comes_in(&headers, is_platform, &self.keys.kid(), &caller);
            return if is_platform { "passed on" } else { "verified" };
        }
        assert!(body.is_empty());
        assert_eq!(header("pushonce-outcome"), "unauthorized");
        match (parts.status.as_u16(), header("www-authenticate")) {
            (401, "Bearer") => "no token",
            (401, "Bearer error=\"invalid_token\"") => "wrong token",
            (403, "") => {
                // Told only to whoever has proven who they are.
                assert!(token.is_in(&headers, is_platform));
                "wrong caller"
            }
            other => panic!("{other:?}"),
        }
    }

    fn token(&self, body: &str) -> Token {
        let body = body.replace("{kid}", &self.keys.kid());
        let (header, claims) = body.split_once('\n').unwrap_or((&body, "{}"));
        let json = |text: &str| serde_json::from_str::<Value>(text);
        let token = match (json(header), json(claims)) {
            (Ok(header), Ok(claims)) => self.keys.sign(&header, &claims),
            // Of what is no JSON only the signature is somebody else's.
            _ => {
                let text = |part: &str| BASE64_URL_SAFE_NO_PAD.encode(part);
                let signed = self.keys.token(&Claims::new(AUDIENCES[0], CALLERS[0]));
                let (_, signature) = signed.rsplit_once('.').unwrap();
                format!("{}.{}.{signature}", text(header), text(claims))
            }
        };
        let (message, signature) = token.rsplit_once('.').unwrap();
        Token {
            header: json(header).unwrap_or_default(),
            claims: json(claims).unwrap_or_default(),
            message: message.to_owned(),
            signature: signature.to_owned(),
        }
    }
}

impl Token {
    fn put_into(&self, text: &str) -> String {
        let (header, claims) = self.message.split_once('.').unwrap();
        text.replace("{token}", "{message}.{signature}")
            .replace("{stripped}", &format!("{{message}}.{REMOVED}"))
            .replace("{message}", &self.message)
            .replace("{header}", header)
            .replace("{claims}", claims)
            .replace("{signature}", &self.signature)
    }

    /// Whether the one bearer token of the request is this one, in the form that the mode asks for.
    fn is_in(&self, headers: &HeaderMap, is_platform: bool) -> bool {
        let signature = if is_platform { REMOVED } else { &self.signature };
        let right = format!("{}.{signature}", self.message);
        let mut all = headers.get_all("authorization").iter();
        let (Some(value), None) = (all.next(), all.next()) else { return false };
        let words: Vec<_> = value.to_str().unwrap_or_default().split_ascii_whitespace().collect();
        matches!(words[..], [scheme, token] if scheme.eq_ignore_ascii_case("bearer") && token == right)
    }

    /// Whoever has come in had every right to, by the table in the documentation of `oidc`.
    fn comes_in(&self, headers: &HeaderMap, is_platform: bool, kid: &str, caller: &Value) {
        let (header, claims) = (&self.header, &self.claims);
        assert!(self.is_in(headers, is_platform), "another token: {headers:?}");
        assert_eq!((&header["alg"], &header["crit"]), (&json!("RS256"), &Value::Null));
        let time = |name: &str| claims[name].as_u64();
        assert!(time("exp").is_some_and(|at| NOW < at.saturating_add(LEEWAY)), "{claims}");
        assert!([time("iat"), time("nbf")].iter().flatten().all(|at| *at <= NOW + LEEWAY), "{claims}");
        if is_platform {
            assert!(!headers.contains_key("x-serverless-authorization"), "{headers:?}");
        } else {
            assert_eq!(header["kid"], kid);
            assert!(time("iat").is_some(), "{claims}");
        }
        let issuers = [json!("https://accounts.google.com"), json!("accounts.google.com")];
        assert!(issuers.contains(&claims["iss"]), "{claims}");
        let audience = caller["aud"].as_str().unwrap();
        let meant = json!(audience);
        assert!(claims["aud"] == meant || claims["aud"].as_array().is_some_and(|all| all.contains(&meant)));
        assert!(AUDIENCES.contains(&audience), "{claims}");
        assert!(CALLERS.iter().any(|expected| claims["email"] == *expected), "{claims}");
        assert_eq!(claims["email_verified"], true);
        assert_eq!((&caller["email"], &caller["sub"]), (&claims["email"], &claims["sub"]));
    }
}
