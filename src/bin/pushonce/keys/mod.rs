//! `pushonce keys`: how keys stand, setting one free, and collecting what has expired.

mod list;
mod purge;
mod stands;

use clap::{Args, Subcommand};
use pushonce::maintain::{Force, Reset, inspect, reset};
use pushonce::{IntoKey as _, Key};
use serde_json::json;

use self::stands::Stands;
use crate::list::Limit;
use crate::output::{answer, length, plain};
use crate::place::Place;
use crate::{Answer, Failed};

/// Looks at keys, sets one free, and collects what has expired.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct Keys {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Fields of --json, for `get` one document (null where nothing stands), for `list` one object in each line:
  consumer, key   the handler, and the text that is done once
  status          held, lapsed, released, started, done, expired
  left_seconds    what is left of the lease or ttl; null where the key is free
  state           claimed, released, done: as the record has it, whatever its age
  verb            lock, mutex, at_most_once
  fence, runs     rises with each claim and release; runs that were not recorded
  ended           how the last of them ended: fresh, failed, unknown
  age_seconds, lease_seconds, ttl_seconds
  receipt         null, or progress (started, finished, rejected), at, message, delivery
  written_at, expires_at, data_bytes
`reset`: reset (freed, free, held, overtaken), consumer, key, left_seconds. `purge`: purged.

Exit codes: 0 done; 1 nothing stands under the key, or it is held (`reset`); 2 it could not be looked at.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Shows how a key stands; exit code 1 where nothing does
    Get(Named),
    /// Lists keys, in the store's own order
    List(list::List),
    /// Sets a key free: its work will run again
    ///
    /// The record stays, released: its fence keeps rising, and whoever held the key can record nothing more.
    /// The next delivery runs the work again, also where it was done before; its history says unknown. A
    /// reset publishes nothing: where the message was acked, publish it again. Instances that remember done
    /// keys (`Cached`) may skip it for 30 seconds more.
    ///
    /// A key that somebody holds is left alone, with exit code 1 and what is left of the lease.
    Reset(Free),
    /// Deletes records whose time is over, until nothing is left
    ///
    /// Nothing depends on it: an expired record is taken over in place. On Datastore it reads every record,
    /// and each is billed; use a TTL policy there. Buckets refuse it; use a lifecycle rule there.
    Purge(Limit),
}

#[derive(Debug, Args)]
struct Named {
    /// The name of the handler, as its layer or verb has it
    consumer: String,
    /// The text of the key (after `--` where it begins with a hyphen)
    key: String,
}

#[derive(Debug, Args)]
struct Free {
    #[command(flatten)]
    named: Named,
    /// Takes it from a holder that is still in its lease: the work may then run twice at the same time
    #[arg(long)]
    force: bool,
}

impl Keys {
    pub(crate) async fn run(&self) -> Result<Answer, Failed> {
        match &self.command {
            Command::Get(named) => self.get(&named.key()?).await,
            Command::List(list) => list.run(&self.place).await,
            Command::Reset(free) => self.reset(&free.named.key()?, free.force).await,
            Command::Purge(limit) => purge::purge(&self.place, limit).await,
        }
    }

    async fn get(&self, key: &Key) -> Result<Answer, Failed> {
        let found = inspect(&self.place.open()?, key).await?;
        let stands = found.map(|found| Stands::of(key.consumer().as_str(), key.text(), &found));
        let text = || match &stands {
            Some(stands) => stands.facts(),
            None => format!("Nothing stands under {}.\n", plain(&key.to_string())),
        };
        answer(self.place.json, &stands, text, stands.is_none())
    }

    async fn reset(&self, key: &Key, force: bool) -> Result<Answer, Failed> {
        let force = if force { Force::Yes } else { Force::No };
        let done = reset(&self.place.open()?, key, force).await?;
        let (word, left, text) = match done {
            Reset::Freed => {
                ("freed", None, "is free: its work will run again with the next delivery".to_owned())
            }
            Reset::Free => ("free", None, "was free already: nothing was done".to_owned()),
            Reset::Held { left } => {
                let left_words = length(left);
                ("held", Some(left), format!("is held for another {left_words}: wait, or use --force"))
            }
            Reset::Overtaken => (
                "overtaken",
                None,
                "was taken by another claim meanwhile, and left alone: look again".to_owned(),
            ),
        };
        let (consumer, shown) = (key.consumer().as_str(), plain(&key.to_string()));
        let left = left.map(|left| left.as_secs_f64());
        let told = json!({"reset": word, "consumer": consumer, "key": key.text(), "left_seconds": left});
        let refused = matches!(done, Reset::Held { .. } | Reset::Overtaken);
        answer(self.place.json, &told, || format!("{shown} {text}.\n"), refused)
    }
}

impl Named {
    fn key(&self) -> Result<Key, Failed> {
        Ok((&self.consumer, &self.key).into_key()?)
    }
}
