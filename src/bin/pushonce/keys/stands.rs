//! What is told of a key.

use std::time::Duration;

use chrono::{DateTime, Utc};
use pushonce::maintain::{Inspected, Status};
use pushonce::store::record::{Ended, Progress, Receipt, State, Verb};
use serde::Serialize;

use crate::list::Row;
use crate::output::{length, moment, time};
use crate::table;

/// The fields are a promise to scripts: none is renamed.
#[derive(Debug, Serialize)]
pub(super) struct Stands {
    consumer: String,
    key: String,
    status: &'static str,
    left_seconds: Option<f64>,
    state: State,
    verb: Verb,
    fence: u64,
    runs: u32,
    ended: Ended,
    age_seconds: f64,
    lease_seconds: f64,
    ttl_seconds: f64,
    receipt: Option<Told>,
    written_at: Option<DateTime<Utc>>,
    expires_at: Option<DateTime<Utc>>,
    data_bytes: usize,
    #[serde(skip)]
    words: String,
}

#[derive(Debug, Serialize)]
struct Told {
    progress: Progress,
    at: Option<DateTime<Utc>>,
    message: Option<String>,
    delivery: Option<String>,
}

impl Stands {
    pub(super) fn of(consumer: &str, key: &str, found: &Inspected) -> Self {
        let (status, left) = match found.status {
            Status::Held { left } => ("held", Some(left)),
            Status::Lapsed => ("lapsed", None),
            Status::Released => ("released", None),
            Status::Started { left } => ("started", Some(left)),
            Status::Done { left } => ("done", Some(left)),
            Status::Expired => ("expired", None),
        };
        let record = &found.record;
        Self {
            consumer: consumer.to_owned(),
            key: key.to_owned(),
            status,
            left_seconds: left.map(|left| left.as_secs_f64()),
            state: record.state,
            verb: record.verb,
            fence: record.fence,
            runs: record.runs,
            ended: record.ended,
            age_seconds: found.age.as_secs_f64(),
            lease_seconds: record.lease.as_secs_f64(),
            ttl_seconds: record.ttl.as_secs_f64(),
            receipt: record.receipt.as_ref().map(Told::of),
            written_at: time(record.written),
            expires_at: time(record.expires),
            data_bytes: record.data.len(),
            words: found.status.to_string(),
        }
    }

    pub(super) fn facts(&self) -> String {
        let text = |name: &str| Some(name.to_owned());
        let ended = match self.ended {
            Ended::Fresh => None,
            Ended::Failed => text("failed"),
            Ended::Unknown => text("unknown: it may have had its effect"),
        };
        let receipt = self.receipt.as_ref();
        table::facts([
            ("consumer", text(&self.consumer)),
            ("key", text(&self.key)),
            ("status", text(&self.words)),
            ("verb", text(&self.verb.to_string())),
            ("fence", Some(self.fence.to_string())),
            ("runs before", Some(self.runs.to_string()).filter(|_| self.runs > 0)),
            ("last of them", ended),
            ("receipt", receipt.map(Told::words)),
            ("message", receipt.and_then(|receipt| receipt.message.clone())),
            ("delivery", receipt.and_then(|receipt| receipt.delivery.clone())),
            ("age", Some(seconds(self.age_seconds))),
            ("lease", Some(seconds(self.lease_seconds))),
            ("ttl", Some(seconds(self.ttl_seconds))),
            ("written", Some(moment(self.written_at))),
            ("expires", Some(moment(self.expires_at))),
            ("data", Some(format!("{} bytes", self.data_bytes)).filter(|_| self.data_bytes > 0)),
        ])
    }
}

impl Told {
    fn of(receipt: &Receipt) -> Self {
        let owned = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_owned);
        Self {
            progress: receipt.progress,
            at: time(receipt.at),
            message: owned(&receipt.message),
            delivery: owned(&receipt.delivery),
        }
    }

    fn words(&self) -> String {
        let progress = match self.progress {
            Progress::Started => "started",
            Progress::Finished => "finished",
            Progress::Rejected => "rejected, to the dead letters",
        };
        format!("{progress}, {}", moment(self.at))
    }
}

fn seconds(seconds: f64) -> String {
    length(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

impl Row for Stands {
    const HEAD: &'static [&'static str] = &["STATUS", "LEFT", "AGE", "RUNS", "FENCE", "KEY"];

    fn cells(&self) -> Vec<String> {
        vec![
            self.status.to_owned(),
            self.left_seconds.map_or_else(|| "-".to_owned(), seconds),
            seconds(self.age_seconds),
            self.runs.to_string(),
            self.fence.to_string(),
            format!("{}:{}", self.consumer, self.key),
        ]
    }
}
