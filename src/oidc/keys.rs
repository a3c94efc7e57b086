//! The keys that Google signs with: fetched once for all who wait, kept for their life, or for a day while their server is down.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jsonwebtoken::DecodingKey;
use tokio::sync::OwnedMutexGuard;

use super::fetch::{FetchError, KeyServer, KeySet, LONGEST_LIFE};
use super::refusal::Refusal;
use crate::chain::chain;
use crate::task;
use crate::time::{Clock, Stopwatch};

/// A key id that is not known is asked for no sooner than this after the last answer: who makes up
/// key ids must not make us hammer the key server.
const COOL_DOWN: Duration = Duration::from_secs(30);
/// A key server that failed is left alone so long. Shorter: while there are no keys every push waits.
const FAILED_COOL_DOWN: Duration = Duration::from_secs(5);
/// How long keys are used after their fetch while their server cannot be reached. Google publishes a
/// key for weeks, and one that it has withdrawn is believed no longer than this: no life is longer.
const BELIEVED: Duration = LONGEST_LIFE;

/// The keys of one server, for all layers that share it.
pub(super) struct Keys {
    server: KeyServer,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Whose turn it is to fetch.
    turn: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Default)]
struct State {
    /// The last answer that had keys.
    good: Option<Good>,
    /// Since the last try ended.
    tried: Option<Stopwatch>,
    /// Why it failed, if it did.
    failure: Option<Arc<FetchError>>,
}

struct Good {
    keys: KeySet,
    life: Duration,
    age: Stopwatch,
}

/// What is to be done for a key id.
enum Next {
    Use(Arc<DecodingKey>),
    Refuse(Refusal),
    /// Ask the server; if somebody does so already, this key will do.
    Fetch(Option<Arc<DecodingKey>>),
}

impl Keys {
    pub(super) fn new(server: KeyServer, clock: Arc<dyn Clock>) -> Self {
        Self { server, clock, state: Mutex::default(), turn: Arc::default() }
    }

    /// The key of that id.
    pub(super) async fn find(self: &Arc<Self>, kid: &str) -> Result<Arc<DecodingKey>, Refusal> {
        loop {
            let stale = match self.next(kid) {
                Next::Use(key) => return Ok(key),
                Next::Refuse(why) => return Err(why),
                Next::Fetch(stale) => stale,
            };
            let turn = match (self.turn.clone().try_lock_owned(), stale) {
                (Ok(turn), _) => turn,
                (Err(_), Some(key)) => return Ok(key),
                (Err(_), None) => self.turn.clone().lock_owned().await,
            };
            // Whoever had the turn before may have brought what we came for.
            if matches!(self.next(kid), Next::Fetch(_)) {
                self.fetch(turn).await?;
            }
        }
    }

    fn next(&self, kid: &str) -> Next {
        let state = self.state();
        let good = state.good.as_ref();
        let known = good.and_then(|good| Some((good.keys.get(kid)?, good)));
        let key = match known {
            Some((key, good)) if good.age.elapsed() < good.life => return Next::Use(key.clone()),
            Some((key, good)) if good.age.elapsed() < BELIEVED => Some(key.clone()),
            _ => None,
        };
        let retry = state.cooling();
        match (key, &state.failure) {
            (key, _) if retry.is_zero() => Next::Fetch(key),
            (Some(key), _) => Next::Use(key),
            // Perhaps it is a new one: nobody can tell.
            (None, Some(failure)) => Next::Refuse(Refusal::Keys { source: failure.clone(), retry }),
            (None, None) => Next::Refuse(Refusal::UnknownKey),
        }
    }

    /// In a task of its own: a caller that hangs up must not make the next one ask anew.
    async fn fetch(self: &Arc<Self>, turn: OwnedMutexGuard<()>) -> Result<(), Refusal> {
        let keys = self.clone();
        let fetch = task::spawn(async move {
            let answer = keys.server.fetch().await;
            keys.keep(answer);
            drop(turn);
        });
        let cut_off = |_| Refusal::Keys { source: Arc::new(FetchError::CutOff), retry: FAILED_COOL_DOWN };
        fetch.await.map_err(cut_off)
    }

    fn keep(&self, answer: Result<(KeySet, Duration), FetchError>) {
        let mut state = self.state();
        let now = Stopwatch::start(&self.clock);
        state.tried = Some(now.clone());
        match answer {
            Ok((keys, life)) => {
                tracing::debug!(keys = keys.len(), ?life, "the keys of push tokens were fetched");
                state.good = Some(Good { keys, life, age: now });
                state.failure = None;
            }
            Err(error) => {
                let age_seconds = state.good.as_ref().map(|good| good.age.elapsed().as_secs());
                tracing::warn!(
                    error = chain(&error),
                    age_seconds,
                    "the keys of push tokens could not be fetched; those of the last fetch, if there are any, are used until they are a day old"
                );
                state.failure = Some(Arc::new(error));
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How long the server is still to be left alone.
    fn cooling(&self) -> Duration {
        let pause = if self.failure.is_some() { FAILED_COOL_DOWN } else { COOL_DOWN };
        self.tried.as_ref().map_or(Duration::ZERO, |tried| pause.saturating_sub(tried.elapsed()))
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("server", &self.server).finish_non_exhaustive()
    }
}
