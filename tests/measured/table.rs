//! The names and labels are as documented, in the docs, in the code and in what comes out.

use std::collections::BTreeMap;

use axum::body::Body;
use axum::routing::post;
use http::Request;
use pushonce::measure::{ALL, CONSUMERS, Kind, OPERATIONS, OTHERS, OUTCOMES, REASONS, RESULTS};
use pushonce::{Consumer, IdempotentLayer};

use crate::samples::{RECORDER, Sample, samples};
use crate::world::{World, app, push, send};

const DOC: &str = include_str!("../../docs/metrics.md");

#[test]
fn the_table_in_the_docs_is_the_one_in_the_code() {
    let kind = |kind| match kind {
        Kind::Counter => "counter",
        Kind::Gauge => "gauge",
        Kind::Histogram => "histogram",
        other => panic!("{other:?} is not documented"),
    };
    let rows = ALL.iter().map(|metric| {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!(
            "| `{}` | {} | {} | {} |",
            metric.name,
            kind(metric.kind),
            labels.join(", "),
            metric.description
        )
    });
    let told: Vec<_> = DOC.lines().filter(|line| line.starts_with("| `pushonce_")).collect();
    assert_eq!(told, rows.collect::<Vec<_>>());
    for value in [OUTCOMES, REASONS, OPERATIONS, RESULTS, &[OTHERS]].concat() {
        assert!(DOC.contains(&format!("`{value}`")), "{value} is not documented");
    }
    assert!(DOC.contains(&format!("at most {CONSUMERS}")));
}

#[test]
fn buckets_rise_and_only_histograms_have_them() {
    for metric in ALL {
        assert_eq!(metric.kind == Kind::Histogram, !metric.buckets.is_empty(), "{}", metric.name);
        assert!(metric.buckets.is_sorted_by(|a, b| a < b), "{}", metric.name);
        assert_eq!(metric.name.ends_with("_total"), metric.kind == Kind::Counter, "{}", metric.name);
        assert_eq!(metric.name.ends_with("_seconds"), metric.kind == Kind::Histogram, "{}", metric.name);
    }
    assert!(Consumer::new(OTHERS).is_err(), "a consumer could have that name");
}

#[tokio::test]
async fn what_comes_out_has_the_names_and_labels_of_the_table_and_says_nothing_of_a_message() {
    let recorder = &*RECORDER;
    let world = World::new();
    let app = app(post(async || ()), IdempotentLayer::new("secretive", world.store.clone()));
    push(&app, "seCret-Id").await;
    push(&app, "seCret-Id").await;
    let text = recorder.render();
    for secret in ["seCret", "projects/", "subscriptions", "memory:"] {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    let table: BTreeMap<_, _> = ALL.iter().map(|metric| (metric.name, metric)).collect();
    let of_histogram = |name: &str| {
        ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned)
    };
    let ours = samples(&text);
    assert!(ours.iter().any(|sample| sample.name == "pushonce_work_seconds_count"), "{text}");
    for Sample { name, labels, .. } in ours {
        let metric = table.get(&*name).copied().or_else(|| table.get(&*of_histogram(&name)?).copied());
        let metric = metric.unwrap_or_else(|| panic!("{name} is not in the table"));
        let labels: Vec<_> = labels.into_iter().map(|(name, _)| name).filter(|name| name != "le").collect();
        assert_eq!(labels, metric.labels, "{name}");
    }
    for line in text.lines().filter(|line| line.starts_with("# HELP ")) {
        let (name, help) = line["# HELP ".len()..].split_once(' ').unwrap();
        assert_eq!(table[name].description, help);
    }
}

#[tokio::test]
async fn the_route_serves_the_text_of_prometheus() {
    let app = axum::Router::new().merge(RECORDER.route::<()>());
    let answer = send(&app, Request::get("/metrics").body(Body::empty()).unwrap()).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let posted = send(&app, Request::post("/metrics").body(Body::empty()).unwrap()).await;
    assert_eq!(posted.status, 405);
}
