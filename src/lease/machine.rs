//! The state machine: the transition table as pure functions over a record. No store, no clock, no waiting.

use std::sync::Arc;
use std::time::Duration;

use super::status::{Status, age, is_started, left_of};
use crate::store::Stored;
use crate::store::record::{Ended, Id, Progress, Receipt, Record, State, Verb};
use crate::time::duration_micros;

/// How long the store keeps a record beyond its lease and ttl. It bears clocks twelve hours apart
/// for the fence and twenty-four hours slow for garbage collection.
const SLACK: Duration = Duration::from_secs(24 * 60 * 60);

/// What a claim asks for.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) verb: Verb,
    pub(crate) lease: Duration,
    /// Zero for a mutex, which is never done.
    pub(crate) ttl: Duration,
    pub(crate) holder: Id,
    pub(crate) digest: Option<[u8; 32]>,
    pub(crate) note: Note,
}

impl Ask {
    pub(crate) fn new(verb: Verb, lease: Duration, ttl: Duration, holder: Id) -> Self {
        let ttl = if verb == Verb::Mutex { Duration::ZERO } else { ttl };
        Self { verb, lease, ttl, holder, digest: None, note: Note::default() }
    }
}

/// Who works on the key, for the receipt.
#[derive(Debug, Clone, Default)]
pub(crate) struct Note {
    pub(crate) message: Option<Arc<str>>,
    pub(crate) delivery: Option<Arc<str>>,
}

impl Note {
    fn receipt(&self, progress: Progress, at: u64) -> Receipt {
        Receipt { progress, at, message: self.message.clone(), delivery: self.delivery.clone() }
    }
}

/// What a write takes from outside: the wall clock in microseconds, and a fresh token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) now: u64,
    pub(crate) token: Id,
}

/// What a claim meets.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The key is free: write this.
    Take(Box<Record>),
    /// A live claim has it, for this much longer.
    Held { left: Duration },
    /// It is recorded; `conflict` if the payload was another.
    Done { receipt: Option<Receipt>, conflict: bool },
    /// A live record of a verb that excludes the asked one.
    Misuse { stands: Verb },
}

/// Claims a key on which `standing` stands.
pub(crate) fn claim(ask: &Ask, standing: Option<&Stored>, stamp: Stamp) -> Verdict {
    let Some(stored) = standing else {
        return Verdict::Take(Box::new(take(Record::blank(ask.verb, ask.lease, ask.ttl), ask, stamp)));
    };
    let record = &stored.record;
    let status = Status::of(stored);
    if !status.is_free() && record.verb.excludes(ask.verb) {
        return Verdict::Misuse { stands: record.verb };
    }
    match status {
        Status::Held { left } => Verdict::Held { left },
        Status::Started { .. } | Status::Done { .. } => Verdict::Done {
            receipt: record.receipt.clone(),
            conflict: matches!((record.digest, ask.digest), (Some(stored), Some(asked)) if stored != asked),
        },
        Status::Released => Verdict::Take(Box::new(take(record.clone(), ask, stamp))),
        Status::Lapsed => Verdict::Take(Box::new(take(unknown(record), ask, stamp))),
        Status::Expired => Verdict::Take(Box::new(take(over(record), ask, stamp))),
    }
}

/// The record after a run that nobody knows the end of.
fn unknown(record: &Record) -> Record {
    Record { runs: record.runs.saturating_add(1), ended: Ended::Unknown, ..record.clone() }
}

/// The record of an occurrence that is over: the next one is another.
fn over(record: &Record) -> Record {
    Record { runs: 0, ended: Ended::Fresh, ..record.clone() }
}

/// The claimed record (or, for `at_most_once`, the mark), with the history of `found`.
fn take(found: Record, ask: &Ask, stamp: Stamp) -> Record {
    let marks = ask.verb == Verb::AtMostOnce;
    Record {
        state: if marks { State::Done } else { State::Claimed },
        verb: ask.verb,
        holder: Some(ask.holder),
        lease: ask.lease,
        ttl: ask.ttl,
        aged: Duration::ZERO,
        digest: ask.digest,
        receipt: if marks {
            Some(ask.note.receipt(Progress::Started, stamp.now))
        } else {
            found.receipt.clone()
        },
        ..higher(found, stamp)
    }
    .stamped(stamp)
}

/// What a holder wants of its claim.
#[derive(Debug, Clone)]
pub(crate) enum Op {
    /// A new lease from now; fence, history and runs as they are. A mark of `at_most_once` has none,
    /// and stays as it is.
    Renew,
    /// Recorded. The lease is not looked at: until somebody takes the key over, its holder is the
    /// only one that ran the work, and refusing its done would run the work again.
    Complete(Note),
    /// Recorded, too: the message can never succeed, and is a dead letter by now.
    Reject(Note),
    /// Given back after a run that ended so (`Fresh`: a mutex whose work succeeded).
    Release(Ended),
    /// Given back because the work never started, with the history and the receipt that the claim found.
    Undo(Option<Receipt>),
}

impl Op {
    /// How far the key has come that is done by this, and who has worked on it.
    pub(crate) fn ends(&self) -> Option<(Progress, &Note)> {
        match self {
            Self::Complete(note) => Some((Progress::Finished, note)),
            Self::Reject(note) => Some((Progress::Rejected, note)),
            Self::Renew | Self::Release(_) | Self::Undo(_) => None,
        }
    }
}

/// What a holder's write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Commit {
    /// It is stored, by this call or by an earlier one whose answer was lost.
    Recorded,
    /// The holder itself has recorded the key; there is nothing left to renew or release.
    AlreadyDone,
    /// The key is no longer the holder's. Nothing was written, and nothing more may be.
    FencedOut,
}

