//! `PUSHONCE_DISABLED`: a loud pass-through for tests of a handler, refused where it would be dangerous.

use std::sync::OnceLock;

const SWITCH: &str = "PUSHONCE_DISABLED";
/// Cloud Run sets it in every service.
const SERVICE: &str = "K_SERVICE";

/// `PUSHONCE_DISABLED` cannot be meant. Nothing was run; correct the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Misplaced {
    /// Set on Cloud Run, where every duplicate would run again.
    #[error("`PUSHONCE_DISABLED` is set where `K_SERVICE` is: it is for tests only; unset it")]
    Production,
    /// Neither on nor off.
    #[error("`PUSHONCE_DISABLED` is {value:?}: expected 1, true, yes or on, or 0, false, no, off or nothing")]
    Value {
        /// What it is set to.
        value: String,
    },
}

/// Whether guarding is switched off; read once per process.
pub(crate) fn disabled() -> Result<bool, Misplaced> {
    static DISABLED: OnceLock<Result<bool, Misplaced>> = OnceLock::new();
    DISABLED
        .get_or_init(|| {
            let switch = std::env::var_os(SWITCH).unwrap_or_default();
            let disabled = parse(&switch.to_string_lossy(), std::env::var_os(SERVICE).is_some());
            if disabled == Ok(true) {
                tracing::warn!("PUSHONCE_DISABLED is set: nothing is guarded, every duplicate runs");
            }
            disabled
        })
        .clone()
}

fn parse(switch: &str, on_cloud_run: bool) -> Result<bool, Misplaced> {
    let value = switch.trim();
    match value.to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "no" | "off" => Ok(false),
        "1" | "true" | "yes" | "on" if on_cloud_run => Err(Misplaced::Production),
        "1" | "true" | "yes" | "on" => Ok(true),
        _ => Err(Misplaced::Value { value: value.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_switch_is_on_off_or_refused() {
        for on in ["1", "true", "YES", " on "] {
            assert_eq!(parse(on, false), Ok(true), "{on}");
            assert_eq!(parse(on, true), Err(Misplaced::Production), "{on}");
        }
        for off in ["", "0", "False", "no", "off"] {
            assert_eq!(parse(off, true), Ok(false), "{off:?}");
        }
        assert!(matches!(parse("maybe", false), Err(Misplaced::Value { .. })));
    }
}
