//! The metrics as a route for Prometheus, on the server that takes the pushes.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use http::header::CONTENT_TYPE;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};

use crate::measure::{ALL, Kind};

/// How often what histograms were told is summed up, which each keeps in full until then.
const UPKEEP: Duration = Duration::from_secs(5);
/// Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Installs a recorder of metrics for this process, and gives what serves them.
///
/// It records all that the program tells the facade `metrics`, its own metrics too. This crate's
/// histograms have the buckets of [`measure::ALL`](crate::measure::ALL), all others are summaries.
///
/// ```
/// use axum::{Router, routing::get};
///
/// let metrics = pushonce::telemetry::prometheus()?;
/// let app: Router = Router::new().route("/healthz", get(|| async { "ok" })).merge(metrics.route());
/// # let _ = app;
/// # Ok::<(), pushonce::telemetry::NoPrometheus>(())
/// ```
///
/// A thread of its own sums the histograms up every five seconds, for as long as the process lives, so
/// that memory stays bounded also where nobody asks for the metrics. It needs no runtime.
///
/// # Errors
/// [`NoPrometheus`]: end the process, or use the recorder that is there.
pub fn prometheus() -> Result<Prometheus, NoPrometheus> {
    let builder = ALL.iter().filter(|metric| metric.kind == Kind::Histogram).try_fold(
        PrometheusBuilder::new(),
        |builder, metric| {
            builder.set_buckets_for_metric(Matcher::Full(metric.name.to_owned()), metric.buckets)
        },
    );
    let recorder = builder.map_err(|error| NoPrometheus::Built(error.into()))?.build_recorder();
    let handle = recorder.handle();
    metrics::set_global_recorder(recorder).map_err(|_| NoPrometheus::Taken)?;
    let upkeep = handle.clone();
    let work = move || {
        loop {
            std::thread::sleep(UPKEEP);
            upkeep.run_upkeep();
        }
    };
    std::thread::Builder::new()
        .name("pushonce-metrics".to_owned())
        .spawn(work)
        .map_err(NoPrometheus::Upkeep)?;
    Ok(Prometheus { handle })
}

/// The metrics of this process, for Prometheus. Made by [`prometheus`].
#[derive(Debug, Clone)]
pub struct Prometheus {
    handle: PrometheusHandle,
}

impl Prometheus {
    /// `GET /metrics`, to be merged into a router. Whoever may call the server may read it: it tells
    /// the names of consumers and how much they do, and never a key.
    pub fn route<S: Clone + Send + Sync + 'static>(&self) -> Router<S> {
        let metrics = self.clone();
        Router::new().route("/metrics", get(async move || ([(CONTENT_TYPE, TEXT)], metrics.render())))
    }

    /// All metrics in Prometheus' text format.
    pub fn render(&self) -> String {
        self.handle.render()
    }
}

/// Why the metrics are not recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoPrometheus {
    /// The program has installed a recorder before. Use that one; there can be one only.
    #[error("a recorder of metrics is installed already")]
    Taken,
    /// The recorder cannot be built.
    #[error("the recorder of metrics cannot be built")]
    Built(#[source] crate::store::BoxError),
    /// The thread that keeps its memory bounded cannot be started.
    #[error("the upkeep of the metrics cannot be started")]
    Upkeep(#[source] std::io::Error),
}
