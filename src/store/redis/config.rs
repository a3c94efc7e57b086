//! How a Redis store is set up: an address and names, which are checked at once.

use std::fmt;
use std::time::Duration;

use redis::TlsCertificates;

use super::Redis;
use super::connection::Client;
use super::driver::Server;
use super::url::Url;
use crate::store::BoxError;
use crate::store::connect::ConnectError;

const PREFIX: &str = "pushonce";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than this nobody waits for an answer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Sets up a [`Redis`]. Nothing is checked or dialled before [`build`](Self::build).
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct RedisBuilder {
    url: String,
    prefix: Option<String>,
    cluster: bool,
    root_certificate: Option<Vec<u8>>,
    request_timeout: Duration,
}

impl RedisBuilder {
    pub(super) fn new(url: String) -> Self {
        Self { url, prefix: None, cluster: false, root_certificate: None, request_timeout: REQUEST_TIMEOUT }
    }

    /// What the names of all records begin with: 1 to 64 letters, digits, `-`, `_`, `.` or `:`.
    /// `pushonce` unless it is set here or in the address.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: Some(prefix.into()), ..self }
    }

    /// The servers of the address are nodes of a cluster. Any of them will do: they tell of the others.
    pub fn cluster(self) -> Self {
        Self { cluster: true, ..self }
    }

    /// The certificate that the server's must be signed by, as PEM, in place of the public authorities.
    /// For `rediss://`; Memorystore's in-transit encryption needs it.
    pub fn root_certificate(self, pem: impl Into<Vec<u8>>) -> Self {
        Self { root_certificate: Some(pem.into()), ..self }
    }

    /// The longest that one call may take, its connection included. 5 s unless set, at most 5 min; but
    /// the calls of a lease end after 5 s whatever is set here.
    pub fn request_timeout(self, limit: Duration) -> Self {
        Self { request_timeout: limit, ..self }
    }

    /// The store.
    ///
    /// # Errors
    /// [`InvalidRedis`]: mend the address, the name, the certificate or the timeout that it tells of.
    pub fn build(self) -> Result<Redis, InvalidRedis> {
        let url = Url::of(&self.url)?;
        let prefix = prefix(self.prefix.or(url.prefix).unwrap_or_else(|| PREFIX.to_owned()))?;
        let timeout = self.request_timeout;
        if timeout.is_zero() || timeout > LONGEST_TIMEOUT {
            return Err(InvalidRedis::RequestTimeout { limit: timeout });
        }
        let certificates = self.root_certificate.or(url.root_certificate);
        let certificates = certificates.map(|pem| TlsCertificates { client_tls: None, root_cert: Some(pem) });
        let nodes = url.nodes.iter().map(|node| node.addr().to_string()).collect();
        let server = if self.cluster || url.cluster {
            Server::cluster(url.nodes, certificates, timeout)
        } else {
            let [node] = <[_; 1]>::try_from(url.nodes).map_err(|_| InvalidRedis::SeveralHosts)?;
            Server::one(node, certificates, timeout)
        }
        .map_err(|error| InvalidRedis::Driver { source: error.into() })?;
        Ok(Redis { nodes, prefix, client: Client::new(server, url.tls, timeout) })
    }
}

impl Redis {
    /// The store of `redis://user:password@host:port/database?prefix=..&cluster=true`.
    pub(in crate::store) fn of_url(url: &str) -> Result<Self, ConnectError> {
        Self::new(url).map_err(|error| ConnectError::Invalid { source: error.into() })
    }
}

// The address may hold a password.
impl fmt::Debug for RedisBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { url: _, prefix, cluster, root_certificate: _, request_timeout } = self;
        f.debug_struct("RedisBuilder")
            .field("prefix", prefix)
            .field("cluster", cluster)
            .field("request_timeout", request_timeout)
            .finish_non_exhaustive()
    }
}

/// A Redis store that cannot be. Nothing was dialled, and no text repeats a value of the address.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidRedis {
    /// A part of the address is wrong.
    #[error(
        "the address is malformed: {what}; expected `redis://user:password@host:port/database?prefix=name`, or `rediss://` for TLS"
    )]
    Url {
        /// Which part, and what is wrong with it.
        what: String,
    },
    /// Several hosts are nodes of a cluster. Add `cluster=true`, or name one.
    #[error("the address names several hosts, which only a cluster has: add `cluster=true`, or name one")]
    SeveralHosts,
    /// The prefix is not one. Give another.
    #[error("`{prefix}` is not a prefix: expected 1 to 64 letters, digits, `-`, `_`, `.` or `:`")]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// The root certificate cannot be read. Give the path of a file in PEM form.
    #[error("the root certificate cannot be read")]
    Certificate {
        /// What the file system says.
        #[source]
        source: std::io::Error,
    },
    /// The timeout is zero or longer than anybody waits. Give one of 1 ms to 5 min.
    #[error("a request timeout of {limit:?} cannot be: expected 1 ms to 5 min")]
    RequestTimeout {
        /// The timeout as given.
        limit: Duration,
    },
    /// The driver takes the address or the certificate for impossible. Mend what it tells of.
    #[error("no client can be made of the address and its certificate")]
    Driver {
        /// What the driver says.
        #[source]
        source: BoxError,
    },
}

/// Plain characters only: no pattern in SCAN, no braces that would choose the slot.
fn prefix(prefix: String) -> Result<String, InvalidRedis> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    if prefix.is_empty() || prefix.len() > 64 || !prefix.chars().all(plain) {
        return Err(InvalidRedis::Prefix { prefix });
    }
    Ok(prefix)
}
