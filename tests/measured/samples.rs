//! The recorder of this test process, and what it has recorded.

use std::sync::LazyLock;

use pushonce::measure::OUTCOMES;
use pushonce::telemetry::Prometheus;

/// The one recorder of this process. Tests run beside each other, so each has consumers of its own.
pub(crate) static RECORDER: LazyLock<Prometheus> =
    LazyLock::new(|| pushonce::telemetry::prometheus().expect("nobody else has installed one"));

/// A sample with exactly these labels; zero where there is none.
pub(crate) fn sample(name: &str, labels: &[(&str, &str)]) -> f64 {
    sample_of(&RECORDER.render(), name, labels)
}

pub(crate) fn sample_of(text: &str, name: &str, labels: &[(&str, &str)]) -> f64 {
    let mut wanted: Vec<_> = labels.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
    wanted.sort();
    let found = samples(text).into_iter().find(|sample| {
        let labels = sample.labels.iter();
        let mut labels: Vec<_> = labels.map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        labels.sort();
        sample.name == name && labels == wanted
    });
    found.map_or(0.0, |sample| sample.value)
}

/// A line of Prometheus' text.
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

pub(crate) fn samples(text: &str) -> Vec<Sample> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (series, value) = line.rsplit_once(' ').expect("a value");
            let (name, labels) = series.split_once('{').unwrap_or((series, "}"));
            let labels = labels.strip_suffix('}').expect("closed");
            // No label of ours has a comma or a quote in it.
            let labels = labels.split(',').filter(|label| !label.is_empty()).map(|label| {
                let (name, value) = label.split_once('=').expect("a label");
                (name.to_owned(), value.trim_matches('"').to_owned())
            });
            Sample {
                name: name.to_owned(),
                labels: labels.collect(),
                value: value.parse().expect("a number"),
            }
        })
        .collect()
}

/// How often each outcome of a consumer was counted, without those that were not.
pub(crate) fn outcomes(consumer: &str) -> Vec<(&'static str, u64)> {
    let text = RECORDER.render();
    let count = |outcome: &str| {
        sample_of(&text, "pushonce_deliveries_total", &[("consumer", consumer), ("outcome", outcome)]) as u64
    };
    OUTCOMES.iter().map(|outcome| (*outcome, count(outcome))).filter(|(_, count)| *count > 0).collect()
}

/// How many times of that kind were recorded for a consumer.
pub(crate) fn times(metric: &str, consumer: &str) -> u64 {
    sample(&format!("{metric}_count"), &[("consumer", consumer)]) as u64
}

pub(crate) fn in_flight(consumer: &str) -> f64 {
    sample("pushonce_in_flight", &[("consumer", consumer)])
}

/// Installs the recorder, if no test before has.
pub(crate) fn listen() {
    LazyLock::force(&RECORDER);
}
