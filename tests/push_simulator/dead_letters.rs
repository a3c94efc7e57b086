//! Dead letters: after exactly so many attempts, with what Pub/Sub adds, and on to a subscription of their own.

use axum::http::StatusCode;
use axum::routing::post;
use pushonce::testing::{PushFault, PushSimulator};
use pushonce::{Ack, Delivery, Outcome, attribute};

use crate::world::{Diary, World, answering, app, order, outcomes, secs};

#[tokio::test(start_paused = true)]
async fn a_poison_message_is_forwarded_after_exactly_its_attempts_and_its_neighbours_are_not() {
    for attempts in [1, 5, 12, 100] {
        let (world, diary) = (World::new(), Diary::default());
        let noted = diary.clone();
        let handler = post(async move |delivery: Delivery| {
            let id = delivery.message_id().unwrap().to_owned();
            noted.note(id.clone());
            if id == "poison" { StatusCode::INTERNAL_SERVER_ERROR } else { StatusCode::OK }
        });
        let mut simulator = PushSimulator::new(app(handler, world.layer()))
            .retry_policy(secs(10), secs(600))
            .dead_letter_after(attempts);
        for id in ["m-1", "poison", "m-2"] {
            simulator.publish(order(id, "po-1"));
        }
        let report = simulator.run().await;
        assert_eq!(report.acked, ["m-1", "m-2"], "{report}");
        assert_eq!(diary.count("poison"), attempts as usize, "{report}");
        let [letter] = &report.dead_letters[..] else { panic!("{report}") };
        assert_eq!((letter.message_id.as_str(), letter.attempts), ("poison", attempts));
        assert_eq!(outcomes(&report, "poison"), vec![Some(Outcome::Failed); attempts as usize]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_letter_is_a_message_of_its_own_that_says_where_it_comes_from() {
    let world = World::new();
    let mut source = PushSimulator::new(app(answering(&[500]), world.layer()))
        .subscription("projects/kestrel-orders-demo/subscriptions/orders-push")
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(10);
    source.run_for(secs(3600)).await;
    let report = source.publish(order("m-1", "po-1").ordering_key("po-1")).run().await;
    let [letter] = &report.dead_letters[..] else { panic!("{report}") };

    let diary = Diary::default();
    let noted = diary.clone();
    let handler = post(async move |delivery: Delivery| {
        let mut attributes: Vec<_> = delivery.attributes().collect();
        attributes.sort_unstable();
        for (name, value) in attributes {
            noted.note(format!("{name}={value}"));
        }
        noted.note(format!("{:?} {:?}", delivery.attempt(), delivery.ordering_key()));
        noted.note(delivery.message_id().unwrap());
        noted.note(delivery.publish_time().unwrap().to_rfc3339());
        noted.note(delivery.subscription().unwrap());
        Ack
    });
    let dead_letters = app(handler, world.layer());
    let mut receiver = PushSimulator::new(dead_letters)
        .subscription("projects/kestrel-orders-demo/subscriptions/orders-dlq-push");
    let received = receiver.publish(letter.push.clone()).run().await;
    assert!(received.all_acked(), "{received}");

    let diary = diary.read();
    assert_eq!(
        diary[..6],
        [
            "CloudPubSubDeadLetterSourceDeliveryCount=10",
            "CloudPubSubDeadLetterSourceSubscription=orders-push",
            "CloudPubSubDeadLetterSourceSubscriptionProject=kestrel-orders-demo",
            "CloudPubSubDeadLetterSourceTopicPublishTime=2026-01-01T01:00:00.000+00:00",
            "po_id=po-1",
            // Its own subscription has no dead-letter policy.
            "None Some(\"po-1\")",
        ]
    );
    assert_ne!(diary[6], "m-1");
    assert_eq!(
        diary[7..],
        ["2026-01-01T00:00:00+00:00", "projects/kestrel-orders-demo/subscriptions/orders-dlq-push"]
    );
}

// F103
#[tokio::test(start_paused = true)]
async fn a_redriven_dead_letter_is_a_new_message_and_the_same_order() {
    for (by_order, runs) in [(false, 2), (true, 1)] {
        let (world, diary) = (World::new(), Diary::default());
        let layer = || if by_order { world.layer().key(attribute("po_id")) } else { world.layer() };
        // All is done, and every answer is lost.
        let mut source = PushSimulator::new(app(diary.noting(secs(0)), layer()))
            .retry_policy(secs(10), secs(600))
            .dead_letter_after(5)
            .fault_rate(PushFault::LostAnswer, 1.0);
        let report = source.publish(order("m-1", "po-1")).run().await;
        assert_eq!((report.dead_letters.len(), diary.read().len()), (1, 1), "{report}");
        let mut redrive = PushSimulator::new(app(diary.noting(secs(0)), layer()));
        let report = redrive.publish(report.dead_letters[0].push.clone()).run().await;
        assert!(report.all_acked(), "{report}");
        assert_eq!(diary.read().len(), runs, "{by_order}");
    }
}
