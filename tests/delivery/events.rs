//! Field cases of CloudEvents.

use base64::prelude::{BASE64_STANDARD, Engine as _};
use pushonce::pubsub::{Refused, Shape, attribute, json_pointer, message_id};
use serde_json::{Value, json};

use super::Push;

const PUBLISHED: &str = "google.cloud.pubsub.topic.v1.messagePublished";

fn audit() -> Push {
    Push::json(r#"{"protoPayload":{"methodName":"storage.objects.create"},"message":{"messageId":"5"},"data":"eA=="}"#)
        .header("CE-SpecVersion", "1.0")
        .header("Ce-Id", "e-1")
        .header("ce-source", "//storage.googleapis.com/projects/_/buckets/b")
        .header("ce-type", "google.cloud.audit.log.v1.written")
        .header("ce-subject", "objects/año.csv")
        .header("ce-time", "2026-01-02T11:22:33.044Z")
        .header("ce-methodname", "storage.objects.create")
}

fn structured(event: Value) -> Push {
    Push::json(event.to_string()).replace("content-type", "Application/CloudEvents+JSON; charset=utf-8")
}

fn event(data: Value) -> Value {
    let mut event = json!({ "specversion": "1.0", "id": "e-1", "source": "/s", "type": "t", "retries": 3, "urgent": true, "gone": null });
    event.as_object_mut().unwrap().extend(data.as_object().unwrap().clone());
    event
}

// F25
#[test]
fn a_binary_event_keeps_its_body_and_its_attributes() {
    let push = audit();
    let delivery = push.delivery();
    assert_eq!(delivery.shape(), Shape::CloudEvent);
    assert_eq!(delivery.data().unwrap(), push.body);
    assert_eq!(delivery.message_id(), None, "a body that looks like an envelope is data");
    let event = delivery.event().unwrap();
    assert_eq!(event.id(), "e-1");
    assert_eq!(event.source(), "//storage.googleapis.com/projects/_/buckets/b");
    assert_eq!(event.kind(), "google.cloud.audit.log.v1.written");
    assert_eq!(event.subject(), Some("objects/año.csv"));
    assert_eq!(event.time().unwrap().to_rfc3339(), "2026-01-02T11:22:33.044+00:00");
    assert_eq!(event.attribute("methodname"), Some("storage.objects.create"));
    assert!(!format!("{delivery:?}").contains("objects/"), "{delivery:?}");
}

// F25
#[test]
fn an_event_without_a_required_attribute_is_refused() {
    for name in ["specversion", "id", "source", "type"] {
        let header = format!("ce-{name}");
        let mut without = audit();
        without.headers.remove(&header);
        for push in [without, audit().replace(&header, " ")] {
            assert_eq!(push.refused(), Refused::Event { name });
        }
        for wrong in [json!(null), json!(" ")] {
            assert_eq!(structured(event(json!({ name: wrong }))).refused(), Refused::Event { name });
        }
    }
    assert_eq!(audit().header("ce-id", "e-2").refused(), Refused::Twice { name: "id".to_owned() });
}

// F25, F27
#[test]
fn the_default_key_of_an_event_is_source_and_id() {
    let key =
        |source, id| audit().replace("ce-source", source).replace("ce-id", id).key(&message_id()).unwrap();
    assert_eq!(
        key("/a", "1"),
        audit().replace("ce-source", "/a").replace("ce-id", "1").key(&message_id()).unwrap()
    );
    assert_ne!(key("/a", "1"), key("/b", "1"));
    assert_ne!(key("/a", "1"), key("/a", "2"));
    assert_ne!(key("/a", "bc"), key("/ab", "c"));
}

// F29
#[test]
fn eventarcs_trigger_and_a_direct_push_of_one_message_have_one_key() {
    let eventarc = Push::file("10-eventarc-pubsub-binary.http");
    let direct = Push::json(eventarc.body.clone());
    let whole: Value = serde_json::from_slice(&eventarc.body).unwrap();
    let as_json = structured(event(json!({ "type": PUBLISHED, "data": whole })));
    let as_base64 = structured(event(
        json!({ "type": PUBLISHED, "data_base64": BASE64_STANDARD.encode(&eventarc.body) }),
    ));
    for push in [&eventarc, &as_json, &as_base64] {
        let delivery = push.delivery();
        assert_eq!(delivery.shape(), Shape::CloudEvent);
        assert!(delivery.event().is_some());
        for rule in [message_id(), attribute("po_id"), json_pointer("/qty")] {
            assert!(direct.key(&rule).is_some());
            assert_eq!(push.key(&rule), direct.key(&rule), "{rule:?}");
        }
        assert_eq!(delivery.data().unwrap(), direct.delivery().data().unwrap());
        assert_eq!(delivery.publish_time(), direct.delivery().publish_time());
        assert_eq!(delivery.subscription(), direct.delivery().subscription());
    }
}

// F27, F29
#[test]
fn an_event_of_pubsubs_without_a_message_has_no_key_of_its_own() {
    let blank = json!({ "message": { "messageId": " ", "data": "eA==" } });
    let push = structured(event(json!({ "type": PUBLISHED, "data": blank })));
    assert_eq!(push.key(&message_id()), None, "ce-id stands in for no message id");
    for data in [json!({}), json!({ "data": {} }), json!({ "data": "x" }), json!({ "data_base64": "!" })] {
        let mut all = event(data);
        all["type"] = PUBLISHED.into();
        structured(all).refused();
    }
}

#[test]
fn a_structured_event_carries_json_text_or_bytes() {
    let data = |event| structured(event).delivery().data().unwrap();
    assert_eq!(data(event(json!({}))), "");
    assert_eq!(data(event(json!({ "data": null }))), "");
    assert_eq!(data(event(json!({ "data": { "a": [1, "x"] } }))), r#"{"a":[1,"x"]}"#);
    assert_eq!(data(event(json!({ "data": "x" }))), r#""x""#);
    assert_eq!(data(event(json!({ "data": "x", "datacontenttype": "text/plain" }))), "x");
    assert_eq!(data(event(json!({ "data": "<\"é\">\n", "datacontenttype": "text/xml" }))), "<\"é\">\n");
    assert_eq!(
        data(event(json!({ "data_base64": "AP8=", "datacontenttype": "application/avro" }))),
        b"\x00\xff"[..]
    );
    let push = structured(event(json!({ "data": { "order": { "id": 7 } } })));
    assert_eq!(push.key(&json_pointer("/order/id")).as_deref(), Some("7"));
    let delivery = push.delivery();
    let attributes = delivery.event().unwrap();
    assert_eq!((attributes.attribute("retries"), attributes.attribute("urgent")), (Some("3"), Some("true")));
    assert_eq!(attributes.attribute("gone"), None);
    // Its attributes may be repeated as headers; the content type decides.
    let repeated = push.clone().header("ce-specversion", "1.0").header("ce-id", "e-1");
    assert_eq!(repeated.key(&message_id()), push.key(&message_id()));
    assert_eq!(repeated.delivery().data().unwrap(), delivery.data().unwrap());
}

#[test]
fn a_structured_event_that_is_none_is_refused() {
    for body in ["", "[]", "{}", "{", "\"x\"", r#"{"id":"1","id":"2"}"#] {
        Push::json(body).replace("content-type", "application/cloudevents+json").refused();
    }
    for wrong in
        [json!({ "data": 1, "data_base64": "eA==" }), json!({ "data_base64": 1 }), json!({ "subject": {} })]
    {
        structured(event(wrong)).refused();
    }
}
