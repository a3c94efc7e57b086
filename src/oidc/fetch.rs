//! The key server: one bounded GET, and the keys and their life out of its answer.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AGE, CACHE_CONTROL};
use http::uri::Scheme;
use http::{HeaderMap, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jsonwebtoken::DecodingKey;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};
use serde::Deserialize;
use serde_json::Value;

use super::invalid::InvalidPushAuth;
use crate::store::BoxError;

/// From the first byte out to the last byte in.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Google's answer has less than 4 KiB.
const LARGEST: usize = 256 * 1024;
/// How long keys live whose server does not say.
const DEFAULT_LIFE: Duration = Duration::from_secs(5 * 60);
/// No answer makes us ask more often, nor trust a key longer.
const SHORTEST_LIFE: Duration = Duration::from_secs(60);
pub(super) const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Keys by their id.
pub(super) type KeySet = HashMap<String, Arc<DecodingKey>>;

/// Where the keys come from.
pub(super) struct KeyServer {
    url: Uri,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

impl std::fmt::Debug for KeyServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyServer").field("url", &self.url).finish_non_exhaustive()
    }
}

/// Why there are no new keys.
#[derive(Debug, thiserror::Error)]
pub(super) enum FetchError {
    #[error("the key server did not answer within {TIMEOUT:?}")]
    Slow,
    #[error("the key server cannot be reached")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    #[error("the key server answered {0}")]
    Status(StatusCode),
    #[error("the key server's answer broke off, or is larger than {LARGEST} bytes")]
    Body(#[source] BoxError),
    #[error("the key server's answer is no key set")]
    NoSet(#[source] serde_json::Error),
    #[error("the key server's answer has no RSA key with an id")]
    NoKey,
    #[error("the fetch ended without an answer: it panicked, or the process is ending")]
    CutOff,
}

impl KeyServer {
    /// Nothing is dialled.
    pub(super) fn new(url: &str) -> Result<Self, InvalidPushAuth> {
        let url = url.parse::<Uri>().ok().filter(is_safe).ok_or(InvalidPushAuth::KeysUrl)?;
        // An error means that there is one. With two in a build and none named, the library panics.
        let _ = jsonwebtoken::crypto::aws_lc::DEFAULT_PROVIDER.install_default();
        // Roots that are compiled in: a small image has none. The provider is named, as above.
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| InvalidPushAuth::Tls { what: error.to_string() })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // A plain URL has passed `is_safe`, and no redirect is followed.
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        // Hours lie between two fetches: no connection is kept.
        let client = Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector);
        Ok(Self { url, client })
    }

    /// The keys as of now, and how long they live.
    pub(super) async fn fetch(&self) -> Result<(KeySet, Duration), FetchError> {
        tokio::time::timeout(TIMEOUT, self.get()).await.unwrap_or(Err(FetchError::Slow))
    }

    async fn get(&self) -> Result<(KeySet, Duration), FetchError> {
        let answer = self.client.get(self.url.clone()).await.map_err(FetchError::Unreachable)?;
        if answer.status() != StatusCode::OK {
            return Err(FetchError::Status(answer.status()));
        }
        let life = life(answer.headers());
        let body = Limited::new(answer.into_body(), LARGEST).collect().await.map_err(FetchError::Body)?;
        let keys = keys(&body.to_bytes())?;
        Ok((keys, life))
    }
}

/// Whether nobody on the way can put in keys of his own: TLS, or this machine. No password, which a
/// log line might show.
fn is_safe(url: &Uri) -> bool {
    let Some(authority) = url.authority() else { return false };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let local = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    let scheme = url.scheme();
    !host.is_empty()
        && !authority.as_str().contains('@')
        && (scheme == Some(&Scheme::HTTPS) || (scheme == Some(&Scheme::HTTP) && local))
}

/// How much longer the answer is fresh (RFC 9111, 4.2), within our bounds.
fn life(headers: &HeaderMap) -> Duration {
    let values = headers.get_all(CACHE_CONTROL).iter().filter_map(|value| value.to_str().ok());
    let mut life = None;
    for directive in values.flat_map(|value| value.split(',')) {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => life = Some(Duration::ZERO),
            "max-age" if life.is_none() => life = value.trim().parse().ok().map(Duration::from_secs),
            _ => {}
        }
    }
    let age = headers.get(AGE).and_then(|age| age.to_str().ok()?.trim().parse().ok());
    let life = life.map(|life| life.saturating_sub(Duration::from_secs(age.unwrap_or(0))));
    life.unwrap_or(DEFAULT_LIFE).clamp(SHORTEST_LIFE, LONGEST_LIFE)
}

