//! `CloudPubSub` on the wire: one publish is one request, whatever comes back, and each error says what it means.

use std::collections::BTreeMap;
use std::time::Duration;

use gcloud_sdk::tonic::Code;
use pushonce::publish::{CloudPubSub, InvalidPublisher, Message, PublishError, Publisher};
use tokio::net::TcpListener;

use crate::fake_pubsub::{Answer, FakePubSub};

const TOPIC: &str = "projects/p/topics/t";

fn publisher(fake: &FakePubSub) -> CloudPubSub {
    CloudPubSub::builder().emulator(fake.host()).build().unwrap()
}

fn message(data: &'static str) -> Message {
    Message { data: data.into(), ..Message::default() }
}

/// What an error means, in a word.
fn kind(error: &PublishError) -> &'static str {
    match error {
        PublishError::Refused { .. } => "refused",
        PublishError::Unavailable { .. } => "unavailable",
        PublishError::Unanswered { .. } => "unanswered",
        _ => "something new",
    }
}

#[tokio::test]
async fn whatever_pubsub_answers_there_is_one_attempt_and_the_error_says_what_it_means() {
    for (code, meaning) in [
        (Code::InvalidArgument, "refused"),
        (Code::NotFound, "refused"),
        (Code::PermissionDenied, "refused"),
        (Code::Unauthenticated, "refused"),
        (Code::FailedPrecondition, "refused"),
        (Code::Unimplemented, "refused"),
        (Code::ResourceExhausted, "unavailable"),
        (Code::Unavailable, "unanswered"),
        (Code::DeadlineExceeded, "unanswered"),
        (Code::Aborted, "unanswered"),
        (Code::Internal, "unanswered"),
        (Code::Unknown, "unanswered"),
        (Code::Cancelled, "unanswered"),
        (Code::DataLoss, "unanswered"),
        (Code::OutOfRange, "unanswered"),
        (Code::AlreadyExists, "unanswered"),
    ] {
        for ordering_key in [None, Some("customer-7".to_owned())] {
            let fake = FakePubSub::start([Answer::Status(code)]).await;
            let error = publisher(&fake)
                .publish(TOPIC, &Message { ordering_key, ..message("once") })
                .await
                .expect_err("an error status");
            assert_eq!(kind(&error), meaning, "{code:?}: {error:?}");
            assert_eq!(fake.asked().len(), 1, "{code:?}: one attempt");
            assert!(std::error::Error::source(&error).is_some(), "{code:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_is_one_attempt_and_nobody_knows() {
    let fake = FakePubSub::start([Answer::Reset]).await;
    let error = publisher(&fake).publish(TOPIC, &message("once")).await.unwrap_err();
    assert_eq!((kind(&error), fake.asked().len()), ("unanswered", 1), "{error:?}");
    assert!(error.may_have_published() && error.is_transient());
}

#[tokio::test]
async fn an_answer_that_never_comes_ends_at_the_limit_which_pubsub_knows_too() {
    let fake = FakePubSub::start([Answer::Silence]).await;
    let publisher =
        CloudPubSub::builder().emulator(fake.host()).timeout(Duration::from_millis(300)).build().unwrap();
    let error = publisher.publish(TOPIC, &message("once")).await.unwrap_err();
    let asked = fake.asked();
    assert_eq!((kind(&error), asked.len()), ("unanswered", 1), "{error:?}");
    assert!(asked[0].headers.contains_key("grpc-timeout"), "{:?}", asked[0].headers);
    // The next one is served.
    assert_eq!(&*publisher.publish(TOPIC, &message("next")).await.unwrap(), "beyond the script");
}

#[tokio::test]
async fn the_emulator_is_asked_in_clear_and_without_a_token() {
    let fake = FakePubSub::start([Answer::Id("1")]).await;
    assert_eq!(&*publisher(&fake).publish(TOPIC, &message("hello")).await.unwrap(), "1");
    let asked = fake.asked();
    assert_eq!(asked[0].path, "/google.pubsub.v1.Publisher/Publish");
    assert!(!asked[0].headers.contains_key("authorization"));
    assert!(asked[0].message.windows(5).any(|bytes| bytes == b"hello"));
}

#[tokio::test]
async fn a_failure_does_not_hold_its_ordering_key_back() {
    let failing = [Answer::Status(Code::Unavailable), Answer::Reset, Answer::Status(Code::NotFound)];
    let fake = FakePubSub::start(failing).await;
    let publisher = publisher(&fake);
    let ordered = |data| Message { ordering_key: Some("customer-7".to_owned()), ..message(data) };
    for _ in failing {
        publisher.publish(TOPIC, &ordered("fails")).await.unwrap_err();
    }
    publisher.publish(TOPIC, &ordered("goes on")).await.unwrap();
    assert_eq!(fake.asked().len(), failing.len() + 1);
}

#[tokio::test]
async fn a_process_starts_without_a_network_and_publishes_once_there_is_one() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let publisher = CloudPubSub::builder().emulator(address.to_string()).build().unwrap();
    let error = publisher.publish(TOPIC, &message("early")).await.unwrap_err();
    assert_eq!(kind(&error), "unavailable", "nobody listened, so it was not sent: {error:?}");
    assert!(!error.may_have_published() && error.is_transient());

    let fake = FakePubSub::start_on(TcpListener::bind(address).await.unwrap(), []);
    // The library dials again at its own pace.
    let mut published = publisher.publish(TOPIC, &message("late")).await;
    while matches!(published, Err(PublishError::Unavailable { .. })) {
        published = publisher.publish(TOPIC, &message("late")).await;
    }
    published.unwrap();
    assert_eq!(fake.asked().len(), 1, "what was said to be not published was not");
}

#[tokio::test]
async fn a_caller_that_gives_up_takes_nothing_back_and_harms_nobody() {
    let fake = FakePubSub::start([Answer::Silence]).await;
    let publisher = publisher(&fake);
    let given_up = message("given up");
    tokio::select! {
        published = publisher.publish(TOPIC, &given_up) => panic!("{published:?}"),
        () = fake.was_asked(1) => {}
    }
    publisher.publish(TOPIC, &message("next")).await.unwrap();
    assert_eq!(fake.asked().len(), 2);
}

#[tokio::test]
async fn what_pubsub_would_refuse_is_refused_with_a_reason_and_never_sent() {
    let fake = FakePubSub::start([]).await;
    let publisher = publisher(&fake);
    let attributes = |some: &[(&str, usize)]| -> BTreeMap<String, String> {
        some.iter().map(|(name, value)| ((*name).to_owned(), "v".repeat(*value))).collect()
    };
    let with = |attributes| Message { attributes, ..message("x") };
    let many = |count: usize| with((0..count).map(|n| (n.to_string(), String::new())).collect());
    let long = "n".repeat(257);
    let keyed = |length: usize| Message { ordering_key: Some("k".repeat(length)), ..message("x") };
    let large = |length: usize| Message { data: vec![0; length].into(), ..Message::default() };

    let orders = [
        ("orders", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        ("projects/p/topics/", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        ("projects//topics/t", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        ("projects/p/topics/t/u", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        ("projects/p/topics/a b", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        ("projects/p/subscriptions/t", message("x"), "expected projects/PROJECT/topics/TOPIC"),
        (TOPIC, Message::default(), "needs data or an attribute"),
        (TOPIC, with(attributes(&[("", 1)])), "name of 0 bytes"),
        (TOPIC, with(attributes(&[(&long, 1)])), "name of 257 bytes"),
        (TOPIC, with(attributes(&[("po_id", 1025)])), "the attribute \"po_id\" of 1025 bytes"),
        (TOPIC, many(101), "101 attributes"),
        (TOPIC, keyed(0), "an ordering key of 0 bytes"),
        (TOPIC, keyed(1025), "an ordering key of 1025 bytes"),
        (TOPIC, large(10_000_001), "a message of 10000001 bytes"),
    ];
    for (topic, message, why) in orders {
        let error = publisher.publish(topic, &message).await.expect_err(why);
        assert_eq!(kind(&error), "refused", "{why}");
        assert!(error.to_string().contains(why), "{error}, expected: {why}");
        assert!(!error.may_have_published() && !error.is_transient(), "{why}");
    }
    assert!(fake.asked().is_empty(), "nothing was sent");

    for taken in [many(100), with(attributes(&[(&long[1..], 1024)])), keyed(1024), large(10_000_000)] {
        publisher.publish(TOPIC, &taken).await.expect("at the limit");
    }
}

#[tokio::test]
async fn a_publisher_that_cannot_work_is_not_built() {
    for host in ["", "localhost", "http://localhost:8085", "user@localhost:8085", "local host:1"] {
        let built = CloudPubSub::builder().emulator(host).build();
        let error = built.expect_err(host);
        assert!(matches!(error, InvalidPublisher::Emulator { .. }), "{host}: {error}");
        assert!(error.to_string().contains("expected host:port"), "{error}");
    }
    let built = CloudPubSub::builder().emulator("localhost:8085").timeout(Duration::ZERO).build();
    assert!(matches!(built, Err(InvalidPublisher::Timeout)), "{built:?}");
}
