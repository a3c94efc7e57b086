//! The switch `PUSHONCE_DISABLED`: for tests, work runs unguarded and no store is asked.

use std::ffi::OsStr;
use std::sync::OnceLock;

/// The switch.
const SWITCH: &str = "PUSHONCE_DISABLED";
/// Cloud Run sets it in every container: where it is, messages are real.
const CLOUD_RUN: &str = "K_SERVICE";

/// A switch that cannot be obeyed. Nothing was started; mend the environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadSwitch {
    #[error("{SWITCH} is set on Cloud Run ({CLOUD_RUN} is set), where nothing may run unguarded: unset it")]
    OnCloudRun,
    #[error(
        "{SWITCH} is `{value}`: expected 1, true, yes or on to run unguarded, or 0, false, no or off to guard"
    )]
    Unclear { value: String },
}

/// Whether work runs unguarded in this process. The environment is read once.
///
/// # Errors
/// [`BadSwitch`]: refuse to start, or to run anything.
pub(crate) fn disabled() -> Result<bool, BadSwitch> {
    static DISABLED: OnceLock<Result<bool, BadSwitch>> = OnceLock::new();
    let read = || parsed(std::env::var_os(SWITCH).as_deref(), std::env::var_os(CLOUD_RUN).as_deref());
    DISABLED.get_or_init(read).clone()
}

fn parsed(switch: Option<&OsStr>, cloud_run: Option<&OsStr>) -> Result<bool, BadSwitch> {
    let value = switch.unwrap_or_default().to_string_lossy().trim().to_owned();
    match value.to_ascii_lowercase().as_str() {
        "" | "0" | "false" | "no" | "off" => Ok(false),
        "1" | "true" | "yes" | "on" if cloud_run.is_some_and(|name| !name.is_empty()) => {
            Err(BadSwitch::OnCloudRun)
        }
        "1" | "true" | "yes" | "on" => Ok(true),
        _ => Err(BadSwitch::Unclear { value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(value: &str) -> Result<bool, BadSwitch> {
        parsed(Some(OsStr::new(value)), None)
    }

    #[test]
    fn only_a_clear_yes_switches_the_guard_off() {
        assert_eq!(parsed(None, None), Ok(false));
        for no in ["", " ", "0", "false", "No", "OFF"] {
            assert_eq!(switch(no), Ok(false), "{no:?}");
        }
        for yes in ["1", "true", "Yes", "ON", " on "] {
            assert_eq!(switch(yes), Ok(true), "{yes:?}");
        }
        for unclear in ["2", "y", "disabled", "tru"] {
            assert_eq!(switch(unclear), Err(BadSwitch::Unclear { value: unclear.to_owned() }));
        }
    }

    #[test]
    fn on_cloud_run_it_is_refused() {
        let service = Some(OsStr::new("orders"));
        assert_eq!(parsed(Some(OsStr::new("1")), service), Err(BadSwitch::OnCloudRun));
        assert_eq!(parsed(Some(OsStr::new("0")), service), Ok(false));
        assert_eq!(parsed(None, service), Ok(false));
        assert_eq!(parsed(Some(OsStr::new("1")), Some(OsStr::new(""))), Ok(true));
    }
}
