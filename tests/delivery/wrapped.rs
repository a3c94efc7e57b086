//! Field cases of the envelope.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use bytes::Bytes;
use pushonce::pubsub::{BadData, Refused, Shape, attribute, message_id};
use serde_json::{Value, json};

use super::Push;

// F01
#[test]
fn both_spellings_of_id_and_time_may_come_together_or_alone() {
    let both = Push::file("01-gcs-object-finalize.json").delivery();
    assert_eq!(both.message_id(), Some("10938471120045531"));
    assert_eq!(both.publish_time().unwrap().to_rfc3339(), "2026-01-01T00:00:13.010+00:00");
    for (id, time) in [("messageId", "publishTime"), ("message_id", "publish_time")] {
        let one = Push::wrapped(json!({ id: "5", time: "2026-01-01T00:00:13.01Z" })).delivery();
        assert_eq!(one.message_id(), Some("5"));
        assert_eq!(one.publish_time(), both.publish_time());
    }
    // A null spelling is an absent one, and escapes are read.
    assert_eq!(
        Push::wrapped(json!({ "messageId": null, "message_id": "5" })).delivery().message_id(),
        Some("5")
    );
    assert_eq!(Push::json(r#"{"message":{"messageId":"\u0035\/6"}}"#).delivery().message_id(), Some("5/6"));
}

// F01
#[test]
fn spellings_that_differ_are_refused() {
    for message in
        [json!({ "messageId": "5", "message_id": "6" }), json!({ "messageId": "5", "message_id": " " })]
    {
        assert_eq!(Push::wrapped(message).refused(), Refused::Twice { name: "messageId".to_owned() });
    }
    Push::json(r#"{"message":{"messageId":"5","messageId":"6"}}"#).refused();
    Push::json(r#"{"message":{"messageId":"5"},"message":{"messageId":"6"}}"#).refused();
}

#[test]
fn the_emulators_own_bytes_are_read() {
    let body = r#"{"subscription":"projects\/p1\/subscriptions\/s-plain","message":{"publishTime":"2026-11-29T17:54:26.427Z","data":"eyJwbyI6IjEifQ==","publish_time":"2026-11-29T17:54:26.427Z","messageId":"20","attributes":{"é":"\u20AC","content-type":"application\/json","po_id":"42","ce-id":"abc"},"message_id":"20"}}"#;
    let delivery = Push::json(body).delivery();
    assert_eq!(delivery.subscription(), Some("projects/p1/subscriptions/s-plain"));
    assert_eq!(delivery.attribute("é"), Some("€"));
    assert_eq!(delivery.attribute("content-type"), Some("application/json"));
    assert_eq!(delivery.json::<Value>().unwrap(), json!({ "po": "1" }));
    // Names of a wrapped message keep their case.
    assert_eq!(delivery.attribute("PO_ID"), None);
}

// F02
#[test]
fn absent_and_null_attributes_are_empty() {
    for file in ["17-ordering-key-no-attributes.json", "negative/n01-attributes-null.json"] {
        assert_eq!(Push::file(file).delivery().attributes().count(), 0, "{file}");
    }
    let ordered = Push::file("17-ordering-key-no-attributes.json").delivery();
    assert_eq!((ordered.ordering_key(), ordered.attempt()), (Some("PO-2026-000421"), Some(5)));
}

// F02
#[test]
fn attributes_that_are_no_strings_are_refused() {
    for value in [json!(null), json!(5), json!(true), json!(["x"]), json!({ "x": "y" })] {
        let refused = Push::wrapped(json!({ "messageId": "5", "attributes": { "a": value } })).refused();
        assert_eq!(refused, Refused::Field { field: "attributes", expected: "a string" });
    }
    for attributes in [json!([]), json!("x"), json!(5)] {
        Push::wrapped(json!({ "messageId": "5", "attributes": attributes })).refused();
    }
    let twice = r#"{"message":{"messageId":"5","attributes":{"po_id":"1","po_id":"2"}}}"#;
    assert_eq!(Push::json(twice).refused(), Refused::Twice { name: "po_id".to_owned() });
    let many: serde_json::Map<_, _> = (0..5000).map(|n| (format!("a{n}"), json!(""))).collect();
    let refused = Push::wrapped(json!({ "messageId": "5", "attributes": many })).refused();
    assert_eq!(
        refused,
        Refused::Field { field: "attributes", expected: "an object of at most 1000 strings" }
    );
    let endless = format!(
        r#"{{"message":{{"messageId":"5","attributes":{{"{0}":"1","{0}":"2"}}}}}}"#,
        "n\\n".repeat(9000)
    );
    let text = Push::json(endless).refused().to_string();
    assert!(text.len() < 1000 && !text.contains('\n'), "{text}");
}

// F03
#[test]
fn absent_null_and_empty_data_are_all_empty_bytes() {
    for message in [
        json!({ "messageId": "5" }),
        json!({ "messageId": "5", "data": null }),
        json!({ "messageId": "5", "data": "" }),
    ] {
        let push = Push::wrapped(message);
        assert_eq!(push.delivery().data().unwrap(), "");
        assert_eq!(push.key(&message_id()).as_deref(), Some("5"));
    }
    for file in ["02-gcs-object-delete-no-data.json", "16-forms-watch-attributes-only.json"] {
        assert_eq!(Push::file(file).delivery().data().unwrap(), "", "{file}");
    }
    for data in [json!(5), json!({}), json!(["eA=="])] {
        Push::wrapped(json!({ "messageId": "5", "data": data })).refused();
    }
}

// F05
#[test]
fn data_that_is_not_text_arrives_byte_for_byte() {
    let data: Vec<u8> = (0..=255).chain([0, 0xff, 0xfe]).collect();
    let push = Push::wrapped(json!({
        "messageId": "5", "data": BASE64_STANDARD.encode(&data), "attributes": { "googclient_schemaencoding": "BINARY" }
    }));
    let delivery = push.delivery();
    assert_eq!(delivery.data().unwrap(), data);
    assert_eq!(delivery.attribute("googclient_schemaencoding"), Some("BINARY"));
    assert_eq!(push.key(&message_id()).as_deref(), Some("5"));
}

// F06
#[test]
fn the_largest_message_is_read() {
    let data = vec![0x5a; 10_000_000];
    let push =
        Push::wrapped(json!({ "messageId": "30000000000000001", "data": BASE64_STANDARD.encode(&data) }));
    let delivery = push.delivery();
    assert_eq!(push.key(&message_id()).as_deref(), Some("30000000000000001"));
    assert!(delivery.data().unwrap() == data, "other bytes");
}

// F09, F10
#[test]
fn what_is_no_envelope_is_refused_and_nothing_of_it_is_said() {
    let whole = Push::file("01-gcs-object-finalize.json").body;
    let shorter = whole.slice(..whole.len() - 20);
    let marked = Bytes::from([b"\xef\xbb\xbf", &whole[..]].concat());
    let bodies: Vec<Bytes> =
        ["", " ", "[]", "[{}]", "null", "5", "\"secret\"", "secret", "{", "{} secret", "\0"]
            .into_iter()
            .chain([r#"{"message":"secret"}"#, r#"{"message":{"data":"eA=="}}"#, r#"{"message":null}"#])
            .chain([
                r#"{"message":[]}"#,
                r#"{"message":["secret"]}"#,
                r#"{"message":5}"#,
                r#"{"message":{}}"#,
            ])
            .chain([r#"{"message":{"messageId":5}}"#, r#"{"message":{"message_id":{"a":"secret"}}}"#])
            .chain([r#"{"message":{"messageId":null}}"#, r#"{"message":{"messageId":"\ud800"}}"#])
            .chain([r#"{"message":{"messageId":"1"},"subscription":5}"#, r#"{"subscription":"secret"}"#])
            .map(Bytes::from)
            .chain([shorter, marked, Bytes::from(b"{\"message\":{\"messageId\":\"\xff\"}}".to_vec())])
            .collect();
    for body in bodies {
        let text = Push::json(body.clone()).refused().to_string();
        assert!(text.contains("expected") && !text.contains("secret"), "{body:?}: {text}");
    }
    let text = Push::file("negative/n05-no-message.json").refused().to_string();
    assert!(text.contains("write_metadata") && !text.contains("kestrel"), "{text}");
}

#[test]
fn what_is_not_known_is_ignored() {
    let body =
        r#"{"message":{"messageId":"5","data":"eA==","new":{"a":[1]}},"deliveryAttempt":"many","more":[{}]}"#;
    let delivery = Push::json(body).delivery();
    assert_eq!((delivery.shape(), delivery.attempt()), (Shape::Wrapped, None));
    for time in [json!("soon"), json!(5), json!(null), json!("2026-13-01T00:00:00Z")] {
        let delivery = Push::wrapped(json!({ "messageId": "5", "publishTime": time })).delivery();
        assert_eq!(delivery.publish_time(), None);
    }
    // Deeper than any stack.
    let deep =
        format!(r#"{{"message":{{"messageId":"5","x":{}{}}}}}"#, "[".repeat(200_000), "]".repeat(200_000));
    assert_eq!(Push::json(deep).delivery().message_id(), Some("5"));
}

#[test]
fn data_that_is_no_base64_is_an_error_only_for_who_reads_it() {
    let push = Push::wrapped(json!({ "messageId": "5", "data": "no base64!" }));
    assert_eq!(push.key(&message_id()).as_deref(), Some("5"));
    assert!(matches!(push.delivery().data(), Err(BadData::Base64)));
    assert!(matches!(push.delivery().json::<Value>(), Err(BadData::Base64)));
}

// F15
#[test]
fn another_type_than_the_handlers_is_an_error_that_names_the_type_and_no_value() {
    #[derive(serde::Deserialize, Debug)]
    struct Notification {
        #[serde(rename = "subscriptionNotification")]
        _subscription: String,
    }
    let shape = |data: Value| {
        Push::wrapped(json!({ "messageId": "5", "data": BASE64_STANDARD.encode(data.to_string()) }))
    };
    let known = shape(json!({ "subscriptionNotification": "x" }));
    assert!(known.delivery().json::<Notification>().is_ok());
    for other in [json!({ "testNotification": "secret" }), json!({ "subscriptionNotification": 5_550_199 })] {
        let error = shape(other).delivery().json::<Notification>().unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("Notification") && !text.contains("secret") && !text.contains("5550199"),
            "{text}"
        );
        assert!(std::error::Error::source(&error).is_none(), "a source might quote the value into a log");
    }
}

#[test]
fn debug_shows_names_and_no_values() {
    let push = Push::wrapped(json!({
        "messageId": "m-1", "data": BASE64_STANDARD.encode("secret"), "attributes": { "card": "secret" }, "orderingKey": "secret"
    }));
    let delivery = push.delivery();
    delivery.data().unwrap();
    let text = format!("{delivery:?}");
    assert!(text.contains("m-1") && text.contains("card"), "{text}");
    assert!(!text.contains("secret") && !text.contains("c2VjcmV0"), "{text}");
    assert_eq!(push.key(&attribute("card")).as_deref(), Some("secret"));
}
