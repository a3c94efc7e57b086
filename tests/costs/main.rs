//! `docs/costs.md`: every number in it follows from the trips that were counted and the prices beside it.
#![cfg(test)]

mod arithmetic;
mod sheet;
mod tables;

use std::collections::BTreeSet;

use self::sheet::{Sheet, seconds_of};

const PAGE: &str = include_str!("../../docs/costs.md");
const TRIPS: &str = include_str!("../../docs/trips.md");
/// A record of the kind that most of a store's are.
const DONE: &[u8] = include_bytes!("../records/v1/done.json");
const LIFECYCLE: &str = include_str!("../../src/store/bucket/lifecycle-gcs.json");

/// The trips of a first message and of a duplicate, as counted on the wire.
fn counted(store: &str) -> [usize; 2] {
    let row =
        TRIPS.lines().find(|line| line.starts_with(&format!("| {store} |"))).expect("a row of trips.md");
    let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    [cells[1].parse().expect("a number"), cells[2].parse().expect("a number")]
}

/// Every amount of money in a text, as it stands there.
fn amounts(text: &str) -> BTreeSet<&str> {
    let digit = |c: char| c.is_ascii_digit() || c == '.';
    text.split('$')
        .skip(1)
        .map(|rest| rest[..rest.find(|c| !digit(c)).unwrap_or(rest.len())].trim_end_matches('.'))
        .collect()
}

#[test]
fn every_table_is_what_the_arithmetic_gives() {
    let sheet = Sheet::read();
    let wrong: Vec<_> = tables::all(&sheet).into_iter().filter(|(_, table)| !PAGE.contains(table)).collect();
    let text: String = wrong.iter().map(|(name, table)| format!("\n{name}:\n\n{table}")).collect();
    assert!(wrong.is_empty(), "docs/costs.md has not these tables:\n{text}");
}

#[test]
fn every_amount_in_the_text_stands_in_a_table() {
    let tables: String = tables::all(&Sheet::read()).into_iter().map(|(_, table)| table).collect();
    let known = amounts(&tables);
    assert!(known.len() > 20, "the tables were not read: {known:?}");
    let strange: Vec<_> = amounts(PAGE).into_iter().filter(|amount| !known.contains(amount)).collect();
    assert!(strange.is_empty(), "amounts that no table of docs/costs.md has: {strange:?}");
}

#[test]
fn the_operations_are_the_trips_that_were_counted() {
    let sheet = Sheet::read();
    for store in &sheet.by_use {
        let operations = [store.first.len(), store.duplicate.len()];
        assert_eq!(operations, counted(&store.trips), "{}", store.store);
    }
    for store in [&sheet.redis.trips, &sheet.sql.trips] {
        assert_eq!(counted(store), [2, 1], "the text says so of {store}");
    }
}

#[test]
fn records_are_kept_as_long_and_are_as_large_as_is_reckoned() {
    let sheet = Sheet::read();
    // A done record's retention is its ttl and a day; TTL policies and lifecycle rules take up to a day more.
    let retention = pushonce::DEFAULT_TTL.as_secs() / seconds_of(1.0) as u64 + 1;
    let [datastore, bucket] = &sheet.by_use[..] else { panic!("two stores that are paid by use") };
    assert_eq!(datastore.days_kept, retention + 1);
    assert_eq!([sheet.redis.days_kept, sheet.sql.days_kept], [retention; 2]);
    let rule: serde_json::Value = serde_json::from_str(LIFECYCLE).expect("JSON");
    let days = rule.pointer("/rule/0/condition/age").and_then(serde_json::Value::as_u64);
    assert_eq!(Some(bucket.days_kept - 1), days);
    for bytes in
        [datastore.record_bytes, bucket.record_bytes, sheet.redis.record_bytes, sheet.sql.record_bytes]
    {
        assert!(
            bytes > DONE.len() as f64 && bytes < 3.0 * DONE.len() as f64,
            "{bytes}: a done record has {}",
            DONE.len()
        );
    }
}

#[test]
fn every_price_names_its_page_and_how_it_was_read() {
    let sheet = Sheet::read();
    for (name, price) in &sheet.prices {
        assert!(price.page.starts_with("https://") && !price.read.is_empty(), "{name}");
        assert!(price.per >= 1.0 && price.usd >= 0.0, "{name}");
    }
}

#[test]
fn a_wrong_number_is_found_out() {
    let mut sheet = Sheet::read();
    sheet.prices.get_mut("datastore write").expect("a price").usd = 0.10;
    let wrong = tables::all(&sheet).into_iter().filter(|(_, table)| !PAGE.contains(table));
    assert_eq!(
        wrong.map(|(name, _)| name).collect::<Vec<_>>(),
        ["prices", "stores paid by use", "volumes", "crossing"]
    );
    assert_eq!(amounts("from $1.94, or $0.005 each.").into_iter().collect::<Vec<_>>(), ["0.005", "1.94"]);
}
