//! Somebody who follows messages, and may be ill: what was asked and told, and what stood in the store then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pushonce::idempotent::{End, Follow, Wanted};
use pushonce::store::record::State;
use pushonce::store::{BoxError, BoxFuture};

use serde_json::{Value, json};

use crate::world::World;

/// What a follower was asked or told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Call {
    Wanted(String),
    Ended(String, End),
}

/// What a follower does instead of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ill {
    Fails,
    Panics,
    PanicsAtOnce,
    Hangs,
}

pub(crate) const ILLS: [Ill; 4] = [Ill::Fails, Ill::Panics, Ill::PanicsAtOnce, Ill::Hangs];

/// Keeps the calls, with what stood under the key then, and answers as it is told.
#[derive(Debug, Clone, Default)]
pub(crate) struct Follower(Arc<Mutex<Told>>);

#[derive(Debug, Default)]
struct Told {
    calls: Vec<Call>,
    stood: Vec<Option<State>>,
    says: Option<Wanted>,
    wanted: VecDeque<Ill>,
    ended: VecDeque<Ill>,
    world: Option<World>,
}

impl Follower {
    pub(crate) fn of(world: &World) -> Self {
        let follower = Self::default();
        follower.0.lock().unwrap().world = Some(world.clone());
        follower
    }

    pub(crate) fn unwanted(&self) {
        self.0.lock().unwrap().says = Some(Wanted::No { why: "cancelled" });
    }

    pub(crate) fn late(&self) {
        self.0.lock().unwrap().says = Some(Wanted::Late { why: "expired" });
    }

    /// The next question ends so.
    pub(crate) fn at_wanted(&self, ill: Ill) {
        self.0.lock().unwrap().wanted.push_back(ill);
    }

    /// The next telling ends so.
    pub(crate) fn at_ended(&self, ill: Ill) {
        self.0.lock().unwrap().ended.push_back(ill);
    }

    /// The calls since the last time.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.0.lock().unwrap().calls)
    }

    /// The ends that were told since the last time.
    pub(crate) fn ends(&self) -> Vec<End> {
        let ends = self.calls().into_iter().filter_map(|call| match call {
            Call::Ended(_, end) => Some(end),
            Call::Wanted(_) => None,
        });
        ends.collect()
    }

    /// What stood under the key at each call so far.
    pub(crate) fn stood(&self) -> Vec<Option<State>> {
        self.0.lock().unwrap().stood.clone()
    }

    fn called<'a, T: Send + 'a>(&self, call: Call, answer: T) -> BoxFuture<'a, Result<T, BoxError>> {
        let (ill, world) = {
            let mut told = self.0.lock().unwrap();
            told.calls.push(call.clone());
            let ills = if matches!(call, Call::Wanted(_)) { &mut told.wanted } else { &mut told.ended };
            (ills.pop_front(), told.world.clone())
        };
        assert!(!matches!(ill, Some(Ill::PanicsAtOnce)), "at once");
        let (follower, Call::Wanted(id) | Call::Ended(id, _)) = (self.clone(), call);
        Box::pin(async move {
            if let Some(world) = world {
                let stands = world.stands(&id).await.map(|stands| stands.0);
                follower.0.lock().unwrap().stood.push(stands);
            }
            match ill {
                None => Ok(answer),
                Some(Ill::Fails) => Err("the records are away".into()),
                Some(Ill::Hangs) => std::future::pending().await,
                Some(Ill::Panics | Ill::PanicsAtOnce) => panic!("in the follower"),
            }
        })
    }
}

impl Follow for Follower {
    fn attribute(&self) -> &str {
        "task-id"
    }

    /// Its own have no spaces.
    fn is_id(&self, text: &str) -> bool {
        !text.contains(' ')
    }

    fn wanted<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Wanted, BoxError>> {
        let says = self.0.lock().unwrap().says.clone();
        self.called(Call::Wanted(id.to_owned()), says.unwrap_or(Wanted::Yes))
    }

    fn ended<'a>(&'a self, id: &'a str, end: End) -> BoxFuture<'a, Result<(), BoxError>> {
        self.called(Call::Ended(id.to_owned(), end), ())
    }

    fn redriven<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<(), BoxError>> {
        unreachable!("no delivery is a redrive")
    }
}

/// A message of that id about the task `t`.
pub(crate) fn task(id: &str) -> Value {
    json!({ "messageId": id, "attributes": { "task-id": "t" } })
}

/// The calls for the task `t`, where its work ended so.
pub(crate) fn seen_through(end: End) -> Vec<Call> {
    vec![Call::Wanted("t".into()), Call::Ended("t".into(), end)]
}
