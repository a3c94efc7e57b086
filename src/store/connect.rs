//! A store by its address, as an environment variable gives it.

use std::sync::Arc;

use super::{BoxError, Maintain, Memory, Store};

const KNOWN: &str = "`memory:`, `datastore://project/database`, `redis://host`, `rediss://host`, \
    `postgres://host/database`, `sqlite://file`, `mysql://host/database`, `s3://bucket/prefix` or `gs://bucket/prefix`";

/// The store of an address. Nothing is dialled.
///
/// | address | store | feature |
/// |---|---|---|
/// | `memory:` | [`Memory`] | |
/// | `datastore://project/database?namespace=..&kind=..` | `Datastore` | `datastore` |
/// | `redis://user:password@host:port/database?prefix=..` | `Redis` | `redis` |
/// | `rediss://..`, the same over TLS; `ca=file` names a root certificate | `Redis` | `redis` |
/// | `redis://host:port,host:port?cluster=true`, some nodes of a cluster | `Redis` | `redis` |
/// | `postgres://user:password@host:port/database?table=..` | `Sql<sqlx::Postgres>` | `postgres` |
/// | `mysql://user:password@host:port/database?table=..` | `Sql<sqlx::MySql>` | `mysql` |
/// | `sqlite://file?table=..` | `Sql<sqlx::Sqlite>` | `sqlite` |
/// | `s3://bucket/prefix?region=..&endpoint=..` | `Bucket` | `bucket-s3` |
/// | `gs://bucket/prefix?endpoint=..` | `Bucket` | `bucket-gcs` |
///
/// In an address of Datastore a database that is left out is `(default)`; both parameters may be left
/// out, and parts are plain names: nothing is percent-decoded.
///
/// A prefix of a bucket that is left out is `pushonce`. Credentials come from the environment as the
/// crate `object_store` reads them; an `endpoint` of `http://` is an emulator's, and only that is spoken
/// to without TLS (and, of `gs:`, without credentials).
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
    Ok(open(url)?)
}

/// The same store, with what an operator needs of it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use pushonce::store::{self, Filter, Page};
///
/// let store = store::open("memory:")?;
/// store.check().await?;
/// let done = Filter { prefix: "orders:".into(), ..Filter::default() };
/// assert!(store.list(&done, &Page::default()).await?.found.is_empty());
/// # Ok(()) }
/// ```
///
/// # Errors
/// As [`connect`].
pub fn open(url: &str) -> Result<Arc<dyn Maintain>, ConnectError> {
    let (scheme, rest) = url.split_once(':').ok_or(ConnectError::Unknown { scheme: None })?;
    /// The store of a driver, if it is compiled in.
    macro_rules! driver {
        ($scheme:literal, $feature:literal, $open:path) => {{
            #[cfg(feature = $feature)]
            {
                Ok(Arc::new($open(url)?))
            }
            #[cfg(not(feature = $feature))]
            {
                Err(ConnectError::NotCompiledIn { scheme: $scheme, feature: $feature })
            }
        }};
    }
    match scheme {
        "memory" if rest.is_empty() => Ok(Arc::new(Memory::new())),
        "memory" => Err(malformed("`memory:` takes nothing after its colon")),
        "datastore" => driver!("datastore", "datastore", super::Datastore::of_url),
        "redis" => driver!("redis", "redis", super::Redis::of_url),
        "rediss" => driver!("rediss", "redis", super::Redis::of_url),
        "postgres" | "postgresql" => driver!("postgres", "postgres", super::Sql::<sqlx::Postgres>::of_url),
        "mysql" | "mariadb" => driver!("mysql", "mysql", super::Sql::<sqlx::MySql>::of_url),
        "sqlite" => driver!("sqlite", "sqlite", super::Sql::<sqlx::Sqlite>::of_url),
        "s3" => driver!("s3", "bucket-s3", super::Bucket::of_s3_url),
        "gs" => driver!("gs", "bucket-gcs", super::Bucket::of_gs_url),
        "file" => Err(malformed(
            "a folder cannot replace an object on a condition, so two holders could both win; on one machine use `sqlite://file`",
        )),
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

pub(super) fn malformed(what: impl Into<String>) -> ConnectError {
    ConnectError::Malformed { what: what.into() }
}

/// A parameter that no store of the scheme knows.
#[cfg(any(
    feature = "datastore",
    feature = "redis",
    feature = "postgres",
    feature = "sqlite",
    feature = "mysql",
    feature = "bucket-s3",
    feature = "bucket-gcs"
))]
pub(super) fn unknown_parameter(name: &str) -> String {
    plain(name).map_or_else(
        || "a parameter is unknown".to_owned(),
        |name| format!("the parameter `{name}` is unknown"),
    )
}

/// A short plain word, which is no secret.
pub(super) fn plain(name: &str) -> Option<&str> {
    let fits = (1..=20).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c == '+');
    fits.then_some(name)
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
            assert!(refusal(url).contains("`memory:`, `datastore://"), "{url}");
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

    /// Each that this build does not have: a build of all features has nothing to show here.
    #[test]
    fn a_store_that_is_not_compiled_in_names_its_feature() {
        for (scheme, feature, is_in) in [
            ("datastore", "datastore", cfg!(feature = "datastore")),
            ("redis", "redis", cfg!(feature = "redis")),
            ("rediss", "redis", cfg!(feature = "redis")),
            ("postgres", "postgres", cfg!(feature = "postgres")),
            ("postgresql", "postgres", cfg!(feature = "postgres")),
            ("mysql", "mysql", cfg!(feature = "mysql")),
            ("mariadb", "mysql", cfg!(feature = "mysql")),
            ("sqlite", "sqlite", cfg!(feature = "sqlite")),
            ("s3", "bucket-s3", cfg!(feature = "bucket-s3")),
            ("gs", "bucket-gcs", cfg!(feature = "bucket-gcs")),
        ] {
            let opened = connect(&format!("{scheme}://host/place"));
            let missing = matches!(&opened, Err(ConnectError::NotCompiledIn { feature: named, .. }) if *named == feature);
            assert_eq!(missing, !is_in, "{scheme}");
            if let Err(error @ ConnectError::NotCompiledIn { .. }) = opened {
                assert!(error.to_string().contains(&format!("switch on the feature `{feature}`")), "{error}");
            }
        }
    }
}
