//! Redis and Valkey as a store: one hash for a record, and one script for every call.

mod config;
mod connection;
mod driver;
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

/// A [`Store`] in Redis 5 or newer or in Valkey, Memorystore included; a single server or a cluster.
///
/// ```
/// # use pushonce::store::Redis;
/// let store = Redis::new("redis://10.0.0.3:6379/0?prefix=orders")?;
/// let cluster = Redis::builder("redis://app:secret@10.0.0.4:6379,10.0.0.5:6379").cluster().build()?;
/// # Ok::<(), pushonce::store::InvalidRedis>(())
/// ```
///
/// **When to choose it.** A call takes a fraction of a millisecond, and a duplicate costs one. Choose
/// it where a repeat after a failover can be borne, or is dropped by the sink (`lease.effect_id()`).
///
/// **What it guarantees.** All that the contract demands, for as long as the server keeps what it has
/// acknowledged: one holder of a key, and no write by a holder that was replaced.
///
/// **What it does not.** Redis replicates after it has answered, so a failover may lose an acknowledged
/// claim or done, and so may a restart without persistence (with `appendfsync everysec`: of the last
/// second). Then the key may be claimed again and its work run again. The old holder is fenced out all
/// the same: its version stands nowhere. WAIT is not used: it does not make a failover keep a write.
/// Where that is too little, choose Datastore or a database.
///
/// **What the server must be.** Each new connection asks by INFO, and so does
/// [`check`](Maintain::check): a version before 5 is refused, and so is a `maxmemory-policy` other than
/// `noeviction` (Memorystore's own is `volatile-lru`), since an evicted record lets a done key run
/// again. Where `maxmemory` is 0 nothing is ever evicted, and the policy does not count. Of a user that
/// may not ask (INFO), nothing is demanded. A server that is full refuses claims (503) and still tells
/// what is done; one that takes no writes at all (it cannot save, or lacks the replicas that it was told
/// to have) answers neither. A user needs `+evalsha +eval +time +exists +hmget +hset +hdel +pexpire +info +scan`
/// on `~prefix:*`.
///
/// **How it swaps.** One hash for a record (`document`, `token`, and `written_us` by the server's clock),
/// and one script for each call, which compares the token and brings what stands when it loses. Never
/// from a replica: the script ends in a write, also when it only reads. Each write counts the hash's
/// time to live anew, from the record's own retention. Ages are the server's; after a failover those of
/// two servers' clocks, so let them keep time.
///
/// **Nothing is dialled when it is built.** The first call dials, once for all callers, and calls share
/// that connection. It is replaced, by the next call, when it is lost, gave no answer, or leads to a server that
/// is loading or no primary any more. **Each call makes one attempt**, bounded by
/// [`request_timeout`](RedisBuilder::request_timeout); only on a cluster the driver follows slots that
/// have moved, and sends again what a lost node left open: that meets its own write and changes nothing,
/// but every fault of a write leaves open there whether it was written.
///
/// **The address** is `redis://user:password@host:port/database`, where all but the host may be left out
/// and `%23` stands for `#`; `rediss://` speaks TLS. Parameters: `prefix` (what all names begin with),
/// `cluster=true` (then several hosts may be named, with commas between; the others are learned from
/// any of them), `ca` (a PEM file: the root that the server's certificate must have, in place of the
/// public ones; Memorystore has its own).
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
    /// Reads a key that does not exist by the script that a claim runs, which takes the permission to
    /// write, and asks for version and eviction anew, every primary that is connected.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async {
            // Every name of a key has braces, so this one never is one.
            self.kept(&format!("{}:check", self.prefix)).await?;
            self.client.check().await
        })
    }

    /// Nothing: the server deletes each record by itself when its retention is over.
    fn purge_expired(&self, _limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(std::future::ready(Ok(0)))
    }

    /// By SCAN, node by node. What a node has that is out is left out.
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
