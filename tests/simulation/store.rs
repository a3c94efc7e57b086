//! The simulated store: one versioned map on its own clock, and a faulty wire to it for each instance.

use std::sync::Arc;
use std::time::Duration;

use pushonce::store::{BoxFuture, Record, Standing, StoreError, Stored, Swap, Version};
use pushonce::{Key, Store};
use tokio::time::Instant;

use crate::faults::Plant;
use crate::instance::Instance;
use crate::invariants::Entry;
use crate::schedule::secs;
use crate::totals::Seen;
use crate::world::World;

/// An instance's client. When the instance is killed, whatever called it dies at that call.
#[derive(Debug)]
pub(crate) struct Wire {
    pub(crate) world: Arc<World>,
    pub(crate) instance: Arc<Instance>,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    /// Nothing happened, and that is certain.
    Fail,
    Refuse,
    LoseBefore,
    LoseAnswer,
    /// Carried out after this time; the caller hears nothing, or is told so at once.
    Late {
        delay: Duration,
        silent: bool,
    },
    /// Carried out; answered after this time.
    Slow(Duration),
    /// The machine stands still while the answer is on its way.
    Freeze(Duration),
}

impl World {
    /// What goes wrong with a call.
    /// `conditional` on a version, which alone makes a write harmless that comes after a deletion:
    /// a create has nothing to be checked against once a record's retention is over.
    fn fault(&self, instance: &Instance, conditional: bool) -> Option<Fault> {
        if !self.chaotic() {
            return None;
        }
        let (schedule, now) = (&self.schedule, Instant::now());
        let rng = &mut self.inner().rng;
        let cut_off = instance.cut_off();
        if cut_off && !rng.chance(0.2) {
            return Some(rng.pick(&[Fault::Fail, Fault::LoseBefore]));
        }
        if !cut_off && !rng.chance(schedule.faults) {
            return None;
        }
        instance.hindered(now);
        // A fault seldom comes alone.
        if !cut_off && rng.chance(0.4) {
            instance.cut(now + rng.between(secs(1), secs(15)));
        }
        let delay = match schedule.waves.get(1) {
            Some(next) if conditional && self.since_start() < *next && rng.chance(0.4) => {
                rng.between(Duration::ZERO, schedule.chaos) + *next - self.since_start()
            }
            _ if rng.chance(0.5) => rng.between(secs(1), secs(20)),
            _ => rng.between(secs(1), schedule.latest()),
        };
        if cut_off {
            return Some(Fault::Late { delay, silent: rng.chance(0.5) });
        }
        Some(match rng.below(12) {
            0 | 1 => Fault::Fail,
            2 | 3 => Fault::LoseBefore,
            4 | 5 => Fault::LoseAnswer,
            6..=8 => Fault::Late { delay, silent: rng.chance(0.5) },
            9 => Fault::Slow(rng.between(secs(1), secs(8))),
            10 => Fault::Freeze(rng.between(schedule.lease / 4, schedule.lease * 2)),
            _ => Fault::Refuse,
        })
    }

    fn stored(entry: &Entry) -> Stored {
        let age = entry.written.elapsed();
        Stored { record: entry.record.clone(), version: Version::number(entry.version), age }
    }

    /// A write arrives.
    fn arrive(&self, key: &Key, seen: Option<&Version>, next: &Record, by: usize, sent: Instant) -> Swap {
        let now = Instant::now();
        let swap = {
            let inner = &mut *self.inner();
            let standing = inner.records.get(key);
            let unchecked = self.plant == Some(Plant::NoVersionCheck) && seen.is_some();
            let matches = standing.map(|entry| entry.version) == seen.and_then(Version::as_number);
            if matches || unchecked {
                inner.versions += 1;
                let version = match self.plant {
                    Some(Plant::RepeatingVersions) => standing.map_or(1, |entry| entry.version + 1),
                    _ => inner.versions,
                };
                inner.ledger.written(key, standing, next, by, sent, now);
                inner.records.insert(key.clone(), Entry { record: next.clone(), version, written: now });
                Swap::Written(Version::number(version))
            } else if self.schedule.tells {
                Swap::Lost(
                    standing.map_or(Standing::Absent, |entry| Standing::Is(Box::new(Self::stored(entry)))),
                )
            } else {
                Swap::Lost(Standing::Unknown)
            }
        };
        let what = if matches!(swap, Swap::Written(_)) { "written" } else { "refused" };
        self.trace(&format!("{what} {:?}", next.state), key.text(), next.fence);
        swap
    }
}

