//! What operators see: logs in Cloud Logging's format, and the metrics.
//!
//! ```no_run
//! # fn main() -> Result<(), pushonce::telemetry::InvalidLogs> {
//! pushonce::telemetry::init()?;
//! tracing::info!(version = env!("CARGO_PKG_VERSION"), "starting");
//! # Ok(()) }
//! ```
//!
//! On Cloud Run, and wherever standard output is no terminal, each event becomes one line of JSON that
//! Cloud Logging reads: with its severity, with its fields and those of its spans side by side, and
//! joined to the request's trace. On a terminal it becomes a line for people. The names of the fields
//! are part of the API: `docs/telemetry.md`.

#[cfg(feature = "telemetry")]
mod cloud_logging;
#[cfg(feature = "telemetry")]
mod entry;
#[cfg(feature = "telemetry")]
mod logs;
#[cfg(feature = "prometheus")]
mod prometheus;
#[cfg(feature = "telemetry")]
mod value;

#[cfg(feature = "telemetry")]
pub use self::cloud_logging::CloudLogging;
#[cfg(feature = "telemetry")]
pub use self::logs::{Format, InvalidLogs, Logs, init};
#[cfg(feature = "prometheus")]
pub use self::prometheus::{NoPrometheus, Prometheus, prometheus};
