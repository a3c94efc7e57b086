//! What each way gets wrong: every fault happens to every subject, and the table of the page says what was seen.

use futures_util::StreamExt as _;

use crate::faults::Fault;
use crate::page::{self, Table};
use crate::subject::Subject;
use crate::{is_long, report, run};

/// Most of each run is waiting for a lease.
const AT_ONCE: usize = 8;
const LOCAL: [Subject; 4] = [Subject::ByHand, Subject::Pushonce, Subject::Renewed, Subject::OneTransaction];
const ALL: [Subject; 5] =
    [Subject::ByHand, Subject::Peer, Subject::Pushonce, Subject::Renewed, Subject::OneTransaction];

/// The long form writes the page; the short one holds the page's columns, except the peer's, to what it sees.
#[tokio::test]
async fn what_each_way_gets_wrong_is_what_the_page_says() {
    let subjects = if is_long() { &ALL[..] } else { &LOCAL };
    let pairs = Fault::ALL.iter().flat_map(|fault| subjects.iter().map(|subject| (*fault, *subject)));
    let runs = pairs.map(|(fault, subject)| async move {
        let seen = run::run(fault, subject).await;
        println!("{}, {}: {seen}: {seen:?}", fault.name(), subject.name());
        seen.to_string()
    });
    let cells: Vec<String> = futures_util::stream::iter(runs).buffered(AT_ONCE).collect().await;
    let rows = Fault::ALL.iter().zip(cells.chunks(subjects.len()));
    let table = Table {
        head: std::iter::once("what goes wrong")
            .chain(subjects.iter().map(|s| s.name()))
            .map(str::to_owned)
            .collect(),
        rows: rows.map(|(fault, cells)| [&[fault.name().to_owned()], cells].concat()).collect(),
    };
    println!("{table}");
    if is_long() {
        page::write("wrongs", &table.to_string());
    } else {
        assert_eq!(
            page::read("wrongs").only(&table.head).to_string(),
            table.to_string(),
            "the page says otherwise"
        );
        report::test("postgres", "what_each_way_gets_wrong_is_what_the_page_says");
    }
}
