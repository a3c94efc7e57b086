//! The closed form against the definition, delay by delay, and what no number may do to it.

use std::time::Duration;

use proptest::prelude::*;
use pushonce::sizing::{Rule, Sizing};

/// The time of each delivery after the first, in millionths of a nanosecond, if every delay is cut to a share.
struct Deliveries {
    at: u128,
    delay: u128,
    longest: u128,
}

impl Deliveries {
    fn of(sizing: &Sizing, millionths: u32) -> Self {
        let cut = |time: Duration| time.as_nanos() * u128::from(millionths);
        Self { at: 0, delay: cut(sizing.min_backoff), longest: cut(sizing.max_backoff) }
    }
}

impl Iterator for Deliveries {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        let at = self.at;
        self.at += self.delay.min(self.longest);
        self.delay = self.longest.min(self.delay.saturating_mul(2));
        Some(at)
    }
}

fn burned(sizing: &Sizing, millionths: u32) -> u64 {
    let window = (sizing.lease * sizing.holders_ahead).as_nanos() * 1_000_000;
    Deliveries::of(sizing, millionths).take_while(|at| *at < window).count() as u64
}

fn nth(sizing: &Sizing, millionths: u32, n: u64) -> Duration {
    let at = Deliveries::of(sizing, millionths).nth(usize::try_from(n).unwrap()).unwrap() / 1_000_000;
    Duration::from_nanos(u64::try_from(at).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    #[test]
    fn the_closed_form_counts_what_the_delays_add_up_to(
        min in 100_u64..700_000, max in 100_u64..700_000, lease in 0_u64..8_000_000, holders in 0_u32..4,
        // In whole seconds windows end at a delivery far more often.
        whole in any::<bool>(), millionths in 20_000_u32..=1_000_000, attempts in 0_u32..200,
    ) {
        let time = |ms: u64| if whole { Duration::from_secs((ms / 1000).max(1)) } else { Duration::from_millis(ms) };
        let sizing = Sizing::default()
            .lease(time(lease)).min_backoff(time(min)).max_backoff(time(max))
            .holders_ahead(holders).floor_ratio(f64::from(millionths) / 1e6).max_delivery_attempts(attempts);
        let verdict = sizing.verdict();
        prop_assert_eq!(verdict.burned_exact(), burned(&sizing, 1_000_000));
        prop_assert_eq!(verdict.burned(), burned(&sizing, millionths));
        prop_assert_eq!(verdict.needed(), verdict.burned() + 2);
        prop_assert_eq!(verdict.taken_over(), nth(&sizing, 1_000_000, verdict.burned_exact()));
        prop_assert_eq!(verdict.last_attempt(), nth(&sizing, millionths, u64::from(attempts).saturating_sub(1)));
        let all = nth(&sizing, 1_000_000, attempts.into()) + sizing.ack_deadline * attempts;
        prop_assert_eq!(verdict.all_attempts(), all);
    }

    #[test]
    fn no_number_overflows_or_panics(
        times in any::<[(u64, u32); 7]>(), counts in any::<[u32; 3]>(), ratio in any::<f64>(),
        extreme in 0_usize..7,
    ) {
        let mut times = times.map(|(seconds, nanos)| Duration::new(seconds, nanos % 1_000_000_000));
        times[extreme] = if counts[0] % 2 == 0 { Duration::MAX } else { Duration::ZERO };
        let [lease, ttl, request, ack, min, max, retention] = times;
        let sizing = Sizing::default()
            .lease(lease).ttl(ttl).request_timeout(request).ack_deadline(ack).min_backoff(min).max_backoff(max)
            .retention(retention).max_delivery_attempts(counts[0]).holders_ahead(counts[1])
            .real_failures(counts[2]).floor_ratio(ratio);
        let verdict = sizing.verdict();
        prop_assert!(verdict.burned_exact() <= verdict.burned() && verdict.burned() <= verdict.needed());
        prop_assert!(verdict.taken_over() >= verdict.window());
        prop_assert!(verdict.to_string().lines().count() > 10);
    }
}

#[test]
fn a_message_without_a_backoff_burns_attempts_without_end() {
    let none = Sizing::default().min_backoff(Duration::ZERO);
    for none in [none, none.max_backoff(Duration::ZERO), Sizing::default().max_backoff(Duration::ZERO)] {
        let verdict = none.verdict();
        assert_eq!(
            (verdict.burned_exact(), verdict.burned(), verdict.needed()),
            (u64::MAX, u64::MAX, u64::MAX)
        );
        assert_eq!(verdict.taken_over(), verdict.window());
        let rules: Vec<_> = verdict.findings().iter().map(|finding| finding.rule()).collect();
        assert!(rules.contains(&Rule::Attempts) && rules.contains(&Rule::Backoff), "{rules:?}");
        // With nobody ahead nothing is burned.
        assert_eq!(none.holders_ahead(0).verdict().needed(), 2);
    }
}

/// Without a retry policy only the push backoff is left, 100 ms to 60 s.
#[test]
fn the_push_backoff_alone_burns_24() {
    let alone =
        Sizing::default().min_backoff(Duration::from_millis(100)).max_backoff(Duration::from_secs(60));
    assert_eq!(alone.verdict().burned_exact(), 24);
}

#[test]
fn a_ratio_that_is_no_share_is_refused() {
    for bad in [0.0, -0.5, 1.000_001, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let findings = Sizing::default().floor_ratio(bad).verdict().findings().to_vec();
        assert!(findings.iter().any(|finding| finding.rule() == Rule::Backoff), "{bad}: {findings:?}");
    }
    assert!(Sizing::default().floor_ratio(1.0).check().is_ok());
}
