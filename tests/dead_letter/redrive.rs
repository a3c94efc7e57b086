//! A dead letter is sent again once, by whoever asks, on every store.

use std::collections::BTreeMap;

use futures_util::future::join_all;
use pushonce::dead_letter::{DeadLetterState, Discarded, Received, RedriveError, Redriven, receiver};

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{
    TOPIC, Topics, all, delivery, done, forwarded, given_up, keep, letters, published, rejected, shown,
};

on_servers! {
    all {
        a_dead_letter_is_redriven_once
        two_redrives_at_once_publish_once
        a_discarded_dead_letter_is_not_redriven
        a_rejected_key_is_reset_before_its_message_is_published
        a_dead_letter_that_is_given_up_after_its_redrive_is_kept_anew
    }
}

async fn a_dead_letter_is_redriven_once(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let (topics, publisher) = Topics::new();
    let id = keep(&store, &forwarded("d-1").ordering_key("po-1")).await;
    let republished = published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap());
    assert_eq!((&*republished.message_id, &*republished.topic), ("again-1", TOPIC));

    // The message as it was, and where it comes from.
    let [message] = &topics.messages()[..] else { panic!("{topics:?}") };
    assert_eq!(message.data, br#"{"po":"po-1"}"#[..]);
    assert_eq!(message.ordering_key.as_deref(), Some("po-1"));
    let pairs = [("po_id", "po-1"), ("pushonce-redriven-from", id.as_str())];
    let attributes: BTreeMap<_, _> = pairs.map(|(name, value)| (name.into(), value.into())).into();
    assert_eq!(message.attributes, attributes);

    let entry = shown(&letters, &id).await;
    assert_eq!((entry.state, entry.redriven.as_ref()), (DeadLetterState::Redriven, Some(&republished)));
    for again in [letters.redrive(&id), letters.redrive(&id).dry_run()] {
        let again = again.to(&publisher, "projects/p/topics/others").await.unwrap();
        assert_eq!(again, Redriven::Before(republished.clone()));
    }
    assert_eq!(topics.count(), 1);
    assert_eq!(letters.discard(&id).await.unwrap(), Discarded::Redriven(entry.clone()));
    assert_eq!(all(&letters).await, [entry]);
    let unknown = letters.redrive("dl-00000000000000000000000000000000").to(&publisher, TOPIC).await;
    assert!(matches!(unknown, Err(RedriveError::Unknown { .. })), "{unknown:?}");
}

async fn two_redrives_at_once_publish_once(site: &Site) {
    let (topics, publisher) = Topics::new();
    let id = keep(&site.store(), &forwarded("d-1")).await;
    let operators = [letters(site), letters(site), letters(site)];
    let redriven = join_all(operators.iter().map(|letters| letters.redrive(&id).to(&publisher, TOPIC))).await;
    assert_eq!(topics.count(), 1, "{redriven:?}");
    let mut by = Vec::new();
    for redriven in redriven {
        match redriven {
            Ok(Redriven::Published(republished)) => by.push(republished),
            // Who waited for its turn was told.
            Ok(Redriven::Before(_)) | Err(RedriveError::InProgress { .. }) => {}
            other => panic!("{other:?}"),
        }
    }
    let [republished] = &by[..] else { panic!("{by:?}") };
    let again = operators[1].redrive(&id).to(&publisher, TOPIC).await.unwrap();
    assert_eq!(again, Redriven::Before(republished.clone()));
}

