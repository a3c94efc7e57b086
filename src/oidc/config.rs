//! Who is let in, and what is refused when a layer is built.

use std::sync::Arc;

use http::HeaderMap;

use super::bearer::{bearer, checked_elsewhere};
use super::invalid::InvalidPushAuth;
use super::keys::Keys;
use super::refusal::Refusal;
use super::report::Reports;
use super::token::{Caller, Expected, Token};
use crate::time::Clock;

/// Who proves that a token is genuine.
#[derive(Debug, Clone)]
pub(super) enum Mode {
    /// We, by its signature.
    Verify(Arc<Keys>),
    /// Cloud Run, which has put a fixed text in place of the signature.
    Platform,
}

/// What the services of a layer share.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) mode: Mode,
    pub(super) expected: Expected,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) reports: Arc<Reports>,
}

impl Gate {
    /// The caller of a request with these headers. A refusal is logged and counted.
    pub(super) async fn admit(&self, headers: &HeaderMap) -> Result<Caller, Refusal> {
        let (why, claims) = match bearer(headers).and_then(Token::read) {
            Ok(token) => match self.check(&token, headers).await {
                Ok(caller) => return Ok(caller),
                Err(why) => (why, Some(token.claims)),
            },
            Err(why) => (why, None),
        };
        self.reports.tell(&why, headers, claims.as_ref(), &self.expected, &self.clock);
        Err(why)
    }

    async fn check(&self, token: &Token<'_>, headers: &HeaderMap) -> Result<Caller, Refusal> {
        token.checked_header()?;
        match &self.mode {
            Mode::Verify(keys) => {
                if token.is_stripped() {
                    return Err(Refusal::Stripped);
                }
                let key = keys.find(token.key_id().ok_or(Refusal::UnknownKey)?).await?;
                token.checked_signature(&key)?;
                token.claims.checked_times(self.clock.wall())?;
            }
            Mode::Platform => {
                if checked_elsewhere(headers) {
                    return Err(Refusal::Elsewhere);
                }
                if !token.is_stripped() {
                    return Err(Refusal::Unstripped);
                }
                token.claims.checked_times_if_any(self.clock.wall())?;
            }
        }
        token.claims.checked(&self.expected)
    }
}

impl Expected {
    pub(super) fn checked(&self) -> Result<(), InvalidPushAuth> {
        if self.audiences.is_empty() {
            return Err(InvalidPushAuth::NoAudience);
        }
        if self.callers.is_empty() {
            return Err(InvalidPushAuth::NoCaller);
        }
        let blank = |text: &&String| text.is_empty() || text.trim() != *text;
        if let Some(value) = self.audiences.iter().find(blank) {
            return Err(InvalidPushAuth::Audience { value: value.clone() });
        }
        let is_email = |text: &str| {
            let parts = text.split_once('@');
            parts.is_some_and(|(name, domain)| !name.is_empty() && !domain.is_empty())
                && !text.contains(|c: char| c.is_whitespace() || c == ',')
        };
        match self.callers.iter().find(|caller| !is_email(caller)) {
            Some(value) => Err(InvalidPushAuth::Caller { value: value.clone() }),
            None => Ok(()),
        }
    }
}
