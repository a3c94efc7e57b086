//! At every write of the ledger of uncertain keys: what it says is true.

use pushonce::maintain::{How, Uncertain, Why};
use pushonce::store::record::Record;
use pushonce::{IntoKey as _, Key};

use super::{End, Entry, Ledger, Rule};
use crate::totals::Seen;

/// Whether the key is that of an entry.
pub(super) fn is_entry(key: &Key) -> bool {
    key.consumer().as_str() == "pushonce-uncertain"
}

impl Ledger {
    /// An entry that landed: `next` over `before`.
    pub(super) fn noted(&mut self, before: Option<&Entry>, next: &Record) {
        let read = |record: &Record| serde_json::from_slice::<Uncertain>(&record.data).expect("an entry");
        let (entry, before) = (read(next), before.map(|before| read(&before.record)));
        let key = (&entry.consumer, &entry.key).into_key().expect("a key");
        let end = self.run_under(&key, entry.fence).and_then(|run| run.end).map(|(end, _)| end);
        if end != Some(End::Succeeded) {
            self.violated(Rule::EntryIsTrue, format!("{entry:?}: its run: {end:?}"));
        }
        if before.is_some_and(|before| before.fence > entry.fence) {
            self.violated(Rule::EntryIsTrue, format!("{entry:?} over that of a later run"));
        }
        let recorded = self.log(&key).recorded.contains(&entry.fence);
        if recorded && entry.why == Why::FencedOut {
            self.violated(Rule::EntryIsTrue, format!("{entry:?}: it was recorded"));
        }
        match entry.settled.map(|settled| settled.how) {
            None => self.totals.add(Seen::Entries),
            Some(How::Recorded) if !recorded => {
                self.violated(Rule::EntryIsTrue, format!("{entry:?}: it was never recorded"));
            }
            Some(How::FencedOut) if recorded => {
                self.violated(Rule::EntryIsTrue, format!("{entry:?}: it was recorded"));
            }
            Some(_) => self.totals.add(Seen::SettledEntries),
        }
    }
}
