//! Messages that are delivered until they are acked, under faults that are drawn from a seed: whoever
//! is acked has one committed effect, and nobody ever has two.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use pushonce::Lease;
use pushonce::store::BoxError;
use pushonce::testing::Push;

use crate::fake::{FakeSql, Fault};
use crate::world::*;

const SEEDS: u64 = 300;
/// Deliveries of one message that are made at once.
const COPIES: usize = 3;
/// Faults are made until then; after that a delivery succeeds.
const FAULTY: Duration = Duration::from_secs(120);

/// A generator whose every draw follows from the seed (`SplitMix64`).
#[derive(Clone)]
struct Dice(Arc<std::sync::Mutex<u64>>);

impl Dice {
    fn of(seed: u64) -> Self {
        Self(Arc::new(std::sync::Mutex::new(seed)))
    }

    /// A number below `sides`.
    fn roll(&self, sides: u64) -> u64 {
        let mut state = self.0.lock().unwrap();
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    fn up_to(&self, millis: u64) -> Duration {
        Duration::from_millis(self.roll(millis))
    }
}

/// One run of a handler whose every step may go wrong.
async fn work(dice: Dice, sql: Arc<FakeSql>, lease: Lease) -> Result<(), BoxError> {
    let faulty = sql.clock().monotonic() < FAULTY;
    if faulty {
        tokio::time::sleep(dice.up_to(8000)).await;
        match dice.roll(12) {
            0 => return Err("before the commit".into()),
            1 => panic!("before the commit"),
            _ => {}
        }
        let fault = match dice.roll(10) {
            0 => Some(Fault::LostBefore),
            1 => Some(Fault::LostAfter),
            2 => Some(Fault::Late(dice.up_to(12_000))),
            3 => Some(Fault::LateRollback(dice.up_to(12_000))),
            4 => Some(Fault::Refused),
            5 => Some(Fault::Silent),
            _ => None,
        };
        fault.into_iter().for_each(|fault| sql.next_commit(fault));
        if dice.roll(4) == 0 {
            sql.next_swap_stalls(dice.up_to(8000));
        }
    }
    let committed = match dice.roll(4) {
        0 => by_hand_slowly(&dice, &sql, &lease).await,
        // Given up in the middle, or left to a task of its own.
        1 if faulty => match tokio::time::timeout(dice.up_to(6000), effect(sql, lease)).await {
            Ok(committed) => committed,
            Err(late) => Err(late.into()),
        },
        2 if faulty => tokio::spawn(effect(sql, lease)).await?,
        _ => effect(sql, lease).await,
    };
    if faulty {
        match dice.roll(8) {
            0 => return Err("after the commit".into()),
            1 => panic!("after the commit"),
            2 => tokio::time::sleep(dice.up_to(8000)).await,
            // Whatever came of the commit.
            3 | 4 => return Ok(()),
            _ => {}
        }
    }
    committed
}

async fn by_hand_slowly(dice: &Dice, sql: &Arc<FakeSql>, lease: &Lease) -> Result<(), BoxError> {
    let completion = lease.completion(sql).await?;
    let mut tx = sql.begin();
    tx.insert(lease.key().text());
    tokio::time::sleep(dice.up_to(4000)).await;
    completion.execute(&mut tx).await?;
    tokio::time::sleep(dice.up_to(4000)).await;
    // A server that is silent keeps its locks as long as somebody waits for it.
    Ok(tokio::time::timeout(seconds(10), sql.commit_by_hand(tx)).await??)
}

/// Pub/Sub's part: again until it is acked, also while an earlier delivery is still at work.
async fn deliver(dice: Dice, app: Router, sql: Arc<FakeSql>, seed: u64) {
    for _ in 0..1000 {
        tokio::time::sleep(dice.up_to(5000)).await;
        let push = Push::empty().id("m");
        // The ack deadline: who hangs up stops nothing.
        let limit = seconds(1) + dice.up_to(30_000);
        let Ok(answer) = tokio::time::timeout(limit, push.send(&app)).await else { continue };
        let effects = sql.effects().len();
        assert!(effects <= 1, "seed {seed}: committed {effects} times");
        if answer.acked() {
            assert_eq!(effects, 1, "seed {seed}: acked as {answer:?}, and nothing was committed");
            return;
        }
    }
    panic!("seed {seed}: never acked");
}

/// Outages that come and go.
async fn trouble(dice: Dice, sql: Arc<FakeSql>) {
    while sql.clock().monotonic() < FAULTY {
        tokio::time::sleep(dice.up_to(20_000)).await;
        sql.down(true);
        tokio::time::sleep(dice.up_to(8000)).await;
        sql.down(false);
    }
}

async fn story(seed: u64) {
    pushonce::seed(seed);
    let (world, dice) = (World::new(), Dice::of(seed));
    let mut layer = world.layer().lease(seconds(6));
    if seed.is_multiple_of(2) {
        layer = layer.renew();
    }
    if seed.is_multiple_of(3) {
        layer = layer.work_timeout(seconds(9));
    }
    let thrown = dice.clone();
    let app = world.app(layer, move |sql, lease| work(thrown.clone(), sql, lease));
    let mut all = tokio::task::JoinSet::new();
    all.spawn(trouble(dice.clone(), world.sql.clone()));
    for _ in 0..COPIES {
        all.spawn(deliver(dice.clone(), app.clone(), world.sql.clone(), seed));
    }
    while let Some(ended) = all.join_next().await {
        ended.unwrap();
    }
    // What was still on its way has landed by now.
    tokio::time::sleep(seconds(120)).await;
    assert_eq!(world.sql.effects(), ["m"], "seed {seed}");
    world.sql.heal();
    assert_eq!(push(&app, "m").await, DUPLICATE, "seed {seed}");
}

#[test]
fn of_every_seed_each_message_is_committed_once_and_never_acked_before() {
    let quiet = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // The handlers' own panics are part of the story.
        if !panic.payload().downcast_ref::<&str>().is_some_and(|text| text.ends_with("the commit")) {
            quiet(panic);
        }
    }));
    for seed in 0..SEEDS {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
        runtime.unwrap().block_on(story(seed));
    }
}
