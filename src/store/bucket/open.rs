//! The library's clients, without their retries, within our limits, and watched.

use std::sync::Arc;
use std::time::Duration;

use object_store::ObjectStore;
#[cfg(feature = "bucket-s3")]
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
#[cfg(feature = "bucket-gcs")]
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::{ClientConfigKey, RetryConfig};

use super::InvalidBucket;
use super::client::Credentials;
use super::wire::Watching;
use crate::store::tls;

/// What keeps the objects.
pub(super) enum Place {
    Given(Arc<dyn ObjectStore>),
    #[cfg(feature = "bucket-s3")]
    S3(Box<AmazonS3Builder>),
    #[cfg(feature = "bucket-gcs")]
    Gcs(Box<GoogleCloudStorageBuilder>),
}

impl Place {
    pub(super) fn open(
        self,
        timeout: Duration,
    ) -> Result<(Arc<dyn ObjectStore>, Credentials), InvalidBucket> {
        tls::install();
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
