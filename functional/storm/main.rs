//! The crash storm: thousands of messages through the real Pub/Sub emulator into four real processes, which
//! are killed and stopped all the while, on the stores that people use; and each repeat has its cause.
//!
//! `make storm-short` and `make storm`. The seed is printed; `PUSHONCE_STORM_SEED` draws the same fates again.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

mod came;
mod causes;
#[path = "../client.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod client;
mod dice;
#[path = "../../tests/support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod emulator;
#[path = "../../tests/support/fake_gcs.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod fake_gcs;
mod fate;
mod fleet;
mod gate;
mod journal;
#[cfg(test)]
mod judged;
mod load;
#[path = "../process.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod process;
mod program;
#[path = "../../tests/support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod proxy;
#[path = "../pubsub.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod pubsub;
#[path = "../../tests/support/report.rs"]
mod report;
#[path = "../../tests/support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod s3;
#[path = "../../tests/support/site.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod site;
mod storm;
#[path = "../supplier.rs"]
#[expect(dead_code, reason = "the tools are whole; this test takes what it needs")]
mod supplier;
mod table;
mod transaction;
mod work;

use self::site::Site;
use self::table::Table;
use self::work::Mode;

/// For what comes soon where the machine has nothing else to do.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const POLL: Duration = Duration::from_millis(100);
/// The short form; the long one has 10,000, and the second emulator of Datastore.
const ORDERS: u64 = 2_000;
/// Where; `transaction` is `PostgreSQL` with the effects in the same database.
const STORES: &str = "datastore-emulator redis postgres s3 transaction";

#[test]
fn no_message_is_lost_and_no_effect_is_made_twice() {
    // This is an instance.
    if program::played() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(all());
}

async fn all() {
    let drawn = u64::from(SystemTime::UNIX_EPOCH.elapsed().unwrap().subsec_nanos());
    let seed = number("PUSHONCE_STORM_SEED").unwrap_or(drawn);
    let orders = usize::try_from(number("PUSHONCE_STORM_MESSAGES").unwrap_or(ORDERS)).unwrap();
    let stores = std::env::var("PUSHONCE_STORM_ON").unwrap_or_else(|_| STORES.to_owned());
    say(&format!("a storm over {orders} orders, PUSHONCE_STORM_SEED={seed}"));
    let (mut came, mut faults, mut ran) = (Vec::new(), Vec::new(), Vec::new());
    for name in stores.split_whitespace() {
        let (site, mode) = place(name).await;
        let (counted, found) = storm::storm(&site, mode, orders, seed).await;
        say(&format!("{}: {} faults after {} s", counted.store, found.len(), counted.seconds));
        came.push(counted);
        faults.extend(found);
        ran.push(site.name);
    }
    Table(&came).show(seed);
    assert!(faults.is_empty(), "{} faults, PUSHONCE_STORM_SEED={seed}:\n{}", faults.len(), faults.join("\n"));
    for store in ran.into_iter().chain(["pubsub-emulator"]) {
        report::test(store, "no_message_is_lost_and_no_effect_is_made_twice");
    }
}

async fn place(name: &str) -> (Site, Mode) {
    let site = match name {
        "datastore-emulator" => Site::datastore_emulator().await,
        "firestore-emulator" => Site::firestore_emulator().await,
        "redis" => Site::redis().await,
        "postgres" | "transaction" => Site::postgres().await,
        "s3" => Site::s3().await,
        _ => panic!("no storm is on {name}: {STORES}, firestore-emulator"),
    };
    (site, if name == "transaction" { Mode::Transaction } else { Mode::Supplier })
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} is {text}")))
}

fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}
