//! How a Datastore store is set up: names that are checked at once, and the emulator's address.

use std::sync::Arc;
use std::time::Duration;

use super::client::{Client, Server};
use super::{Datastore, Space};
use crate::store::address::Address;
use crate::store::connect::{ConnectError, malformed};
use crate::time::{Clock, system_clock};

const EMULATOR: &str = "DATASTORE_EMULATOR_HOST";
const DEFAULT_DATABASE: &str = "(default)";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than this nobody waits for an answer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Sets up a [`Datastore`]. Nothing is read, checked or dialled before [`build`](Self::build).
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct DatastoreBuilder {
    project: String,
    database: String,
    namespace: String,
    kind: String,
    emulator: Option<String>,
    stand_in: Option<String>,
    request_timeout: Duration,
    clock: Arc<dyn Clock>,
}

impl DatastoreBuilder {
    pub(super) fn new(project: String) -> Self {
        Self {
            project,
            database: DEFAULT_DATABASE.to_owned(),
            namespace: String::new(),
            kind: "pushonce".to_owned(),
            emulator: None,
            stand_in: None,
            request_timeout: REQUEST_TIMEOUT,
            clock: system_clock(),
        }
    }

    /// The database. `(default)` unless set.
    pub fn database(self, database: impl Into<String>) -> Self {
        Self { database: database.into(), ..self }
    }

    /// The namespace. The default namespace, which has an empty name, unless set.
    pub fn namespace(self, namespace: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), ..self }
    }

    /// The kind of the entities, on which a TTL policy for `expires_at` belongs. `pushonce` unless set.
    pub fn kind(self, kind: impl Into<String>) -> Self {
        Self { kind: kind.into(), ..self }
    }

    /// The emulator's address, in place of `DATASTORE_EMULATOR_HOST`; an empty text means no emulator.
    pub fn emulator(self, host: impl Into<String>) -> Self {
        Self { emulator: Some(host.into()), ..self }
    }

    /// The longest that one call may take, its access token and its connection included. 5 s unless
    /// set, at most 5 min; but the calls of a lease end after 5 s whatever is set here.
    pub fn request_timeout(self, limit: Duration) -> Self {
        Self { request_timeout: limit, ..self }
    }

    /// The clock by which ages are counted on an emulator that tells no time, and nowhere else.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// A server that stands in for Google Cloud at this URL, without credentials. For our own tests.
    #[doc(hidden)]
    pub fn endpoint(self, url: impl Into<String>) -> Self {
        Self { stand_in: Some(url.into()), ..self }
    }

    /// The store. Reads `DATASTORE_EMULATOR_HOST` unless [`emulator`](Self::emulator) was given.
    ///
    /// # Errors
    /// [`InvalidDatastore`]: mend the name, the address or the timeout that it tells of.
    pub fn build(self) -> Result<Datastore, InvalidDatastore> {
        let space = Space {
            project: project(self.project)?,
            database: database(self.database)?,
            namespace: namespace(self.namespace)?,
            kind: kind(self.kind)?,
        };
        if self.request_timeout.is_zero() || self.request_timeout > LONGEST_TIMEOUT {
            return Err(InvalidDatastore::RequestTimeout { limit: self.request_timeout });
        }
        let emulator = self.emulator.unwrap_or_else(|| std::env::var(EMULATOR).unwrap_or_default());
        let server = match (self.stand_in, emulator_url(&emulator)?) {
            (Some(url), _) => Server::StandIn(url),
            (None, Some(url)) => Server::Emulator(url),
            (None, None) => Server::Google,
        };
        let tells_no_time = matches!(server, Server::Emulator(_));
        let stand_in = tells_no_time.then_some(self.clock);
        Ok(Datastore { space, client: Client::new(server, self.request_timeout), stand_in })
    }
}

impl Datastore {
    /// The store of `datastore://project/database?namespace=..&kind=..`.
    pub(in crate::store) fn of_url(url: &str) -> Result<Self, ConnectError> {
        let address = Address::of(url)?;
        if address.place.is_empty() {
            return Err(malformed("the project is blank"));
        }
        let mut builder = Self::builder(address.place);
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
        builder.build().map_err(|error| ConnectError::Invalid { source: error.into() })
    }
}

/// A Datastore store that cannot be. Nothing was dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidDatastore {
    /// The project's id is not one. Give the id, not the project's display name.
    #[error("`{project}` is not the id of a project: expected letters, digits, `-`, `.`, `:` or `_`")]
    Project {
        /// The project as given.
        project: String,
    },
    /// The database's id is not one. Give `(default)` or its id.
    #[error(
        "`{database}` is not the id of a database: expected `(default)`, or at most 63 lower-case letters, digits and hyphens that begin with a letter"
    )]
    Database {
        /// The database as given.
        database: String,
    },
    /// The namespace's name is not one. Give another.
    #[error(
        "`{namespace}` is not a namespace: expected at most 100 letters, digits, `.`, `_` or `-`, not between double underscores"
    )]
    Namespace {
        /// The namespace as given.
        namespace: String,
    },
    /// The kind's name is not one. Give another.
    #[error(
        "`{kind}` is not a kind: expected 1 to 100 letters, digits, `.`, `_` or `-`, not between double underscores"
    )]
    Kind {
        /// The kind as given.
        kind: String,
    },
    /// The emulator's address is not one. Mend it, or unset it to use Google Cloud.
    #[error(
        "the emulator's address (DATASTORE_EMULATOR_HOST) is `{host}`: expected `host:port` or `[::1]:port`"
    )]
    Emulator {
        /// The address as given.
        host: String,
    },
    /// The request timeout is zero or too long.
    #[error("a request timeout of {limit:?} cannot be: expected more than zero and at most 5 min")]
    RequestTimeout {
        /// The timeout as given.
        limit: Duration,
    },
}

