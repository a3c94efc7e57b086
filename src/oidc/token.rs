//! A token taken apart, and whether it says what the token of a push must say.

use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::dangerous::insecure_decode;
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::{Algorithm, DecodingKey, Header, TokenData, Validation, decode};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::refusal::Refusal;

/// Both spellings that Google's tokens have
/// (<https://developers.google.com/identity/openid-connect/openid-connect#validatinganidtoken>).
const ISSUERS: [&str; 2] = ["https://accounts.google.com", "accounts.google.com"];
/// How far the clock that issued a token and ours may differ, in seconds.
const LEEWAY: u64 = 30;
/// What Cloud Run writes in place of a signature that it has checked.
const REMOVED: &str = "SIGNATURE_REMOVED_BY_GOOGLE";

/// Who sent a request, as its token proved. The layer puts it into the request's extensions.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Caller {
    /// The service account: one of those that the layer expects.
    pub email: String,
    /// The account's id, which outlives its e-mail: claim `sub`.
    pub subject: Option<String>,
    /// For whom the token was made: one of the audiences that the layer accepts.
    pub audience: String,
}

/// Which callers are let in, with tokens for whom.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) audiences: Vec<String>,
    pub(super) callers: Vec<String>,
}

/// A token whose three parts could be read. Nothing of it is proven.
pub(super) struct Token<'a> {
    text: &'a str,
    header: Header,
    pub(super) claims: Claims,
}

impl<'a> Token<'a> {
    pub(super) fn read(text: &'a str) -> Result<Self, Refusal> {
        let TokenData { header, claims } = insecure_decode(text).map_err(|error| unread(&error))?;
        Ok(Self { text, header, claims })
    }

    /// What is wrong with the header. The key id is all that is taken from it: never a key, nor
    /// where there is one.
    pub(super) fn checked_header(&self) -> Result<(), Refusal> {
        if self.header.crit.is_some() {
            let what = "its header asks for an extension (`crit`), and Google's tokens have none".to_owned();
            return Err(Refusal::Malformed { what });
        }
        if self.header.alg != Algorithm::RS256 {
            return Err(Refusal::Algorithm { found: self.header.alg });
        }
        Ok(())
    }

    pub(super) fn key_id(&self) -> Option<&str> {
        self.header.kid.as_deref()
    }

    /// Whether Cloud Run has put its text in place of the signature: that one, and no other.
    pub(super) fn is_stripped(&self) -> bool {
        self.text.rsplit_once('.').is_some_and(|(_, signature)| signature == REMOVED)
    }

    pub(super) fn checked_signature(&self, key: &DecodingKey) -> Result<(), Refusal> {
        let mut rules = Validation::new(Algorithm::RS256);
        // The signature alone. The library passes over `aud` and `iss` where the token has none, and
        // takes the time from elsewhere than our clock.
        rules.required_spec_claims.clear();
        (rules.validate_exp, rules.validate_aud) = (false, false);
        decode::<IgnoredAny>(self.text, key, &rules).map(drop).map_err(|_| Refusal::Signature)
    }
}

/// What is wrong with a text that is no token, without any of it: the library would quote a claim.
fn unread(error: &Error) -> Refusal {
    let what = match error.kind() {
        ErrorKind::Json(error) => {
            let (line, column) = (error.line(), error.column());
            format!("its header or its claims are not the JSON of a token, at line {line}, column {column}")
        }
        ErrorKind::Base64(_) | ErrorKind::Utf8(_) => "a part of it is no text in base64url".to_owned(),
        _ => "it does not have three parts".to_owned(),
    };
    Refusal::Malformed { what }
}

/// The claims that are looked at, as far as there are any.
#[derive(Debug, Deserialize)]
pub(super) struct Claims {
    iss: Option<String>,
    aud: Option<Audience>,
    exp: Option<u64>,
    iat: Option<u64>,
    nbf: Option<u64>,
    email: Option<String>,
    /// Any JSON: only `true` is true.
    email_verified: Option<Value>,
    sub: Option<String>,
}

/// One audience, or several (RFC 7519, 4.1.3).
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn all(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Several(several) => several,
        }
    }
}

impl Claims {
    /// The audiences as they were received, for a log line.
    pub(super) fn audience(&self) -> Option<String> {
        Some(self.aud.as_ref()?.all().join(", "))
    }

    pub(super) fn email(&self) -> Option<&str> {
        self.email.as_deref()
    }

    /// The times must be there, and right.
    pub(super) fn checked_times(&self, now: SystemTime) -> Result<(), Refusal> {
        self.iat.ok_or(Refusal::Claim { name: "iat" })?;
        self.checked_times_if_any(now)
    }

    /// `exp` must be there; `iat` must be right if it is. For a token whose times somebody else has
    /// checked before.
    pub(super) fn checked_times_if_any(&self, now: SystemTime) -> Result<(), Refusal> {
        let now = now.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let expires = self.exp.ok_or(Refusal::Claim { name: "exp" })?;
        if now >= expires.saturating_add(LEEWAY) {
            return Err(Refusal::Expired { seconds: now - expires });
        }
        match self.iat.max(self.nbf) {
            Some(from) if from > now.saturating_add(LEEWAY) => {
                Err(Refusal::NotYetValid { seconds: from - now })
            }
            _ => Ok(()),
        }
    }

    /// The caller, if it is one of those that are expected, with a token that was made for us.
    pub(super) fn checked(&self, expected: &Expected) -> Result<Caller, Refusal> {
        let issuer = self.iss.as_deref().ok_or(Refusal::Claim { name: "iss" })?;
        if !ISSUERS.contains(&issuer) {
            return Err(Refusal::Issuer);
        }
        let audiences = self.aud.as_ref().ok_or(Refusal::Claim { name: "aud" })?.all();
        let ours = audiences.iter().find(|audience| expected.audiences.contains(audience));
        let audience = ours.ok_or(Refusal::Audience)?.clone();
        let email = self.email.as_ref().ok_or(Refusal::Claim { name: "email" })?.clone();
        if self.email_verified != Some(Value::Bool(true)) {
            return Err(Refusal::Unverified);
        }
        if !expected.callers.contains(&email) {
            return Err(Refusal::Caller);
        }
        Ok(Caller { email, subject: self.sub.clone(), audience })
    }
}
