//! When Pub/Sub delivers a message again that is nacked each time: the delays, their sums, and how many fit into a window.

use std::time::Duration;

/// Times are counted in millionths of a nanosecond, so that a share of a delay is exact.
const PER_NANOSECOND: u128 = 1_000_000;
const NANOSECONDS: u128 = 1_000_000_000;

/// The delays `d_k = min(M, m * 2^(k-1))` between delivery `k` and the next, each cut to its share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Backoff {
    min: u128,
    max: u128,
    /// How many delays double before they are the longest.
    doublings: u32,
}

impl Backoff {
    /// The delays between these bounds, each only `share` (above 0 to 1) as long as it should be.
    pub(super) fn new(min: Duration, max: Duration, share: f64) -> Self {
        let millionths = millionths(share);
        let (min, max) = (min.as_nanos() * millionths, max.as_nanos() * millionths);
        // Twice nothing stays nothing: then no delay ever comes to the longest.
        let max = if min == 0 { 0 } else { max };
        let doublings = if max == 0 { 0 } else { log2_ceil(max.div_ceil(min)) };
        Self { min, max, doublings }
    }

    /// The sum of the first `delays` delays: how long after the first delivery the one after them comes.
    pub(super) fn wait(&self, delays: u64) -> Duration {
        let doubled = u32::try_from(delays).map_or(self.doublings, |delays| delays.min(self.doublings));
        let constant = u128::from(delays - u64::from(doubled));
        duration(self.doubled(doubled).saturating_add(self.max.saturating_mul(constant)))
    }

    /// `K(H) = #{k : t_k < H}`: the deliveries that come before `window` has passed, the first at its begin.
    ///
    /// `u64::MAX` where they would come without end, because no delay has any length.
    pub(super) fn burned(&self, window: Duration) -> u64 {
        let window = window.as_nanos() * PER_NANOSECOND;
        if window == 0 {
            return 0;
        }
        if self.max == 0 {
            return u64::MAX;
        }
        match window.checked_sub(self.doubled(self.doublings)) {
            None | Some(0) => u64::from(log2_ceil(window.div_ceil(self.min) + 1)),
            Some(rest) => {
                let constant = u64::try_from(rest.div_ceil(self.max)).unwrap_or(u64::MAX);
                constant.saturating_add(self.doublings.into())
            }
        }
    }

    /// The sum of the first `delays` of those that double: `m * (2^delays - 1)`, below twice the longest.
    fn doubled(&self, delays: u32) -> u128 {
        self.min * ((1 << delays) - 1)
    }
}

/// The smallest `n` with `2^n >= value`.
fn log2_ceil(value: u128) -> u32 {
    value.next_power_of_two().trailing_zeros()
}

/// A share that cannot be meant is refused by a rule; until then it counts as the nearest that can, NaN as none.
fn millionths(share: f64) -> u128 {
    (share * 1e6).round().clamp(1.0, 1e6) as u128
}

fn duration(time: u128) -> Duration {
    let nanoseconds = time / PER_NANOSECOND;
    let part = u32::try_from(nanoseconds % NANOSECONDS).unwrap_or_default();
    u64::try_from(nanoseconds / NANOSECONDS).map_or(Duration::MAX, |seconds| Duration::new(seconds, part))
}
