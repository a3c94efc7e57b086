//! Random bits: ids from the system's generator, and jitter.

use std::cell::RefCell;
use std::time::Duration;

use crate::store::record::Id;

/// One system call fills this much; an id takes 16 bytes of it.
const POOL: usize = 1024;

thread_local! {
    static SOURCE: RefCell<Source> = const { RefCell::new(Source::System { pool: [0; POOL], left: 0 }) };
}

enum Source {
    System {
        pool: [u8; POOL],
        left: usize,
    },
    #[cfg(feature = "testing")]
    Seeded(u64),
}

impl Source {
    fn bits(&mut self) -> u128 {
        match self {
            Self::System { pool, left } => {
                if *left == 0 {
                    *left = if getrandom::fill(pool).is_ok() { POOL } else { return unlikely() };
                }
                *left -= 16;
                let mut bits = [0; 16];
                bits.copy_from_slice(&pool[*left..*left + 16]);
                u128::from_ne_bytes(bits)
            }
            #[cfg(feature = "testing")]
            Self::Seeded(state) => (u128::from(splitmix(state)) << 64) | u128::from(splitmix(state)),
        }
    }
}

/// Without a system generator (no supported platform lacks one) the standard library's hasher keys still differ.
fn unlikely() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let half = |salt: u8| u128::from(RandomState::new().hash_one(salt));
    (half(0) << 64) | half(1)
}

/// Makes this thread's ids and jitter follow from `seed`: for simulations that must be replayed.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub fn seed(seed: u64) {
    SOURCE.with_borrow_mut(|source| *source = Source::Seeded(seed));
}

/// The next number that follows from a seed (the generator SplitMix64).
#[cfg(feature = "testing")]
pub(crate) fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

/// The next number that follows from a seed, from 0 to just below 1.
#[cfg(feature = "testing")]
pub(crate) fn share(state: &mut u64) -> f64 {
    // 53 bits fit a double exactly.
    (splitmix(state) >> 11) as f64 / (1u64 << 53) as f64
}

/// A new holder or token.
pub(crate) fn id() -> Id {
    Id::from_bits(SOURCE.with_borrow_mut(Source::bits))
}

/// 64 random bits, for what needs no more than to be fresh.
#[cfg(feature = "testing")]
pub(crate) fn number() -> u64 {
    // The upper half is as random as the whole.
    (SOURCE.with_borrow_mut(Source::bits) >> 64) as u64
}

/// Somewhere between half of `most` and all of it, so that those who wait do not come back together.
pub(crate) fn jitter(most: Duration) -> Duration {
    let bits = SOURCE.with_borrow_mut(Source::bits);
    // 53 bits fit a double exactly.
    let share = (bits & ((1 << 53) - 1)) as f64 / (1u64 << 53) as f64;
    most.mul_f64(0.5 + share / 2.0)
}
