//! `docs/costs.json`: the prices, what each store does for a message, and what else is assumed.

use std::collections::BTreeMap;

use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sheet {
    pub(crate) region: String,
    pub(crate) looked_up: String,
    pub(crate) month_hours: f64,
    pub(crate) duplicates_in_a_hundred: f64,
    /// Messages a month.
    pub(crate) volumes: Vec<f64>,
    pub(crate) prices: BTreeMap<String, Price>,
    pub(crate) by_use: Vec<ByUse>,
    pub(crate) redis: Redis,
    pub(crate) sql: Sql,
    pub(crate) around: Around,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Price {
    pub(crate) usd: f64,
    pub(crate) per: f64,
    pub(crate) unit: String,
    pub(crate) page: String,
    /// How and when it was read; the page itself cannot be opened by a test.
    pub(crate) read: String,
}

/// A store that is paid by what it does. The operations are names of prices, one for each trip.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByUse {
    pub(crate) store: String,
    /// Its row in `docs/trips.md`.
    pub(crate) trips: String,
    pub(crate) first: Vec<String>,
    pub(crate) duplicate: Vec<String>,
    pub(crate) expiry: String,
    pub(crate) storage: String,
    pub(crate) record_bytes: f64,
    pub(crate) days_kept: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Redis {
    pub(crate) store: String,
    pub(crate) trips: String,
    pub(crate) record_bytes: f64,
    pub(crate) days_kept: u64,
    pub(crate) most_full: f64,
    /// Up to how many GiB which price counts.
    pub(crate) sizes: Vec<(f64, String)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sql {
    pub(crate) store: String,
    pub(crate) trips: String,
    pub(crate) record_bytes: f64,
    pub(crate) days_kept: u64,
    pub(crate) vcpus: f64,
    pub(crate) memory_gib: f64,
    pub(crate) least_disk_gib: f64,
    pub(crate) most_full: f64,
}

/// What a message costs besides the store.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Around {
    pub(crate) message_bytes: f64,
    pub(crate) log_bytes: f64,
    pub(crate) work_seconds: f64,
    pub(crate) memory_gib: f64,
    pub(crate) always_on_memory_gib: f64,
}

impl Sheet {
    pub(crate) fn read() -> Self {
        serde_json::from_str(include_str!("../../docs/costs.json")).expect("docs/costs.json")
    }

    /// What so much of it costs.
    pub(crate) fn cost(&self, price: &str, amount: f64) -> f64 {
        let price = self.prices.get(price).unwrap_or_else(|| panic!("no price of `{price}`"));
        amount * price.usd / price.per
    }
}

pub(crate) fn seconds_of(days: f64) -> f64 {
    days * 24.0 * 3600.0
}
