//! What the simulation and the model of the protocol found, each as a test of its own.
#![cfg(feature = "testing")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use pushonce::store::Memory;
use pushonce::store::chaos::{Chaos, Fault, On};
use pushonce::store::record::State;
use pushonce::store::{BoxFuture, Record, StoreError, Stored, Swap, Version};
use pushonce::{Clock, IdempotentLayer, Key, RunError, Store, at_most_once, attribute, lock};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A clock whose wall is set forward by an hour while its monotonic time goes on as it does.
#[derive(Debug)]
struct Stepped {
    start: Instant,
    set_forward: AtomicBool,
}

impl Stepped {
    fn new() -> Arc<Self> {
        Arc::new(Self { start: Instant::now(), set_forward: false.into() })
    }

    fn step(&self) {
        self.set_forward.store(true, Ordering::SeqCst);
    }
}

impl Clock for Stepped {
    fn wall(&self) -> SystemTime {
        let off = if self.set_forward.load(Ordering::SeqCst) { 3_600 } else { 0 };
        SystemTime::UNIX_EPOCH + secs(1_700_000_000 + off) + self.start.elapsed()
    }

    fn monotonic(&self) -> Duration {
        self.start.elapsed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_forward_in_mid_work_does_not_let_at_most_once_run_twice() {
    let clock = Stepped::new();
    let store: Arc<dyn Store> = Arc::new(Memory::with_clock(clock.clone()));
    let mails = || at_most_once("mail-7", &store).ttl(secs(600)).clock(clock.clone());
    let steps = clock.clone();
    let first = mails()
        .run(async move {
            steps.step();
            Ok(())
        })
        .await;
    assert_eq!(first.unwrap(), Some(()));
    assert_eq!(mails().run(async { Ok(()) }).await.unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_is_set_forward_does_not_end_the_undo_of_a_late_mark() {
    let clock = Stepped::new();
    let chaos = Chaos::new(Arc::new(Memory::with_clock(clock.clone())));
    let store: Arc<dyn Store> = chaos.clone();
    let mails = || at_most_once("mail-7", &store).lease(secs(120)).clock(clock.clone());
    chaos.always(On::Claim, Fault::Late(secs(20)));
    chaos.always(On::Release, Fault::Fail);
    let unanswered = mails().run(async { Ok(()) }).await;
    assert!(matches!(unanswered, Err(RunError::Store(_))), "{unanswered:?}");
    clock.step();
    sleep(secs(30)).await;
    chaos.heal();
    sleep(secs(10)).await;
    assert_eq!(mails().run(async { Ok(()) }).await.unwrap(), Some(()), "lost, although it never ran");
}

#[tokio::test(start_paused = true)]
async fn a_key_whose_first_completion_is_under_way_after_its_lease_is_not_run_again_by_its_process() {
    let clock = Stepped::new();
    let chaos = Chaos::new(Arc::new(Memory::with_clock(clock.clone())));
    let store: Arc<dyn Store> = chaos.clone();
    let charge = || lock("po-7", &store).lease(secs(10)).clock(clock.clone());
    let first = tokio::spawn(charge().run(async {
        sleep(secs(12)).await;
        Ok(())
    }));
    sleep(secs(11)).await;
    chaos.always(On::Complete, Fault::LoseBefore);
    chaos.always(On::Read, Fault::Fail);
    sleep(Duration::from_millis(1_100)).await;
    let second = charge().run(async { Ok(()) }).await;
    assert!(matches!(second, Err(RunError::Store(_))), "{second:?}");
    chaos.heal();
    first.await.unwrap().unwrap();
    let third = charge().run(async { Ok(()) }).await;
    assert!(matches!(third, Err(RunError::Skipped(_))), "{third:?}");
}

/// What becomes of two messages of one entity, of which each takes longer than half of its lease.
async fn two_of_one_entity(layer: fn(IdempotentLayer) -> IdempotentLayer) -> [(u16, String); 3] {
    let handler = service_fn(|_: Request<Full<Bytes>>| async {
        sleep(secs(6)).await;
        Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
    });
    let clock = Stepped::new();
    let plain = IdempotentLayer::new("status", Arc::new(Memory::with_clock(clock.clone())))
        .clock(clock)
        .lease(secs(10))
        .serialize(attribute("order"))
        .serialize_wait(secs(60));
    let service = layer(plain).layer(handler);
    let push = async |id: &str| {
        let body = format!(r#"{{"message":{{"messageId":"{id}","attributes":{{"order":"7"}}}}}}"#);
        let answer = service.clone().oneshot(Request::post("/").body(Full::from(body)).unwrap()).await;
        let answer = answer.unwrap();
        (answer.status().as_u16(), answer.headers()["pushonce-outcome"].to_str().unwrap().to_owned())
    };
    let (first, second) = tokio::join!(push("1"), push("2"));
    [first, second, push("2").await]
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waited_too_long_for_its_entity_does_not_begin_on_a_lapsing_lease() {
    let [first, second, again] = two_of_one_entity(|layer| layer).await;
    assert_eq!(first, (200, "ran".to_owned()));
    assert_eq!(second, (503, "unavailable".to_owned()));
    assert_eq!(again, (200, "ran".to_owned()), "its claim was not given back");
}

#[tokio::test(start_paused = true)]
async fn a_message_that_waited_too_long_for_its_entity_renews_its_lease_first_where_it_is_renewed() {
    let [first, second, again] = two_of_one_entity(IdempotentLayer::renew).await;
    assert_eq!(first, (200, "ran".to_owned()));
    assert_eq!(second, (200, "ran".to_owned()));
    assert_eq!(again, (204, "duplicate".to_owned()));
}

/// A store that refuses the first renewal of the second message's key, after which the machine is suspended for
/// an hour.
#[derive(Debug)]
struct Suspends {
    memory: Memory,
    clock: Arc<Stepped>,
    refused: AtomicBool,
}

impl Store for Suspends {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        if self.refused.load(Ordering::SeqCst) {
            self.clock.step();
        }
        self.memory.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let stands = self.memory.read(key).await?;
            let renews = stands.is_some_and(|stored| {
                stored.record.state == State::Claimed
                    && next.state == State::Claimed
                    && stored.record.holder == next.holder
            });
            if key.text() == "2" && renews && !self.refused.swap(true, Ordering::SeqCst) {
                return Err(StoreError::unavailable("for once"));
            }
            self.memory.swap(key, seen, next).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_does_not_begin_under_an_entity_that_lapsed_while_its_key_was_renewed() {
    let left = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = left.clone();
    let handler = service_fn(move |request: Request<Full<Bytes>>| {
        let lease = request.extensions().get::<pushonce::Lease>().unwrap().clone();
        seen.lock().unwrap().push(lease.left());
        async {
            sleep(secs(6)).await;
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::default()))
        }
    });
    let clock = Stepped::new();
    let memory = Memory::with_clock(clock.clone());
    let store = Arc::new(Suspends { memory, clock: clock.clone(), refused: false.into() });
    // A lease that the first message need not renew, while the second has to, having waited for half of it.
    let layer = IdempotentLayer::new("status", store)
        .clock(clock)
        .lease(secs(12))
        .renew()
        .serialize(attribute("order"))
        .serialize_wait(secs(60));
    let service = layer.layer(handler);
    let push = async |id: &str| {
        let body = format!(r#"{{"message":{{"messageId":"{id}","attributes":{{"order":"7"}}}}}}"#);
        let answer = service.clone().oneshot(Request::post("/").body(Full::from(body)).unwrap()).await;
        answer.unwrap().headers()["pushonce-outcome"].to_str().unwrap().to_owned()
    };
    let told = tokio::join!(push("1"), push("2"));
    let left = left.lock().unwrap().clone();
    assert!(left.iter().all(|left| *left > secs(6)), "began with {left:?} of 12 s left");
    assert_eq!((told.0.as_str(), told.1.as_str()), ("ran", "unavailable"));
}
