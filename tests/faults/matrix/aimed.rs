//! A store that meets a fault at exactly one call: the first of a kind, once that is aimed at.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use pushonce::store::chaos::{Chaos, Fault as Fake, On};
use pushonce::store::{
    BoxFuture, Filter, Listing, Maintain, Page, Record, StoreError, Stored, Swap, Version,
};
use pushonce::{Key, Store};
use tokio::sync::watch;

use super::column::Seat;
use super::faults::{Fault, STALL, STILL};
use super::rows::Call;
use crate::proxy::Proxy;
use crate::s3;

/// What is done to the way to the server just before the call goes out.
#[derive(Debug, Clone)]
pub(crate) enum Strike {
    CutBefore(Arc<Proxy>),
    CutAfter(Arc<Proxy>),
    Hold(Arc<Proxy>),
    HoldAnswer(Arc<Proxy>),
    /// Whatever happens to the server of the whole column.
    Column(Seat),
    /// No server is there: the answer is made up.
    Fake(Arc<Chaos>, Fake),
    /// The same, of each call for a while.
    StandsStill(Arc<Chaos>),
}

/// How the call ended that met the fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Said {
    /// As if there had been no fault.
    Answered,
    /// [`StoreError::Unavailable`].
    Unavailable { may_have_written: bool },
    /// Any other error: nobody could get on by trying again.
    Refused,
    /// Its caller waited no longer.
    GivenUp,
}

#[derive(Debug)]
pub(crate) struct Aimed {
    /// Where the calls of keys go; the same as `operated`, or what makes its faults.
    keys: Arc<dyn Store>,
    operated: Arc<dyn Maintain>,
    aims: Mutex<VecDeque<(Call, Strike)>>,
    said: watch::Sender<Option<Said>>,
}

impl Aimed {
    pub(crate) fn new(keys: Arc<dyn Store>, operated: Arc<dyn Maintain>) -> Arc<Self> {
        Arc::new(Self { keys, operated, aims: Mutex::default(), said: watch::Sender::new(None) })
    }

    /// The next of the call meets the fault, then the next of what is aimed at after it.
    pub(crate) fn aim(&self, call: Call, strike: Strike) {
        self.aims.lock().unwrap_or_else(PoisonError::into_inner).push_back((call, strike));
    }

    /// How the last call ended that met a fault, if one has.
    pub(crate) fn said(&self) -> Option<Said> {
        self.is_spent().then(|| *self.said.borrow()).flatten()
    }

    /// Waits until the last call that was aimed at has ended.
    pub(crate) async fn struck(&self) {
        let mut said = self.said.subscribe();
        let _ = said.wait_for(|said| said.is_some() && self.is_spent()).await;
    }

    fn is_spent(&self) -> bool {
        self.aims.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn strike(&self, call: Call) -> Option<Strike> {
        let mut aims = self.aims.lock().unwrap_or_else(PoisonError::into_inner);
        aims.front().filter(|(aimed, _)| *aimed == call)?;
        let struck = aims.pop_front()?.1;
        // What an earlier one said does not count any more.
        self.said.send_replace(None);
        Some(struck)
    }

    /// Sends the call off, into the fault that waits for it.
    async fn meet<T>(
        &self,
        call: Call,
        marker: impl FnOnce() -> String,
        send: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let Some(strike) = self.strike(call) else { return send.await };
        let mut ending = Ending { said: &self.said, how: Said::GivenUp };
        match &strike {
            Strike::CutBefore(proxy) => proxy.cut_before(marker()),
            Strike::CutAfter(proxy) => proxy.cut_after(marker()),
            Strike::Hold(proxy) => proxy.hold(marker()),
            Strike::HoldAnswer(proxy) => proxy.hold_answer(marker()),
            Strike::Column(seat) => seat.strike().await,
            // What is between it and its records knows keys only.
            Strike::Fake(_, fake) if call.is_operators() => return ending.made_up(send.await, *fake).await,
            Strike::StandsStill(_) if call.is_operators() => return ending.made_up(send.await, STALL).await,
            Strike::Fake(chaos, fake) => chaos.next(On::Any, *fake),
            Strike::StandsStill(chaos) => {
                chaos.always(On::Any, STALL);
                let chaos = chaos.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(STILL).await;
                    chaos.heal();
                });
            }
        }
        let answer = send.await;
        ending.how = match &answer {
            Ok(_) => Said::Answered,
            Err(error) if error.is_transient() => {
                Said::Unavailable { may_have_written: error.may_have_written() }
            }
            Err(_) => Said::Refused,
        };
        answer
    }
}

/// Tells how a call ended, also if its caller drops it.
struct Ending<'a> {
    said: &'a watch::Sender<Option<Said>>,
    how: Said,
}

impl Ending<'_> {
    async fn made_up<T>(&mut self, answer: Result<T, StoreError>, fake: Fake) -> Result<T, StoreError> {
        tokio::time::sleep(Fault::lasts(fake)).await;
        self.how = Said::Unavailable { may_have_written: true };
        answer.and(Err(StoreError::unanswered("a made-up fault")))
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.said.send_replace(Some(self.how));
    }
}

/// What the request of a read has of its key, on every store: the text, or the name of an object.
fn name(key: &Key, is_bucket: bool) -> String {
    let object = s3::name("any", key);
    let hash = object.filename().and_then(|name| name.strip_suffix(".json"));
    if is_bucket { hash.expect("a name").to_owned() } else { key.text().to_owned() }
}

impl Store for Aimed {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        let is_bucket = format!("{:?}", self.operated).starts_with("Bucket");
        Box::pin(self.meet(Call::Read, move || name(key, is_bucket), self.keys.read(key)))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        use pushonce::store::record::State;
        let call = match (next.state, seen) {
            (State::Claimed, None) => Call::Create,
            (State::Claimed, Some(_)) => Call::Claim,
            (State::Done, _) => Call::Complete,
            (State::Released, _) => Call::Release,
        };
        // Which no other write has.
        Box::pin(self.meet(call, || next.token.to_string(), self.keys.swap(key, seen, next)))
    }
}

impl Maintain for Aimed {
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        self.operated.check()
    }

    fn purge_expired(&self, limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(self.meet(Call::Purge, String::new, self.operated.purge_expired(limit)))
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(self.meet(Call::List, String::new, self.operated.list(filter, page)))
    }
}
