//! What goes wrong between Pub/Sub and the layer: lost requests and answers, twins, broken connections, forgotten acks.

use std::time::Duration;

use pushonce::Outcome;
use pushonce::testing::{Ending, PushFault, PushSimulator, SimulationReport};

use crate::world::{Diary, World, app, bare, endings, order, outcomes, secs, sent};

/// One message whose first delivery has a fault, and a handler that takes a second.
async fn first(fault: PushFault) -> (SimulationReport, usize) {
    let (world, diary) = (World::new(), Diary::default());
    let mut simulator = PushSimulator::new(app(diary.noting(secs(1)), world.layer()))
        .retry_policy(secs(10), secs(600))
        .dead_letter_after(5)
        .faults(move |id, attempt| (id == "m-1" && attempt == 1).then_some(fault));
    let report = simulator.publish(order("m-1", "po-1")).run().await;
    assert_eq!(report.acked, ["m-1"], "{report}");
    (report, diary.count("m-1"))
}

#[tokio::test(start_paused = true)]
async fn a_lost_request_is_a_nack_that_the_service_knows_nothing_of() {
    let (report, runs) = first(PushFault::LostRequest).await;
    assert_eq!(endings(&report, "m-1"), [Ending::RequestLost, Ending::Acked], "{report}");
    assert_eq!((outcomes(&report, "m-1"), runs), (vec![None, Some(Outcome::Ran)], 1));
    assert_eq!(sent(&report, "m-1"), [0, 10].map(secs));
}

#[tokio::test(start_paused = true)]
async fn a_lost_answer_is_a_nack_and_the_redelivery_a_duplicate() {
    let (report, runs) = first(PushFault::LostAnswer).await;
    assert_eq!(endings(&report, "m-1"), [Ending::AnswerLost, Ending::Acked], "{report}");
    assert_eq!(outcomes(&report, "m-1"), [Some(Outcome::Ran), Some(Outcome::Duplicate)]);
    assert_eq!((sent(&report, "m-1"), runs), ([0, 11].map(secs).to_vec(), 1));
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_stops_no_work() {
    let (report, runs) = first(PushFault::HangUp(Duration::from_millis(300))).await;
    assert_eq!(endings(&report, "m-1"), [Ending::HungUp, Ending::Acked], "{report}");
    assert_eq!((outcomes(&report, "m-1")[1], runs), (Some(Outcome::Duplicate), 1));
    // One that breaks after the answer breaks nothing.
    let (report, _) = first(PushFault::HangUp(secs(2))).await;
    assert_eq!(endings(&report, "m-1"), [Ending::Acked], "{report}");
}

#[tokio::test(start_paused = true)]
async fn twins_run_once_and_one_ack_is_enough() {
    let (report, runs) = first(PushFault::Twin).await;
    assert_eq!(endings(&report, "m-1"), [Ending::Acked, Ending::Nacked], "{report}");
    assert_eq!(outcomes(&report, "m-1"), [Some(Outcome::Ran), Some(Outcome::InProgress)]);
    assert_eq!((sent(&report, "m-1"), runs), ([0, 0].map(secs).to_vec(), 1));
}

#[tokio::test(start_paused = true)]
async fn an_ack_that_is_not_kept_comes_back_as_a_duplicate_after_the_deadline() {
    let (report, runs) = first(PushFault::LostAck).await;
    assert_eq!(endings(&report, "m-1"), [Ending::Acked, Ending::Acked], "{report}");
    assert_eq!(outcomes(&report, "m-1"), [Some(Outcome::Ran), Some(Outcome::Duplicate)]);
    assert_eq!((sent(&report, "m-1"), runs), ([0, 10].map(secs).to_vec(), 1));

    // It counts as a missed deadline: so a message that was acked can be dead-lettered.
    let mut simulator = bare(&[200]).dead_letter_after(1).fault_rate(PushFault::LostAck, 1.0);
    let report = simulator.publish(order("m-1", "po-1")).run().await;
    assert_eq!(
        (report.acked.len(), report.dead_letters.len(), report.deliveries.len()),
        (0, 1, 1),
        "{report}"
    );
}

#[tokio::test(start_paused = true)]
async fn through_all_faults_at_once_every_message_is_acked_and_runs_once() {
    for seed in 0..10 {
        let (world, diary) = (World::new(), Diary::default());
        let mut simulator = PushSimulator::new(app(diary.noting(secs(7)), world.layer()))
            .retry_policy(secs(10), secs(600))
            .backoff_factor(0.5..=1.5)
            .reordering(secs(60))
            .outstanding(20)
            .seed(seed);
        let cut = PushFault::HangUp(secs(3));
        for fault in [PushFault::LostRequest, PushFault::LostAnswer, cut, PushFault::Twin, PushFault::LostAck]
        {
            simulator = simulator.fault_rate(fault, 0.15);
        }
        let ids: Vec<_> = (0..100).map(|number| format!("m-{number}")).collect();
        for id in &ids {
            simulator.publish(order(id, "po-1"));
        }
        let report = simulator.run().await;
        assert!(report.all_acked() && report.acked.len() == 100, "seed {seed}: {report}");
        for id in &ids {
            assert_eq!(diary.count(id), 1, "seed {seed}, {id}: {report}");
        }
        let seen = |ending: &Ending| report.deliveries.iter().any(|attempt| attempt.ending == *ending);
        for ending in [Ending::RequestLost, Ending::AnswerLost, Ending::HungUp, Ending::Nacked] {
            assert!(seen(&ending), "seed {seed}: no {ending:?}");
        }
    }
}
