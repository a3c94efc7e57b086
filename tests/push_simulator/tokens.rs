//! The push token, end to end: a subscription that signs its pushes, the layer that checks them, and a key server that fails.

use std::sync::Arc;

use axum::Router;
use pushonce::oidc::PushAuthLayer;
use pushonce::sizing::Sizing;
use pushonce::store::{Memory, Metered, Totals};
use pushonce::testing::{Attempt, Claims, KeyServer, PushSimulator, TokioClock};
use pushonce::{IdempotentLayer, Outcome, attribute};

use crate::world::{Diary, app, order, outcomes, secs};

const AUDIENCE: &str = "https://orders.example.run.app";
const PUSHER: &str = "pusher@project.iam.gserviceaccount.com";
const STRANGER: &str = "stranger@elsewhere.iam.gserviceaccount.com";

/// A service that lets in the pusher alone.
struct Service {
    keys: KeyServer,
    store: Arc<Metered<Memory>>,
    diary: Diary,
    app: Router,
}

impl Service {
    async fn start() -> Self {
        let clock = Arc::new(TokioClock::new());
        let keys = KeyServer::start().await.clock(clock.clone());
        let store = Arc::new(Metered::new(Memory::with_clock(clock.clone())));
        let diary = Diary::default();
        let once = IdempotentLayer::new("orders", store.clone()).clock(clock.clone()).key(attribute("po_id"));
        let auth = PushAuthLayer::verify([AUDIENCE], [PUSHER]).keys_url(keys.url()).clock(clock);
        let app = app(diary.noting(secs(0)), once).layer(auth);
        Self { keys, store, diary, app }
    }

    /// The subscription of a service account, with the deployed numbers.
    fn subscription(&self, email: &str) -> PushSimulator<Router> {
        let (keys, claims) = (self.keys.clone(), Claims::new(AUDIENCE, email));
        PushSimulator::new(self.app.clone())
            .sizing(&Sizing::default())
            .token(move |_| keys.token(&claims))
            .real_io()
    }
}

#[tokio::test]
async fn pushes_with_the_right_token_are_acked_also_when_the_keys_have_changed() {
    let service = Service::start().await;
    let mut simulator = service.subscription(PUSHER);
    for day in 1..=3 {
        for number in 0..5 {
            simulator.publish(order(&format!("m-{day}-{number}"), &format!("po-{day}-{number}")));
        }
        simulator.run().await;
        assert_eq!(service.keys.fetches(), day, "once for all who wait, and again when they have aged");
        service.keys.rotate();
        simulator.run_for(secs(24 * 60 * 60)).await;
    }
    let report = simulator.report();
    assert!(report.all_acked(), "{report}");
    assert_eq!((report.deliveries.len(), service.diary.read().len()), (15, 15), "{report}");
}

// F39
#[tokio::test]
async fn another_account_is_refused_until_its_messages_are_dead_letters_and_burns_no_key() {
    let service = Service::start().await;
    let mut stranger = service.subscription(STRANGER);
    let report = stranger.publish(order("m-1", "po-1")).publish(order("m-2", "po-2")).run().await;
    assert_eq!(report.dead_letters.len(), 2, "{report}");
    for id in ["m-1", "m-2"] {
        assert_eq!(outcomes(&report, id), [Some(Outcome::Unauthorized); 12], "{report}");
        assert!(report.of(id).all(|attempt| attempt.answer.as_ref().unwrap().status == 403), "{report}");
    }
    assert_eq!(service.store.totals(), Totals::default(), "no refused push touches the store");
    assert!(service.diary.read().is_empty());

    // The orders that the stranger named are as good as new.
    let mut pusher = service.subscription(PUSHER);
    let report = pusher.publish(order("m-3", "po-1")).publish(order("m-4", "po-2")).run().await;
    assert!(report.all_acked(), "{report}");
    assert_eq!(service.diary.read(), ["m-3", "m-4"]);
}

#[tokio::test]
async fn a_subscription_without_a_token_gets_nowhere() {
    let service = Service::start().await;
    let mut simulator = PushSimulator::new(service.app.clone()).dead_letter_after(5).real_io();
    let report = simulator.publish(order("m-1", "po-1")).run().await;
    assert!(report.of("m-1").all(|attempt| attempt.answer.as_ref().unwrap().status == 401), "{report}");
    assert_eq!((report.dead_letters.len(), service.store.totals()), (1, Totals::default()), "{report}");
    assert_eq!(service.keys.fetches(), 0);
}

#[tokio::test]
async fn while_the_key_server_is_down_pushes_are_nacked_and_none_is_lost_to_it() {
    let service = Service::start().await;
    service.keys.down();
    let mut simulator = service.subscription(PUSHER);
    for number in 0..20 {
        simulator.publish(order(&format!("m-{number}"), &format!("po-{number}")));
    }
    // Half an hour: eight attempts of twelve.
    let report = simulator.run_for(secs(30 * 60)).await;
    assert_eq!(report.open.len(), 20, "{report}");
    let refused = |attempt: &Attempt| {
        attempt
            .answer
            .as_ref()
            .is_some_and(|answer| answer.status == 503 && answer.outcome == Some(Outcome::Unauthorized))
    };
    assert!(report.deliveries.iter().all(refused), "{report}");
    assert_eq!(service.store.totals(), Totals::default());

    service.keys.up();
    let report = simulator.run().await;
    assert!(report.all_acked(), "{report}");
    assert_eq!(service.diary.read().len(), 20, "{report}");
    let most = report.deliveries.iter().map(|attempt| attempt.number).max();
    assert_eq!(most, Some(9), "{report}");

    // With the keys at hand it may go down again.
    service.keys.down();
    let report = simulator.publish(order("late", "po-late")).run().await;
    assert_eq!(outcomes(&report, "late"), [Some(Outcome::Ran)], "{report}");
}
