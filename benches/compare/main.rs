//! What people use today and pushonce, side by side: the Python peer, a handler written by hand, bare axum, and the
//! two writes by themselves, on the same servers, under the same load, in turns in one run.
//!
//! `make compare`, or with its virtual environment made `functional/with-servers cargo bench --all-features --bench
//! compare -- [STORE..]`. `PUSHONCE_SCALE=0.01` makes as much less of it, to see that it runs. The page and the plot of
//! a whole run are written into `docs/`, those of any other into `target/compare/`; the raw figures are there too.

mod contender;
mod entry;
mod found;
mod load;
mod machine;
mod measure;
mod page;
mod process;
mod rest;
mod serve;
mod verdict;

#[path = "../stores/bare.rs"]
mod bare;
#[path = "../by_hand.rs"]
#[expect(dead_code, reason = "it is a program too")]
mod by_hand;
#[path = "../../tests/support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod emulator;
#[path = "../../tests/support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod proxy;
#[path = "../../tests/support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod s3;
#[path = "../stores/subject.rs"]
#[expect(dead_code, reason = "the tools are whole; this takes what it needs")]
mod subject;

use std::process::{Command, ExitCode};

use tokio::signal::unix::{SignalKind, signal};

use crate::contender::{Contender, Store};
use crate::entry::{folder, root};
use crate::found::Found;
use crate::measure::{IN_FLIGHT, Plan};

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    // All processes are started by this thread, since some end when the one that started them does.
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        if let [word, contender, address, port, connections] = &*arguments
            && word == "serve"
        {
            let number = |text: &str| text.parse().expect("a number");
            serve::serve(contender, address, port.parse().expect("a port"), number(connections)).await;
            return ExitCode::SUCCESS;
        }
        let mut terminated = signal(SignalKind::terminate()).expect("a signal");
        tokio::select! {
            () = compare(&arguments) => ExitCode::SUCCESS,
            _ = terminated.recv() => ExitCode::FAILURE,
            _ = tokio::signal::ctrl_c() => ExitCode::FAILURE,
        }
    })
}

async fn compare(wanted: &[String]) {
    let scale = std::env::var("PUSHONCE_SCALE")
        .map_or(1.0, |scale| scale.parse().expect("PUSHONCE_SCALE is a number"));
    let plan = Plan::of(scale);
    let stores = Store::ALL
        .into_iter()
        .filter(|store| wanted.is_empty() || wanted.iter().any(|name| name == store.name()));
    let machine = machine::described();
    println!("{machine}\n{plan:?}");
    let mut found = Found::default();
    for store in stores {
        let tried = measure::workers(store, plan).await;
        let workers = tried[0].0;
        found.workers.push((store, tried));
        for in_flight in IN_FLIGHT {
            found.turns.extend(measure::turns(store, in_flight, workers, plan).await);
            eprintln!("{store}, {in_flight} in flight: done");
        }
        for contender in store.contenders() {
            if ![Contender::Calls, Contender::Loop].contains(contender) {
                measure::forget(store).await;
                found.rests.push(rest::at_rest(*contender, store, workers, plan).await);
            }
        }
        // What was found so far is not lost where a later store fails.
        let _ = found.write_csv();
        eprintln!("{store}, at rest: done");
    }
    let is_whole = scale >= 1.0 && wanted.is_empty();
    report(&found, &machine, plan, is_whole);
}

fn report(found: &Found, machine: &str, plan: Plan, is_whole: bool) {
    let ratios = verdict::ratios(&found.turns);
    let figures = [
        "![Throughput and p99 by store](benchmarks.png)".to_owned(),
        format!(
            "{machine} Each figure is the median of {} turns of {:?}; the least and the most of a turn are in brackets.",
            plan.rounds, plan.window
        ),
        format!("### What was to be reached\n\n{}", page::targets(&ratios, &found.rests)),
        format!("### pushonce to each other\n\n{}", page::times(&ratios)),
        format!("### Throughput\n\n{}", page::throughput(&found.turns)),
        format!("### Trips, start and memory\n\n{}", page::at_rest(&found.rests, plan.messages)),
        format!("### How the peer was served\n\n{}", page::settings(&found.workers)),
    ]
    .join("\n\n");
    println!("{figures}");
    let to = page::destination(is_whole);
    let figures_file = found.write_csv();
    page::write(&figures, &to);
    let mut plot = Command::new(root().join("target/compare/venv/bin/python"));
    plot.arg(root().join("benches/compare/plot.py")).args([&figures_file, &to.join("benchmarks.png")]);
    let drawn = plot.env("MPLCONFIGDIR", folder()).status().expect("python");
    assert!(drawn.success(), "the plot was not drawn");
    println!("written: {} and its plot", to.join("benchmarks.md").display());
}