/// What to do about a holder's wish.
#[derive(Debug)]
pub(crate) enum Step {
    /// Write this, on the version of the record that was looked at.
    Write(Box<Record>),
    /// Nothing is to be written.
    Answer(Commit),
}

/// A holder's wish, on a record. `held` tells how long ago the holder sent the write that won,
/// and never more than that.
pub(crate) fn settle(op: &Op, me: Id, record: &Record, held: impl Fn() -> Duration, stamp: Stamp) -> Step {
    if record.holder != Some(me) {
        return Step::Answer(Commit::FencedOut);
    }
    let started = is_started(record);
    let receipt = || op.ends().map(|(progress, note)| note.receipt(progress, stamp.now));
    let next = match (record.state, op) {
        (State::Claimed, Op::Renew) => Record { aged: Duration::ZERO, ..record.clone() },
        // A mark lasts as long as it does: that it could be written says whose it is.
        (State::Done, Op::Renew) if started => Record { aged: held().min(record.ttl), ..record.clone() },
        (State::Claimed, Op::Complete(_) | Op::Reject(_)) => {
            Record { state: State::Done, aged: Duration::ZERO, receipt: receipt(), ..record.clone() }
        }
        // The mark becomes a receipt; its window does not slide.
        (State::Done, Op::Complete(_) | Op::Reject(_)) if started => {
            Record { aged: held().min(record.ttl), receipt: receipt(), ..record.clone() }
        }
        (State::Claimed, Op::Release(ended)) => {
            let runs = if *ended == Ended::Fresh { 0 } else { record.runs.saturating_add(1) };
            Record {
                state: State::Released,
                runs,
                ended: *ended,
                aged: Duration::ZERO,
                ..higher(record.clone(), stamp)
            }
        }
        (State::Claimed, Op::Undo(found)) => undone(record, found, stamp),
        (State::Done, Op::Undo(found)) if started => undone(record, found, stamp),
        (State::Done, Op::Complete(_) | Op::Reject(_)) | (State::Released, Op::Release(_) | Op::Undo(_)) => {
            return Step::Answer(Commit::Recorded);
        }
        (State::Done, Op::Renew | Op::Release(_) | Op::Undo(_)) => return Step::Answer(Commit::AlreadyDone),
        (State::Released, Op::Renew | Op::Complete(_) | Op::Reject(_)) => {
            return Step::Answer(Commit::FencedOut);
        }
    };
    Step::Write(Box::new(next.stamped(stamp)))
}

fn undone(record: &Record, found: &Option<Receipt>, stamp: Stamp) -> Record {
    Record {
        state: State::Released,
        aged: Duration::ZERO,
        receipt: found.clone(),
        ..higher(record.clone(), stamp)
    }
}

/// Makes a late claim of `me` impossible by a write on the same condition: after it the claim's
/// condition is false. Where nothing stood, a released record; else the record that stood, with the
/// age that it had, so that its holder can still complete.
pub(crate) fn forestall(ask: &Ask, condition: Option<&Stored>, stamp: Stamp) -> Record {
    match condition {
        None => {
            let blank = Record { holder: Some(ask.holder), ..Record::blank(ask.verb, ask.lease, ask.ttl) };
            higher(blank, stamp).stamped(stamp)
        }
        Some(stored) => Record { aged: age(stored), ..stored.record.clone() }.stamped(stamp),
    }
}

/// Whether a reset spares the claim of somebody who may be at work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Force {
    /// A live claim stays, and so does a mark of `at_most_once` while its lease runs.
    No,
    /// It is reset too. Its work goes on, and can write nothing more to the store.
    Yes,
}

/// What a reset meets.
#[derive(Debug)]
pub(crate) enum Reset {
    /// Write this: the key is free, and nobody can write as its holder.
    Write(Box<Record>),
    /// It is released already.
    Free,
    /// Somebody may be at work, and is spared.
    Held { left: Duration },
}

/// Resets a key on which `stored` stands. The record stays, so that the fence keeps rising; it has no
/// holder, so nobody can write as one. That a run began is remembered even if it was recorded: the
/// record of its success is what goes.
///
pub(crate) fn reset(stored: &Stored, force: Force, stamp: Stamp) -> Reset {
    let record = &stored.record;
    let found = match Status::of(stored) {
        Status::Released => return Reset::Free,
        // A mark runs as long as its lease, as far as anybody can tell; then it crashed or failed.
        Status::Held { .. } | Status::Started { .. } => match left_of(record.lease, stored) {
            Some(left) if force == Force::No => return Reset::Held { left },
            _ => unknown(record),
        },
        Status::Lapsed | Status::Done { .. } => unknown(record),
        Status::Expired => over(record),
    };
    let reset = Record { state: State::Released, holder: None, aged: Duration::ZERO, ..higher(found, stamp) };
    Reset::Write(Box::new(reset.stamped(stamp)))
}

/// The same record under a higher fence: it rises while the record stands, and across its deletion
/// within the bound of the slack.
pub(crate) fn higher(record: Record, stamp: Stamp) -> Record {
    Record { fence: stamp.now.max(record.fence.saturating_add(1)), ..record }
}

impl Record {
    /// What every write does: a fresh token, the time of the write, and retention counted anew.
    pub(crate) fn stamped(self, stamp: Stamp) -> Self {
        let kept = match self.state {
            State::Claimed => self.lease.saturating_add(self.ttl),
            State::Released | State::Done => self.ttl,
        };
        Self {
            token: stamp.token,
            written: stamp.now,
            expires: stamp.now.saturating_add(duration_micros(kept.saturating_add(SLACK))),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
