//! `pushonce keys list`.

use clap::Args;
use pushonce::maintain::Inspected;
use pushonce::store::record::State;
use pushonce::store::{Filter, Found};

use super::stands::Stands;
use crate::list::{Limit, Listed, list};
use crate::output::chain;
use crate::place::Place;
use crate::{Answer, Failed};

/// What the consumers of the library's own begin with.
const OWN: &str = "pushonce-";

#[derive(Debug, Args)]
pub(super) struct List {
    /// Only the keys of this handler
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Only keys whose text begins with this
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,
    /// Only keys in this state, as their records have it
    #[arg(long, value_enum)]
    state: Option<In>,
    #[command(flatten)]
    limit: Limit,
    /// Also the library's own records (consumers that begin with `pushonce-`): tasks, dead letters, the
    /// ledger of uncertain keys
    #[arg(long)]
    all: bool,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum In {
    Claimed,
    Released,
    Done,
}

impl List {
    pub(super) async fn run(&self, place: &Place) -> Result<Answer, Failed> {
        let store = place.open()?;
        let filter = self.filter();
        list(place.json, &self.limit, async |page| {
            let listing = store.list(&filter, page).await?;
            let taken = listing.found.into_iter().filter(|found| self.takes(&found.key));
            Ok(Listed { rows: taken.map(row).collect(), next: listing.next })
        })
        .await
    }

    fn filter(&self) -> Filter {
        let state = self.state.map(|state| match state {
            In::Claimed => State::Claimed,
            In::Released => State::Released,
            In::Done => State::Done,
        });
        // Without a consumer no store can tell by a prefix.
        let prefix = self.consumer.as_ref().map(|consumer| {
            let text = self.prefix.as_deref().unwrap_or_default();
            format!("{consumer}:{text}")
        });
        Filter { prefix: prefix.unwrap_or_default(), state }
    }

    /// What the store's filter cannot say.
    fn takes(&self, shown: &str) -> bool {
        let (consumer, text) = parts(shown);
        (self.all
            || !consumer.starts_with(OWN)
            || self.consumer.as_ref().is_some_and(|named| named.starts_with(OWN)))
            && self.consumer.as_ref().is_none_or(|named| named == consumer)
            && self.prefix.as_ref().is_none_or(|prefix| text.starts_with(prefix))
    }
}

/// Consumer and text. No consumer has a colon.
fn parts(shown: &str) -> (&str, &str) {
    shown.split_once(':').unwrap_or(("", shown))
}

fn row(found: Found) -> Result<Stands, String> {
    let (consumer, text) = parts(&found.key);
    match found.stored {
        Ok(stored) => Ok(Stands::of(consumer, text, &Inspected::from(stored))),
        Err(error) => Err(format!("{}: {}", found.key, chain(&error))),
    }
}
