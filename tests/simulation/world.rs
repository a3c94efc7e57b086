//! The world of one schedule: its instances, what stands in the store, and what goes wrong when.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pushonce::store::Cached;
use pushonce::{Key, Lease, Store};
use tokio::time::Instant;

use crate::faults::Plant;
use crate::instance::Instance;
use crate::invariants::{End, Health, Ledger, QUIET, Records, Rule};
use crate::rng::Rng;
use crate::schedule::{Event, Route, Schedule, secs};
use crate::service::{self, Service};
use crate::store::Wire;
use crate::totals::Seen;

#[derive(Debug, Default)]
pub(crate) struct Trace {
    pub(crate) hash: u64,
    pub(crate) printed: bool,
}

/// What changes.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) rng: Rng,
    pub(crate) records: Records,
    pub(crate) versions: u64,
    pub(crate) ledger: Ledger,
    pub(crate) trace: Trace,
    pub(crate) open_messages: usize,
    seats: Vec<Option<(Arc<Instance>, Service)>>,
    instances: Vec<Arc<Instance>>,
    /// Set when all is over: what is dropped after that is no part of the schedule.
    over: bool,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) schedule: Schedule,
    pub(crate) start: Instant,
    pub(crate) plant: Option<Plant>,
    /// Whether each instance has a cache before its store: those of the odd seeds.
    cached: bool,
    inner: Mutex<Inner>,
}

impl World {
    pub(crate) fn new(seed: u64, plant: Option<Plant>, printed: bool) -> Arc<Self> {
        let mut rng = Rng::new(seed);
        let schedule = Schedule::draw(&mut rng);
        let open_messages = schedule.messages.len();
        let inner = Inner {
            rng,
            records: Records::new(),
            versions: 0,
            ledger: Ledger::new(schedule.cancel_safe),
            trace: Trace { hash: 0xcbf2_9ce4_8422_2325, printed },
            open_messages,
            seats: (0..schedule.instances).map(|_| None).collect(),
            instances: Vec::new(),
            over: false,
        };
        let world =
            Self { schedule, start: Instant::now(), plant, cached: seed % 2 == 1, inner: Mutex::new(inner) };
        let world = Arc::new(world);
        (0..world.schedule.instances).for_each(|seat| world.boot(seat));
        world
    }

