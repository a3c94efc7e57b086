//! The HTTP routes of a submitter.

use axum::Router;

use super::Submitter;

/// The routes of a submitter, to be nested.
pub fn routes(submitter: Submitter) -> Router {
    Router::new().with_state(submitter)
}
