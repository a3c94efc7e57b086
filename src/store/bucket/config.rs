//! How a bucket is set up: names and limits that are checked at once, and the library's clients without their retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
#[cfg(feature = "bucket-s3")]
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
#[cfg(feature = "bucket-gcs")]
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientConfigKey, RetryConfig};

use super::Bucket;
use super::client::{Client, Credentials};
use super::names::Names;
use super::wire::Watching;
use crate::store::{BoxError, tls};
use crate::time::{Clock, system_clock};

const PREFIX: &str = "pushonce";
/// See [`BucketBuilder::clock_margin`].
const CLOCK_MARGIN: Duration = Duration::from_secs(5);
/// A margin of more says that there is no clock worth its name.
const LARGEST_MARGIN: Duration = Duration::from_secs(60 * 60);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Longer than this nobody waits for an answer.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(300);

/// Sets up a [`Bucket`]. Nothing is checked or dialled before [`build`](Self::build).
#[must_use = "a builder does nothing until it is built"]
pub struct BucketBuilder {
    place: Place,
    prefix: String,
    clock: Arc<dyn Clock>,
    clock_margin: Duration,
    request_timeout: Duration,
}

/// What keeps the objects.
pub(super) enum Place {
    Given(Arc<dyn ObjectStore>),
    #[cfg(feature = "bucket-s3")]
    S3(Box<AmazonS3Builder>),
    #[cfg(feature = "bucket-gcs")]
    Gcs(Box<GoogleCloudStorageBuilder>),
}

impl BucketBuilder {
    pub(super) fn new(place: Place) -> Self {
        Self {
            place,
            prefix: PREFIX.to_owned(),
            clock: system_clock(),
            clock_margin: CLOCK_MARGIN,
            request_timeout: REQUEST_TIMEOUT,
        }
    }

    /// What the names of all objects begin with, on which a lifecycle rule belongs. `pushonce` unless set.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// The clock that is compared with the time at which an object was last modified. The machine's unless set.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// How far the clocks of any two clients, and of the bucket, may be apart before a key is taken
    /// over early. 5 s unless set, at most an hour.
    ///
    /// Every age is told shorter by this, and by the second that the time of an object is coarse. So a
    /// lapsed key is taken over 6 s after its lease, and a duplicate is skipped 6 s beyond the ttl.
    /// Clocks that NTP keeps, as on every cloud, are within a fraction of a second; the default also
    /// bears a leap second that one side smears and the other steps, and the first seconds of an
    /// instance that was resumed.
    pub fn clock_margin(self, margin: Duration) -> Self {
        Self { clock_margin: margin, ..self }
    }

    /// The longest that one call may take, its credentials and its connection included. 5 s unless
    /// set, at most 5 min; but the calls of a lease end after 5 s whatever is set here.
    pub fn request_timeout(self, limit: Duration) -> Self {
        Self { request_timeout: limit, ..self }
    }

    /// The store.
    ///
    /// # Errors
    /// [`InvalidBucket`]: mend the prefix, the duration or the client that it tells of.
    pub fn build(self) -> Result<Bucket, InvalidBucket> {
        let names = Names::under(&self.prefix)
            .ok_or_else(|| InvalidBucket::Prefix { prefix: self.prefix.clone() })?;
        if self.clock_margin > LARGEST_MARGIN {
            return Err(InvalidBucket::ClockMargin { margin: self.clock_margin });
        }
        if self.request_timeout.is_zero() || self.request_timeout > LONGEST_TIMEOUT {
            return Err(InvalidBucket::RequestTimeout { limit: self.request_timeout });
        }
        tls::install();
        let (objects, credentials) = self.place.open(self.request_timeout)?;
        let client = Client { objects, credentials, timeout: self.request_timeout };
        Ok(Bucket::of(client, names, self.clock, self.clock_margin))
    }
}

impl fmt::Debug for BucketBuilder {
    // Not the client's own builder, which would print its keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place: _, prefix, clock: _, clock_margin, request_timeout } = self;
        f.debug_struct("BucketBuilder")
            .field("prefix", prefix)
            .field("clock_margin", clock_margin)
            .field("request_timeout", request_timeout)
            .finish_non_exhaustive()
    }
}

impl Place {
    fn open(self, timeout: Duration) -> Result<(Arc<dyn ObjectStore>, Credentials), InvalidBucket> {
        match self {
            Self::Given(objects) => Ok((objects, Credentials::Hidden)),
            #[cfg(feature = "bucket-s3")]
            Self::S3(builder) => s3(*builder, timeout),
            #[cfg(feature = "bucket-gcs")]
            Self::Gcs(builder) => gcs(*builder, timeout),
        }
    }
}

