//! Object storage as a store: one JSON object for each key, one conditional PUT to swap it, one GET to read it.

mod client;
mod config;
mod document;
mod fault;
mod list;
mod names;
mod open;
mod url;
mod version;
mod wire;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
#[cfg(feature = "bucket-s3")]
use object_store::aws::AmazonS3Builder;
#[cfg(feature = "bucket-gcs")]
use object_store::gcp::GoogleCloudStorageBuilder;
use tokio::sync::OnceCell;

use self::client::{Client, Credentials, Object};
pub use self::config::{BucketBuilder, InvalidBucket};
use self::names::Names;
use self::open::Place;
use super::{BoxFuture, Record, Standing, Store, StoreError, Stored, Swap, Version};
use crate::key::Key;
use crate::time::Clock;

/// How coarse every time is that a server tells.
const GRAIN: Duration = Duration::from_secs(1);

/// A [`Store`] in a bucket of S3 or Google Cloud Storage, through the crate `object_store`.
///
/// ```
/// # #[cfg(feature = "bucket-s3")] {
/// use object_store::aws::AmazonS3Builder;
/// use pushonce::store::Bucket;
///
/// let s3 = AmazonS3Builder::from_env().with_region("eu-central-1").with_bucket_name("orders-ledger");
/// let store = Bucket::s3(s3).prefix("pushonce").build()?;
/// # }
/// # Ok::<(), pushonce::store::InvalidBucket>(())
/// ```
///
/// **When to choose it.** On the submit side, where a key is written a few times in its life and a
/// bucket is all there is to run. Under a layer it is right for slow work at a low rate: each write is
/// a PUT of some ten milliseconds, and paid for. **Google Cloud Storage takes about one write per
/// second of one object**, and a claim and its completion are two: work that is done within a second of
/// its claim waits for the rest of that second before it is acked (a refused completion is tried again
/// for 5 s before the answer). A store over Google Cloud Storage says so in the log when it is built.
///
/// **What it guarantees.** One holder per key, and no write by one that was replaced: every write is a
/// PUT on a condition (no object yet, or still this ETag or generation), and each body has a fresh
/// token, so that no two contents share an ETag. Both services read what was last written. S3 may
/// refuse a create with 409 although nobody has won; that is read back and tried again, never taken for
/// "exists".
///
/// **What it does not.** It needs a bucket that lets objects be overwritten: no retention policy, no
/// object lock; and one service that owns it (a replica in another region, or a cache in front of it,
/// is behind). Versioning is of no use to it and keeps every write.
///
/// **Each call makes one attempt**, within [`request_timeout`](BucketBuilder::request_timeout). The
/// library's own retries are off: a request that was sent again would meet its own write. A store that
/// was handed in has its own settings; give it a `RetryConfig` with `max_retries: 0`.
///
/// **Trips.** A first message costs two (create, update), a duplicate two (a create that is lost, a
/// read), a failure two.
///
/// **Whose clock.** Nobody tells the age of an object, only when it was last modified, in whole
/// seconds. The age is counted from there to the local clock, or to the time that the server's answer
/// tells if that is earlier, so a client whose clock is ahead takes nothing over. From that a second
/// and the [`clock_margin`](BucketBuilder::clock_margin) are taken off: by the default a key is taken
/// over up to 6 s after its lease has lapsed, and its duplicates are skipped for up to 6 s longer than
/// the ttl.
///
/// **Rights.** On S3 `s3:GetObject`, `s3:PutObject` and `s3:ListBucket` (without which a key that is
/// not there is answered 403); on Google Cloud the role `roles/storage.objectUser`, since to overwrite
/// is also to delete there. [`check`](super::Maintain::check) proves that the bucket is there, may be
/// read and may be written, and that the server keeps conditions; that an object may be overwritten
/// shows with the first completion.
///
/// # Layout
/// `{prefix}/{consumer}/{SHA-256 of the key}.json`: a JSON document with the record, and for people the
/// key in full, its hash, and when it was written and expires. The key is compared on every read.
///
/// The records of submission lie where people look for them, and show under `shown` what they hold (no
/// input, no payload):
///
/// | object | what | |
/// |---|---|---|
/// | `{prefix}/idempotency/{scope}/{key hash}.json` | an idempotency key | the hash is that in the record, the SHA-256 of scope and key; a scope of more than 140 bytes is cut, and followed by a hash |
/// | `{prefix}/tasks/{last digit of the id}/{id}.json` | a task | in the key's record it is the `task_key` |
///
/// Consumers of yours that are named `idempotency` or `tasks` never meet them: theirs lie one folder higher.
///
/// # Retention
/// Nothing is deleted by this store. A lifecycle rule that deletes objects some days after their last
/// write collects them, and cannot take a key that is in use, because each write makes the object young
/// again. **Its days must be more than the longest ttl that is used + the lease + one day**: ten suit the
/// defaults (seven days for a key under a layer and for a task, one day for an idempotency key); with an
/// idempotency ttl or a task ttl of 30 days it takes 32, or a key is forgotten before its time and its retry
/// makes a second task. Have one rule for the whole prefix: of two that meet, S3 goes by the shorter. No
/// answer depends on it.
///
/// S3, for `aws s3api put-bucket-lifecycle-configuration`:
/// ```json
#[doc = include_str!("lifecycle-s3.json")]
/// ```
/// Google Cloud Storage, for `gcloud storage buckets update --lifecycle-file`:
/// ```json
#[doc = include_str!("lifecycle-gcs.json")]
/// ```
pub struct Bucket {
    client: Client,
    names: Names,
    clock: Arc<dyn Clock>,
    clock_margin: Duration,
    /// Whether a store that was handed in keeps conditions, once that was asked.
    proved: OnceCell<()>,
}

