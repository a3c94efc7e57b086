//! The token of a push as Google signs it, with a key of our own.

use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{KeyPair as _, RSA_PKCS1_SHA256, RsaKeyPair};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use super::impossible;
use crate::random;

/// How long Google's tokens live.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// What the token of a push says: the right claims, unless they are set to something else.
///
/// ```
/// use pushonce::testing::Claims;
///
/// let good = Claims::new("https://orders.example.run.app", "pusher@project.iam.gserviceaccount.com");
/// let unverified = good.clone().set("email_verified", false);
/// let without = good.clone().without("email");
/// # let _ = (unverified, without);
/// ```
#[derive(Debug, Clone)]
pub struct Claims(Map<String, Value>);

impl Claims {
    /// The claims of a push to that audience in the name of that service account. The times, `iat` and
    /// `exp`, are those of the signature, unless they are set: now, and one hour from now.
    pub fn new(audience: impl Into<String>, email: impl Into<String>) -> Self {
        let subject = "112233445566778899001";
        let claims = [
            ("iss", "https://accounts.google.com".into()),
            ("aud", audience.into().into()),
            ("azp", subject.into()),
            ("sub", subject.into()),
            ("email", email.into().into()),
            ("email_verified", true.into()),
        ];
        Self(claims.into_iter().map(|(name, value): (&str, Value)| (name.to_owned(), value)).collect())
    }

    /// Sets a claim to any value.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// Leaves a claim out. The times too.
    #[must_use]
    pub fn without(self, name: &str) -> Self {
        // `null` stands for "none" until the token is signed.
        self.set(name, Value::Null)
    }

    /// Issued then, for one hour.
    #[must_use]
    pub fn issued(self, at: SystemTime) -> Self {
        self.set("iat", seconds(at)).set("exp", seconds(at + LIFE))
    }

    /// As JSON, with the times of now where none are set.
    pub(super) fn at(&self, now: SystemTime) -> Value {
        let mut claims = self.0.clone();
        claims.entry("iat").or_insert_with(|| seconds(now).into());
        claims.entry("exp").or_insert_with(|| seconds(now + LIFE).into());
        claims.retain(|_, value| !value.is_null());
        Value::Object(claims)
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// A key that signs tokens, and its public half as a key server publishes it.
#[derive(Clone)]
pub(super) struct Signer {
    pub(super) kid: String,
    pair: Arc<RsaKeyPair>,
}

impl Signer {
    /// The first key of every server: made once, since that takes a moment.
    pub(super) fn first() -> Self {
        static PAIR: LazyLock<Arc<RsaKeyPair>> = LazyLock::new(made);
        Self { kid: random_kid(), pair: PAIR.clone() }
    }

    pub(super) fn new() -> Self {
        Self { kid: random_kid(), pair: made() }
    }

    /// The key as a JWK.
    pub(super) fn public(&self) -> Value {
        let key = self.pair.public_key();
        let text = |number: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(number);
        json!({
            "kty": "RSA", "alg": "RS256", "use": "sig", "kid": self.kid,
            "n": text(key.modulus().big_endian_without_leading_zero()),
            "e": text(key.exponent().big_endian_without_leading_zero()),
        })
    }

    /// Header and claims, signed by RS256 whatever the header says.
    pub(super) fn sign(&self, header: &Value, claims: &Value) -> String {
        let text = |bytes: &[u8]| BASE64_URL_SAFE_NO_PAD.encode(bytes);
        let message =
            format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        let mut signature = vec![0; self.pair.public_modulus_len()];
        match self.pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), message.as_bytes(), &mut signature) {
            Ok(()) => format!("{message}.{}", text(&signature)),
            Err(error) => impossible(format_args!("the token cannot be signed: {error}")),
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("kid", &self.kid).finish_non_exhaustive()
    }
}

fn made() -> Arc<RsaKeyPair> {
    match RsaKeyPair::generate(KeySize::Rsa2048) {
        Ok(pair) => Arc::new(pair),
        Err(error) => impossible(format_args!("no RSA key could be made: {error}")),
    }
}

fn random_kid() -> String {
    format!("{:016x}", random::number())
}
