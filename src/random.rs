//! Random bits: ids from the system's generator, and jitter.

use std::cell::RefCell;
use std::fmt;
use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

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

/// 128 random bits: a holder (one for each claim) or a token (one for each write).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Id(u128);

impl Id {
    /// The number itself.
    pub const fn from_bits(bits: u128) -> Self {
        Self(bits)
    }

    #[cfg(feature = "submit")]
    pub(crate) const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(|_| D::Error::custom("expected 32 hex digits"))
    }
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