    pub(crate) fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap()
    }

    pub(crate) fn since_start(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn chaotic(&self) -> bool {
        self.schedule.chaotic(self.since_start())
    }

    pub(crate) fn seen(&self, seen: Seen) {
        self.inner().ledger.totals.add(seen);
    }

    /// Adds to the trace, whose hash tells two schedules apart.
    pub(crate) fn trace(&self, what: &str, who: &str, number: u64) {
        let now = self.since_start();
        let mut inner = self.inner();
        let trace = &mut inner.trace;
        let micros = now.as_micros() as u64;
        for byte in what.bytes().chain(who.bytes()).chain(micros.to_le_bytes()).chain(number.to_le_bytes()) {
            trace.hash = (trace.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        if trace.printed {
            println!("{now:>16.3?}  {what:<18} {who:<24} {number}");
        }
    }

    /// Starts an instance, with a store client and a clock of its own.
    fn boot(self: &Arc<Self>, seat: usize) {
        let mut inner = self.inner();
        let id = inner.instances.len();
        let instance = Arc::new(Instance::boot(id, self.start, &mut inner.rng));
        let wire = Wire { world: self.clone(), instance: instance.clone() };
        let store: Arc<dyn Store> =
            if self.cached { Arc::new(Cached::new(wire).clock(instance.clone())) } else { Arc::new(wire) };
        let service = service::build(self, &instance, &store);
        inner.instances.push(instance.clone());
        inner.seats[seat] = Some((instance, service));
    }

    /// An instance that accepts requests, if there is one.
    pub(crate) fn anyone(&self) -> Option<(Arc<Instance>, Service)> {
        let mut inner = self.inner();
        let seats: Vec<usize> = (0..inner.seats.len()).filter(|seat| inner.seats[*seat].is_some()).collect();
        if seats.is_empty() {
            return None;
        }
        let seat = inner.rng.pick(&seats);
        inner.seats[seat].clone()
    }

    pub(crate) fn happen(self: &Arc<Self>, event: Event) {
        let now = Instant::now();
        let seat = {
            let mut inner = self.inner();
            let seats = inner.seats.len();
            inner.rng.below(seats)
        };
        let Some((instance, _)) = self.inner().seats[seat].clone() else { return };
        self.trace(&format!("{event:?}"), "instance", instance.id as u64);
        match event {
            Event::Crash(down) => {
                self.inner().seats[seat] = None;
                self.inner().ledger.crashed(instance.id, now);
                instance.died.cancel();
                let world = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(down).await;
                    world.boot(seat);
                });
            }
            Event::Stall(time, suspend) => {
                let suspended = instance.stall(time, suspend);
                self.seen(if suspended { Seen::Suspensions } else { Seen::Stalls });
            }
            Event::Outage(time) => {
                instance.cut(now + time);
                self.seen(Seen::Outages);
            }
            Event::Jump(seconds) => {
                instance.jump(seconds);
                self.seen(Seen::WallJumps);
            }
        }
    }

    /// All instances stand still for that long, as a suspended machine does. Who waits for an answer then gets it late.
    pub(crate) async fn freeze(&self, time: Duration) {
        self.seen(Seen::Freezes);
        self.trace("freeze", "", time.as_millis() as u64);
        let until = Instant::now() + time;
        self.inner().instances.iter().for_each(|instance| instance.hindered(until));
        tokio::time::advance(time).await;
    }

    /// Garbage collection: takes what is past its `expires_at`, and some of it never.
    fn collect(&self) {
        let now = self.start.elapsed() + secs(1_700_000_000);
        let mut inner = self.inner();
        let over: Vec<Key> = inner
            .records
            .iter()
            .filter(|(_, entry)| u128::from(entry.record.expires) < now.as_micros())
            .map(|(key, _)| key.clone())
            .collect();
        for key in over {
            if inner.rng.chance(0.9) {
                inner.records.remove(&key);
                inner.ledger.deleted(&key);
            }
        }
    }

    pub(crate) fn begins(&self, lease: &Lease, delivery: u64, instance: usize, entity: &str) -> usize {
        self.trace("begins", lease.key().text(), lease.fence());
        let now = Instant::now();
        let mut inner = self.inner();
        let Inner { ledger, records, .. } = &mut *inner;
        let run = ledger.began(&self.schedule, records, lease, (delivery, instance), now);
        if self.schedule.route == Route::Serialize {
            let name = format!(".{entity}");
            let entity = records
                .keys()
                .find(|key| key.consumer().as_str().ends_with("serialize") && key.text().ends_with(&name));
            match entity.cloned() {
                Some(entity) => ledger.began_under(run, &entity, records, now),
                None => ledger.violated(Rule::OneHolder, format!("no record of the entity {name}")),
            }
        }
        run
    }

    pub(crate) fn holds(&self, run: usize, lease: &Lease) {
        let mut inner = self.inner();
        let Inner { ledger, records, .. } = &mut *inner;
        ledger.believes(run, records, lease);
    }

    pub(crate) fn ends(&self, run: usize, end: End) {
        let ends = {
            let mut inner = self.inner();
            !inner.over && inner.ledger.ended(run, end, Instant::now())
        };
        if ends {
            self.trace("ends", &format!("{end:?}"), run as u64);
        }
    }

    fn look(&self) {
        let mut inner = self.inner();
        let health: HashMap<usize, Health> =
            inner.instances.iter().map(|instance| (instance.id, instance.health())).collect();
        let Inner { ledger, records, .. } = &mut *inner;
        ledger.looked(&self.schedule, records, Instant::now(), |id| health[&id]);
    }

    /// Plays the schedule to its end.
    pub(crate) async fn play(self: &Arc<Self>) {
        for (at, event) in self.schedule.events.clone() {
            let world = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep_until(world.start + at).await;
                world.happen(event);
            });
        }
        for wave in self.schedule.waves.clone() {
            tokio::time::sleep_until(self.start + wave).await;
            self.collect();
            self.wave(wave).await;
        }
        self.inner().over = true;
    }

    async fn wave(self: &Arc<Self>, began: Duration) {
        let chaos = self.schedule.chaos;
        let mut open_before = self.inner().open_messages;
        for message in &self.schedule.messages {
            if message.at >= began && message.at <= began + chaos {
                tokio::spawn(crate::pubsub::published(self.clone(), message.clone()));
                open_before -= 1;
            }
        }
        // What is left to write when the last message is through must be written, too.
        let mut closed = None;
        loop {
            tokio::time::sleep(secs(5)).await;
            self.look();
            let now = self.since_start();
            if self.inner().open_messages == open_before && now > began + chaos {
                closed = closed.or(Some(now));
            }
            if closed.is_some_and(|closed| now > closed + QUIET * 2) {
                return;
            }
            if now > began + chaos + self.schedule.healed() {
                let text = format!("{} messages are still open", self.inner().open_messages - open_before);
                self.inner().ledger.violated(Rule::EveryMessageEnds, text);
                return;
            }
        }
    }

    /// Breaks the circle of world and services.
    pub(crate) fn close(&self) -> Vec<Option<(Arc<Instance>, Service)>> {
        let mut inner = self.inner();
        inner.over = true;
        std::mem::take(&mut inner.seats)
    }
}