async fn a_discarded_dead_letter_is_not_redriven(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let (topics, publisher) = Topics::new();
    let id = keep(&store, &forwarded("d-1")).await;
    let Discarded::Discarded(entry) = letters.discard(&id).await.unwrap() else { panic!("not discarded") };
    assert_eq!((entry.state, entry.data.as_ref()), (DeadLetterState::Discarded, None));
    assert!(entry.discarded_at.is_some_and(|at| at >= entry.received_at));
    assert_eq!(letters.discard(&id).await.unwrap(), Discarded::Discarded(entry.clone()), "again");
    for redrive in [letters.redrive(&id), letters.redrive(&id).dry_run()] {
        let refused = redrive.to(&publisher, TOPIC).await;
        assert!(matches!(refused, Err(RedriveError::Discarded { .. })), "{refused:?}");
    }
    assert_eq!(topics.count(), 0);
    // A copy that comes later is known for one.
    keep(&store, &forwarded("d-1")).await;
    assert_eq!(all(&letters).await, [entry]);
    for nothing in ["dl-00000000000000000000000000000000", "dl-1", "", " ", "orders:po-1"] {
        assert_eq!(letters.discard(nothing).await.unwrap(), Discarded::Unknown, "{nothing:?}");
    }
}

async fn a_rejected_key_is_reset_before_its_message_is_published(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let (topics, publisher) = Topics::new();
    let key = given_up(&store, "po-1").await;
    let id = keep(&store, &rejected("m-1", "po-1", "d-1")).await;
    let run = || pushonce::lock(&key, &store).run(async { Ok(()) });
    assert!(run().await.is_err(), "it would be skipped");
    published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap());
    assert_eq!(topics.messages()[0].attributes["pushonce-redriven-from"], "m-1");
    run().await.unwrap();

    // What is recorded by now is no more to be redriven. // F103
    let key = done(&store, "po-2").await;
    let id = keep(&store, &rejected("m-2", "po-2", "d-2")).await;
    let refused = letters.redrive(&id).to(&publisher, TOPIC).await;
    let Err(RedriveError::Done { key: done, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!((done, topics.count()), (key.clone(), 1));
    let skipped = pushonce::lock(&key, &store).run(async { Ok(()) }).await;
    assert!(skipped.is_err(), "it is recorded as before");

    // A run that is under way is spared, and the dead letter waits.
    let id = keep(&store, &rejected("m-3", "po-3", "d-3")).await;
    let (letters, publisher) = (letters.clone(), publisher.clone());
    let (held, redrive) = (id.clone(), letters.clone());
    let refused = pushonce::lock(("orders", "po-3"), &store)
        .run(async move { Ok(redrive.redrive(held).to(&publisher, TOPIC).await) })
        .await
        .unwrap();
    assert!(matches!(refused, Err(RedriveError::Held { .. })), "{refused:?}");
    assert_eq!(topics.count(), 1);
    assert_eq!(shown(&letters, &id).await.state, DeadLetterState::Kept);
}

async fn a_dead_letter_that_is_given_up_after_its_redrive_is_kept_anew(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let (topics, publisher) = Topics::new();
    // The same message of the same key, each time under the id that its dead letter was published with.
    let letter = |id: &str| rejected("m-1", "po-1", id);
    let receive =
        async |push: &pushonce::testing::Push| receiver(store.clone()).keep(&delivery(push)).await.unwrap();
    given_up(&store, "po-1").await;
    let id = receive(&letter("d-1")).await.entry().id.clone();
    let first = published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap());
    let redriven = shown(&letters, &id).await;
    let at = |after: i64| (first.at + chrono::Duration::milliseconds(after)).to_rfc3339();

    // The answer to its publishing was lost, and the second copy took its time; or nobody knows when it was.
    for copy in [at(-1), at(0), "no time".to_owned()] {
        let received = receive(&letter("d-2").publish_time(copy.clone())).await;
        assert_eq!(received, Received::Copy(redriven.clone()), "{copy}");
    }
    // The redriven message was rejected, too.
    let key = given_up(&store, "po-1").await;
    let received = receive(&letter("d-3").publish_time(at(1))).await;
    let Received::Kept(entry) = received else { panic!("{received:?}") };
    assert_eq!((&entry.id, entry.state, &entry.redriven), (&id, DeadLetterState::Kept, &None));
    assert_eq!(entry.message_id.as_deref(), Some("d-3"));
    assert_eq!(all(&letters).await, [entry]);
    let second = published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap());
    assert_eq!((&*second.message_id, topics.count()), ("again-2", 2));
    pushonce::lock(&key, &store).run(async { Ok(()) }).await.unwrap();
}
