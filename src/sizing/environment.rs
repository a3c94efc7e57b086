//! The sizing as the environment says it: what the Terraform module sets, from the same locals as the subscription.

use std::ffi::OsString;
use std::time::Duration;

use super::Sizing;

const SWITCH: &str = "PUSHONCE_SIZING";
const SECONDS: &str = "whole seconds above zero";
const ATTEMPTS: &str = "a whole number above zero";

impl Sizing {
    /// The sizing of this process's environment.
    ///
    /// | variable | default |
    /// |---|---|
    /// | `LEASE_SECONDS` | 900 |
    /// | `TTL_SECONDS` | 604800 |
    /// | `REQUEST_TIMEOUT_SECONDS` | 570 |
    /// | `ACK_DEADLINE_SECONDS` | 600 |
    /// | `MIN_BACKOFF_SECONDS` | 10 |
    /// | `MAX_BACKOFF_SECONDS` | 600 |
    /// | `MAX_DELIVERY_ATTEMPTS` | 12 |
    /// | `RETENTION_SECONDS` | 604800 |
    /// | `PUSHONCE_SIZING` | nothing; `warn` makes it [`warn_only`](Self::warn_only) |
    ///
    /// A variable that is blank is not set.
    ///
    /// # Errors
    /// [`InvalidVariable`] for a value that cannot be read. Do not start; correct the environment.
    pub fn from_env() -> Result<Self, InvalidVariable> {
        Self::from_variables(|name| std::env::var_os(name))
    }

    /// The sizing of an environment that is somebody else's: the variables of [`from_env`](Self::from_env),
    /// as `lookup` knows them.
    ///
    /// # Errors
    /// [`InvalidVariable`] for a value that cannot be read.
    pub fn from_variables(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Self, InvalidVariable> {
        let mut sizing = Self::default();
        for (name, field) in [
            ("LEASE_SECONDS", &mut sizing.lease),
            ("TTL_SECONDS", &mut sizing.ttl),
            ("REQUEST_TIMEOUT_SECONDS", &mut sizing.request_timeout),
            ("ACK_DEADLINE_SECONDS", &mut sizing.ack_deadline),
            ("MIN_BACKOFF_SECONDS", &mut sizing.min_backoff),
            ("MAX_BACKOFF_SECONDS", &mut sizing.max_backoff),
            ("RETENTION_SECONDS", &mut sizing.retention),
        ] {
            let seconds = |text: &str| text.parse().ok().filter(|seconds| *seconds > 0);
            if let Some(seconds) = variable(&lookup, name, SECONDS, seconds)? {
                *field = Duration::from_secs(seconds);
            }
        }
        let attempts = |text: &str| text.parse().ok().filter(|attempts| *attempts > 0);
        if let Some(attempts) = variable(&lookup, "MAX_DELIVERY_ATTEMPTS", ATTEMPTS, attempts)? {
            sizing.max_delivery_attempts = attempts;
        }
        let warn = |text: &str| text.eq_ignore_ascii_case("warn").then_some(());
        sizing.warn_only = variable(&lookup, SWITCH, "`warn` or nothing", warn)?.is_some();
        Ok(sizing)
    }
}

/// A variable without the blanks around it; one that is blank is not set.
fn variable<T>(
    lookup: impl Fn(&str) -> Option<OsString>,
    name: &'static str,
    expected: &'static str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, InvalidVariable> {
    let Some(value) = lookup(name) else { return Ok(None) };
    let text = value.to_str().map(str::trim);
    if text == Some("") {
        return Ok(None);
    }
    match text.and_then(read) {
        Some(read) => Ok(Some(read)),
        None => Err(InvalidVariable { name, value, expected }),
    }
}

/// A variable of the environment that cannot be read. Do not start the service; correct it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is {value:?}: expected {expected}")]
pub struct InvalidVariable {
    name: &'static str,
    /// Printed escaped, so that what is not UTF-8 shows, and a line break breaks no line.
    value: OsString,
    expected: &'static str,
}

impl InvalidVariable {
    /// The name of the variable.
    pub fn name(&self) -> &'static str {
        self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str) -> Result<Sizing, String> {
        let lookup = |asked: &str| (asked == name).then(|| OsString::from(value));
        Sizing::from_variables(lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn each_variable_is_a_field() {
        let s = Duration::from_secs;
        let d = Sizing::default();
        for (name, expected) in [
            ("LEASE_SECONDS", d.lease(s(7))),
            ("TTL_SECONDS", d.ttl(s(7))),
            ("REQUEST_TIMEOUT_SECONDS", d.request_timeout(s(7))),
            ("ACK_DEADLINE_SECONDS", d.ack_deadline(s(7))),
            ("MIN_BACKOFF_SECONDS", d.min_backoff(s(7))),
            ("MAX_BACKOFF_SECONDS", d.max_backoff(s(7))),
            ("RETENTION_SECONDS", d.retention(s(7))),
            ("MAX_DELIVERY_ATTEMPTS", d.max_delivery_attempts(7)),
        ] {
            assert_eq!(read(name, " 7\n"), Ok(expected), "{name}");
            assert_eq!(read(name, " "), Ok(d), "{name} is blank");
            for bad in ["0", "-1", "1.5", "15m", "ten", "18446744073709551616", "1\n2"] {
                let error = read(name, bad).unwrap_err();
                let named = format!("`{name}` is {bad:?}: expected ");
                assert!(error.starts_with(&named) && error.ends_with(" above zero"), "{error}");
                assert_eq!(error.lines().count(), 1, "{error}");
            }
        }
        assert_eq!(Sizing::from_variables(|_| None), Ok(d));
    }

    #[test]
    fn the_switch_is_warn_or_nothing() {
        for on in ["warn", " Warn "] {
            assert_eq!(read(SWITCH, on), Ok(Sizing::default().warn_only()));
        }
        for bad in ["off", "1", "warning"] {
            let error = read(SWITCH, bad).unwrap_err();
            assert_eq!(error, format!("`PUSHONCE_SIZING` is {bad:?}: expected `warn` or nothing"));
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_text_is_named_and_shown() {
        use std::os::unix::ffi::OsStringExt as _;

        let error = Sizing::from_variables(|name| {
            (name == "TTL_SECONDS").then(|| OsString::from_vec(vec![b'7', 0xff]))
        });
        let error = error.unwrap_err();
        assert_eq!(error.name(), "TTL_SECONDS");
        assert_eq!(error.to_string(), "`TTL_SECONDS` is \"7\\xFF\": expected whole seconds above zero");
    }
}