/// The RSA keys of a JWK set. A key of a kind that we do not know must not make the others useless.
fn keys(body: &[u8]) -> Result<KeySet, FetchError> {
    #[derive(Deserialize)]
    struct Set {
        keys: Vec<Value>,
    }
    #[derive(Deserialize)]
    struct Jwk {
        kid: String,
        kty: String,
        alg: Option<String>,
        #[serde(rename = "use")]
        purpose: Option<String>,
        n: String,
        e: String,
    }
    let set: Set = serde_json::from_slice(body).map_err(FetchError::NoSet)?;
    let signing = |jwk: &Jwk| {
        jwk.kty == "RSA"
            && jwk.alg.as_deref().is_none_or(|alg| alg == "RS256")
            && jwk.purpose.as_deref().is_none_or(|purpose| purpose == "sig")
    };
    let keys: KeySet = set
        .keys
        .into_iter()
        .filter_map(|jwk| serde_json::from_value(jwk).ok().filter(signing))
        .filter_map(|jwk| Some((jwk.kid, Arc::new(DecodingKey::from_rsa_components(&jwk.n, &jwk.e).ok()?))))
        .collect();
    if keys.is_empty() { Err(FetchError::NoKey) } else { Ok(keys) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn life_of(headers: &[(http::HeaderName, &str)]) -> u64 {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap()));
        life(&headers.collect()).as_secs()
    }

    #[test]
    fn keys_live_as_long_as_their_server_says_within_bounds() {
        assert_eq!(life_of(&[]), 300);
        assert_eq!(life_of(&[(CACHE_CONTROL, "public, MAX-AGE = 20000, must-revalidate")]), 20_000);
        assert_eq!(life_of(&[(CACHE_CONTROL, "public"), (CACHE_CONTROL, "max-age=600")]), 600);
        assert_eq!(life_of(&[(CACHE_CONTROL, "max-age=600"), (AGE, "100")]), 500);
        assert_eq!(life_of(&[(CACHE_CONTROL, "max-age=600"), (AGE, "much")]), 600);
        for short in ["max-age=0", "no-store", "no-cache, max-age=600", "max-age=600, no-store"] {
            assert_eq!(life_of(&[(CACHE_CONTROL, short)]), 60, "{short}");
        }
        assert_eq!(life_of(&[(CACHE_CONTROL, "max-age=600"), (AGE, "601")]), 60);
        assert_eq!(life_of(&[(CACHE_CONTROL, "max-age=99999999999")]), 86_400);
        for none in ["max-age=-1", "max-age=ten", "max-age", "s-maxage=5", "max-age=99999999999999999999"] {
            assert_eq!(life_of(&[(CACHE_CONTROL, none)]), 300, "{none}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_used_does_not_spoil_the_others() {
        let set = r#"{"keys": [
            {"kid": "good", "kty": "RSA", "alg": "RS256", "use": "sig", "n": "AQAB", "e": "AQAB"},
            {"kid": "bare", "kty": "RSA", "n": "AQAB", "e": "AQAB", "x5c": []},
            {"kid": "new", "kty": "AKP", "alg": "ML-DSA-44", "pub": "AQAB"},
            {"kid": "oct", "kty": "oct", "k": "AQAB", "n": "AQAB", "e": "AQAB"},
            {"kid": "enc", "kty": "RSA", "use": "enc", "n": "AQAB", "e": "AQAB"},
            {"kid": "rs384", "kty": "RSA", "alg": "RS384", "n": "AQAB", "e": "AQAB"},
            {"kid": "odd", "kty": "RSA", "n": "*", "e": "AQAB"},
            {"kty": "RSA", "n": "AQAB", "e": "AQAB"},
            7
        ], "more": true}"#;
        let mut found: Vec<_> = keys(set.as_bytes()).unwrap().into_keys().collect();
        found.sort();
        assert_eq!(found, ["bare", "good"]);
        assert!(matches!(keys(br#"{"keys": []}"#), Err(FetchError::NoKey)));
        for garbage in ["", "<html>", "[]", "{}", r#"{"keys": 1}"#, r#"{"keys": [1], "keys": [1]}"#] {
            assert!(matches!(keys(garbage.as_bytes()), Err(FetchError::NoSet(_))), "{garbage}");
        }
    }

    #[test]
    fn only_tls_or_this_machine_is_asked_for_keys() {
        let safe = |url: &str| KeyServer::new(url).is_ok();
        for good in [
            "https://www.googleapis.com/oauth2/v3/certs",
            "HTTPS://keys.internal:8443",
            "http://127.0.0.1:9000/certs",
            "http://127.1.2.3",
            "http://[::1]:9000",
            "http://localhost:9000/certs",
        ] {
            assert!(safe(good), "{good}");
        }
        for bad in [
            "http://www.googleapis.com/oauth2/v3/certs",
            "http://10.0.0.1/certs",
            "http://127.0.0.1.example.com/",
            "http://localhost.example.com/",
            "http://127.0.0.1@example.com/",
            "https://user:pa55w0rd@example.com/",
            "ftp://127.0.0.1/",
            "/certs",
            "127.0.0.1:9000",
            "https://",
            "",
        ] {
            assert!(!safe(bad), "{bad}");
        }
    }
}
