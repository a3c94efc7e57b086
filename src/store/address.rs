//! What an address consists of, for the stores whose driver reads none.

use super::connect::{ConnectError, malformed, unknown_parameter};

/// An address of the form `scheme://place/name?parameter=value&..`, for stores whose driver reads none.
pub(super) struct Address<'a> {
    pub(super) place: &'a str,
    /// Empty if left out.
    pub(super) name: &'a str,
    pub(super) parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Address<'a> {
    pub(super) fn of(url: &'a str) -> Result<Self, ConnectError> {
        let rest = url.split_once("://").ok_or_else(|| malformed("two slashes follow the scheme"))?.1;
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        if path.contains('@') {
            return Err(malformed("it takes no user and no password"));
        }
        let (place, name) = path.split_once('/').unwrap_or((path, ""));
        let mut parameters = Vec::new();
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let (name, value) = parameter
                .split_once('=')
                .filter(|(name, value)| !name.is_empty() && !value.is_empty())
                .ok_or_else(|| malformed("a parameter is blank or has no value"))?;
            if parameters.iter().any(|(other, _)| *other == name) {
                return Err(malformed("a parameter is given twice"));
            }
            parameters.push((name, value));
        }
        Ok(Self { place, name, parameters })
    }

    /// A parameter that no store of the scheme knows.
    pub(super) fn unknown(parameter: &str) -> ConnectError {
        malformed(unknown_parameter(parameter))
    }
}
