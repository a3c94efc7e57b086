//! A store by its address, as an environment variable gives it.

use std::sync::Arc;

use super::{BoxError, Memory, Store};

const KNOWN: &str = "`memory:` or `datastore://project/database?namespace=..&kind=..`";

/// The store of an address. Nothing is dialled.
///
/// | address | store | feature |
/// |---|---|---|
/// | `memory:` | [`Memory`] | |
/// | `datastore://project/database?namespace=..&kind=..` | `Datastore` | `datastore` |
///
/// A database that is left out is `(default)`; both parameters may be left out. Parts are plain names:
/// nothing is percent-decoded.
///
/// ```
/// let store = pushonce::store::connect("memory:")?;
/// # let _: std::sync::Arc<dyn pushonce::Store> = store;
/// # Ok::<(), pushonce::store::ConnectError>(())
/// ```
///
/// # Errors
/// [`ConnectError`]: mend the address, or switch on the feature that it names. End the process: an
/// address does not mend itself.
pub fn connect(url: &str) -> Result<Arc<dyn Store>, ConnectError> {
    let (scheme, rest) = url.split_once(':').ok_or(ConnectError::Unknown { scheme: None })?;
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(Memory::new())),
        "memory" => Err(malformed("`memory:` takes nothing after its colon")),
        "datastore" => datastore(rest),
        _ => Err(ConnectError::Unknown { scheme: plain(scheme).map(str::to_owned) }),
    }
}

/// An address that names no store. The text repeats names only, never a value: an address may hold a password.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address begins with no scheme that is known.
    #[error("{} names no store: expected {KNOWN}", spelled(.scheme.as_deref()))]
    Unknown {
        /// The scheme, if the address has one.
        scheme: Option<String>,
    },
    /// The store is known, but not compiled in.
    #[error(
        "stores of the scheme `{scheme}` are not compiled in: switch on the feature `{feature}` of pushonce"
    )]
    NotCompiledIn {
        /// The scheme.
        scheme: &'static str,
        /// The cargo feature that has it.
        feature: &'static str,
    },
    /// A part of the address is wrong.
    #[error("the address of the store is malformed: {what}; expected {KNOWN}")]
    Malformed {
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// The store cannot be built of these names.
    #[error("the address names no store that can be")]
    Invalid {
        /// What the store says of it.
        #[source]
        source: BoxError,
    },
}

fn spelled(scheme: Option<&str>) -> String {
    scheme.map_or_else(
        || "the address has no scheme, so it".to_owned(),
        |scheme| format!("the scheme `{scheme}`"),
    )
}

fn malformed(what: impl Into<String>) -> ConnectError {
    ConnectError::Malformed { what: what.into() }
}

/// A short plain word, which is no secret.
fn plain(name: &str) -> Option<&str> {
    let fits = (1..=20).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '+');
    fits.then_some(name)
}

/// What follows the scheme of an address of the form `//place/name?parameter=value&..`.
#[cfg(feature = "datastore")]
struct Address<'a> {
    place: &'a str,
    /// Empty if left out.
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

#[cfg(feature = "datastore")]
impl<'a> Address<'a> {
    fn of(rest: &'a str) -> Result<Self, ConnectError> {
        let rest = rest.strip_prefix("//").ok_or_else(|| malformed("two slashes follow the scheme"))?;
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

    fn unknown(parameter: &str) -> ConnectError {
        malformed(plain(parameter).map_or_else(
            || "a parameter is unknown".to_owned(),
            |name| format!("the parameter `{name}` is unknown"),
        ))
    }
}

#[cfg(feature = "datastore")]
fn datastore(rest: &str) -> Result<Arc<dyn Store>, ConnectError> {
    let address = Address::of(rest)?;
    if address.place.is_empty() {
        return Err(malformed("the project is blank"));
    }
    let mut builder = super::Datastore::builder(address.place);
    if !address.name.is_empty() {
        builder = builder.database(address.name);
    }
    for (name, value) in &address.parameters {
        builder = match *name {
            "namespace" => builder.namespace(*value),
            "kind" => builder.kind(*value),
            _ => return Err(Address::unknown(name)),
        };
    }
    let store = builder.build().map_err(|error| ConnectError::Invalid { source: error.into() })?;
    Ok(Arc::new(store))
}

#[cfg(not(feature = "datastore"))]
fn datastore(_: &str) -> Result<Arc<dyn Store>, ConnectError> {
    Err(ConnectError::NotCompiledIn { scheme: "datastore", feature: "datastore" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        let error = connect(url).expect_err(url);
        // As an operator sees it: the error and its sources.
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ")
    }

    #[test]
    fn memory_is_a_store() {
        assert!(connect("memory:").is_ok());
        assert!(refusal("memory:x").contains("nothing after its colon"));
    }

    #[test]
    fn an_unknown_scheme_is_told_what_was_expected() {
        assert!(refusal("mongodb://u:pw@host/db").starts_with("the scheme `mongodb` names no store"));
        for url in ["", "memory", "/tmp/db", ":", "Pa55word!:x"] {
            assert!(refusal(url).contains("`memory:` or `datastore://"), "{url}");
        }
    }

    #[test]
    fn no_error_repeats_what_may_be_a_secret() {
        for url in [
            "pa55w0rd",
            "pa55w0rd:x",
            "mongodb://user:pa55w0rd@host/db",
            "datastore://user:pa55w0rd@p1/db",
            "datastore://p1/db?pa55w0rd",
            "datastore://p1/db?pa55w0rd=1",
            "datastore://p1/db?token=pa55w0rd",
        ] {
            assert!(!refusal(url).contains("pa55w0rd"), "{}", refusal(url));
        }
    }

    #[cfg(feature = "datastore")]
    #[test]
    fn datastore_takes_project_database_namespace_and_kind() {
        let described = |url| format!("{:?}", connect(url).unwrap());
        let full = described("datastore://p1/orders?namespace=blue&kind=claims");
        for part in ["\"p1\"", "\"orders\"", "\"blue\"", "\"claims\""] {
            assert!(full.contains(part), "{full}");
        }
        for url in ["datastore://p1", "datastore://p1/", "datastore://p1/(default)"] {
            assert!(described(url).contains("database: \"\""), "{url}");
        }
    }

    #[cfg(feature = "datastore")]
    #[test]
    fn a_wrong_part_of_a_datastore_address_is_named() {
        for (url, expected) in [
            ("datastore:p1", "two slashes"),
            ("datastore:///orders", "the project is blank"),
            ("datastore://p1/a/b", "`a/b` is not the id of a database"),
            ("datastore://p1/orders?", "blank"),
            ("datastore://p1/orders?kind=", "blank or has no value"),
            ("datastore://p1/orders?kind=a&kind=b", "given twice"),
            ("datastore://p1/orders?knd=a", "the parameter `knd` is unknown"),
            ("datastore://p1/orders?kind=__x__", "is not a kind"),
            ("datastore://p1/orders#x", "is not the id of a database"),
        ] {
            assert!(refusal(url).contains(expected), "{url}: {}", refusal(url));
        }
    }

    #[cfg(not(feature = "datastore"))]
    #[test]
    fn a_store_that_is_not_compiled_in_names_its_feature() {
        assert!(refusal("datastore://p1").contains("switch on the feature `datastore`"));
    }
}
