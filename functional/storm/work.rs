//! What an instance does with a message: an effect at a supplier that knows effects by their ids.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use pushonce::store::record::State;
use pushonce::store::{BoxError, BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::{Ack, Failure, IdempotentLayer, Key, Lease, Outcome, Store, attribute};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::dice::Dice;
use crate::fate::{Own, Point};
use crate::journal::{self, Name};

pub(crate) const CONSUMER: &str = "orders";
/// The attribute that has the key.
pub(crate) const ORDER: &str = "order";
/// Short, so that a run that was cut off is repeated soon. A third of it is the time that a claim may take.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// Of so many runs one takes longer than its lease, which is renewed, and than the emulator waits.
const LONG: u64 = 25;

/// What keeps the effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A supplier that drops what it has under the same effect id.
    Supplier,
    /// A table in the database of the keys, which has no unique column: by one transaction.
    Transaction,
}

impl Mode {
    pub(crate) const fn points(self) -> &'static [Point] {
        match self {
            Self::Supplier => &Point::KEYED,
            Self::Transaction => &Point::TRANSACTION,
        }
    }
}

/// The layer of both modes; it writes down how each run ended.
pub(crate) fn layer(store: Arc<dyn Store>) -> IdempotentLayer {
    let layer = IdempotentLayer::new(CONSUMER, store).key(attribute(ORDER)).lease(LEASE).renew();
    Outcome::ALL.iter().filter(|outcome| **outcome != Outcome::Unauthorized).fold(layer, |layer, outcome| {
        layer.on(*outcome, |report| {
            if let Some(lease) = report.lease {
                journal::ended(&Name::of(lease), report.outcome.name());
            }
            Ok(())
        })
    })
}

/// An instance that asks the supplier for one effect for each order.
pub(crate) fn service(store: Arc<dyn Store>, supplier: SocketAddr, own: Own, dice: Dice) -> Router {
    let (own, dice) = (Arc::new(own), Arc::new(dice));
    let store = Arc::new(UpTo { store, own: own.clone(), dice: dice.clone() });
    let handler = move |lease: Lease| {
        let (own, dice) = (own.clone(), dice.clone());
        async move {
            let run = Name::of(&lease);
            journal::began(&run, lease.history());
            own.at(Point::Begun, &run);
            tokio::time::sleep(dice.millis(0, 60)).await;
            effect(supplier, &lease, &run, &own).await?;
            tokio::time::sleep(rest(&dice)).await;
            Ok::<_, Failure>(Ack)
        }
    };
    Router::new().route("/", post(handler).layer(layer(store)))
}

/// How long a run takes after its effect.
pub(crate) fn rest(dice: &Dice) -> Duration {
    if dice.roll(LONG) == 0 { LEASE + dice.millis(3000, 4000) } else { dice.millis(0, 60) }
}

// By hand, since no client says when a request is sent and its answer not yet read.
async fn effect(supplier: SocketAddr, lease: &Lease, run: &Name, own: &Own) -> Result<(), BoxError> {
    let Name { key, fence } = run;
    let (id, history, process) = (lease.effect_id("charge"), lease.history(), std::process::id());
    let request = format!(
        "POST /charges HTTP/1.1\r\nhost: {supplier}\r\nconnection: close\r\ncontent-length: 0\r\n\
         idempotency-key: {id}\r\npushonce-fence: {fence}\r\npushonce-history: {history:?}\r\n\
         order: {key}\r\nprocess: {process}\r\n\r\n"
    );
    let mut socket = TcpStream::connect(supplier).await?;
    socket.write_all(request.as_bytes()).await?;
    own.at(Point::EffectSent, run);
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    if !answer.starts_with(b"HTTP/1.1 200 ") {
        return Err("the supplier refused".into());
    }
    own.at(Point::EffectAnswered, run);
    Ok(())
}

/// A store that passes everything on, and knows when a key is completed.
#[derive(Debug)]
struct UpTo {
    store: Arc<dyn Store>,
    own: Arc<Own>,
    dice: Arc<Dice>,
}

impl Store for UpTo {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.store.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        if next.state != State::Done || key.consumer().as_str() != CONSUMER {
            return self.store.swap(key, seen, next);
        }
        Box::pin(async move {
            let run = Name { key: key.text().to_owned(), fence: next.fence };
            self.own.at(Point::BeforeComplete, &run);
            let mut sent = self.store.swap(key, seen, next);
            let swapped = under_way(&mut sent, &self.dice, || self.own.at(Point::CompleteSent, &run)).await;
            if let Ok(Swap::Written(_)) = swapped {
                journal::recorded(&run);
                self.own.at(Point::CompleteAnswered, &run);
            }
            swapped
        })
    }
}

/// Lets a request go on its way for a moment, strikes, and waits for its answer.
pub(crate) async fn under_way<T>(sent: &mut BoxFuture<'_, T>, dice: &Dice, strike: impl FnOnce()) -> T {
    let answer = tokio::time::timeout(Duration::from_micros(dice.roll(3000)), &mut *sent).await;
    strike();
    match answer {
        Ok(answer) => answer,
        Err(_) => sent.await,
    }
}
