//! What operators see: logs in Cloud Logging's format, and the metrics.
