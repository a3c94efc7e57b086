//! What does not fit, and for how long it is kept.

use std::sync::Arc;
use std::time::Duration;

use pushonce::Store;
use pushonce::dead_letter::{
    DeadLetterState, DeadLetters, Discarded, NotKept, Received, RedriveError, receiver,
};
use pushonce::store::Memory;
use pushonce::testing::{ManualClock, Push};

use crate::world::{TOPIC, Topics, all, delivery, forwarded, keep, published};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn large(bytes: usize) -> Push {
    Push::bytes(vec![0xff; bytes]).id("d-1").subscription("projects/p/subscriptions/dead")
}

#[tokio::test]
async fn what_is_too_large_is_listed_without_its_data_and_stays_with_pub_sub_until_it_is_discarded() {
    let store = Arc::new(Memory::new());
    let letters = DeadLetters::new(store.clone());
    let (topics, publisher) = Topics::new();
    let receiver = receiver(store);
    let push = delivery(&large(10_000_000));
    for _ in 0..2 {
        let refused = receiver.keep(&push).await;
        let Err(NotKept::TooLarge { id: Some(id), bytes: 10_000_000 }) = refused else {
            panic!("{refused:?}")
        };
        let [entry] = &all(&letters).await[..] else { panic!("it is listed once") };
        assert_eq!((&entry.id, entry.is_whole(), entry.data_len), (&id, false, 10_000_000));
        for redrive in [letters.redrive(&id), letters.redrive(&id).dry_run()] {
            let redriven = redrive.to(&publisher, TOPIC).await;
            assert!(
                matches!(redriven, Err(RedriveError::TooLarge { bytes: 10_000_000, .. })),
                "{redriven:?}"
            );
        }
    }
    assert_eq!(topics.count(), 0);
    // Somebody has taken it from the subscription by hand.
    let id = all(&letters).await.remove(0).id;
    assert!(matches!(letters.discard(&id).await, Ok(Discarded::Discarded(_))));
    assert!(matches!(receiver.keep(&push).await, Ok(Received::Copy(_))), "acked");
}

#[tokio::test]
async fn the_largest_that_is_kept_can_be_redriven_and_marked() {
    // As the documentation says.
    let (mut fits, mut over) = (44 * 1024, 64 * 1024);
    let kept = async |bytes: usize| {
        let store: Arc<dyn Store> = Arc::new(Memory::new());
        receiver(store).keep(&delivery(&large(bytes))).await.is_ok()
    };
    assert!(kept(fits).await && !kept(over).await);
    while over - fits > 1 {
        let middle = usize::midpoint(fits, over);
        if kept(middle).await { fits = middle } else { over = middle }
    }
    let store = Arc::new(Memory::new());
    let letters = DeadLetters::new(store.clone());
    let (topics, publisher) = Topics::new();
    let received = receiver(store).keep(&delivery(&large(fits))).await.unwrap();
    let topic = format!("projects/{}/topics/{}", "p".repeat(30), "t".repeat(255));
    published(letters.redrive(&received.entry().id).to(&publisher, &topic).await.unwrap());
    assert_eq!(topics.messages()[0].data, vec![0xff; fits]);
    assert_eq!(all(&letters).await[0].state, DeadLetterState::Redriven);
}

#[tokio::test]
async fn what_does_not_even_fit_without_its_data_is_not_acked() {
    let store = Arc::new(Memory::new());
    let mut push = large(1);
    for n in 0..100 {
        push = push.attribute(format!("a{n}"), "v".repeat(1024));
    }
    let refused = receiver(store.clone()).keep(&delivery(&push)).await;
    assert!(matches!(refused, Err(NotKept::TooLarge { id: None, bytes: 1 })), "{refused:?}");
    assert!(store.is_empty());
}

#[tokio::test]
async fn it_is_kept_for_thirty_days_from_when_it_came_whatever_becomes_of_it() {
    let clock = ManualClock::new();
    let memory = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let letters = DeadLetters::new(memory.clone()).clock(Arc::new(clock.clone()));
    let store: Arc<dyn Store> = memory;
    let (_, publisher) = Topics::new();
    let [redriven, discarded] =
        [keep(&store, &forwarded("d-1")).await, keep(&store, &forwarded("d-2")).await];
    clock.advance(20 * DAY);
    published(letters.redrive(&redriven).to(&publisher, TOPIC).await.unwrap());
    assert!(matches!(letters.discard(&discarded).await, Ok(Discarded::Discarded(_))));
    clock.advance(10 * DAY - Duration::from_secs(1));
    assert_eq!(all(&letters).await.len(), 2);
    clock.advance(Duration::from_secs(1));
    assert_eq!(all(&letters).await, []);
    assert_eq!(letters.show(&redriven).await.unwrap(), None);
    assert_eq!(letters.discard(&discarded).await.unwrap(), Discarded::Unknown);
    let over = letters.redrive(&redriven).to(&publisher, TOPIC).await;
    assert!(matches!(over, Err(RedriveError::Unknown { .. })), "{over:?}");
    // And one that comes then is a new one.
    let again = receiver(store).keep(&delivery(&forwarded("d-1"))).await.unwrap();
    assert!(matches!(again, Received::Kept(_)), "{again:?}");
}

#[tokio::test]
async fn a_message_of_a_hundred_attributes_is_published_with_those_alone() {
    let memory = Arc::new(Memory::new());
    let letters = DeadLetters::new(memory.clone());
    let store: Arc<dyn Store> = memory;
    let (topics, publisher) = Topics::new();
    let with = |count: usize, id: &str| {
        (0..count).fold(Push::bytes("x").id(id), |push, n| push.attribute(format!("a{n}"), "v"))
    };
    for (count, published_with) in [(99, 100), (100, 100)] {
        let id = keep(&store, &with(count, &count.to_string())).await;
        published(letters.redrive(&id).to(&publisher, TOPIC).await.unwrap());
        assert_eq!(topics.messages().pop().unwrap().attributes.len(), published_with);
    }
}
