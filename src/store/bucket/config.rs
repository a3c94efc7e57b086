//! How a bucket is set up: names and limits that are checked at once.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Bucket;
use super::client::Client;
use super::names::Names;
use super::open::Place;
use crate::store::BoxError;
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

    /// What the names of all objects begin with, on which a lifecycle rule belongs. `pushonce` unless
    /// set.
    pub fn prefix(self, prefix: impl Into<String>) -> Self {
        Self { prefix: prefix.into(), ..self }
    }

    /// The clock that is compared with the time at which an object was last modified. The machine's
    /// unless set.
    pub fn clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    /// How far the clocks of any two clients, and of the servers of the bucket, may be apart before a
    /// key is taken over early. 5 s unless set, at most an hour.
    ///
    /// Every age is told shorter by this, and by the second that the time of an object is coarse. So by
    /// the default a lapsed key is taken over up to 6 s after its lease, and a duplicate is skipped up
    /// to 6 s beyond the ttl. Clocks that NTP keeps, as on every cloud, are within a fraction of a
    /// second; the default also bears a leap second that one side smears and the other steps, and the
    /// first moments of an instance that was resumed.
    pub fn clock_margin(self, margin: Duration) -> Self {
        Self { clock_margin: margin, ..self }
    }

    /// The longest that one call may take, its credentials and its connection included. 5 s unless set,
    /// at most 5 min; but the calls of a lease end after 5 s whatever is set here.
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
    /// The endpoint has a user or a password in it. Give credentials in the environment, or to the
    /// client's builder.
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
