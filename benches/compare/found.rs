//! All that a run has found, also as CSV: for the plot, and for whoever wants to see each turn.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use crate::contender::{Store, Workers};
use crate::entry::folder;
use crate::measure::Turn;
use crate::rest::Rest;

#[derive(Default)]
pub(crate) struct Found {
    pub(crate) turns: Vec<Turn>,
    pub(crate) rests: Vec<Rest>,
    /// What was tried of the peer, the fastest first.
    pub(crate) workers: Vec<(Store, Vec<(Workers, f64)>)>,
}

impl Found {
    /// Writes `turns.csv` and `rests.csv`, and says where the first is.
    pub(crate) fn write_csv(&self) -> PathBuf {
        let mut turns =
            "store,contender,in_flight,messages_per_s,p50_us,p95_us,p99_us,cpu_us,refused\n".to_owned();
        for Turn { store, contender, in_flight, rate, latency, cpu, refused } in &self.turns {
            let [p50, p95, p99] = latency.map(|latency| latency.as_micros());
            let cpu = cpu.as_micros();
            writeln!(turns, "{store},{contender},{in_flight},{rate:.1},{p50},{p95},{p99},{cpu},{refused}")
                .expect("a text");
        }
        let mut rests =
            "store,contender,start_us,kib_first,kib_after,kib_peak,trips_first,trips_duplicate\n".to_owned();
        for Rest { store, contender, started_in, memory: [first, after, peak], trips } in &self.rests {
            let trips = trips.map_or(",".to_owned(), |[first, duplicate]| format!("{first},{duplicate}"));
            let started = started_in.as_micros();
            writeln!(rests, "{store},{contender},{started},{first},{after},{peak},{trips}").expect("a text");
        }
        let file = folder().join("turns.csv");
        fs::write(&file, turns).expect("a file");
        fs::write(folder().join("rests.csv"), rests).expect("a file");
        file
    }
}
