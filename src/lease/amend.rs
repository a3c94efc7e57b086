//! A record that is looked at, changed and swapped, until it is: for records that no claim holds while work runs.

use std::time::Duration;

use super::machine::Stamp;
use super::{Place, TRIES, pause};
use crate::store::record::{Id, Record};
use crate::store::{Standing, StoreError, Stored, Swap};

/// What is taken to stand before the store was asked.
#[derive(Debug)]
pub(crate) enum First {
    /// Nothing: a create is tried before any read.
    Nothing,
    /// This, as this process has written or read it.
    #[cfg_attr(not(feature = "submit"), expect(dead_code, reason = "only submission knows or asks for it"))]
    Is(Stored),
    /// Nobody knows: read.
    Unread,
}

/// What to do about what stands.
#[derive(Debug)]
pub(crate) enum Amend<T> {
    /// Write this, on the version of what was looked at.
    Write(Box<Record>, T),
    /// Write nothing.
    Leave(T),
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Amended<T> {
    /// What was decided last.
    pub(crate) value: T,
    /// What stands now, as far as this process knows.
    #[cfg_attr(
        not(any(feature = "submit", all(test, feature = "testing"))),
        expect(dead_code, reason = "only submission knows or asks for it")
    )]
    pub(crate) stands: Option<Stored>,
    /// Whether the store had to be read.
    #[cfg_attr(
        not(any(feature = "submit", all(test, feature = "testing"))),
        expect(dead_code, reason = "only submission knows or asks for it")
    )]
    pub(crate) read: bool,
}

impl Place {
    /// Decides on what stands, and swaps, until a decision is written or nothing is to be. A write whose
    /// answer was lost is known again by its token; one that was overwritten since, or that lands later,
    /// is decided anew, so `decide` has to know its own by something that later writers keep.
    ///
    /// # Errors
    /// [`StoreError`], of the store after some tries, or of `decide`. One that may pass says whether any
    /// of the writes may have landed, or may land later.
    pub(crate) async fn amend<T>(
        &self,
        first: First,
        mut decide: impl FnMut(Option<&Stored>, Stamp) -> Result<Amend<T>, StoreError>,
    ) -> Result<Amended<T>, StoreError> {
        let mut read = false;
        let mut faults = Faults::default();
        let mut standing = match first {
            First::Nothing => Standing::Absent,
            First::Is(stored) => Standing::Is(Box::new(stored)),
            First::Unread => Standing::Unknown,
        };
        // The write whose answer was lost, by its token, with what it was to say.
        let mut unanswered: Option<(Id, T)> = None;
        for tries in 0..=TRIES {
            let stands = match standing {
                Standing::Is(stored) => Some(*stored),
                Standing::Absent => None,
                Standing::Unknown => {
                    read = true;
                    match self.read().await {
                        Ok(stands) => stands,
                        Err(error) => {
                            faults.keep(error)?;
                            standing = Standing::Unknown;
                            pause(tries).await;
                            continue;
                        }
                    }
                }
            };
            if let Some((token, value)) = unanswered.take()
                && stands.as_ref().is_some_and(|stored| stored.record.token == token)
            {
                return Ok(Amended { value, stands, read });
            }
            let (next, value) = match decide(stands.as_ref(), self.stamp())? {
                Amend::Leave(value) => return Ok(Amended { value, stands, read }),
                Amend::Write(next, value) => (next, value),
            };
            // The last look finds what the last write has done, and writes nothing more.
            if tries == TRIES {
                break;
            }
            standing = match self.swap(stands.as_ref().map(|stored| &stored.version), &next).await {
                Ok(Swap::Written(version)) => {
                    let stands = Some(Stored { record: *next, version, age: Duration::ZERO });
                    return Ok(Amended { value, stands, read });
                }
                Ok(Swap::Lost(lost)) => {
                    // Whoever loses once has only met what stands.
                    if tries > 0 {
                        pause(tries).await;
                    }
                    lost
                }
                Err(error) => {
                    if error.may_have_written() {
                        unanswered = Some((next.token, value));
                    }
                    faults.keep(error)?;
                    pause(tries).await;
                    Standing::Unknown
                }
            };
        }
        Err(faults.over())
    }
}

/// The faults that were met, for the error in which they may end.
#[derive(Debug, Default)]
struct Faults {
    /// Whether a write may have landed, or may land later.
    may_have_written: bool,
    last: Option<StoreError>,
}

impl Faults {
    /// Keeps a fault that may pass, and gives back one that will not.
    fn keep(&mut self, fault: StoreError) -> Result<(), StoreError> {
        if !fault.is_transient() {
            return Err(fault);
        }
        self.may_have_written |= fault.may_have_written();
        self.last = Some(fault);
        Ok(())
    }

    fn over(self) -> StoreError {
        match self.last {
            None => StoreError::unavailable(format!("others wrote it first, {TRIES} times")),
            Some(last) if last.may_have_written() || !self.may_have_written => last,
            Some(last) => StoreError::Unavailable {
                what: "an earlier try may have been written".to_owned(),
                may_have_written: true,
                source: Some(last.into()),
            },
        }
    }
}

