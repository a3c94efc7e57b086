//! The real code on the model's way: `claim`, `Claim::write` and the undo of each holder, one call of the store after the other.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::runtime::Runtime;
use tokio::sync::mpsc;

use super::bounds::{BEGIN, How, LEASE, TTL, hours};
use super::gate::{Gate, Shelf, Waiting};
use super::play::id;
use crate::key::{Consumer, Key};
use crate::lease::machine::{Ask, Note, Op};
use crate::lease::{Claim, Claimed, Commit, Place, claim};
use crate::store::record::{Ended, Record, Verb};
use crate::store::{Standing, StoreError, Swap};
use crate::task;
use crate::time::Clock;

/// What a holder's work does.
#[derive(Debug, Clone, Copy)]
enum Order {
    Renew,
    End(How),
    /// What is written is not waited for any longer, and written again.
    Again,
}

/// Hours since the beginning, by a clock that may be behind.
#[derive(Debug, Clone)]
struct Hours {
    now: Arc<AtomicU64>,
    behind: u64,
}

impl Clock for Hours {
    fn wall(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + self.monotonic() - hours(self.behind)
    }

    fn monotonic(&self) -> Duration {
        hours(BEGIN + self.now.load(Ordering::Relaxed))
    }
}

/// A holder in a runtime of its own, whose paused time passes for nobody else.
pub(super) struct Holder {
    pub(super) number: u8,
    pub(super) gate: Gate,
    orders: mpsc::UnboundedSender<Order>,
    /// How often a claim or a renewal has come back.
    returned: Arc<AtomicU64>,
    runtime: Runtime,
}

impl Holder {
    fn begin(number: u8, verb: Verb, clock: Hours) -> Self {
        let gate = Gate::default();
        let key = Key::new(Consumer::default(), "k").unwrap();
        let place = Arc::new(Place { store: Arc::new(gate.clone()), key, clock: Arc::new(clock) });
        let ask = Ask::new(verb, hours(LEASE.into()), hours(TTL.into()), id(number));
        let (orders, ordered) = mpsc::unbounded_channel();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let returned = Arc::<AtomicU64>::default();
        runtime.block_on(async { drop(task::spawn(hold(place, ask, ordered, returned.clone()))) });
        Self { number, gate, orders, returned, runtime }
    }

    fn order(&self, order: Order) {
        let _ = self.orders.send(order);
    }

    /// Lets the code go on to its next call, past its pauses; or to where it waits for its work.
    fn pump(&self) {
        self.runtime.block_on(async {
            for _ in 0..10 {
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
                if self.gate.look(|waiting| waiting.is_some()) {
                    return;
                }
                tokio::time::advance(Duration::from_millis(200)).await;
            }
        });
    }

