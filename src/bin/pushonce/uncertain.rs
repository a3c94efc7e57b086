//! `pushonce uncertain`: the ledger of keys whose work succeeded although nobody recorded it.

use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use pushonce::maintain::{How, Uncertain as Entry, Why, uncertain};
use serde::Serialize;

use crate::list::{Limit, Listed, Row, list};
use crate::output::{chain, moment, time};
use crate::place::Place;
use crate::{Answer, Failed};

/// Lists keys whose work succeeded although nobody recorded it: its effect may happen twice.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Uncertain {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Fields of --json, one object in each line:
  consumer, key       whose key, and its text
  hashed              whether `key` is the SHA-256 of `consumer:text`, since the text is longer than 8 KiB
  why                 unrecorded, fenced-out
  at, fence           when that was known; the fence of the run
  message, delivery   where they are known, else null
  settled             null while nothing is known, or how (recorded, fenced-out) and at

Exit codes: 0 done, also where the list is empty; 2 it could not be looked at.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists them, in the store's own order
    ///
    /// Those of the last 30 days, as far as the store could be reached to note them; the log has all, as
    /// the event `uncertain`.
    List(Limit),
}

/// The fields are a promise to scripts: none is renamed.
#[derive(Debug, Serialize)]
struct Told {
    consumer: String,
    key: String,
    hashed: bool,
    why: Why,
    at: Option<DateTime<Utc>>,
    fence: u64,
    message: Option<String>,
    delivery: Option<String>,
    settled: Option<Settled>,
    #[serde(skip)]
    became: &'static str,
}

#[derive(Debug, Serialize)]
struct Settled {
    how: How,
    at: Option<DateTime<Utc>>,
}

impl Uncertain {
    pub(crate) async fn run(&self) -> Result<Answer, Failed> {
        let Command::List(limit) = &self.command;
        let store = self.place.open()?;
        list(self.place.json, limit, async |page| {
            let listed = uncertain(&store, page).await?;
            let row = |entry: Result<Entry, _>| match entry {
                Ok(entry) => Ok(Told::of(entry)),
                Err(error) => Err(format!("an entry of the ledger: {}", chain(&error))),
            };
            Ok(Listed { rows: listed.found.into_iter().map(row).collect(), next: listed.next })
        })
        .await
    }
}

impl Told {
    fn of(entry: Entry) -> Self {
        let became = match (entry.why, entry.settled.map(|settled| settled.how)) {
            (_, Some(How::Recorded)) => "recorded later",
            (Why::FencedOut, _) | (_, Some(How::FencedOut)) => "fenced out",
            (Why::Unrecorded, None) => "not recorded",
            _ => "?",
        };
        Self {
            consumer: entry.consumer,
            key: entry.key,
            hashed: entry.hashed,
            why: entry.why,
            at: time(entry.at),
            fence: entry.fence,
            message: entry.message.as_deref().map(str::to_owned),
            delivery: entry.delivery.as_deref().map(str::to_owned),
            settled: entry.settled.map(|settled| Settled { how: settled.how, at: time(settled.at) }),
            became,
        }
    }
}

impl Row for Told {
    const HEAD: &'static [&'static str] = &["SINCE", "BECAME", "FENCE", "MESSAGE", "KEY"];

    fn cells(&self) -> Vec<String> {
        let mark = if self.hashed { "#" } else { "" };
        vec![
            moment(self.at),
            self.became.to_owned(),
            self.fence.to_string(),
            self.message.clone().unwrap_or_else(|| "-".to_owned()),
            format!("{}:{mark}{}", self.consumer, self.key),
        ]
    }
}
