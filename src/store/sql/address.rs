//! A SQL store by its address: our own parameters are taken out, the rest is the driver's.

use std::str::FromStr;
use std::time::Duration;

use sqlx::Connection as _;
use sqlx::pool::PoolOptions;

use super::Sql;
use super::config::SqlBuilder;
use super::dialect::{Asking, Dialect};
use crate::store::connect::{ConnectError, malformed, unknown_parameter};

/// A connection that idled longer is proved alive before it is used. Asking each time would cost each call a trip.
const FRESH: Duration = Duration::from_secs(1);
/// A connection that is older is replaced when it is next asked for.
const LIFETIME: Duration = Duration::from_secs(30 * 60);

/// Our own parameters.
#[derive(Default)]
struct Ours {
    table: Option<String>,
    connections: Option<u32>,
    purge_every: Option<u64>,
    asking: Option<Asking>,
}

impl<DB: Dialect> Sql<DB> {
    /// The store of `scheme://user:password@host:port/database?table=..`.
    pub(in crate::store) fn of_url(url: &str) -> Result<Self, ConnectError> {
        let (rest, ours) = split(url, DB::WHOLE, DB::PARAMETERS)?;
        let options = DB::options(&rest)?;
        let most = ours.connections.unwrap_or(DB::CONNECTIONS);
        let pool = move || {
            let pool = PoolOptions::new().max_connections(most).test_before_acquire(false);
            // Either would start the pool's upkeep, which in sqlx 0.9.0 can spin for ever on a miscounted
            // connection, and holds up the end of the process (sqlx #3645).
            let pool = pool.idle_timeout(None).max_lifetime(None);
            let pool = pool.before_acquire(|connection: &mut DB::Connection, meta| {
                Box::pin(async move {
                    let young = meta.age < LIFETIME;
                    if young && meta.idle_for > FRESH {
                        connection.ping().await?;
                    }
                    Ok(young)
                })
            });
            pool.connect_lazy_with(options)
        };
        let mut builder = SqlBuilder::new(Box::new(pool)).installs(DB::EMBEDDED.is_some());
        if let Some(table) = ours.table {
            builder = builder.table(table);
        }
        if let Some(seconds) = ours.purge_every {
            builder = builder.purge_every(Duration::from_secs(seconds));
        }
        if let Some(asking) = ours.asking {
            builder = builder.asking(asking);
        }
        builder.build().map_err(|error| ConnectError::Invalid { source: error.into() })
    }
}

/// The address without our parameters, and those.
fn split(url: &str, whole: bool, known: &[&str]) -> Result<(String, Ours), ConnectError> {
    if !url.contains("://") {
        return Err(malformed("two slashes follow the scheme"));
    }
    let mut ours = Ours::default();
    let Some((place, query)) = url.split_once('?') else { return Ok((url.to_owned(), ours)) };
    let mut theirs = Vec::new();
    for parameter in query.split('&') {
        match parameter.split_once('=') {
            Some(("table", value)) => once(&mut ours.table, "table", value)?,
            Some(("connections", value)) => once(&mut ours.connections, "connections", value)?,
            Some(("purge_every", value)) => once(&mut ours.purge_every, "purge_every", value)?,
            Some(("pooler", "transaction")) if whole => ours.asking = Some(Asking::Whole),
            Some(("pooler", "session")) if whole => ours.asking = Some(Asking::Prepared),
            Some(("pooler", _)) => {
                return Err(malformed("`pooler` is `transaction` or `session`, and PostgreSQL's alone"));
            }
            // `options[..]` is PostgreSQL's.
            Some((name, _)) if known.contains(&name.split('[').next().unwrap_or(name)) => {
                theirs.push(parameter);
            }
            name => {
                let name = name.map_or(parameter, |(name, _)| name);
                return Err(malformed(unknown_parameter(name)));
            }
        }
    }
    if ours.connections == Some(0) {
        return Err(malformed("`connections` is at least 1"));
    }
    let question = if theirs.is_empty() { "" } else { "?" };
    Ok((format!("{place}{question}{}", theirs.join("&")), ours))
}

/// Sets a parameter that was not set before.
fn once<T: FromStr>(place: &mut Option<T>, name: &str, value: &str) -> Result<(), ConnectError> {
    let parsed = value.parse().map_err(|_| malformed(format!("`{name}` is not a number")))?;
    match place.replace(parsed) {
        None => Ok(()),
        Some(_) => Err(malformed(format!("`{name}` is given twice"))),
    }
}

#[cfg(all(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[cfg(test)]
mod tests {
    use std::error::Error;

    use crate::store::connect;

    fn refusal(url: &str) -> String {
        let error = connect(url).expect_err(url);
        let shown = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
        shown.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    }

    #[test]
    fn a_sql_address_gives_its_own_parameters_to_the_store_and_the_rest_to_the_driver() {
        for url in [
            "postgres://u:pw@host:5432/db",
            "postgresql://host/db?sslmode=require&options[search_path]=x&table=ledger.claims&pooler=transaction&connections=3",
            "mysql://u:pw@host/db?table=claims&ssl-mode=disabled&purge_every=3600",
            "mariadb://u@host/db",
            "sqlite://orders.db",
            "sqlite:///var/lib/orders.db?table=claims",
        ] {
            assert!(connect(url).is_ok(), "{url}");
        }
        for (url, expected) in [
            ("postgres:host/db", "two slashes"),
            ("postgres://host/db?table=", "is not the name of a table"),
            ("postgres://host/db?table=A", "`A` is not the name of a table"),
            ("postgres://host/db?table=a&table=b", "`table` is given twice"),
            ("postgres://host/db?connections=0", "`connections` is at least 1"),
            ("postgres://host/db?connections=many", "`connections` is not a number"),
            ("postgres://host/db?purge_every=0", "a purge every 0ns cannot be"),
            ("postgres://host/db?pooler=statement", "`pooler` is `transaction` or `session`"),
            ("mysql://host/db?pooler=transaction", "PostgreSQL's alone"),
            ("postgres://host/db?tabel=claims", "the parameter `tabel` is unknown"),
            ("mysql://host/db?purge=60", "the parameter `purge` is unknown"),
            ("sqlite://orders.db?tabel=claims", "the parameter `tabel` is unknown"),
            ("sqlite://", "SQLite takes a file"),
            ("sqlite://:memory:", "`memory:` is the store in memory"),
            ("sqlite://orders.db?mode=ro", "no parameters of its own"),
        ] {
            assert!(refusal(url).contains(expected), "{url}: {}", refusal(url));
        }
        for url in [
            "postgres://u:pa55w0rd@host:port/db",
            "postgres://u:pa55w0rd/x@host/db",
            "postgres://u:pa55w0rd@host/db?sslmode=pa55w0rd",
            "postgres://u@host/db?passwrd=pa55w0rd",
            "postgres://u@host/db?pa55w0rd",
            "postgres://u@host/db?connections=pa55w0rd",
            "postgres://u@host/db?pooler=pa55w0rd",
            "mysql://u:pa55w0rd@host:port/db",
            "mysql://u:pa55w0rd@host/db?ssl-mode=pa55w0rd",
            "sqlite://x?key=pa55w0rd",
        ] {
            assert!(!refusal(url).contains("pa55w0rd"), "{}", refusal(url));
        }
        let described = format!("{:?}", connect("postgres://u:pa55w0rd@host/db?table=claims").unwrap());
        assert!(described.contains("claims") && !described.contains("pa55w0rd"), "{described}");
    }
}
