//! The settings that all verbs share, and what is refused when they are built.

use std::time::Duration;

use crate::store::record::Verb;

/// 15 minutes: longer than any push request may take, whose limit is 10 (the ack deadline).
pub const DEFAULT_LEASE: Duration = Duration::from_secs(15 * 60);
/// 7 days: as long as Pub/Sub keeps a message by default, and so may deliver it again.
pub const DEFAULT_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// A mutex waits this long for a live holder before it answers `InProgress`.
pub(crate) const MUTEX_WAIT: Duration = Duration::from_secs(5);
/// A renewed lease ends here, whatever the work does: Cloud Run's longest request.
const MAX_HOLD: Duration = Duration::from_secs(60 * 60);
/// Stores keep microseconds, and no store answers in less than this.
const SHORTEST: Duration = Duration::from_millis(1);
/// Over a century no store's timestamp is safe.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 24 * 60 * 60);

#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) verb: Verb,
    pub(crate) lease: Duration,
    pub(crate) ttl: Duration,
    pub(crate) renew: bool,
    pub(crate) max_hold: Duration,
    pub(crate) work_timeout: Option<Duration>,
    pub(crate) wait: Duration,
    pub(crate) cancel_safe: bool,
}

impl Settings {
    pub(crate) fn new(verb: Verb) -> Self {
        Self {
            verb,
            lease: DEFAULT_LEASE,
            ttl: DEFAULT_TTL,
            renew: false,
            max_hold: MAX_HOLD,
            work_timeout: None,
            wait: if verb == Verb::Mutex { MUTEX_WAIT } else { Duration::ZERO },
            cancel_safe: false,
        }
    }

    /// # Errors
    /// [`InvalidSetting`] for a duration that is zero or overflows.
    pub(crate) fn checked(&self) -> Result<(), InvalidSetting> {
        let Self { lease, ttl, max_hold, work_timeout, wait, .. } = *self;
        let limits = [("lease", lease), ("ttl", ttl), ("max_hold", max_hold)];
        for (name, value) in limits.into_iter().chain(work_timeout.map(|limit| ("work_timeout", limit))) {
            if value < SHORTEST || value > LONGEST {
                return Err(InvalidSetting { name, value });
            }
        }
        wait_checked("wait", wait)
    }
}

/// No wait is a wait that can be meant.
///
/// # Errors
/// [`InvalidSetting`] for one that overflows.
pub(crate) fn wait_checked(name: &'static str, value: Duration) -> Result<(), InvalidSetting> {
    if value > LONGEST { Err(InvalidSetting { name, value }) } else { Ok(()) }
}

/// A duration that cannot be meant. Nothing was started; mend the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {value:?}: expected at least a millisecond and at most a hundred years")]
pub struct InvalidSetting {
    name: &'static str,
    value: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn days(days: u64) -> Duration {
        Duration::from_secs(days * 86_400)
    }

    #[test]
    fn the_defaults_are_those_that_are_documented() {
        let lock = Settings::new(Verb::Lock);
        assert_eq!((lock.lease, lock.ttl), (Duration::from_secs(900), days(7)));
        assert_eq!((lock.max_hold, lock.wait), (Duration::from_secs(3_600), Duration::ZERO));
        assert_eq!((lock.renew, lock.work_timeout, lock.cancel_safe), (false, None, false));
        assert_eq!(Settings::new(Verb::AtMostOnce).wait, Duration::ZERO);
        assert_eq!(Settings::new(Verb::Mutex).wait, Duration::from_secs(5));
    }

    #[test]
    fn a_duration_is_a_millisecond_at_least_and_a_century_at_most_and_a_wait_may_be_none() {
        type Set = fn(&mut Settings, Duration);
        let sets: [Set; 4] = [
            |settings, value| settings.lease = value,
            |settings, value| settings.ttl = value,
            |settings, value| settings.max_hold = value,
            |settings, value| settings.work_timeout = Some(value),
        ];
        let (least, most, bit) = (Duration::from_millis(1), days(36_600), Duration::from_nanos(1));
        let with = |set: Set, value| {
            let mut settings = Settings::new(Verb::Lock);
            set(&mut settings, value);
            settings.checked()
        };
        for set in sets {
            assert!(with(set, least).is_ok() && with(set, most).is_ok());
            assert!(with(set, least - bit).is_err() && with(set, most + bit).is_err());
        }
        let wait: Set = |settings, value| settings.wait = value;
        assert!(with(wait, Duration::ZERO).is_ok() && with(wait, most).is_ok());
        assert!(with(wait, most + bit).is_err());
    }
}