impl Bucket {
    /// A store over any object store that replaces on a condition, such as `InMemory` in tests.
    ///
    /// Before its first write it is asked once whether it does: the local file system, for one, creates
    /// on a condition but does not replace on one, and would refuse the completion of work that was
    /// done.
    ///
    /// # Errors
    /// [`InvalidBucket`]: mend the prefix.
    pub fn new(objects: Arc<dyn ObjectStore>, prefix: impl Into<String>) -> Result<Self, InvalidBucket> {
        Self::builder(objects).prefix(prefix).build()
    }

    /// The same, to be set up. Its names must be listed in their order for
    /// [`list`](super::Maintain::list).
    pub fn builder(objects: Arc<dyn ObjectStore>) -> BucketBuilder {
        BucketBuilder::new(Place::Given(objects))
    }

    /// A store in a bucket of S3, or of a server that speaks its protocol and keeps its conditions.
    ///
    /// Give the builder bucket, region and credentials; its retries, its timeouts and its HTTP client
    /// are set here.
    #[cfg(feature = "bucket-s3")]
    pub fn s3(s3: AmazonS3Builder) -> BucketBuilder {
        BucketBuilder::new(Place::S3(Box::new(s3)))
    }

    /// A store in a bucket of Google Cloud Storage. It logs a warning when it is built: about one write
    /// per second of one object.
    ///
    /// Give the builder the bucket; credentials are the Application Default Credentials unless it has
    /// others. Its retries, its timeouts and its HTTP client are set here.
    #[cfg(feature = "bucket-gcs")]
    pub fn gcs(gcs: GoogleCloudStorageBuilder) -> BucketBuilder {
        BucketBuilder::new(Place::Gcs(Box::new(gcs)))
    }

    fn of(client: Client, names: Names, clock: Arc<dyn Clock>, clock_margin: Duration) -> Self {
        Self { client, names, clock, clock_margin, proved: OnceCell::new() }
    }

    /// Never more than has passed since the write, unless both clocks are wrong by more than the margin.
    fn age(&self, object: &Object) -> Duration {
        let local = self.clock.wall();
        // Within that second it may be later there than it tells.
        let now = object.answered.map_or(local, |server| local.min(server + GRAIN));
        let since = now.duration_since(object.modified).unwrap_or_default();
        since.saturating_sub(GRAIN + self.clock_margin)
    }

    async fn read_now(&self, key: &Key) -> Result<Option<Stored>, StoreError> {
        let Some(object) = self.client.get(&self.names.of(key)).await? else { return Ok(None) };
        let record = document::decode(key, &object.body)?;
        let age = self.age(&object);
        Ok(Some(Stored { record, version: object.version, age }))
    }

    async fn swap_now(&self, key: &Key, seen: Option<&Version>, next: &Record) -> Result<Swap, StoreError> {
        let document = document::encode(key, next)?;
        if let Credentials::Hidden = self.client.credentials {
            // Now, since its refusal of a completion would come after the work.
            self.proved.get_or_try_init(|| self.prove()).await?;
        }
        let written = self.client.put(&self.names.of(key), document, seen).await?;
        // What stands is for a read to say, and it may be nothing. F83
        Ok(written.map_or(Swap::Lost(Standing::Unknown), Swap::Written))
    }
}

impl Store for Bucket {
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

impl fmt::Debug for Bucket {
    // Not the client's own, which would print its keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { client, names, clock: _, clock_margin, proved: _ } = self;
        f.debug_struct("Bucket")
            .field("objects", &format_args!("{}", client.objects))
            .field("prefix", &format_args!("{}", names.all()))
            .field("clock_margin", clock_margin)
            .finish()
    }
}
