//! Whose a request is.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::request::Parts;

use super::Routes;
use super::problem::{Code, Problem};
use crate::submit::{Submission, Task};

/// Why a request is nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Denied {
    /// It does not say, or not credibly, whose it is: 401.
    #[error("the request does not say whose it is")]
    Unauthenticated,
    /// Its caller may not do this: 403.
    #[error("the caller may not do this")]
    Forbidden,
}

/// Who asks.
pub(super) enum Caller {
    /// Callers are not told apart.
    Anybody,
    /// One of this tenant, or of none.
    Of(Option<String>),
}

impl Caller {
    pub(super) fn may_see(&self, task: &Task) -> bool {
        match self {
            Self::Anybody => true,
            Self::Of(tenant) => *tenant == task.tenant,
        }
    }

    /// The submission, as this caller's.
    pub(super) fn sends(self, submission: Submission) -> Submission {
        match self {
            Self::Of(Some(tenant)) => submission.tenant(tenant),
            Self::Of(None) | Self::Anybody => submission,
        }
    }
}

impl FromRequestParts<Arc<Routes>> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, routes: &Arc<Routes>) -> Result<Self, Problem> {
        let Some(tenant) = &routes.tenant else { return Ok(Self::Anybody) };
        Ok(Self::Of(tenant(parts)?))
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Unauthenticated => {
                Self::new(Code::Unauthenticated, "The request does not say whose it is.")
            }
            Denied::Forbidden => Self::new(Code::Forbidden, "The caller may not do this."),
        }
    }
}
