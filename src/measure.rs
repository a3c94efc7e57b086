//! What the crate measures of itself: the names and labels of its metrics, in one place.

/// Requests refused for their token, by `reason`.
#[cfg(feature = "oidc")]
pub(crate) const UNAUTHORIZED: &str = "pushonce_unauthorized_total";

/// Counts a request that was refused for its token.
#[cfg(feature = "oidc")]
pub(crate) fn unauthorized(reason: &'static str) {
    metrics::counter!(UNAUTHORIZED, "reason" => reason).increment(1);
}
