//! How an instance's life ends: at a named point, at a moment that was drawn, or, when the storm is over, in peace.

use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use crate::dice::Dice;
use crate::journal::{self, Name};
use crate::work::Mode;

/// Where a run can be struck, in its order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point {
    /// The key is claimed, and nothing is done yet.
    Begun,
    /// The supplier was asked for the effect, and its answer is not read.
    EffectSent,
    /// The supplier has the effect, and said so.
    EffectAnswered,
    /// The effect is in the transaction.
    EffectInserted,
    /// The work has succeeded, and its completion is not sent.
    BeforeComplete,
    /// The completion is on its way, and nobody has heard what became of it.
    CompleteSent,
    /// The key is recorded, and Pub/Sub is not told.
    CompleteAnswered,
    /// The completion is in the transaction.
    KeyCompleted,
    /// The commit is on its way, and nobody has heard what became of it.
    CommitSent,
    /// Effect and key are committed, and Pub/Sub is not told.
    CommitAnswered,
}

impl Point {
    /// The points of a run whose effect is a supplier's.
    pub(crate) const KEYED: [Self; 6] = [
        Self::Begun,
        Self::EffectSent,
        Self::EffectAnswered,
        Self::BeforeComplete,
        Self::CompleteSent,
        Self::CompleteAnswered,
    ];

    /// The points of a run whose effect is in the database of its key.
    pub(crate) const TRANSACTION: [Self; 5] =
        [Self::Begun, Self::EffectInserted, Self::KeyCompleted, Self::CommitSent, Self::CommitAnswered];

    pub(crate) const ALL: [Self; 10] = [
        Self::Begun,
        Self::EffectSent,
        Self::EffectAnswered,
        Self::EffectInserted,
        Self::BeforeComplete,
        Self::CompleteSent,
        Self::CompleteAnswered,
        Self::KeyCompleted,
        Self::CommitSent,
        Self::CommitAnswered,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Begun => "begun",
            Self::EffectSent => "effect-sent",
            Self::EffectAnswered => "effect-answered",
            Self::EffectInserted => "effect-inserted",
            Self::BeforeComplete => "before-complete",
            Self::CompleteSent => "complete-sent",
            Self::CompleteAnswered => "complete-answered",
            Self::KeyCompleted => "key-completed",
            Self::CommitSent => "commit-sent",
            Self::CommitAnswered => "commit-answered",
        }
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|point| point.name() == name)
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a process does to itself at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Act {
    /// SIGKILL.
    Die,
    /// SIGSTOP: it stands still until somebody lets it go on.
    Stand,
}

/// How a life ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Fate {
    /// By its own hand, the `nth` time that a run of it comes to the point.
    At { point: Point, act: Act, nth: u64 },
    /// By SIGKILL, that long after it was there.
    Killed { after: Duration },
    /// It stands still past its lease, then goes on for a while.
    Stopped { after: Duration },
    /// It lives on.
    Spared,
}

/// Every fate in an order that was drawn; and then for as long as the storm lasts all but those that stand
/// at a point, which take an instance away for long.
#[derive(Debug)]
pub(crate) struct Deck {
    mode: Mode,
    pub(crate) dice: Dice,
    cards: Mutex<Option<Vec<Fate>>>,
}

impl Deck {
    pub(crate) fn of(mode: Mode, seed: u64) -> Self {
        Self { mode, dice: Dice::of(seed), cards: Mutex::default() }
    }

    pub(crate) fn draw(&self) -> Fate {
        let mut dealt = self.cards.lock().unwrap();
        let acts: &[Act] = if dealt.is_none() { &[Act::Stand, Act::Die] } else { &[Act::Die] };
        let cards = dealt.get_or_insert_default();
        if cards.is_empty() {
            let after = || self.dice.millis(500, 4000);
            for &point in self.mode.points() {
                let nth = || 1 + self.dice.roll(30);
                cards.extend(acts.iter().map(|&act| Fate::At { point, act, nth: nth() }));
                cards.push(Fate::Killed { after: after() });
            }
            cards.push(Fate::Stopped { after: after() });
        }
        self.dice.draw(cards)
    }
}

/// The fate of this process, where that is to strike itself.
#[derive(Debug)]
pub(crate) struct Own {
    point: Option<(Point, Act)>,
    left: AtomicU64,
}

impl Own {
    /// As [`Fate`] was told to it: a point, an act, a number; or nothing.
    pub(crate) fn told(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let point = words.next().map(|name| Point::named(name).unwrap());
        let act = if words.next() == Some("Stand") { Act::Stand } else { Act::Die };
        let left = words.next().map_or(0, |nth| nth.parse().unwrap());
        Self { point: point.map(|point| (point, act)), left: AtomicU64::new(left) }
    }

    /// A run has come to the point.
    pub(crate) fn at(&self, point: Point, run: &Name) {
        let Some((_, act)) = self.point.filter(|(own, _)| *own == point) else { return };
        if self.left.fetch_sub(1, Ordering::SeqCst) != 1 {
            return;
        }
        journal::came_to(run, point);
        let signal = if act == Act::Die { Signal::KILL } else { Signal::STOP };
        kill_process(getpid(), signal).unwrap();
    }
}

impl Fate {
    /// What the process is told, for [`Own::told`].
    pub(crate) fn telling(self) -> String {
        match self {
            Self::At { point, act, nth } => format!("{point} {act:?} {nth}"),
            Self::Killed { .. } | Self::Stopped { .. } | Self::Spared => String::new(),
        }
    }
}
