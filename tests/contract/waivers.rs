//! The laws that a store does not keep, all in one place, and in the table that the docs print.
//!
//! What is waived is checked by the contract itself: by name, with a reason, and nothing of the promise.

use pushonce::contract::Waiver;

/// Each server of these tests that keeps less than all laws. A store of your own beside them has its own.
const TABLE: &[(&str, &[Waiver])] = &[(
    "datastore-emulator",
    &[Waiver {
        law: "a_client_clock_decides_nothing",
        reason: "it tells no time, so the time that the writer noted counts; Datastore and the Firestore emulator tell theirs",
    }],
)];

/// What the store on that server waives.
pub(crate) fn of(server: &str) -> &'static [Waiver] {
    TABLE.iter().find(|(name, _)| *name == server).map_or(&[], |(_, waivers)| waivers)
}

#[test]
fn the_docs_print_the_table() {
    let rows = TABLE.iter().flat_map(|(server, waivers)| {
        waivers.iter().map(move |Waiver { law, reason }| format!("| {server} | `{law}` | {reason} |\n"))
    });
    let table = format!("| server | law | why not |\n|---|---|---|\n{}\n", rows.collect::<String>());
    let docs = include_str!("../../docs/write-a-store.md");
    assert!(docs.contains(&table), "docs/write-a-store.md has to print this table:\n\n{table}");
}