fn project(project: String) -> Result<String, InvalidDatastore> {
    let fits = (1..=100).contains(&project.len()) && all(&project, "-.:_");
    if fits { Ok(project) } else { Err(InvalidDatastore::Project { project }) }
}

fn database(database: String) -> Result<String, InvalidDatastore> {
    // The API takes the default database by an empty name only.
    if database == DEFAULT_DATABASE {
        return Ok(String::new());
    }
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let fits = database.len() <= 63
        && database.starts_with(|c: char| c.is_ascii_lowercase())
        && database.chars().all(plain);
    if fits { Ok(database) } else { Err(InvalidDatastore::Database { database }) }
}

fn namespace(namespace: String) -> Result<String, InvalidDatastore> {
    let fits = namespace.len() <= 100 && all(&namespace, "._-") && !reserved(&namespace);
    if fits { Ok(namespace) } else { Err(InvalidDatastore::Namespace { namespace }) }
}

fn kind(kind: String) -> Result<String, InvalidDatastore> {
    let fits = (1..=100).contains(&kind.len()) && all(&kind, "._-") && !reserved(&kind);
    if fits { Ok(kind) } else { Err(InvalidDatastore::Kind { kind }) }
}

fn all(name: &str, others: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c))
}

/// Datastore keeps the names between double underscores for itself.
fn reserved(name: &str) -> bool {
    name.len() >= 4 && name.starts_with("__") && name.ends_with("__")
}

/// The URL of an emulator; `None` if no address is given.
fn emulator_url(given: &str) -> Result<Option<String>, InvalidDatastore> {
    let address = given.trim();
    let address = address.strip_prefix("http://").unwrap_or(address).trim_end_matches('/');
    if given.trim().is_empty() {
        return Ok(None);
    }
    let invalid = || InvalidDatastore::Emulator { host: given.to_owned() };
    let (host, port) = address.rsplit_once(':').ok_or_else(invalid)?;
    let port: u16 = port.parse().map_err(|_| invalid())?;
    let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let fits = match bracketed {
        Some(host) => host.parse::<std::net::Ipv6Addr>().is_ok(),
        None => !host.is_empty() && all(host, "-._"),
    };
    if fits { Ok(Some(format!("http://{host}:{port}"))) } else { Err(invalid()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(project: &str) -> DatastoreBuilder {
        Datastore::builder(project).emulator("")
    }

    #[test]
    fn an_emulator_is_found_however_its_address_is_spelled() {
        let url = |given| emulator_url(given).unwrap();
        for spelling in
            ["127.0.0.1:8081", "http://127.0.0.1:8081", "127.0.0.1:8081/", "http://127.0.0.1:8081/"]
        {
            assert_eq!(url(spelling).as_deref(), Some("http://127.0.0.1:8081"), "{spelling}");
        }
        assert_eq!(url("[::1]:8081").as_deref(), Some("http://[::1]:8081"));
        assert_eq!(url("http://[::1]:8081/").as_deref(), Some("http://[::1]:8081"));
        assert_eq!(url("datastore_emulator:8081").as_deref(), Some("http://datastore_emulator:8081"));
        for unset in ["", "  "] {
            assert_eq!(url(unset), None);
        }
        for bad in
            ["localhost", "localhost:", ":8081", "::1:8081", "localhost:99999", "https://x:1", "/", "http://"]
        {
            assert!(emulator_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_explicit_emulator_goes_before_the_environment_and_an_empty_one_means_google() {
        let server = |host: &str| named("p1").emulator(host).build().unwrap().client.server().clone();
        assert_eq!(server("localhost:1"), Server::Emulator("http://localhost:1".to_owned()));
        assert_eq!(server(""), Server::Google);
    }

    #[test]
    fn names_are_checked_when_built() {
        for project in ["p1", "my-project-1", "example.com:my-project"] {
            assert!(named(project).build().is_ok(), "{project}");
        }
        for project in ["", " ", "my project", "p/1"] {
            assert!(matches!(named(project).build(), Err(InvalidDatastore::Project { .. })), "{project}");
        }
        for database in ["", "Orders", "1st", "a/b", &"a".repeat(64)] {
            let built = named("p1").database(database).build();
            assert!(matches!(built, Err(InvalidDatastore::Database { .. })), "{database}");
        }
        assert_eq!(named("p1").database("(default)").build().unwrap().space.database, "");
        assert_eq!(named("p1").database("orders-2").build().unwrap().space.database, "orders-2");
        for name in ["__x__", "a b", "é", &"n".repeat(101)] {
            let built = named("p1").namespace(name).build();
            assert!(matches!(built, Err(InvalidDatastore::Namespace { .. })), "{name}");
            let built = named("p1").kind(name).build();
            assert!(matches!(built, Err(InvalidDatastore::Kind { .. })), "{name}");
        }
        assert!(named("p1").namespace("").build().is_ok());
        assert!(named("p1").kind("").build().is_err());
        for limit in [Duration::ZERO, Duration::from_secs(301), Duration::MAX] {
            assert!(named("p1").request_timeout(limit).build().is_err(), "{limit:?}");
        }
    }
}
