//! Waivers: the laws that a store cannot keep, by name and with a reason, and never one of the promise.

use super::{Breach, LAWS, Law, must};

/// A law that a store cannot keep, and why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiver {
    /// The name of the law.
    pub law: &'static str,
    /// Why the store cannot keep it, and what its users have instead.
    pub reason: &'static str,
}

/// Why the law is waived, if it is. All waivers are looked at, whichever law is asked for, so that a
/// wrong one is not overlooked.
pub(super) fn reason(law: &Law, waivers: &[Waiver]) -> Result<Option<&'static str>, Breach> {
    for Waiver { law: name, reason } in waivers {
        let known = LAWS.iter().find(|law| law.name == *name);
        let known =
            known.ok_or_else(|| Breach::new(format!("`{name}` is waived, and no law has that name")))?;
        must!(
            known.is_waivable(),
            "`{name}` cannot be waived: it is about who holds a key, who may write, or whose write it was"
        );
        must!(!reason.trim().is_empty(), "`{name}` is waived without a reason");
    }
    Ok(waivers.iter().find(|waiver| waiver.law == law.name).map(|waiver| waiver.reason))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::broken::paused;
    use super::super::flawed::{Flaw, Flawed};
    use super::super::{LAWS, Law, Subject};
    use super::Waiver;
    use crate::key::Key;
    use crate::store::{BoxFuture, Store};
    use crate::time::Clock;

    const CLOCK: &str = "a_client_clock_decides_nothing";
    const OTHER: &str = "a_released_claim_is_dead";

    /// A store whose ages are by its clients' clocks, what it waives, and what it was told.
    struct Waiving(Arc<Flawed>, &'static [Waiver], Mutex<Vec<String>>);

    impl Subject for Waiving {
        fn store(&self) -> Arc<dyn Store> {
            self.0.clone()
        }

        fn forget<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, ()> {
            self.0.memory.forget(key);
            Box::pin(async {})
        }

        fn waives(&self) -> &'static [Waiver] {
            self.1
        }

        fn clock(&self) -> Arc<dyn Clock> {
            self.0.clock.clone()
        }

        fn passed(&self, law: &Law) {
            self.2.lock().unwrap().push(format!("{} passed", law.name()));
        }

        fn waived(&self, law: &Law, reason: &str) {
            self.2.lock().unwrap().push(format!("{} waived: {reason}", law.name()));
        }
    }

    /// What the law that the store breaks and another come to, and what the store is told of them.
    fn checked(waivers: &'static [Waiver]) -> (Vec<Result<(), String>>, Vec<String>) {
        paused().block_on(async {
            let flawed = Arc::new(Flawed::new(Some(Flaw::AgesByClients)));
            let subject = Arc::new(Waiving(flawed, waivers, Mutex::default()));
            let mut results = Vec::new();
            for name in [CLOCK, OTHER] {
                let law = LAWS.iter().find(|law| law.name() == name).unwrap();
                results.push(law.check(subject.clone()).await.map_err(|breach| breach.to_string()));
            }
            let told = subject.2.lock().unwrap().clone();
            (results, told)
        })
    }

    #[test]
    fn a_waived_law_is_not_run_and_never_told_as_passed() {
        let (results, told) = checked(&[Waiver { law: CLOCK, reason: "it has none" }]);
        assert_eq!(results, [Ok(()), Ok(())]);
        assert_eq!(told, [format!("{CLOCK} waived: it has none"), format!("{OTHER} passed")]);
        let (results, told) = checked(&[]);
        assert!(results[0].is_err() && results[1].is_ok(), "{results:?}");
        assert_eq!(told, [format!("{OTHER} passed")]);
    }

    #[test]
    fn a_wrong_waiver_breaks_every_law() {
        for (waivers, said) in [
            (&[Waiver { law: "a_client_clock", reason: "it has none" }], "no law has that name"),
            (&[Waiver { law: "of_many_claims_one_wins", reason: "too hard" }], "cannot be waived"),
            (&[Waiver { law: CLOCK, reason: " " }], "without a reason"),
        ] {
            let (results, told) = checked(waivers);
            let refused =
                |result: &Result<(), String>| result.as_ref().is_err_and(|text| text.contains(said));
            assert!(results.iter().all(refused), "{waivers:?}: {results:?}");
            assert!(told.is_empty(), "{told:?}");
        }
    }

    #[test]
    fn no_law_of_the_promise_can_be_waived() {
        let waivable: Vec<_> = LAWS.iter().filter(|law| law.is_waivable()).map(Law::name).collect();
        // Whoever adds one: it may cost the store's users time or room, never exclusion, fencing or a lost answer.
        let right = [
            "data_at_the_limit_comes_back",
            CLOCK,
            "a_list_brings_every_key_once",
            "a_list_brings_what_its_filter_takes",
            "a_record_that_is_not_understood_hides_no_other",
        ];
        assert_eq!(waivable, right);
    }
}
