//! A generator whose every draw follows from its seed (`SplitMix64`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Dice(AtomicU64);

impl Dice {
    pub(crate) fn of(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `sides`.
    pub(crate) fn roll(&self, sides: u64) -> u64 {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % sides
    }

    /// A time within these milliseconds.
    pub(crate) fn millis(&self, least: u64, below: u64) -> Duration {
        Duration::from_millis(least + self.roll(below - least))
    }

    /// One of them, taken out.
    pub(crate) fn draw<T>(&self, from: &mut Vec<T>) -> T {
        let sides = u64::try_from(from.len()).unwrap();
        from.swap_remove(usize::try_from(self.roll(sides)).unwrap())
    }
}
