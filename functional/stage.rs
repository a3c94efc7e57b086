//! What one scenario plays on: a store with a namespace of its own, the emulator of Pub/Sub, a supplier, instances.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use pushonce::store::Stored;
use pushonce::store::record::State;
use pushonce::{IntoKey, Key, Store};

use crate::process::Instance;
use crate::pubsub::{Message, PubSub, Push};
use crate::site::Site;
use crate::supplier::Supplier;
use crate::{client, report};

/// For what should happen at once; a test machine is not idle.
pub(crate) const SOON: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(50);

/// The stage of one scenario.
pub(crate) struct Stage {
    scenario: &'static str,
    /// Where the records are kept.
    pub(crate) site: Site,
    /// The store of them, for the scenario to look at.
    pub(crate) store: Arc<dyn Store>,
    /// The world outside.
    pub(crate) supplier: Supplier,
    /// The emulator of Pub/Sub.
    pub(crate) pubsub: PubSub,
    subscriptions: Mutex<Vec<&'static str>>,
}

impl Stage {
    /// Sets the stage of the scenario of that name.
    pub(crate) async fn set(scenario: &'static str, site: Site) -> Self {
        Self {
            scenario,
            store: site.store(),
            site,
            supplier: Supplier::start().await,
            pubsub: PubSub::from_env(scenario).await,
            subscriptions: Mutex::default(),
        }
    }

    /// Starts an instance of the service whose claims have this lease.
    pub(crate) async fn instance(&self, name: &str, lease_seconds: u32) -> Instance {
        let mut variables = self.site.variables();
        variables.extend([
            ("SUPPLIER_URL", self.supplier.url("/supply")),
            ("LEASE_SECONDS", lease_seconds.to_string()),
            ("TTL_SECONDS", "600".to_owned()),
            // A lease that one can wait for is shorter than any request timeout.
            ("PUSHONCE_SIZING", "warn".to_owned()),
            // Logs are searched.
            ("NO_COLOR", "1".to_owned()),
        ]);
        let variables: Vec<_> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
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
                last = self.store.read(key).await.expect("the store answers");
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
        self.store.read(key).await.expect("the store answers").expect("a record stands under the key")
    }

    /// To be called when all has been seen: only what passed is counted.
    pub(crate) async fn passed(self) {
        let subscriptions = self.subscriptions.into_inner().expect("no test panics in it");
        let pushed = !subscriptions.is_empty();
        for subscription in subscriptions {
            self.pubsub.delete(subscription).await;
        }
        report::test(self.site.name, self.scenario);
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

/// Writes each scenario as a test: on every server that other processes find, on both emulators of
/// Datastore, or on one.
macro_rules! scenarios {
    ($(on every: $($every:ident)*;)? $(on both: $($both:ident)*;)? $(on one: $($one:ident)*)?) => {
        mod datastore_emulator {
            crate::stage::scenarios!(@ datastore_emulator $($($every)*)? $($($both)*)? $($($one)*)?);
        }
        mod firestore_emulator {
            crate::stage::scenarios!(@ firestore_emulator $($($every)*)? $($($both)*)?);
        }
        $(crate::stage::scenarios! { [redis postgres sqlite mariadb s3 fake_gcs] [$($every)*] })?
    };
    ([$($server:ident)*] $scenarios:tt) => {
        $(mod $server { crate::stage::scenarios! { $server $scenarios } })*
    };
    ($server:ident [$($scenario:ident)*]) => {
        crate::stage::scenarios!(@ $server $($scenario)*);
    };
    (@ $server:ident $($scenario:ident)*) => {
        $(
            #[tokio::test]
            async fn $scenario() {
                let site = crate::site::Site::$server().await;
                let stage = crate::stage::Stage::set(stringify!($scenario), site).await;
                super::$scenario(&stage).await;
                stage.passed().await;
            }
        )*
    };
}
pub(crate) use scenarios;
