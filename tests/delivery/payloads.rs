//! Every recorded payload: its shape, its default key, and one of its business keys.

use std::collections::BTreeSet;
use std::path::Path;

use pushonce::pubsub::{KeyRule, Shape, attribute, json_pointer, message_id};

use super::Push;

type Row = (&'static str, Shape, Option<&'static str>, KeyRule, Option<&'static str>);

fn rows() -> Vec<Row> {
    use Shape::{Bare, CloudEvent, Unwrapped, Wrapped};
    let po = || attribute("po_id");
    vec![
        (
            "01-gcs-object-finalize.json",
            Wrapped,
            Some("10938471120045531"),
            attribute("objectId"),
            Some("inbox/2026 Q1/relevé #3 – año.csv"),
        ),
        (
            "02-gcs-object-delete-no-data.json",
            Wrapped,
            Some("10938471120045599"),
            attribute("eventType"),
            Some("OBJECT_DELETE"),
        ),
        ("03-scheduler-tick.json", Wrapped, Some("10938502277410026"), json_pointer("/id"), None),
        (
            "04a-cloud-build-queued.json",
            Wrapped,
            Some("10941010000000001"),
            json_pointer("/status"),
            Some("QUEUED"),
        ),
        (
            "04b-cloud-build-success.json",
            Wrapped,
            Some("10941010000000093"),
            json_pointer("/results/images/0/digest"),
            Some("sha256:0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"),
        ),
        (
            "10-eventarc-pubsub-binary.http",
            CloudEvent,
            Some("10945555000011112"),
            po(),
            Some("PO-2026-000417"),
        ),
        (
            "13-unwrapped-with-metadata.http",
            Unwrapped,
            Some("10947777888899990"),
            po(),
            Some("PO-2026-000419"),
        ),
        (
            "14-unwrapped-no-content-type.http",
            Unwrapped,
            Some("10947777888899991"),
            json_pointer("/po"),
            Some("PO-2026-000420"),
        ),
        (
            "15-unwrapped-ce-attributes.http",
            Unwrapped,
            Some("10947777888899992"),
            json_pointer("/message/name"),
            Some("spaces/AAAAkestrel/messages/m1.m1"),
        ),
        (
            "16-forms-watch-attributes-only.json",
            Wrapped,
            Some("10948888000000001"),
            attribute("watchId"),
            Some("a1b2c3d4-0000-4000-8000-5e6f7a8b9c0d"),
        ),
        (
            "17-ordering-key-no-attributes.json",
            Wrapped,
            Some("10948888000000555"),
            json_pointer("/seq"),
            Some("2"),
        ),
        ("19-dead-letter-forwarded.json", Wrapped, Some("10950000123412341"), po(), Some("PO-2026-000417")),
        ("20-emulator-minimal.json", Wrapped, Some("7"), po(), None),
        ("negative/n01-attributes-null.json", Wrapped, Some("20000000000000001"), po(), None),
        ("negative/n03-empty-message-id.json", Wrapped, None, po(), None),
        ("negative/n06-unwrapped-no-metadata.http", Bare, None, json_pointer("/po"), Some("PO-2026-000423")),
    ]
}

/// Those that are no push.
const REFUSED: [&str; 1] = ["negative/n05-no-message.json"];

#[test]
fn each_recorded_payload_has_its_shape_and_its_keys() {
    for (file, shape, id, rule, business) in rows() {
        let push = Push::file(file);
        assert_eq!(push.delivery().shape(), shape, "{file}");
        assert_eq!(push.delivery().message_id(), id, "{file}");
        assert_eq!(push.key(&message_id()).as_deref(), id, "{file}");
        assert_eq!(push.key(&rule).as_deref(), business, "{file}: {rule:?}");
        assert_eq!(push.delivery().body(), &push.body, "{file}");
    }
    for file in REFUSED {
        Push::file(file).refused();
    }
}

#[test]
fn no_recorded_payload_is_left_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/payloads");
    let mut found = BTreeSet::new();
    for sub in ["", "negative/"] {
        for entry in std::fs::read_dir(folder.join(sub)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".json") || name.ends_with(".http") {
                found.insert(format!("{sub}{name}"));
            }
        }
    }
    let known: BTreeSet<_> = rows().iter().map(|row| row.0).chain(REFUSED).map(str::to_owned).collect();
    assert_eq!(found, known);
}
