//! What is told of a dead letter: all but its data.

use pushonce::dead_letter::DeadLetterEntry;
use serde::Serialize;

use crate::list::Row;
use crate::output::moment;
use crate::table;

/// The fields are the entry's own, and those are a promise.
#[derive(Debug, Serialize)]
pub(super) struct Told {
    #[serde(flatten)]
    entry: DeadLetterEntry,
    whole: bool,
}

impl Told {
    pub(super) fn of(mut entry: DeadLetterEntry) -> Self {
        let whole = entry.is_whole();
        entry.data = None;
        Self { entry, whole }
    }

    pub(super) fn facts(&self) -> String {
        let entry = &self.entry;
        let data = if self.whole { "" } else { ", not kept" };
        let redriven = entry.redriven.as_ref();
        let facts = [
            ("id", Some(entry.id.clone())),
            ("state", Some(entry.state.to_string())),
            ("given up by", Some(entry.source.to_string())),
            ("reason", entry.reason.clone()),
            ("consumer", entry.consumer.clone()),
            ("key", entry.key.clone()),
            ("subscription", entry.subscription.clone()),
            ("attempts", entry.attempts.map(|attempts| attempts.to_string())),
            ("source message", entry.source_message_id.clone()),
            ("message", entry.message_id.clone()),
            ("published", entry.published_at.map(|at| moment(Some(at)))),
            ("received", Some(moment(Some(entry.received_at)))),
            ("ordering key", entry.ordering_key.clone()),
            ("data", Some(format!("{} bytes{data}", entry.data_len))),
            ("redriven", redriven.map(|redriven| moment(Some(redriven.at)))),
            ("to", redriven.map(|redriven| redriven.topic.clone())),
            ("as message", redriven.map(|redriven| redriven.message_id.clone())),
            ("discarded", entry.discarded_at.map(|at| moment(Some(at)))),
        ];
        let attributes =
            entry.attributes.iter().map(|(name, value)| ("attribute", Some(format!("{name} = {value}"))));
        table::facts(facts.into_iter().chain(attributes))
    }
}

impl Row for Told {
    const HEAD: &'static [&'static str] = &["ID", "STATE", "RECEIVED", "BY", "SUBSCRIPTION", "REASON"];

    fn cells(&self) -> Vec<String> {
        let entry = &self.entry;
        let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        vec![
            entry.id.clone(),
            entry.state.to_string(),
            moment(Some(entry.received_at)),
            entry.source.to_string(),
            or_none(&entry.subscription),
            or_none(&entry.reason),
        ]
    }
}
