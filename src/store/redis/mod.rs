//! Redis and Valkey as a store: one hash for a record, and one script for every call.

mod config;
mod connection;
mod fault;
mod list;
mod script;
mod server;
mod url;

use std::fmt;

pub use self::config::{InvalidRedis, RedisBuilder};
use self::connection::Client;
use self::fault::Call;
use self::script::{Kept, Write};
use super::{
    BoxFuture, Filter, Listing, Maintain, Page, Record, Standing, Store, StoreError, Stored, Swap, Version,
    document,
};
use crate::key::Key;

/// The longest name of a record, in bytes, without the prefix. The document has the key in full beside it.
const NAME_LIMIT: usize = 256;

/// A [`Store`] in Redis 5 or newer, in Valkey, or in Memorystore; a single server or a cluster.
pub struct Redis {
    /// As the address names them.
    nodes: Vec<String>,
    prefix: String,
    client: Client,
}

impl Redis {
    /// The store at an address: see [`Redis`].
    ///
    /// # Errors
    /// [`InvalidRedis`]: mend the part of the address that it tells of.
    pub fn new(url: impl Into<String>) -> Result<Self, InvalidRedis> {
        Self::builder(url).build()
    }

    /// A store at that address, to be set up.
    pub fn builder(url: impl Into<String>) -> RedisBuilder {
        RedisBuilder::new(url.into())
    }

    /// The name of the key's record. A cluster chooses the node by what stands in the first braces, so
    /// the digits of the hash stand there, and no braces in the text of a key can choose one.
    fn name(&self, key: &Key) -> String {
        let name = key.stored_name(NAME_LIMIT);
        let (digits, rest) = name.split_at(4);
        format!("{}:{{{digits}}}{rest}", self.prefix)
    }

    async fn kept(&self, name: &str) -> Result<Option<Kept>, StoreError> {
        script::kept(self.client.call(Call::Read, |connection| script::run(connection, name, None)).await?)
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        self.kept(&self.name(key)).await?.map(|kept| stored(key, kept)).transpose()
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        let (name, document, token) = (self.name(key), document::encode(key, next)?, next.token.to_string());
        let write = Write {
            seen: seen.map_or(Ok(""), token_of)?,
            document: &document,
            token: &token,
            // A difference of two times of one clock; the server counts it from its own now.
            kept_ms: (next.expires.saturating_sub(next.written) / 1000).max(1),
        };
        let answer =
            self.client.call(Call::Write, |connection| script::run(connection, &name, Some(write))).await?;
        if answer.0 {
            return Ok(Swap::Written(Version::text(token)));
        }
        Ok(Swap::Lost(match script::kept(answer)? {
            Some(kept) => Standing::Is(Box::new(stored(key, kept)?)),
            None => Standing::Absent,
        }))
    }
}

fn stored(key: &Key, kept: Kept) -> Result<Stored, StoreError> {
    let Kept { document, version, age } = kept;
    Ok(Stored { record: document::decode(key, &document)?, version, age })
}

/// The token that a version is. A blank one would mean that nothing may stand.
fn token_of(version: &Version) -> Result<&str, StoreError> {
    version.as_text().filter(|token| !token.is_empty()).ok_or_else(|| StoreError::Refused {
        what: "the version is one of another store".to_owned(),
        source: None,
    })
}

impl Store for Redis {
    fn read<'a>(&'a self, key: &'a Key) -> BoxFuture<'a, Result<Option<Stored>, StoreError>> {
        Box::pin(self.read_now(key))
    }

    fn swap<'a>(
        &'a self,
        key: &'a Key,
        seen: Option<&'a Version>,
        next: &'a Record,
    ) -> BoxFuture<'a, Result<Swap, StoreError>> {
        Box::pin(self.swap_now(key, seen, next))
    }
}

impl Maintain for Redis {
    /// Asks for version and eviction once more, of every primary, and reads a key that does not exist
    /// by the script that a claim runs: it takes the permission to write.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            // Every name of a key has braces, so this one never is one.
            self.kept(&format!("{}:check", self.prefix)).await?;
            self.client.check().await
        })
    }

    /// Nothing: the server deletes each record when its retention is over.
    fn purge_expired(&self, _limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(self.list_now(filter, page))
    }
}

// An address may hold a password.
impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { nodes, prefix, client } = self;
        let cluster = client.is_cluster();
        f.debug_struct("Redis")
            .field("nodes", nodes)
            .field("prefix", prefix)
            .field("cluster", &cluster)
            .finish()
    }
}