impl Wire {
    /// The way there or back. A killed process does not come back from it.
    async fn trip(&self) {
        let (steps, dead) = {
            let rng = &mut self.world.inner().rng;
            (rng.below(40).saturating_sub(15), rng.chance(0.5))
        };
        if steps > 0 || dead {
            tokio::time::sleep(Duration::from_millis(steps as u64)).await;
        }
    }

    async fn back(&self) {
        self.trip().await;
        self.instance.awake().await;
        self.survive();
    }

    fn survive(&self) {
        if !self.instance.alive() {
            // Ends the task without a word, as a kill does: no hook and no message.
            std::panic::resume_unwind(Box::new("killed"));
        }
    }

    async fn look(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        self.instance.awake().await;
        self.survive();
        let fault = self.world.fault(&self.instance, false);
        self.trip().await;
        match fault {
            None => {}
            Some(Fault::Late { silent: true, .. }) => std::future::pending().await,
            Some(Fault::Refuse) => return Err(refused()),
            Some(Fault::Slow(_) | Fault::Freeze(_)) => {}
            Some(_) => return Err(StoreError::unavailable("a read failed")),
        }
        let stored = self.world.inner().records.get(key).map(World::stored);
        self.delayed(fault).await;
        self.back().await;
        Ok(stored)
    }

    async fn delayed(&self, fault: Option<Fault>) {
        match fault {
            Some(Fault::Slow(delay)) => {
                self.world.seen(Seen::SlowAnswers);
                self.instance.hindered(Instant::now() + delay);
                tokio::time::sleep(delay).await;
            }
            Some(Fault::Freeze(time)) => self.world.freeze(time).await,
            _ => {}
        }
    }

    async fn write(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        self.instance.awake().await;
        self.survive();
        let fault = self.world.fault(&self.instance, seen.is_some());
        let sent = Instant::now();
        self.trip().await;
        if !self.instance.alive() {
            // It was on its way when the process died.
            if self.world.inner().rng.chance(0.5) {
                let _ = self.world.arrive(key, seen, next, self.instance.id, sent);
            }
            self.survive();
        }
        let lost = || Err(StoreError::unanswered("no answer came"));
        match fault {
            Some(Fault::Fail) => {
                self.world.seen(Seen::CleanFailures);
                return Err(StoreError::unavailable("a write failed"));
            }
            Some(Fault::Refuse) => {
                self.world.seen(Seen::Refusals);
                return Err(refused());
            }
            Some(Fault::LoseBefore) => {
                self.world.seen(Seen::LostBefore);
                return lost();
            }
            Some(Fault::Late { delay, silent }) => {
                self.world.seen(Seen::LateWrites);
                self.late(delay, key.clone(), seen.cloned(), next.clone(), sent);
                if silent {
                    std::future::pending::<()>().await;
                }
                return lost();
            }
            None | Some(Fault::LoseAnswer | Fault::Slow(_) | Fault::Freeze(_)) => {}
        }
        let swap = self.world.arrive(key, seen, next, self.instance.id, sent);
        self.delayed(fault).await;
        self.back().await;
        if matches!(fault, Some(Fault::LoseAnswer)) {
            self.world.seen(Seen::LostAnswers);
            return lost();
        }
        Ok(swap)
    }

    fn late(&self, delay: Duration, key: Key, seen: Option<Version>, next: Record, sent: Instant) {
        let (world, by) = (self.world.clone(), self.instance.id);
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            let over_deletion = {
                let inner = world.inner();
                let standing = inner.records.get(&key).map(|entry| entry.version);
                seen.is_some()
                    && standing != seen.as_ref().and_then(Version::as_number)
                    && delay > secs(24 * 3_600)
            };
            let swap = world.arrive(&key, seen.as_ref(), &next, by, sent);
            world.seen(match swap {
                Swap::Written(_) => Seen::LateLanded,
                Swap::Lost(_) if over_deletion => Seen::LateAfterDeletion,
                Swap::Lost(_) => Seen::LateRefused,
            });
        });
    }
}

fn refused() -> StoreError {
    StoreError::Refused { what: "not today".into(), source: None }
}

impl Store for Wire {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.look(key))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.write(key, seen, next))
    }
}
