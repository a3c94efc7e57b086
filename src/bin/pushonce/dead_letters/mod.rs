//! `pushonce dead-letters`: those that a receiver keeps, listed, shown, sent again and discarded.

mod became;
mod redrive;
mod show;
mod told;

use clap::{Args, Subcommand};
use pushonce::dead_letter::{
    DeadLetterEntry, DeadLetterState, DeadLetters as Letters, DiscardError, Discarded,
};
use serde_json::json;

use self::told::Told;
use crate::list::{Limit, Listed, list};
use crate::output::{answer, chain, plain};
use crate::place::Place;
use crate::{Answer, Failed};

/// Looks at dead letters, sends them again, and discards them.
#[derive(Debug, Args)]
#[command(after_long_help = HELP)]
pub(crate) struct DeadLetters {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    command: Command,
}

const HELP: &str = "\
Fields of --json, for `show` one document (null where there is none), for `list` one object in each line; those
without a value are left out:
  id, state           `dl-` and 32 digits; kept, redriven, discarded
  source              attempts (Pub/Sub gave it up), handler
  reason              in the words of the handler that gave it up
  consumer, key       whose, and the key that is done as rejected
  source_message_id, message_id, subscription, attempts, published_at, received_at
  attributes, ordering_key
  data_len, whole     in bytes; whether the data is kept (it is never shown here: `show --data`)
  redriven            message_id, topic, at
  discarded_at
`redrive`: one object in each line: id, outcome (published, before, would-publish, refused, failed), and of
message_id, topic, at, consumer, key, task, bytes, error those that are known. `discard`: id, discarded (true,
false), state.

Exit codes: 0 done; 1 there is none of that id, or it was refused; 2 it could not be looked at or sent.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists them, in the store's own order
    List(List),
    /// Shows one, without its data
    Show(show::Show),
    /// Publishes some again, each once
    ///
    /// Before one is published its rejected key is reset, and its task set to processing. One that was
    /// redriven before is not published a second time. It ends at the first that fails for a reason that the
    /// others share, such as a topic that is not there.
    ///
    /// PUBSUB_EMULATOR_HOST names an emulator. Needs the feature `publish` of pushonce.
    Redrive(redrive::Redrive),
    /// Says that nobody wants one any more; its data goes, and a redrive refuses it
    Discard {
        /// Its id
        id: String,
    },
}

#[derive(Debug, Args)]
struct List {
    /// Only those in this state
    #[arg(long, value_enum)]
    state: Option<In>,
    /// Only those that this subscription gave up, by its short or its full name
    #[arg(long, value_name = "NAME")]
    subscription: Option<String>,
    #[command(flatten)]
    limit: Limit,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum In {
    Kept,
    Redriven,
    Discarded,
}

impl DeadLetters {
    pub(crate) async fn run(&self) -> Result<Answer, Failed> {
        let store = self.place.open()?;
        let (letters, json) = (Letters::new(store.clone()), self.place.json);
        match &self.command {
            Command::List(wanted) => self.list(&letters, wanted).await,
            Command::Show(show) => show.run(&letters, json).await,
            Command::Redrive(redrive) => redrive.run(store, json).await,
            Command::Discard { id } => discard(&letters, id, json).await,
        }
    }

    async fn list(&self, letters: &Letters, wanted: &List) -> Result<Answer, Failed> {
        list(self.place.json, &wanted.limit, async |page| {
            let listed = letters.list(page).await?;
            let rows = listed.found.into_iter().filter_map(|entry| match entry {
                Ok(entry) => wanted.takes(&entry).then(|| Ok(Told::of(entry))),
                Err(error) => Some(Err(format!("a dead letter: {}", chain(&error)))),
            });
            Ok(Listed { rows: rows.collect(), next: listed.next })
        })
        .await
    }
}

impl List {
    fn takes(&self, entry: &DeadLetterEntry) -> bool {
        let state = self.state.map(|state| match state {
            In::Kept => DeadLetterState::Kept,
            In::Redriven => DeadLetterState::Redriven,
            In::Discarded => DeadLetterState::Discarded,
        });
        state.is_none_or(|state| state == entry.state)
            && self.subscription.as_ref().is_none_or(|name| is_of(entry, name))
    }
}

/// Whether the subscription gave it up: `projects/p/subscriptions/s`, or `s`.
fn is_of(entry: &DeadLetterEntry, name: &str) -> bool {
    let full = entry.subscription.as_deref().unwrap_or_default();
    full == name || full.rsplit('/').next() == Some(name)
}

async fn discard(letters: &Letters, id: &str, json: bool) -> Result<Answer, Failed> {
    let shown = plain(id);
    let done = match letters.discard(id).await {
        Err(busy @ DiscardError::InProgress { .. }) => Err(busy.to_string()),
        done => Ok(done?),
    };
    let (discarded, state, text) = match done {
        Err(busy) => (false, None, format!("{shown}: {busy}.\n")),
        Ok(Discarded::Discarded(entry)) => (true, Some(entry.state), format!("{shown} is discarded.\n")),
        Ok(Discarded::Redriven(entry)) => {
            (false, Some(entry.state), format!("{shown} was redriven before, and was left as it is.\n"))
        }
        Ok(Discarded::Unknown) => (false, None, unknown(id)),
    };
    let told = json!({"id": id, "discarded": discarded, "state": state});
    answer(json, &told, || text, !discarded)
}

fn unknown(id: &str) -> String {
    format!("There is no dead letter {}.\n", plain(id))
}
