//! What is kept, on every store; and that a copy is known for one.

use pushonce::dead_letter::{DeadLetterState, Received, Source, receiver};
use pushonce::testing::Push;

use crate::on_servers::on_servers;
use crate::site::Site;
use crate::world::{all, delivery, forwarded, keep, letters, rejected, shown};

on_servers! {
    all {
        a_dead_letter_is_kept_listed_and_shown
        a_copy_of_a_message_that_a_handler_gave_up_is_dropped
        a_message_that_was_forwarded_twice_is_two_dead_letters
    }
}

async fn a_dead_letter_is_kept_listed_and_shown(site: &Site) {
    let (store, letters) = (site.store(), letters(site));
    let forwarded = keep(&store, &forwarded("d-1").ordering_key("po-1")).await;
    let rejected = keep(&store, &rejected("m-1", "po-2", "d-2")).await;
    // Others of the store are none of them.
    pushonce::lock(("orders", "po-9"), &store).run(async { Ok(()) }).await.unwrap();

    let listed = all(&letters).await;
    assert_eq!(listed.iter().map(|entry| &entry.id).collect::<Vec<_>>(), [&forwarded, &rejected]);
    assert_eq!(listed, [shown(&letters, &forwarded).await, shown(&letters, &rejected).await]);

    let [forwarded, rejected] = &listed[..] else { unreachable!() };
    assert_eq!((forwarded.source, forwarded.state), (Source::Attempts, DeadLetterState::Kept));
    assert_eq!(forwarded.subscription.as_deref(), Some("projects/p/subscriptions/orders-push"));
    assert_eq!((forwarded.attempts, forwarded.message_id.as_deref()), (Some(10), Some("d-1")));
    assert_eq!(forwarded.published_at.unwrap().to_rfc3339(), "2026-01-02T11:22:33.044+00:00");
    assert_eq!(forwarded.ordering_key.as_deref(), Some("po-1"));
    assert_eq!(forwarded.data.as_deref(), Some(&br#"{"po":"po-1"}"#[..]));
    assert_eq!(forwarded.data_len, 13);
    // Its own alone.
    assert_eq!(forwarded.attributes, [("po_id".to_owned(), "po-1".to_owned())].into());
    assert_eq!((&forwarded.reason, &forwarded.key), (&None, &None));

    assert_eq!(rejected.source, Source::Handler);
    assert_eq!(rejected.reason.as_deref(), Some("no such article in po-2"));
    assert_eq!((rejected.consumer.as_deref(), rejected.key.as_deref()), (Some("orders"), Some("po-2")));
    assert_eq!(rejected.source_message_id.as_deref(), Some("m-1"));
    assert_eq!(rejected.attributes, forwarded.attributes);

    assert_eq!(letters.show("dl-00000000000000000000000000000000").await.unwrap(), None);
}

// The answer to its publishing was lost, and it was published again: a new id for the same dead letter.
async fn a_copy_of_a_message_that_a_handler_gave_up_is_dropped(site: &Site) {
    let store = site.store();
    let receive = async |push: &Push| receiver(store.clone()).keep(&delivery(push)).await.unwrap();
    let first = receive(&rejected("m-1", "po-1", "d-1")).await;
    assert!(matches!(first, Received::Kept(_)), "{first:?}");
    for again in ["d-1", "d-2"] {
        let copy = receive(&rejected("m-1", "po-1", again)).await;
        assert_eq!(copy, Received::Copy(first.entry().clone()));
    }
    // Another message, another key, and the same id that an emulator gave anew are no copies. // F100
    for other in [
        rejected("m-2", "po-1", "d-3"),
        rejected("m-1", "po-2", "d-4"),
        rejected("m-1", "po-1", "d-5")
            .attribute("CloudPubSubDeadLetterSourceTopicPublishTime", "2026-01-03T00:00:00Z"),
    ] {
        let other = receive(&other).await;
        assert!(matches!(other, Received::Kept(_)), "{other:?}");
    }
    assert_eq!(all(&letters(site)).await.len(), 4);
}

// F103: Pub/Sub does not say which message it was, so that nobody can tell the two from two messages.
async fn a_message_that_was_forwarded_twice_is_two_dead_letters(site: &Site) {
    let store = site.store();
    let first = keep(&store, &forwarded("d-1")).await;
    assert_eq!(keep(&store, &forwarded("d-1").again()).await, first, "its redelivery is none");
    let second = keep(&store, &forwarded("d-2")).await;
    assert_ne!(first, second);
    // The same id in the dead-letter topic of another subscription. // F102
    let other = forwarded("d-1").attribute("CloudPubSubDeadLetterSourceSubscription", "mail-push");
    assert!(![first, second].contains(&keep(&store, &other).await));
    assert_eq!(all(&letters(site)).await.len(), 3);
}
