//! What one scenario plays on: a store with a namespace of its own, the emulator of Pub/Sub, a supplier, instances.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use pushonce::store::Stored;
use pushonce::store::record::State;
use pushonce::{IntoKey, Key, Store as _};

use crate::place::{Place, Server};
use crate::process::Instance;
use crate::pubsub::{Message, PubSub, Push};
use crate::supplier::Supplier;
use crate::{client, report};

/// For what should happen at once; a test machine is not idle.
pub(crate) const SOON: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The stage of one scenario.
pub(crate) struct Stage {
    scenario: &'static str,
    server: Server,
    /// Where the records are kept.
    pub(crate) place: Place,
    /// The world outside.
    pub(crate) supplier: Supplier,
    /// The emulator of Pub/Sub.
    pub(crate) pubsub: PubSub,
    subscriptions: Mutex<Vec<&'static str>>,
}

impl Stage {
    /// Sets the stage of the scenario of that name.
    pub(crate) async fn set(scenario: &'static str, server: Server) -> Self {
        Self {
            scenario,
            server,
            place: Place::in_a(server).await,
            supplier: Supplier::start().await,
            pubsub: PubSub::from_env(scenario).await,
            subscriptions: Mutex::default(),
        }
    }

    /// Starts an instance of the service whose claims have this lease.
    pub(crate) async fn instance(&self, name: &str, lease_seconds: u32) -> Instance {
        let variables = [
            ("PUSHONCE_STORE", self.place.url.as_str()),
            ("DATASTORE_EMULATOR_HOST", self.place.emulator_host()),
            ("SUPPLIER_URL", &self.supplier.url("/supply")),
            ("LEASE_SECONDS", &lease_seconds.to_string()),
            ("TTL_SECONDS", "600"),
            // Logs are searched.
            ("NO_COLOR", "1"),
        ];
        Instance::start("orders", name, &variables).await
    }

    /// Creates a push subscription, which is deleted when the scenario has passed.
    pub(crate) async fn subscribe(&self, name: &'static str, topic: &str, endpoint: &str, options: Push) {
        self.pubsub.push(name, topic, endpoint, options).await;
        self.subscriptions.lock().expect("no test panics in it").push(name);
    }

    /// Waits until the key's record is in this state, and gives it.
    pub(crate) async fn await_state(&self, key: &Key, state: State) -> Stored {
        let mut last = None;
        let reached = async {
            loop {
                last = self.place.store.read(key).await.expect("the store answers");
                if let Some(stored) = last.as_ref().filter(|stored| stored.record.state == state) {
                    break stored.clone();
                }
                tokio::time::sleep(POLL).await;
            }
        };
        match tokio::time::timeout(SOON, reached).await {
            Ok(stored) => stored,
            Err(_) => panic!("{key} is not {state:?} after {SOON:?}: {last:?}"),
        }
    }

    /// The key's record.
    pub(crate) async fn record(&self, key: &Key) -> Stored {
        self.place.store.read(key).await.expect("the store answers").expect("a record stands under the key")
    }

    /// To be called when all has been seen: only what passed is counted.
    pub(crate) async fn passed(self) {
        let subscriptions = self.subscriptions.into_inner().expect("no test panics in it");
        let pushed = !subscriptions.is_empty();
        for subscription in subscriptions {
            self.pubsub.delete(subscription).await;
        }
        report::test(self.server.name(), self.scenario);
        if pushed {
            report::test("pubsub-emulator", self.scenario);
        }
    }
}

/// The key of a message on the routes `/` (`messages`) and `/status` (`status`), or of an order (`orders`).
pub(crate) fn key(consumer: &str, text: &str) -> Key {
    (consumer, text).into_key().expect("a key")
}

/// Pushes one message by hand and gives status and outcome.
pub(crate) async fn push(to: &Instance, request: Request<Bytes>) -> (u16, String) {
    told(&client::send(client::local(to.port), request).await.expect("an answer"))
}

/// Status and outcome of an answer.
pub(crate) fn told(answer: &Response<Bytes>) -> (u16, String) {
    let outcome = answer.headers().get("pushonce-outcome").and_then(|name| name.to_str().ok());
    (answer.status().as_u16(), outcome.unwrap_or_default().to_owned())
}

/// Pushes the message until it is acked, as Pub/Sub does, and gives every answer. Fails after the limit.
pub(crate) async fn push_until_acked(
    to: &Instance,
    limit: Duration,
    message: impl Fn() -> Request<Bytes>,
) -> Vec<(u16, String)> {
    let mut answers = Vec::new();
    let acked = async {
        loop {
            let answer = push(to, message()).await;
            let acked = matches!(answer.0, 200 | 204);
            answers.push(answer);
            if acked {
                return;
            }
            tokio::time::sleep(POLL).await;
        }
    };
    let ended = tokio::time::timeout(limit, acked).await;
    assert!(ended.is_ok(), "not acked in {limit:?}: {answers:?}");
    answers
}

/// A message of order `po-1`, pushed by hand under this id.
pub(crate) fn by_hand(path: &str, message_id: &str) -> Request<Bytes> {
    order("po-1").request(path, message_id, 1)
}

/// A message of an order.
pub(crate) fn order(po_id: &str) -> Message {
    Message::new(format!("{{\"po_id\":\"{po_id}\"}}")).attribute("po_id", po_id)
}

/// Writes each scenario as a test: on every server, on both emulators of Datastore, or on one.
macro_rules! scenarios {
    ($(on every: $($every:ident)*;)? on both: $($both:ident)* ; on one: $($one:ident)*) => {
        mod datastore_emulator {
            $($(crate::stage::scenarios!(@ $every Datastore);)*)?
            $(crate::stage::scenarios!(@ $both Datastore);)*
            $(crate::stage::scenarios!(@ $one Datastore);)*
        }
        mod firestore_emulator {
            $($(crate::stage::scenarios!(@ $every Firestore);)*)?
            $(crate::stage::scenarios!(@ $both Firestore);)*
        }
        $(crate::stage::scenarios! { redis Redis: $($every)* }
        crate::stage::scenarios! { postgres Postgres: $($every)* }
        crate::stage::scenarios! { sqlite Sqlite: $($every)* }
        crate::stage::scenarios! { mariadb Mariadb: $($every)* })?
    };
    ($module:ident $server:ident: $($scenario:ident)*) => {
        mod $module {
            $(crate::stage::scenarios!(@ $scenario $server);)*
        }
    };
    (@ $scenario:ident $server:ident) => {
        #[tokio::test]
        async fn $scenario() {
            let server = crate::place::Server::$server;
            let stage = crate::stage::Stage::set(stringify!($scenario), server).await;
            super::$scenario(&stage).await;
            stage.passed().await;
        }
    };
}
pub(crate) use scenarios;
