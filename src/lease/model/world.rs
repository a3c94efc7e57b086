//! A state of the model: the store, the holders, the writes that are still under way, and what is known of all from outside.

use super::bounds::{BEGIN, Budget, FAR, hours};
use super::kept::{Kept, Seen};
use super::rules::{Log, Rules, Run};
use super::walk::{Holder, Stage};
use crate::lease::machine::Stamp;
use crate::store::record::Id;
use crate::time::duration_micros;

/// A write whose sender waits no more: it lands, sooner or later, or never.
#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct Late {
    pub(super) key: usize,
    pub(super) seen: Option<u8>,
    pub(super) next: Kept,
    /// Whose it is.
    pub(super) number: u8,
}

#[derive(Clone, PartialEq, Hash, Debug)]
pub(super) struct World {
    /// Hours since the beginning, by the store's clock.
    pub(super) now: u16,
    pub(super) left: Budget,
    pub(super) store: [Option<Seen>; 2],
    /// In the order in which they began.
    pub(super) holders: Vec<Holder>,
    pub(super) late: Vec<Late>,
    /// Of every holder that ever began, by its number.
    pub(super) runs: Vec<Run>,
    pub(super) logs: [Log; 2],
    pub(super) broken: Rules,
}

impl World {
    pub(super) fn new(left: Budget) -> Self {
        Self {
            now: 0,
            left,
            store: [None, None],
            holders: Vec::new(),
            late: Vec::new(),
            runs: Vec::new(),
            logs: [Log::default(), Log::default()],
            broken: Rules::default(),
        }
    }

    /// What a holder writes takes from outside.
    pub(super) fn stamp(&self, number: u8, behind: u64) -> Stamp {
        let behind = if number % 2 == 1 { behind } else { 0 };
        let now = hours(BEGIN + u64::from(self.now) - behind);
        Stamp { now: duration_micros(now), token: Id::from_bits(0) }
    }

    /// Whether an earlier holder is in every respect as this one, so that it makes no difference which of
    /// them acts.
    pub(super) fn has_twin(&self, holder: &Holder, behind: u64) -> bool {
        // Whose clock is behind is told by the number.
        let alike = |number: u8| behind == 0 || number % 2 == holder.number % 2;
        let run = |number: u8| self.runs[usize::from(number)];
        holder.stage == Stage::Claiming
            && self.holders.iter().take_while(|twin| twin.number < holder.number).any(|twin| {
                alike(twin.number) && run(twin.number) == run(holder.number) && holder.is_new_as(twin)
            })
    }

    pub(super) fn holder(&mut self, number: u8) -> Option<&mut Holder> {
        self.holders.iter_mut().find(|holder| holder.number == number)
    }

    /// From now on no condition on what stands under the key is true any more.
    pub(super) fn overwritten(&mut self, key: usize) {
        let walks = self.holders.iter_mut().flat_map(|holder| {
            holder
                .walks
                .iter_mut()
                .enumerate()
                .filter(|(part, _)| holder.role.claims().get(*part).is_some_and(|role| role.0 == key))
        });
        walks.flat_map(|(_, walk)| walk.versions()).for_each(|version| *version = 0);
        let late = self.late.iter_mut().filter(|late| late.key == key);
        late.filter_map(|late| late.seen.as_mut()).for_each(|version| *version = 0);
    }

    /// Time passes everywhere.
    pub(super) fn pass(&mut self, passed: u16) {
        self.now += passed;
        let passed = u8::try_from(passed).unwrap_or(FAR).min(FAR);
        let pass = |age: &mut u8| *age = age.saturating_add(passed).min(FAR);
        self.store.iter_mut().flatten().for_each(|entry| pass(&mut entry.age));
        self.holders.iter_mut().flat_map(|holder| &mut holder.walks).for_each(|walk| walk.pass(passed));
        self.logs.iter_mut().for_each(|log| log.pass(passed));
    }

    /// The hour from which the garbage collection may take the record of a key.
    pub(super) fn expires(&self, key: usize) -> Option<u16> {
        let entry = self.store[key].as_ref()?;
        let since = entry.kept.expires.div_ceil(duration_micros(hours(1)));
        Some(u16::try_from(since.saturating_sub(BEGIN)).unwrap_or(u16::MAX))
    }
}