    /// Nobody answers, until the time is over that a claim or a renewal may take.
    fn late(&self) {
        self.runtime.block_on(async {
            let returned = self.returned.load(Ordering::Relaxed);
            while self.returned.load(Ordering::Relaxed) == returned {
                drop(self.gate.take());
                tokio::time::advance(Duration::from_millis(500)).await;
                for _ in 0..20 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
}

/// One delivery, as `verbs/` has it: the claim, the work by orders, the end.
async fn hold(
    place: Arc<Place>,
    ask: Ask,
    mut orders: mpsc::UnboundedReceiver<Order>,
    returned: Arc<AtomicU64>,
) {
    let verb = ask.verb;
    let claimed = claim(place, ask).await;
    returned.fetch_add(1, Ordering::Relaxed);
    let Ok(Claimed::Won(mut claim)) = claimed else { return };
    claim.begin();
    let mut next = orders.recv().await;
    loop {
        match next {
            Some(Order::Renew) => {
                next = tokio::select! {
                    biased;
                    order = orders.recv() => order,
                    _ = claim.renew() => {
                        returned.fetch_add(1, Ordering::Relaxed);
                        orders.recv().await
                    }
                };
            }
            Some(Order::End(how)) => return end(claim, verb, how, orders, &returned).await,
            Some(Order::Again) | None => return,
        }
    }
}

async fn end(
    mut claim: Claim,
    verb: Verb,
    mut how: How,
    mut orders: mpsc::UnboundedReceiver<Order>,
    returned: &AtomicU64,
) {
    if how == How::Rejected {
        let renewed = claim.renew().await;
        returned.fetch_add(1, Ordering::Relaxed);
        if !matches!(renewed, Ok(Commit::Recorded)) {
            how = How::Failed;
        }
    }
    let op = match how {
        How::Succeeded if verb == Verb::Mutex => Op::Release(Ended::Fresh),
        How::Succeeded => Op::Complete(Note::default()),
        How::Rejected if verb == Verb::Mutex => Op::Release(Ended::Failed),
        How::Rejected => Op::Reject(Note::default()),
        How::Failed => Op::Release(Ended::Failed),
        How::Panicked => Op::Release(Ended::Unknown),
        How::Cancelled => return,
    };
    loop {
        let mut write = pin!(claim.write(&op));
        tokio::select! {
            biased;
            _ = orders.recv() => {}
            written = &mut write => if written.is_ok() { return },
        }
    }
}

/// A write that its holder waits for no longer.
#[derive(Debug)]
pub(super) struct Late {
    pub(super) seen: Option<u64>,
    pub(super) next: Record,
}

/// The store, and the holders that are alive or undo what they have claimed.
#[derive(Default)]
pub(super) struct Real {
    pub(super) shelf: Shelf,
    pub(super) holders: Vec<Holder>,
    pub(super) late: Vec<Late>,
    now: Arc<AtomicU64>,
}

impl Real {
    fn holder(&self, number: u8) -> &Holder {
        self.holders.iter().find(|holder| holder.number == number).unwrap()
    }

    pub(super) fn begin(&mut self, number: u8, verb: Verb, behind: u64) {
        let behind = if number % 2 == 1 { behind } else { 0 };
        self.holders.push(Holder::begin(number, verb, Hours { now: self.now.clone(), behind }));
        self.holder(number).pump();
    }

    /// The call is carried out and answered.
    pub(super) fn step(&mut self, number: u8, tells: bool) {
        match self.holder(number).gate.take() {
            Some(Waiting::Read(answer)) => drop(answer.send(Ok(self.shelf.stands.clone()))),
            Some(Waiting::Swap { seen, next, answer }) => {
                let swap = match self.shelf.land(seen, &next) {
                    Swap::Lost(_) if !tells => Swap::Lost(Standing::Unknown),
                    swap => swap,
                };
                drop(answer.send(Ok(swap)));
            }
            None => {}
        }
        self.holder(number).pump();
    }

    /// The write is under way, and its call is still to be answered.
    fn part(&mut self, number: u8) -> Option<Waiting> {
        let waiting = self.holder(number).gate.take();
        if let Some(Waiting::Swap { seen, next, .. }) = &waiting {
            self.late.push(Late { seen: *seen, next: next.clone() });
        }
        waiting
    }

    pub(super) fn lose(&mut self, number: u8) {
        if let Some(waiting) = self.part(number) {
            waiting.fail(StoreError::unanswered("lost"));
        }
        self.holder(number).pump();
    }

    pub(super) fn refuse(&mut self, number: u8) {
        if let Some(waiting) = self.holder(number).gate.take() {
            waiting.fail(StoreError::unavailable("refused"));
        }
        self.holder(number).pump();
    }

    /// `ends`: what is late is the end of the work, which has no deadline, and is begun again.
    pub(super) fn late(&mut self, number: u8, ends: bool) {
        drop(self.part(number));
        if ends {
            self.holder(number).order(Order::Again);
        } else {
            self.holder(number).late();
        }
        self.holder(number).pump();
    }

    /// An undo has lasted for a lease: it is tried to the end of this round, and no further.
    pub(super) fn give_up(&mut self, number: u8) {
        if let Some(waiting) = self.part(number) {
            waiting.fail(StoreError::unanswered("lost"));
        }
        for _ in 0..16 {
            self.holder(number).pump();
            if let Some(waiting) = self.holder(number).gate.take() {
                waiting.fail(StoreError::unavailable("refused"));
            }
        }
    }

    pub(super) fn renew(&mut self, number: u8) {
        self.holder(number).order(Order::Renew);
        self.holder(number).pump();
    }

    pub(super) fn end(&mut self, number: u8, how: How) {
        drop(self.part(number));
        self.holder(number).order(Order::End(how));
        self.holder(number).pump();
    }

    pub(super) fn crash(&mut self, number: u8) {
        drop(self.part(number));
        let at = self.holders.iter().position(|holder| holder.number == number).unwrap();
        self.holders.remove(at).runtime.shutdown_background();
    }

    pub(super) fn land(&mut self, at: usize) {
        let Late { seen, next } = self.late.remove(at);
        let _ = self.shelf.land(seen, &next);
    }

    pub(super) fn pass(&mut self, now: u16) {
        let passed = u64::from(now) - self.now.swap(now.into(), Ordering::Relaxed);
        if let Some(stored) = &mut self.shelf.stands {
            stored.age += hours(passed);
        }
    }
}