#[cfg(test)]
#[cfg(feature = "testing")]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::key::{Consumer, Key};
    use crate::store::chaos::{Chaos, Fault, On};
    use crate::store::record::Verb;
    use crate::store::{Memory, Store as _};
    use crate::time::system_clock;

    fn place() -> (Place, Arc<Chaos>) {
        let chaos = Chaos::new(Arc::new(Memory::new()));
        let key = Key::new(Consumer::default(), "k").unwrap();
        (Place { store: chaos.clone(), key, clock: system_clock() }, chaos)
    }

    /// Writes where nothing stands.
    async fn put(place: &Place) -> Result<Amended<&'static str>, StoreError> {
        let decide = |standing: Option<&Stored>, stamp| {
            let blank = Record::blank(Verb::Lock, Duration::ZERO, Duration::ZERO);
            Ok(match standing {
                Some(_) => Amend::Leave("found"),
                None => Amend::Write(Box::new(blank.stamped(stamp)), "written"),
            })
        };
        place.amend(First::Nothing, decide).await
    }

    /// Writes over whatever stands.
    async fn count(place: &Place) -> Result<Amended<u32>, StoreError> {
        let decide = |standing: Option<&Stored>, stamp| {
            let blank = || Record::blank(Verb::Lock, Duration::ZERO, Duration::ZERO);
            let found = standing.map_or_else(blank, |stored| stored.record.clone());
            let runs = found.runs + 1;
            Ok(Amend::Write(Box::new(Record { runs, ..found }.stamped(stamp)), runs))
        };
        place.amend(First::Unread, decide).await
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_whose_answer_was_lost_is_known_again_and_says_what_it_was_to_say() {
        for (fault, read) in [(None, false), (Some(Fault::LoseAnswer), true), (Some(Fault::LoseBefore), true)]
        {
            let (place, chaos) = place();
            if let Some(fault) = fault {
                chaos.next(On::Swap, fault);
            }
            let first = put(&place).await.unwrap();
            assert_eq!(
                (first.value, first.read, first.stands.is_some()),
                ("written", read, true),
                "{fault:?}"
            );
            let second = put(&place).await.unwrap();
            assert_eq!((second.value, second.read), ("found", false), "{fault:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_look_finds_what_the_last_write_has_done() {
        let (place, chaos) = place();
        for _ in 1..TRIES {
            chaos.next(On::Swap, Fault::LoseBefore);
        }
        chaos.next(On::Swap, Fault::LoseAnswer);
        assert_eq!(count(&place).await.unwrap().value, 1);
        assert_eq!(chaos.trips().swaps, u64::from(TRIES));
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_that_fails_is_tried_again_as_often_as_a_write() {
        let (place, chaos) = place();
        for _ in 0..TRIES {
            chaos.next(On::Read, Fault::Fail);
        }
        // The look after the last try is for what was written, and nothing was.
        assert!(count(&place).await.unwrap_err().is_transient());
        assert_eq!((chaos.trips().reads, chaos.trips().swaps), (u64::from(TRIES) + 1, 0));
        assert_eq!(count(&place).await.unwrap().value, 1);
    }

    #[tokio::test(start_paused = true)]
    async fn what_will_not_pass_is_not_tried_again() {
        for on in [On::Read, On::Swap] {
            let (place, chaos) = place();
            chaos.next(on, Fault::Refuse);
            assert!(!count(&place).await.unwrap_err().is_transient());
            assert_eq!(chaos.trips().reads + chaos.trips().swaps, if on == On::Read { 1 } else { 2 });
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_error_says_whether_any_of_the_writes_may_have_landed() {
        for (first, later, may_have_written) in [
            (Fault::Fail, Fault::Fail, false),
            (Fault::LoseBefore, Fault::Fail, true),
            (Fault::Fail, Fault::LoseBefore, true),
        ] {
            let (place, chaos) = place();
            chaos.next(On::Swap, first);
            chaos.always(On::Swap, later);
            let error = put(&place).await.unwrap_err();
            assert!(error.is_transient());
            assert_eq!(error.may_have_written(), may_have_written, "{first:?} {later:?}");
        }
    }

    /// Writes, but each of the first `times` somebody else has written between the look and the write.
    async fn overtaken(place: &Place, times: u32) -> (Result<Amended<()>, StoreError>, u32) {
        let blank =
            |stamp| Box::new(Record::blank(Verb::Lock, Duration::ZERO, Duration::ZERO).stamped(stamp));
        let mut looks = 0;
        let amended = place.amend(First::Unread, |standing, stamp| {
            looks += 1;
            if looks <= times {
                let seen = standing.map(|stored| &stored.version);
                let theirs = place.store.swap(&place.key, seen, &blank(place.stamp())).now_or_never();
                assert!(matches!(theirs, Some(Ok(Swap::Written(_)))));
            }
            Ok(Amend::Write(blank(stamp), ()))
        });
        (amended.await, looks)
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_loses_once_writes_at_once_on_what_stands() {
        let (place, _) = place();
        let began = tokio::time::Instant::now();
        let (amended, looks) = overtaken(&place, 1).await;
        amended.unwrap();
        assert_eq!((looks, began.elapsed()), (2, Duration::ZERO));
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_always_loses_waits_between_and_gives_up_and_has_written_nothing() {
        let (place, chaos) = place();
        let began = tokio::time::Instant::now();
        let (amended, looks) = overtaken(&place, u32::MAX).await;
        let error = amended.unwrap_err();
        assert!(error.is_transient() && !error.may_have_written());
        // Of each pair of writes the second is ours, and none follows the last look.
        assert_eq!((looks, chaos.trips().swaps), (TRIES + 1, u64::from(2 * TRIES + 1)));
        assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
    }
}
