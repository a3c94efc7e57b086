//! The one token of a request, out of its headers.

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName};

use super::refusal::Refusal;

/// Where a caller may put the token that is meant for Cloud Run alone. Cloud Run then checks that one,
/// and passes `Authorization` on as it came
/// (<https://cloud.google.com/run/docs/authenticating/service-to-service>).
const SERVERLESS: HeaderName = HeaderName::from_static("x-serverless-authorization");
/// In bytes. The token of a push has about 900.
const LONGEST: usize = 8 * 1024;

/// Whether Cloud Run has looked at another token than ours.
pub(super) fn checked_elsewhere(headers: &HeaderMap) -> bool {
    headers.contains_key(SERVERLESS)
}

/// The token of the one `Authorization` header.
pub(super) fn bearer(headers: &HeaderMap) -> Result<&str, Refusal> {
    let malformed = |what: &str| Refusal::Malformed { what: what.to_owned() };
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Err(if checked_elsewhere(headers) { Refusal::Elsewhere } else { Refusal::Missing });
    };
    if values.next().is_some() {
        return Err(malformed("there are two `Authorization` headers"));
    }
    let text = value.to_str().map_err(|_| malformed("the header is not ASCII"))?.trim();
    let (scheme, token) = text.split_once([' ', '\t']).unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") {
        return Err(Refusal::Missing);
    }
    let token = token.trim();
    if token.is_empty() {
        return Err(malformed("there is nothing behind `Bearer`"));
    }
    if token.len() > LONGEST {
        return Err(malformed("it is longer than 8 KiB"));
    }
    Ok(token)
}
