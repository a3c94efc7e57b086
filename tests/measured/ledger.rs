//! The ledger: what an operator finds of work that succeeded although nobody recorded it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::routing::post;
use pushonce::maintain::{Filter, Force, How, Maintain, Page, Reset, Uncertain, Why, reset, uncertain};
use pushonce::store::chaos::{Fault, On, Trips};
use pushonce::store::record::State;
use pushonce::store::{BoxFuture, Memory, Metered, Record, Standing, StoreError, Stored, Swap, Version};
use pushonce::testing::ManualClock;
use pushonce::{IdempotentLayer, IntoKey as _, Key, Lease, Store, at_most_once, lock, mutex};
use tokio::time::Instant;
use tracing::Level;

use crate::log::Log;
use crate::world::{World, app, push};

/// All entries, read past the faults.
async fn entries(store: &impl Maintain) -> Vec<Uncertain> {
    let listed = uncertain(store, &Page::default()).await.unwrap();
    assert_eq!(listed.next, None);
    listed.found.into_iter().map(Result::unwrap).collect()
}

/// The one entry, once it stands so.
async fn until(store: &impl Maintain, holds: impl Fn(&Uncertain) -> bool) -> Uncertain {
    let there = async {
        loop {
            if let [entry] = &entries(store).await[..]
                && holds(entry)
            {
                return entry.clone();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(600), there).await;
    match waited {
        Ok(entry) => entry,
        Err(_) => panic!("it never stood so: {:?}", entries(store).await),
    }
}

fn how(entry: &Uncertain) -> Option<How> {
    entry.settled.map(|settled| settled.how)
}

#[tokio::test(start_paused = true)]
async fn an_outage_at_completion_is_listed_when_it_is_over_and_as_recorded_after_all() {
    let world = World::new();
    let app = app(post(async || ()), IdempotentLayer::new("orders", world.store.clone()));
    // An entry is a record that is done too, so the store takes neither.
    world.chaos.always(On::Complete, Fault::Fail);
    assert_eq!(push(&app, "m").await.told(), (200, "uncertain"));
    assert_eq!(entries(&*world.memory).await, []);
    world.chaos.heal();
    let entry = until(&*world.memory, |entry| entry.settled.is_some()).await;
    assert_eq!((&*entry.consumer, &*entry.key, entry.hashed), ("orders", "m", false));
    assert_eq!((entry.why, how(&entry)), (Why::Unrecorded, Some(How::Recorded)));
    assert_eq!(
        (entry.message.as_deref(), entry.delivery.as_deref()),
        (Some("m"), Some("projects/p/subscriptions/s"))
    );
    let record = world.record(("orders", "m")).await.unwrap();
    assert_eq!((record.state, record.fence), (State::Done, entry.fence));
    assert!(entry.at > 0 && entry.settled.unwrap().at >= entry.at);
    // Its duplicates change nothing.
    let before = entries(&*world.memory).await;
    assert_eq!(push(&app, "m").await.told(), (204, "duplicate"));
    assert_eq!(entries(&*world.memory).await, before);
}

/// A store that takes nothing done of some keys, while it is told so.
#[derive(Debug)]
struct Stubborn {
    memory: Arc<Memory>,
    /// The consumer whose keys those are; empty for none.
    of: Mutex<&'static str>,
}

impl Stubborn {
    fn of(consumer: &'static str) -> (Arc<Self>, Arc<dyn Store>) {
        let stubborn = Arc::new(Self { memory: Arc::new(Memory::new()), of: Mutex::new(consumer) });
        (stubborn.clone(), stubborn)
    }

    fn relent(&self) {
        *self.of.lock().unwrap() = "";
    }
}

impl Store for Stubborn {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.memory.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        if next.state == State::Done && key.consumer().as_str() == *self.of.lock().unwrap() {
            return Box::pin(async { Err(StoreError::unavailable("not that one")) });
        }
        self.memory.swap(key, seen, next)
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_is_there_at_once_and_open_until_the_completion_is_stored() {
    let (stubborn, store) = Stubborn::of("orders");
    lock(("orders", "k"), &store).run(async { Ok(()) }).await.unwrap();
    let open = until(&*stubborn.memory, |_| true).await;
    assert_eq!((open.why, open.settled, open.message), (Why::Unrecorded, None, None));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(until(&*stubborn.memory, |_| true).await.settled, None);
    stubborn.relent();
    let settled = until(&*stubborn.memory, |entry| entry.settled.is_some()).await;
    assert_eq!((how(&settled), settled.at, settled.fence), (Some(How::Recorded), open.at, open.fence));
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_cannot_be_written_changes_neither_the_answer_nor_the_completion() {
    let (stubborn, store) = Stubborn::of("pushonce-uncertain");
    let memory = stubborn.memory.clone();
    let began = Instant::now();
    let work = move |lease: Lease| async move {
        memory.forget(lease.key());
        Ok("done")
    };
    assert_eq!(lock(("orders", "gone"), &store).run_with(work).await.unwrap(), "done");
    assert_eq!(began.elapsed(), Duration::ZERO, "the answer waited for the ledger");
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((entries(&*stubborn.memory).await, stubborn.memory.len()), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn a_ledger_that_comes_back_within_ten_seconds_has_the_entry() {
    for outage in [1, 8] {
        let (stubborn, store) = Stubborn::of("pushonce-uncertain");
        let memory = stubborn.memory.clone();
        let work = move |lease: Lease| async move {
            memory.forget(lease.key());
            Ok(())
        };
        lock(("orders", "k"), &store).run_with(work).await.unwrap();
        tokio::time::sleep(Duration::from_secs(outage)).await;
        assert_eq!(entries(&*stubborn.memory).await, []);
        stubborn.relent();
        assert_eq!(until(&*stubborn.memory, |_| true).await.why, Why::FencedOut);
    }
}

/// A store that takes one write of a key in a second, as Google Cloud Storage does of an object.
#[derive(Debug)]
struct Rationed {
    inner: Arc<dyn Store>,
    written: Mutex<HashMap<Key, Instant>>,
}

impl Store for Rationed {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.inner.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let written = self.written.lock().unwrap().get(key).copied();
            if written.is_some_and(|at| at.elapsed() < Duration::from_secs(1)) {
                return Err(StoreError::unavailable("429 Too Many Requests"));
            }
            let swap = self.inner.swap(key, seen, next).await?;
            if matches!(swap, Swap::Written(_)) {
                self.written.lock().unwrap().insert(key.clone(), Instant::now());
            }
            Ok(swap)
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_takes_one_write_a_second_is_told_the_ending_that_comes_sooner() {
    for late in [0, 50, 100, 200, 300] {
        let (stubborn, inner) = Stubborn::of("orders");
        let store: Arc<dyn Store> = Arc::new(Rationed { inner, written: Mutex::default() });
        lock(("orders", "k"), &store).run(async { Ok(()) }).await.unwrap();
        assert_eq!(until(&*stubborn.memory, |_| true).await.settled, None);
        tokio::time::sleep(Duration::from_millis(late)).await;
        stubborn.relent();
        let settled = until(&*stubborn.memory, |entry| entry.settled.is_some()).await;
        assert_eq!(how(&settled), Some(How::Recorded), "{late} ms");
    }
}

/// A store in which somebody else writes an entry just before ours, a few times.
#[derive(Debug)]
struct Contended {
    memory: Memory,
    /// How often.
    left: Mutex<u32>,
    /// Whether the last of them is our own, whose answer says that it has lost.
    ours: bool,
}

impl Store for Contended {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        self.memory.read(key)
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(async move {
            let left = *self.left.lock().unwrap();
            if left == 0 || key.consumer().as_str() != "pushonce-uncertain" {
                return self.memory.swap(key, seen, next).await;
            }
            *self.left.lock().unwrap() -= 1;
            // Of an earlier run, unless it is ours.
            let mut theirs = next.clone();
            if !(self.ours && left == 1) {
                let mut entry: Uncertain = serde_json::from_slice(&next.data).unwrap();
                entry.fence = 1;
                theirs.data = serde_json::to_vec(&entry).unwrap().into();
            }
            assert!(matches!(self.memory.swap(key, seen, &theirs).await?, Swap::Written(_)));
            Ok(Swap::Lost(Standing::Unknown))
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_loses_to_others_is_given_up_after_six_times_unless_the_last_was_itself() {
    for (times, ours, left_to_the_log) in [(5, false, 0), (6, false, 1), (6, true, 0)] {
        let (log, _guard) = Log::capture();
        let contended = Arc::new(Contended { memory: Memory::new(), left: Mutex::new(times), ours });
        let store: Arc<dyn Store> = contended.clone();
        let forgetful = contended.clone();
        let work = move |lease: Lease| async move {
            forgetful.memory.forget(lease.key());
            Ok(lease.fence())
        };
        let fence = lock(("orders", "k"), &store).run_with(work).await.unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        let lines = log.lines();
        let left = lines.iter().filter(|line| line.field("message").contains("the log is its ledger"));
        assert_eq!(left.count(), left_to_the_log, "{times} {ours}: {lines:?}");
        let [entry] = &entries(&contended.memory).await[..] else { panic!("one key has one entry") };
        assert_eq!(entry.fence == fence, left_to_the_log == 0, "{times} {ours}");
    }
}

#[tokio::test]
async fn work_that_was_fenced_out_is_listed_for_the_layer_and_for_each_verb_that_can_be() {
    let world = World::new();
    let memory = world.memory.clone();
    let route = post(async move |lease: Lease| memory.forget(lease.key()));
    let app = app(route, IdempotentLayer::new("layer", world.store.clone()));
    assert_eq!(push(&app, "m").await.told(), (200, "uncertain"));
    let work = || {
        let memory = world.memory.clone();
        move |lease: Lease| async move {
            memory.forget(lease.key());
            Ok(())
        }
    };
    lock("a", &world.store).run_with(work()).await.unwrap();
    assert_eq!(at_most_once("b", &world.store).run_with(work()).await.unwrap(), Some(()));
    mutex("c", &world.store).run_with(work()).await.unwrap();
    let mut listed: Vec<_> = entries(&*world.memory).await.iter().map(ToString::to_string).collect();
    listed.sort();
    // A mutex is never done, so nothing about it is uncertain.
    assert_eq!(listed, ["default:a: fenced out", "default:b: fenced out", "layer:m: fenced out"]);
}

#[tokio::test]
async fn an_entry_has_the_fence_of_its_own_run_and_not_of_whoever_took_the_key_over() {
    let World { store, memory, .. } = World::new();
    let other = store.clone();
    let work = move |lease: Lease| async move {
        assert_eq!(reset(&other, lease.key(), Force::Yes).await?, Reset::Freed);
        // Nothing is held by this one's task, so the key is not re-entrant.
        let heir = lock(lease.key(), &other).run_with(|heir| async move { Ok(heir.fence()) });
        Ok((lease.fence(), tokio::spawn(heir).await??))
    };
    let (fence, heir) = lock(("orders", "k"), &store).run_with(work).await.unwrap();
    let [entry] = &entries(&*memory).await[..] else { panic!("one key has one entry") };
    assert_eq!((entry.fence, entry.why, heir > fence), (fence, Why::FencedOut, true));
}

#[tokio::test(start_paused = true)]
async fn an_entry_has_the_fence_of_its_own_run_also_where_a_renewal_met_the_heir() {
    let World { store, memory, .. } = World::new();
    let other = store.clone();
    let work = move |lease: Lease| async move {
        assert_eq!(reset(&other, lease.key(), Force::Yes).await?, Reset::Freed);
        let heir = lock(lease.key(), &other).run(async { Ok(()) });
        tokio::spawn(heir).await??;
        lease.lost().await;
        Ok(lease.fence())
    };
    let fence = lock(("orders", "k"), &store).renew().run_with(work).await.unwrap();
    let entry = until(&*memory, |_| true).await;
    assert_eq!((entry.fence, entry.why), (fence, Why::FencedOut));
}

#[tokio::test(start_paused = true)]
async fn work_that_failed_has_no_entry_whatever_becomes_of_its_release() {
    let world = World::new();
    world.chaos.always(On::Release, Fault::Fail);
    let failing = |text: &'static str| lock(("orders", text), &world.store);
    assert!(failing("late").run(async { Err::<(), _>("no".into()) }).await.is_err());
    world.chaos.heal();
    let memory = world.memory.clone();
    let work = move |lease: Lease| async move {
        memory.forget(lease.key());
        Err::<(), _>("no".into())
    };
    assert!(failing("gone").run_with(work).await.is_err());
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(entries(&*world.memory).await, []);
    assert_eq!(world.record(("orders", "late")).await.unwrap().state, State::Released);
}

#[tokio::test(start_paused = true)]
async fn one_key_has_one_entry_that_of_its_latest_run() {
    let (stubborn, store) = Stubborn::of("orders");
    let key = ("orders", "k").into_key().unwrap();
    let run = |lease: Lease| async move { Ok(lease.fence()) };
    let earlier = lock(&key, &store).run_with(run).await.unwrap();
    assert_eq!(until(&*stubborn.memory, |_| true).await.fence, earlier);
    // Another process, to which the store is kind, takes the key over and ends as badly.
    let other: Arc<dyn Store> = stubborn.memory.clone();
    assert_eq!(reset(&other, &key, Force::Yes).await.unwrap(), Reset::Freed);
    let memory = stubborn.memory.clone();
    let run = move |lease: Lease| async move {
        memory.forget(lease.key());
        Ok(lease.fence())
    };
    let later = lock(&key, &other).run_with(run).await.unwrap();
    let entry = until(&*stubborn.memory, |entry| entry.fence == later).await;
    assert_eq!((entry.why, entry.settled, later > earlier), (Why::FencedOut, None, true));
    // What became of the earlier run says nothing of the later one.
    stubborn.relent();
    tokio::time::sleep(Duration::from_secs(120)).await;
    assert_eq!(entries(&*stubborn.memory).await, [entry]);
}

#[tokio::test(start_paused = true)]
async fn a_take_over_before_the_late_completion_is_the_end_of_the_entry() {
    let world = World::new();
    world.chaos.always(On::Complete, Fault::Fail);
    lock(("orders", "k"), &world.store).run(async { Ok(()) }).await.unwrap();
    world.memory.forget(&("orders", "k").into_key().unwrap());
    world.chaos.heal();
    let entry = until(&*world.memory, |entry| entry.settled.is_some()).await;
    assert_eq!((entry.why, how(&entry)), (Why::Unrecorded, Some(How::FencedOut)));
    assert_eq!(entry.to_string(), "orders:k: not recorded in time, then fenced out");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_comes_back_leaves_the_log_which_has_the_key_and_the_tries_end() {
    let (world, (log, _guard)) = (World::new(), Log::capture());
    let memory = world.memory.clone();
    let forget = post(async move || memory.forget(&("orders", "gone").into_key().unwrap()));
    let app = app(forget, IdempotentLayer::new("orders", world.store.clone()));
    for fault in [Fault::Fail, Fault::LoseBefore, Fault::Refuse, Fault::Stall(Duration::from_secs(600))] {
        world.chaos.next(On::Complete, Fault::LoseBefore);
        world.chaos.always(On::Complete, fault);
        assert_eq!(push(&app, "gone").await.told(), (200, "uncertain"), "{fault:?}");
        tokio::time::sleep(Duration::from_secs(60)).await;
        let lines = log.lines();
        let left: Vec<_> =
            lines.iter().filter(|line| line.field("message").contains("the log is its ledger")).collect();
        assert!(left.len() == 1 && left[0].field("key") == "orders:gone", "{fault:?}: {lines:?}");
        let line = log.outcome();
        assert_eq!((line.field("event"), line.field("key")), ("uncertain", "orders:gone"));
        assert_eq!(line.level, Level::ERROR);
        world.chaos.take();
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(world.chaos.take(), Trips::default(), "{fault:?}: it is tried for ever");
        world.chaos.heal();
    }
}

#[tokio::test]
async fn what_is_recorded_in_time_costs_no_entry_and_no_trip() {
    let memory = Arc::new(Memory::new());
    let metered = Arc::new(Metered::new(memory.clone()));
    let app = app(post(async || ()), IdempotentLayer::new("orders", metered.clone()));
    assert_eq!(push(&app, "m").await.told(), (200, "ran"));
    let totals = metered.totals();
    assert_eq!((totals.creates.made.count, totals.updates.made.count, totals.reads.made.count), (1, 1, 0));
    assert_eq!((entries(&*memory).await, memory.len()), (vec![], 1));
}

#[tokio::test]
async fn entries_are_kept_for_thirty_days_and_listed_by_pages() {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    let clock = ManualClock::new();
    let memory = Arc::new(Memory::with_clock(Arc::new(clock.clone())));
    let store: Arc<dyn Store> = memory.clone();
    for n in 0..7 {
        let memory = memory.clone();
        let guarded = lock(("orders", format!("k-{n}")), &store).clock(Arc::new(clock.clone()));
        let work = move |lease: Lease| async move {
            memory.forget(lease.key());
            Ok(())
        };
        guarded.run_with(work).await.unwrap();
    }
    lock(("orders", "done"), &store).clock(Arc::new(clock.clone())).run(async { Ok(()) }).await.unwrap();
    let mut page = Page { after: None, limit: 3 };
    let mut keys = Vec::new();
    loop {
        let listed = uncertain(&*memory, &page).await.unwrap();
        keys.extend(listed.found.into_iter().map(|entry| entry.unwrap().key));
        let Some(next) = listed.next else { break };
        page.after = Some(next);
    }
    keys.sort();
    assert_eq!(keys, (0..7).map(|n| format!("k-{n}")).collect::<Vec<_>>());
    clock.advance(29 * DAY);
    assert_eq!(entries(&*memory).await.len(), 7);
    clock.advance(DAY);
    assert_eq!(entries(&*memory).await.len(), 0);
    clock.advance(DAY);
    memory.purge_expired(usize::MAX).await.unwrap();
    let prefix = Filter { prefix: "pushonce-uncertain:".into(), state: None };
    assert!(memory.list(&prefix, &Page::default()).await.unwrap().found.is_empty());
}

#[cfg(feature = "sqlite")]
#[tokio::test]
async fn an_entry_stands_in_sqlite_too_and_what_is_none_hides_no_other() {
    let file = std::env::temp_dir().join(format!("pushonce-ledger-{}.db", std::process::id()));
    let _ = std::fs::remove_file(&file);
    let sqlite = pushonce::store::open(&format!("sqlite://{}", file.display())).unwrap();
    let store: Arc<dyn Store> = sqlite.clone();
    for text in ["po-1", "po \u{1}\n'2", &"k".repeat(9_000)] {
        let operated = store.clone();
        let work = move |lease: Lease| async move {
            assert_eq!(reset(&operated, lease.key(), Force::Yes).await?, Reset::Freed);
            Ok(())
        };
        lock(("orders", text), &store).run_with(work).await.unwrap();
    }
    let listed = async {
        loop {
            let listed = entries(&sqlite).await;
            if listed.len() == 3 {
                return listed;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let listed = tokio::time::timeout(Duration::from_secs(60), listed).await.expect("all three are written");
    let mut keys: Vec<_> = listed.iter().map(|entry| (&*entry.key, entry.hashed)).collect();
    keys.sort_by_key(|(key, _)| key.len());
    assert_eq!(keys[..2], [("po-1", false), ("po \u{1}\n'2", false)]);
    assert!(keys[2].1 && keys[2].0.len() == 64, "{keys:?}");
    drop((store, sqlite));
    let _ = std::fs::remove_file(&file);
}
