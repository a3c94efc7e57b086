//! An error with its sources, in one line, for a log.

use std::error::Error;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::key::{Key, hidden};

/// Nobody's chain is longer; one that leads back to itself ends here.
const LINKS: usize = 64;

/// The error and its sources.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> String {
    let told = || {
        let (mut text, mut source) = (error.to_string(), error.source());
        for _ in 1..LINKS {
            let Some(error) = source else { break };
            text = format!("{text}: {error}");
            source = error.source();
        }
        text
    };
    // A user's error may panic where it should say what it is, and the answer must go out all the same.
    catch_unwind(AssertUnwindSafe(told))
        .unwrap_or_else(|_| "an error that panics when it is shown".to_owned())
}

/// The error of that type, itself or the nearest of its sources.
pub(crate) fn find<'a, E: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a E> {
    let links = || {
        let mut at = Some(error);
        for _ in 0..LINKS {
            if let Some(found) = at?.downcast_ref() {
                return Some(found);
            }
            at = at?.source();
        }
        None
    };
    // A user's error may panic here too.
    catch_unwind(AssertUnwindSafe(links)).unwrap_or_default()
}

/// The same for a line about this key, which an error of a store or of a handler may name: as that
/// key's own display would.
pub(crate) fn chain_about(key: &Key, error: &(dyn Error + 'static)) -> String {
    hidden([key], &chain(error))
}

/// A text of somebody else's in a line for people: it can begin no line of its own, and colour none.
pub(crate) struct OneLine<'a>(pub(crate) &'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(char::is_control) {
            let plain = part.trim_end_matches(char::is_control);
            write!(f, "{plain}{}", part[plain.len()..].escape_default())?;
        }
        Ok(())
    }
}
