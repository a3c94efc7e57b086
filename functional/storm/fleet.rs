//! Four instances that are struck again and again, each replaced by the next, until the storm is over.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::sync::watch;

use crate::causes::Life;
use crate::fate::{Act, Deck, Fate};
use crate::gate::{ACK_DEADLINE, Gate};
use crate::journal::{self, Said};
use crate::process::Process;
use crate::program::{self, Told};
use crate::work::LEASE;

pub(crate) const INSTANCES: usize = 4;
/// Whoever does not come to its point in this time is killed where it is.
const TO_THE_POINT: Duration = Duration::from_secs(10);
/// Pushes still come to who has just been stopped: nobody knows yet.
const UNNOTICED: Duration = Duration::from_millis(300);
/// Who does not end by SIGTERM hangs: the drain takes eight seconds at most.
const DRAINED: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    Storm,
    /// Nobody is struck any more.
    Calm,
    /// All are to end.
    Over,
}

/// What the instances have in common.
#[derive(Debug)]
pub(crate) struct Fleet {
    told: Told,
    gate: Arc<Gate>,
    deck: Deck,
    weather: watch::Sender<Weather>,
    /// How long who stands stands.
    stands: Duration,
    /// Each life that is over.
    pub(crate) lives: Mutex<Vec<(Fate, Life)>>,
}

impl Fleet {
    pub(crate) fn new(told: Told, gate: Arc<Gate>, deck: Deck, store: &str) -> Self {
        let (weather, lives) = (watch::Sender::new(Weather::Storm), Mutex::default());
        Self { told, gate, deck, weather, stands: stands(store), lives }
    }

    pub(crate) fn turns(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }

    /// Keeps all instances alive, until it is over.
    pub(crate) async fn sail(&self) {
        join_all((0..INSTANCES).map(|instance| self.keep(instance))).await;
    }

    async fn keep(&self, instance: usize) {
        loop {
            let storm = *self.weather.borrow() == Weather::Storm;
            let fate = if storm { self.deck.draw() } else { Fate::Spared };
            let name = format!("instance {instance}, {fate:?}");
            let mut process = self.told.start(&name, fate, self.deck.dice.roll(u64::MAX));
            self.gate.turn(instance, Some(program::listens(&process).await));
            let mut life = Life::default();
            self.meet(instance, fate, &mut process, &mut life).await;
            self.gate.turn(instance, None);
            life.lines = journal::read(&process.last_words().await);
            self.lives.lock().unwrap().push((fate, life));
            if matches!(fate, Fate::Spared) {
                return;
            }
        }
    }

    /// Lets it live to its end.
    async fn meet(&self, instance: usize, fate: Fate, process: &mut Process, life: &mut Life) {
        match fate {
            Fate::Spared => {
                self.until(Weather::Over).await;
                process.term();
                process.ended(DRAINED).await;
            }
            Fate::Killed { after } => {
                self.in_the_storm(after).await;
                kill(process, life).await;
            }
            Fate::Stopped { after } => {
                self.in_the_storm(after).await;
                let from = journal::now();
                process.stop().await;
                self.stand(instance, from, process, life).await;
            }
            Fate::At { act, .. } => {
                let came = tokio::select! {
                    at = came_to(process) => Some(at),
                    () = tokio::time::sleep(TO_THE_POINT) => None,
                    () = self.until(Weather::Calm) => None,
                };
                match (came, act) {
                    (Some(at), Act::Die) => {
                        process.ended(crate::PATIENCE).await;
                        life.killed = Some(at);
                    }
                    (Some(at), Act::Stand) => {
                        process.stop().await;
                        self.stand(instance, at, process, life).await;
                    }
                    (None, _) => kill(process, life).await,
                }
            }
        }
    }

    /// It stands, and goes on as if nothing had been; when it has done what it had begun it is killed.
    async fn stand(&self, instance: usize, from: u64, process: &mut Process, life: &mut Life) {
        tokio::time::sleep(UNNOTICED).await;
        self.gate.turn(instance, None);
        tokio::time::sleep(self.stands).await;
        process.cont();
        life.stood.push((from, journal::now()));
        tokio::time::sleep(self.deck.dice.millis(300, 1500)).await;
        kill(process, life).await;
    }

    /// That long, or until the storm is over.
    async fn in_the_storm(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.until(Weather::Calm)).await;
    }

    async fn until(&self, wanted: Weather) {
        let mut weather = self.weather.subscribe();
        let come = |now: &Weather| *now == wanted || *now == Weather::Over;
        weather.wait_for(come).await.expect("the weather lives as long as the fleet");
    }
}

async fn kill(process: &mut Process, life: &mut Life) {
    // Before the signal: whoever takes over does so after it.
    life.killed.get_or_insert(journal::now());
    process.kill_9().await;
}

/// Waits until it says that it has come to its point.
async fn came_to(process: &Process) -> u64 {
    process.await_log(10 * TO_THE_POINT, journal::CAME_TO).await;
    let last = journal::read(&process.log()).into_iter().rfind(|line| matches!(line.said, Said::CameTo(_)));
    last.expect("lines are whole").at
}

/// How long who stands has to stand, to be replaced meanwhile: until its lease has lapsed, of which a store
/// of objects hears some seconds late, and its message is pushed again.
fn stands(store: &str) -> Duration {
    let late = if matches!(store, "s3" | "fake-gcs") { 6 } else { 0 };
    ACK_DEADLINE.max(LEASE + Duration::from_secs(late)) + Duration::from_millis(2500)
}
