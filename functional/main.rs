//! The whole world on one machine: real emulators, real processes, a supplier that counts effects.
//!
//! `make functional` starts the emulators (`functional/with-servers`) and runs this.

#![expect(
    clippy::disallowed_methods,
    reason = "no clock to inject: emulators and processes live in real time"
)]
#![expect(dead_code, reason = "the tools are whole; the scenarios take what they need")]

#[cfg(test)]
mod client;
#[cfg(test)]
mod crashes;
#[cfg(test)]
mod dead_letters;
#[cfg(test)]
#[path = "../tests/support/datastore_emulator.rs"]
mod emulator;
#[cfg(test)]
mod ends;
#[cfg(test)]
#[path = "../tests/support/fake_gcs.rs"]
mod fake_gcs;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod front;
#[cfg(test)]
mod once;
#[cfg(test)]
mod process;
#[cfg(test)]
#[path = "../tests/support/proxy.rs"]
mod proxy;
#[cfg(test)]
mod pubsub;
#[cfg(test)]
mod redrive;
#[cfg(test)]
#[path = "../tests/support/report.rs"]
mod report;
#[cfg(test)]
#[path = "../tests/support/s3.rs"]
mod s3;
#[cfg(test)]
mod serialize;
#[cfg(test)]
mod shapes;
#[cfg(test)]
#[path = "../tests/support/site.rs"]
mod site;
#[cfg(test)]
mod stage;
#[cfg(test)]
mod supplier;
#[cfg(test)]
mod world;
