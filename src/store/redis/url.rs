//! The address of a server or of nodes of a cluster.

use redis::{ConnectionInfo, IntoConnectionInfo as _};

use super::config::InvalidRedis;
use crate::store::connect::unknown_parameter;

/// What `redis://user:password@host:port,host:port/database?parameter=value` says.
pub(super) struct Url {
    /// At least one.
    pub(super) nodes: Vec<ConnectionInfo>,
    pub(super) tls: bool,
    pub(super) prefix: Option<String>,
    pub(super) cluster: bool,
    pub(super) root_certificate: Option<Vec<u8>>,
}

impl Url {
    pub(super) fn of(url: &str) -> Result<Self, InvalidRedis> {
        let (scheme, rest) = url.split_once("://").ok_or_else(|| wrong("two slashes follow the scheme"))?;
        if !matches!(scheme, "redis" | "rediss") {
            return Err(wrong("the scheme is neither `redis` nor `rediss`"));
        }
        if rest.contains('#') {
            return Err(wrong("it takes no fragment; a `#` in a password is spelled %23"));
        }
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let mut parsed = Self {
            nodes: nodes(scheme, path)?,
            tls: scheme == "rediss",
            prefix: None,
            cluster: false,
            root_certificate: None,
        };
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            parsed.take(parameter)?;
        }
        Ok(parsed)
    }

    fn take(&mut self, parameter: &str) -> Result<(), InvalidRedis> {
        match parameter.split_once('=') {
            Some(("prefix", prefix)) => self.prefix = Some(prefix.to_owned()),
            Some(("cluster", "true")) => self.cluster = true,
            Some(("cluster", "false")) => self.cluster = false,
            Some(("cluster", _)) => return Err(wrong("`cluster` is neither `true` nor `false`")),
            Some(("ca", file)) => {
                let pem = std::fs::read(file).map_err(|source| InvalidRedis::Certificate { source })?;
                self.root_certificate = Some(pem);
            }
            Some((name, _)) => {
                return Err(wrong(unknown_parameter(name)));
            }
            None => return Err(wrong("a parameter has no value")),
        }
        Ok(())
    }
}

/// The driver reads one host of an address, so each host is given to it in an address of its own.
fn nodes(scheme: &str, path: &str) -> Result<Vec<ConnectionInfo>, InvalidRedis> {
    let (authority, database) = path.split_once('/').unwrap_or((path, ""));
    let (user, hosts) = authority.rsplit_once('@').map_or(("", authority), |(user, hosts)| (user, hosts));
    hosts
        .split(',')
        .map(|host| {
            let url = format!("{scheme}://{user}@{host}/{database}");
            url.into_connection_info()
                .map_err(|_| wrong("a host, a port, the user or the database's number is wrong"))
        })
        .collect()
}

fn wrong(what: impl Into<String>) -> InvalidRedis {
    InvalidRedis::Url { what: what.into() }
}
