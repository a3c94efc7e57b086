//! Why a request is refused, and what its caller is told.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};
use jsonwebtoken::Algorithm;

use super::fetch::FetchError;
use crate::pubsub::Outcome;
use crate::pubsub::outcome::HEADER;

/// Why a request is refused: the text says what an operator should look at.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(
        "the request has no bearer token: it is not from a push subscription, or the subscription has no service account"
    )]
    Missing,
    #[error(
        "the request has a token in `X-Serverless-Authorization`, which Cloud Run checks in place of `Authorization`: a push has only the latter"
    )]
    Elsewhere,
    #[error("the token cannot be read: {what}")]
    Malformed { what: String },
    #[error("the token's algorithm is {found:?}; Google signs by RS256")]
    Algorithm { found: Algorithm },
    #[error(
        "Cloud Run has removed the token's signature, as it does where it has checked the caller itself, because this service requires authentication. Either let it stay so and choose `platform`, or let everybody invoke the service (`allUsers`) and keep `verify`"
    )]
    Stripped,
    #[error(
        "the token still has a signature, so Cloud Run has not checked it: it may admit everybody (`allUsers`). Either require authentication, or choose `verify`"
    )]
    Unstripped,
    #[error("the token is signed with a key that Google does not publish")]
    UnknownKey,
    #[error("the token's signature is wrong: it is forged, or was changed")]
    Signature,
    #[error("the token has no claim `{name}`")]
    Claim { name: &'static str },
    #[error("the token was not issued by Google")]
    Issuer,
    #[error(
        "the token was made for another audience: the subscription's audience and the service's must be the same text"
    )]
    Audience,
    #[error("the token expired {seconds} s ago")]
    Expired { seconds: u64 },
    #[error("the token is valid only in {seconds} s: one of the clocks is wrong")]
    NotYetValid { seconds: u64 },
    #[error("the token does not say that its e-mail is verified")]
    Unverified,
    #[error("the token is of another account than the expected ones")]
    Caller,
    #[error("the token cannot be checked, since there are no keys to check it with")]
    Keys { source: Arc<FetchError>, retry: Duration },
}

impl Refusal {
    /// The name of the reason: a label of a metric, so there are few, and part of the API.
    pub(super) const fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Elsewhere => "elsewhere",
            Self::Malformed { .. } => "malformed",
            Self::Algorithm { .. } => "algorithm",
            Self::Stripped => "signature-removed",
            Self::Unstripped => "signature-present",
            Self::UnknownKey => "unknown-key",
            Self::Signature => "signature",
            Self::Claim { .. } => "claim-missing",
            Self::Issuer => "issuer",
            Self::Audience => "audience",
            Self::Expired { .. } => "expired",
            Self::NotYetValid { .. } => "not-yet-valid",
            Self::Unverified => "email-unverified",
            Self::Caller => "caller",
            Self::Keys { .. } => "keys-unavailable",
        }
    }

    pub(super) const fn status(&self) -> StatusCode {
        match self {
            Self::Caller => StatusCode::FORBIDDEN,
            Self::Keys { .. } => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::UNAUTHORIZED,
        }
    }

    /// The answer. It says no more than RFC 6750 asks for: what is wrong is for the operator to know.
    pub(super) fn response(&self) -> Response<Bytes> {
        let mut response = Response::default();
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(HEADER, HeaderValue::from_static(Outcome::Unauthorized.name()));
        match self {
            Self::Caller => {}
            Self::Keys { retry, .. } => {
                headers.insert(RETRY_AFTER, retry.as_secs().saturating_add(1).into());
            }
            // RFC 6750, 3.1: who brought no token is told of no error.
            Self::Missing | Self::Elsewhere => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {
                let challenge = HeaderValue::from_static("Bearer error=\"invalid_token\"");
                headers.insert(WWW_AUTHENTICATE, challenge);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::REASONS;

    /// The next of the list, so that none can be left out: a new one does not compile without its place.
    fn next(refusal: &Refusal) -> Option<Refusal> {
        Some(match refusal {
            Refusal::Missing => Refusal::Elsewhere,
            Refusal::Elsewhere => Refusal::Malformed { what: String::new() },
            Refusal::Malformed { .. } => Refusal::Algorithm { found: Algorithm::HS256 },
            Refusal::Algorithm { .. } => Refusal::Stripped,
            Refusal::Stripped => Refusal::Unstripped,
            Refusal::Unstripped => Refusal::UnknownKey,
            Refusal::UnknownKey => Refusal::Signature,
            Refusal::Signature => Refusal::Claim { name: "aud" },
            Refusal::Claim { .. } => Refusal::Issuer,
            Refusal::Issuer => Refusal::Audience,
            Refusal::Audience => Refusal::Expired { seconds: 1 },
            Refusal::Expired { .. } => Refusal::NotYetValid { seconds: 1 },
            Refusal::NotYetValid { .. } => Refusal::Unverified,
            Refusal::Unverified => Refusal::Caller,
            Refusal::Caller => {
                Refusal::Keys { source: Arc::new(FetchError::NoKey), retry: Duration::default() }
            }
            Refusal::Keys { .. } => return None,
        })
    }

    #[test]
    fn the_reasons_are_the_values_of_the_label() {
        let all = std::iter::successors(Some(Refusal::Missing), next);
        assert_eq!(all.map(|refusal| refusal.reason()).collect::<Vec<_>>(), REASONS);
    }
}
