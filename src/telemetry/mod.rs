//! What operators see: logs in Cloud Logging's format, and the metrics.

#[cfg(feature = "prometheus")]
mod prometheus;

#[cfg(feature = "prometheus")]
pub use self::prometheus::{NoPrometheus, Prometheus, prometheus};
