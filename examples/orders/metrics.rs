//! `PUSHONCE_METRICS`: whether the metrics are served, and to whom.

use std::sync::Arc;

use axum::Router;
use pushonce::store::{Maintain, Metered};

use super::BoxError;
use super::settings::variable;

/// The route of the metrics, if they are to be served.
pub(super) fn from_env() -> Result<Option<Router>, BoxError> {
    match variable("PUSHONCE_METRICS")?.as_deref() {
        None => Ok(None),
        Some("prometheus") => route().map(Some),
        Some(other) => {
            Err(format!("`PUSHONCE_METRICS` is {other:?}: expected `prometheus` or nothing").into())
        }
    }
}

#[cfg(feature = "prometheus")]
fn route() -> Result<Router, BoxError> {
    Ok(pushonce::telemetry::prometheus()?.route())
}

#[cfg(not(feature = "prometheus"))]
fn route() -> Result<Router, BoxError> {
    Err("`PUSHONCE_METRICS` is set, and metrics are not compiled in: switch on the feature `prometheus`"
        .into())
}

/// The same store, with its trips counted.
pub(super) fn metered(store: Arc<dyn Maintain>) -> Arc<dyn Maintain> {
    Arc::new(Metered::new(store))
}
