//! The address of a task, wherever the routes are nested.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, OriginalUri};
use http::request::Parts;

use crate::submit::TaskId;

/// What stands before the paths of these routes.
pub(super) struct Links(String);

impl Links {
    pub(super) fn to(&self, id: TaskId) -> String {
        format!("{}/tasks/{id}", self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Links {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        // Nesting takes the prefix off the path. What it is nested under may have parameters, so
        // the prefix is read from the request and not from the route.
        let whole = parts.extensions.get().map_or(&parts.uri, |OriginalUri(uri)| uri).path();
        Ok(Self(whole.strip_suffix(parts.uri.path()).unwrap_or_default().to_owned()))
    }
}