#[cfg(feature = "bucket-s3")]
fn s3(
    builder: AmazonS3Builder,
    timeout: Duration,
) -> Result<(Arc<dyn ObjectStore>, Credentials), InvalidBucket> {
    let set = |key: AmazonS3ConfigKey| builder.get_config_value(&key).unwrap_or_default();
    no_password(&set(AmazonS3ConfigKey::Endpoint))?;
    no_password(&set(AmazonS3ConfigKey::S3Endpoint))?;
    let unsigned = set(AmazonS3ConfigKey::SkipSignature) == "true";
    let mut builder = builder
        // A bucket without conditions is no store, whatever the environment says.
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        .with_retry(no_retries())
        .with_http_connector(Watching::default());
    for (key, limit) in limits(timeout) {
        builder = builder.with_config(AmazonS3ConfigKey::Client(key), limit);
    }
    let s3 = builder.build().map_err(invalid)?;
    let credentials = if unsigned { Credentials::Hidden } else { Credentials::S3(s3.credentials().clone()) };
    Ok((Arc::new(s3), credentials))
}

#[cfg(feature = "bucket-gcs")]
fn gcs(
    builder: GoogleCloudStorageBuilder,
    timeout: Duration,
) -> Result<(Arc<dyn ObjectStore>, Credentials), InvalidBucket> {
    no_password(&builder.get_config_value(&GoogleConfigKey::BaseUrl).unwrap_or_default())?;
    let mut builder = builder.with_retry(no_retries()).with_http_connector(Watching::default());
    for (key, limit) in limits(timeout) {
        builder = builder.with_config(GoogleConfigKey::Client(key), limit);
    }
    let gcs = builder.build().map_err(invalid)?;
    // F84
    tracing::warn!(
        store = %gcs,
        writes_per_second_and_object = 1,
        "Google Cloud Storage takes about one write per second of one object: work that is done within a second of \
         its claim waits for the rest of it before it is acked. A bucket is meant for the submit side first; under a \
         layer of short work use another store"
    );
    let credentials = Credentials::Gcs(gcs.credentials().clone());
    Ok((Arc::new(gcs), credentials))
}

/// A retry of the library would meet its own write, and only the lease can tell it. F85
fn no_retries() -> RetryConfig {
    RetryConfig { max_retries: 0, ..RetryConfig::default() }
}

/// The library's own limits, so that what is given up here does not go on there.
fn limits(timeout: Duration) -> [(ClientConfigKey, String); 2] {
    let text = |limit: Duration| format!("{}ms", limit.as_millis().max(1));
    [
        (ClientConfigKey::Timeout, text(timeout)),
        // Shorter than a call, so that a server that cannot be reached is told from one that is silent.
        (ClientConfigKey::ConnectTimeout, text(timeout * 3 / 4)),
    ]
}

/// An error that failed to connect repeats the endpoint.
fn no_password(endpoint: &str) -> Result<(), InvalidBucket> {
    if endpoint.contains('@') { Err(InvalidBucket::Endpoint) } else { Ok(()) }
}

fn invalid(error: object_store::Error) -> InvalidBucket {
    InvalidBucket::Client { source: error.into() }
}

/// A bucket that cannot be a store. Nothing was dialled.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBucket {
    /// The prefix is not one. Give another; a store of its own never shares it.
    #[error(
        "`{prefix}` is not a prefix: expected 1 to 800 letters, digits, `-`, `_`, `.` and `/`, without empty parts and `..`"
    )]
    Prefix {
        /// The prefix as given.
        prefix: String,
    },
    /// The margin is too large. Set the clocks, or give a smaller one.
    #[error("a clock margin of {margin:?} is more than an hour: set the clocks")]
    ClockMargin {
        /// The margin as given.
        margin: Duration,
    },
    /// The timeout is zero or too long. Give another.
    #[error("a request timeout of {limit:?} is not one: expected more than zero and at most 5 minutes")]
    RequestTimeout {
        /// The limit as given.
        limit: Duration,
    },
    /// The endpoint has a user or a password in it. Give credentials in the environment, or to the client's builder.
    #[error("the endpoint takes no user and no password")]
    Endpoint,
    /// The library's client cannot be built of what it was given. Mend that.
    #[error("the client of the bucket cannot be built")]
    Client {
        /// What the library says of it.
        #[source]
        source: BoxError,
    },
}
