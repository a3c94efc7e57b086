//! A store that fails or loses answers while a dead letter is received, redriven or discarded.

use std::sync::Arc;

use pushonce::Store;
use pushonce::dead_letter::{
    DeadLetterState, Discarded, NotKept, Received, RedriveError, Redriven, receiver,
};
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};

use crate::world::{TOPIC, Topics, delivery, given_up, keep, plain, published, rejected, shown};

fn world() -> (Arc<dyn Store>, Arc<Chaos>) {
    let memory: Arc<dyn Store> = Arc::new(Memory::new());
    (memory.clone(), Chaos::new(memory))
}

// The crash between the publish and the mark, as far as the store can tell it from one.
#[tokio::test]
async fn a_redrive_that_was_published_and_not_marked_says_so_and_heals() {
    let (memory, chaos) = world();
    given_up(&memory, "po-1").await;
    let id = keep(&memory, &rejected("m-1", "po-1", "d-1")).await;
    let (topics, publisher) = Topics::new();
    let letters = plain(chaos.clone());
    chaos.always(On::Complete, Fault::Fail);
    let failed = letters.redrive(&id).to(&publisher, TOPIC).await;
    let Err(RedriveError::NotMarked { message_id, .. }) = &failed else { panic!("{failed:?}") };
    assert_eq!((&**message_id, topics.count()), ("again-1", 1));
    assert_eq!(shown(&letters, &id).await.state, DeadLetterState::Kept);
    chaos.heal();
    assert_eq!(published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap()).message_id, "again-2");
    assert!(matches!(letters.redrive(&id).to(&publisher, TOPIC).await, Ok(Redriven::Before(_))));
    assert_eq!(topics.count(), 2);
}

// And where the first copy was worked on meanwhile, the second is not published at all.
#[tokio::test]
async fn a_redrive_whose_first_copy_has_succeeded_is_not_repeated() {
    let (memory, chaos) = world();
    let key = given_up(&memory, "po-1").await;
    let id = keep(&memory, &rejected("m-1", "po-1", "d-1")).await;
    let (topics, publisher) = Topics::new();
    let letters = plain(chaos.clone());
    chaos.always(On::Complete, Fault::Fail);
    letters.redrive(&id).to(&publisher, TOPIC).await.unwrap_err();
    chaos.heal();
    pushonce::lock(&key, &memory).run(async { Ok(()) }).await.unwrap();
    let refused = letters.redrive(&id).to(&publisher, TOPIC).await;
    assert!(matches!(refused, Err(RedriveError::Done { .. })), "{refused:?}");
    assert_eq!(topics.count(), 1);
    assert!(matches!(letters.discard(&id).await, Ok(Discarded::Discarded(_))));
}

#[tokio::test]
async fn an_answer_that_is_lost_at_any_write_changes_nothing() {
    for lost in 0.. {
        let (memory, chaos) = world();
        given_up(&memory, "po-1").await;
        let (topics, publisher) = Topics::new();
        let receiver = receiver(chaos.clone());
        for write in 0..20 {
            chaos.next(
                On::Swap,
                if write == lost { Fault::LoseAnswer } else { Fault::Stall(std::time::Duration::ZERO) },
            );
        }
        let received = receiver.keep(&delivery(&rejected("m-1", "po-1", "d-1"))).await.unwrap();
        assert!(matches!(received, Received::Kept(_)), "write {lost}: {received:?}");
        let letters = plain(chaos.clone());
        let id = &received.entry().id;
        let republished = published(letters.redrive(id).to(&publisher, TOPIC).await.unwrap());
        let entry = shown(&letters, id).await;
        assert_eq!((entry.redriven, topics.count()), (Some(republished), 1), "write {lost}");
        let swaps = chaos.trips().swaps;
        if lost >= swaps {
            assert!(swaps >= 5, "only {swaps} writes");
            break;
        }
    }
}

#[tokio::test]
async fn what_a_store_that_is_out_does_not_keep_is_not_acked_and_not_published() {
    let (memory, chaos) = world();
    let id = keep(&memory, &rejected("m-1", "po-1", "d-1")).await;
    let (topics, publisher) = Topics::new();
    let letters = plain(chaos.clone());
    chaos.always(On::Any, Fault::Fail);
    let kept = receiver(chaos.clone()).keep(&delivery(&rejected("m-2", "po-1", "d-1"))).await;
    assert!(matches!(kept, Err(NotKept::Store(_))), "{kept:?}");
    let redriven = letters.redrive(&id).to(&publisher, TOPIC).await;
    assert!(matches!(redriven, Err(RedriveError::Store(_))), "{redriven:?}");
    letters.redrive(&id).dry_run().to(&publisher, TOPIC).await.unwrap_err();
    letters.discard(&id).await.unwrap_err();
    letters.show(&id).await.unwrap_err();
    assert_eq!(topics.count(), 0);
    chaos.heal();
    assert_eq!(shown(&letters, &id).await.state, DeadLetterState::Kept);
}

#[tokio::test]
async fn a_dry_run_writes_nothing() {
    let (memory, chaos) = world();
    let key = given_up(&memory, "po-1").await;
    let id = keep(&memory, &rejected("m-1", "po-1", "d-1")).await;
    let (topics, publisher) = Topics::new();
    let would = plain(chaos.clone()).redrive(&id).dry_run().to(&publisher, TOPIC).await.unwrap();
    let expected = Redriven::WouldPublish { topic: TOPIC.to_owned(), key: Some(key), task: None, bytes: 13 };
    assert_eq!((would, topics.count()), (expected, 0));
    assert_eq!(chaos.trips().swaps, 0);
}
