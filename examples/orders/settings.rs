//! What the service reads from its environment, and how it says what is wrong.

use std::env::VarError;
use std::error::Error;

use super::BoxError;

/// A variable without the blanks around it; one that is blank is not set.
pub(super) fn variable(name: &str) -> Result<Option<String>, BoxError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(VarError::NotPresent) => Ok(None),
        Err(VarError::NotUnicode(_)) => Err(format!("`{name}` is not UTF-8").into()),
    }
}

/// An error with its sources, in one line.
pub(super) fn chain(error: &(dyn Error + 'static)) -> String {
    let (mut text, mut source) = (error.to_string(), error.source());
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
