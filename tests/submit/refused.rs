//! What is refused before anything is recorded or published.

use std::sync::Arc;
use std::time::Duration;

use pushonce::store::Memory;
use pushonce::submit::{InvalidSubmission, Scope, Submission, SubmitError, Submitter};

use crate::world::{Counted, World};

const YEAR: Duration = Duration::from_secs(366 * 24 * 60 * 60);

// F89: nothing stands in the way of the mended submission.
#[tokio::test]
async fn a_submission_that_cannot_be_leaves_no_record_and_no_message() {
    let world = World::on(Arc::new(Memory::new()));
    let long = |length: usize| "x".repeat(length);
    let refused: Vec<(&str, Submission)> = vec![
        ("key", world.charge("")),
        ("key", world.charge(" \u{a0}")),
        ("key", world.charge("a\nb")),
        ("key", world.charge(&long(256))),
        ("name", world.submitter.submit_json("", "1")),
        ("name", world.charge("k").queue("a\0b")),
        ("name", world.charge("k").tenant(long(129))),
        ("name", world.charge("k").scope(Scope::Custom(" ".to_owned()))),
        ("name", world.charge("k").scope(Scope::Queue(String::new()))),
        ("time", world.charge("k").idempotency_ttl(Duration::ZERO)),
        ("time", world.charge("k").idempotency_ttl(Duration::MAX)),
        ("time", world.charge("k").run_within(Duration::ZERO)),
        ("time", world.charge("k").run_within(Duration::MAX)),
        ("attribute", world.charge("k").attribute("task-id", "mine")),
        ("attribute", world.charge("k").attribute("googclient_x", "mine")),
        ("attribute", world.charge("k").attribute("", "mine")),
        ("attribute", world.charge("k").attribute("name", long(1025))),
        ("attribute", (0..91).fold(world.charge("k"), |made, n| made.attribute(format!("a{n}"), ""))),
        ("input", world.submitter.submit_json("charge", "{").idempotency_key("k")),
        ("input", world.submitter.submit_json("charge", "")),
    ];
    for (what, submission) in refused {
        let shown = format!("{submission:?}");
        let Err(SubmitError::Invalid(error)) = submission.send().await else { panic!("sent: {shown}") };
        let found = match error {
            InvalidSubmission::Key { .. } => "key",
            InvalidSubmission::Name { .. } => "name",
            InvalidSubmission::Time { .. } => "time",
            InvalidSubmission::Attribute { .. } => "attribute",
            InvalidSubmission::Input { .. } => "input",
            other => panic!("{other:?}"),
        };
        assert_eq!(found, what, "{shown}");
    }
    assert_eq!((world.store.spaces().len(), world.publisher.tasks().len()), (0, 0));
    // At the limits.
    let most = world.charge(&long(255)).tenant(long(128)).idempotency_ttl(YEAR).run_within(YEAR);
    let most = (0..90).fold(most, |made, n| made.attribute(format!("a{n}"), long(1024)));
    most.scope(Scope::Custom("%".repeat(128))).send().await.unwrap();
}

#[tokio::test]
async fn a_submitter_that_can_never_work_is_refused_at_start_and_submits_nothing() {
    let publisher = Arc::new(Counted::default());
    let new = || Submitter::new(Arc::new(Memory::new()), publisher.clone(), "tasks");
    for time in [Duration::ZERO, Duration::from_micros(999), YEAR + Duration::from_secs(1), Duration::MAX] {
        for (name, wrong) in [
            ("creating_lease", new().creating_lease(time)),
            ("idempotency_ttl", new().idempotency_ttl(time)),
            ("task_ttl", new().task_ttl(time)),
            ("publish_timeout", new().publish_timeout(time)),
        ] {
            let error = wrong.clone().checked().unwrap_err();
            assert!(error.to_string().contains(name), "{error}");
            let sent = wrong.submit_json("charge", "1").idempotency_key("k").send().await;
            assert!(matches!(sent, Err(SubmitError::Submitter(ref told)) if *told == error), "{sent:?}");
        }
    }
    let blank = Submitter::new(Arc::new(Memory::new()), publisher.clone(), " ");
    for (wrong, expected) in [
        (blank, "a topic is blank"),
        (new().queue("mail", ""), "a topic is blank"),
        (new().queue("", "mails"), "the queue `"),
        (new().queue("a\0b", "mails"), "the queue `a"),
    ] {
        let error = wrong.clone().checked().unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
        assert!(
            matches!(wrong.submit_json("charge", "1").send().await, Err(SubmitError::Submitter(told)) if told == error)
        );
    }
    assert_eq!(publisher.tasks(), []);
    let (least, most) = (Duration::from_millis(1), YEAR);
    for time in [least, most] {
        let submitter = new().creating_lease(time).idempotency_ttl(time).task_ttl(time).publish_timeout(time);
        assert!(submitter.checked().is_ok());
    }
}

#[tokio::test]
async fn neither_an_input_nor_the_value_of_an_attribute_is_shown() {
    let world = World::on(Arc::new(Memory::new()));
    let submission = world.submitter.submit_json("charge", r#""secret-1""#).attribute("name", "secret-2");
    assert!(!format!("{submission:?}").contains("secret"), "{submission:?}");
    let wrong = world.submitter.submit_json("charge", r#"{"secret-3": secret-4}"#).send().await.unwrap_err();
    assert!(!format!("{wrong} {wrong:?}").contains("secret"), "{wrong:?}");
}
