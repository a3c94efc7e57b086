//! A bucket by its address: `s3://bucket/prefix?region=..&endpoint=..` and `gs://bucket/prefix?endpoint=..`.

#[cfg(feature = "bucket-gcs")]
use std::sync::Arc;

#[cfg(feature = "bucket-gcs")]
use object_store::StaticCredentialProvider;
#[cfg(feature = "bucket-s3")]
use object_store::aws::AmazonS3Builder;
#[cfg(feature = "bucket-gcs")]
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder};

use super::{Bucket, BucketBuilder};
use crate::store::address::Address;
use crate::store::connect::{ConnectError, malformed};

impl Bucket {
    /// The store of `s3://bucket/prefix?region=..&endpoint=..`.
    #[cfg(feature = "bucket-s3")]
    pub(in crate::store) fn of_s3_url(url: &str) -> Result<Self, ConnectError> {
        let address = Address::of(url)?;
        let mut s3 = AmazonS3Builder::from_env().with_bucket_name(bucket(&address)?);
        for (name, value) in &address.parameters {
            s3 = match *name {
                "region" => s3.with_region(region(value)?),
                "endpoint" => s3.with_endpoint(endpoint(value)?).with_allow_http(is_plain(value)),
                _ => return Err(Address::unknown(name)),
            };
        }
        built(Self::s3(s3), &address)
    }

    /// The store of `gs://bucket/prefix?endpoint=..`.
    #[cfg(feature = "bucket-gcs")]
    pub(in crate::store) fn of_gs_url(url: &str) -> Result<Self, ConnectError> {
        let address = Address::of(url)?;
        let mut gcs = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket(&address)?);
        for (name, value) in &address.parameters {
            if *name != "endpoint" {
                return Err(Address::unknown(name));
            }
            gcs = gcs.with_base_url(endpoint(value)?);
            if is_plain(value) {
                // An emulator, which must not be shown a token that is good at Google.
                let nobody = GcpCredential { bearer: String::new() };
                gcs = gcs.with_credentials(Arc::new(StaticCredentialProvider::new(nobody)));
            }
        }
        built(Self::gcs(gcs), &address)
    }
}

fn built(mut builder: BucketBuilder, address: &Address<'_>) -> Result<Bucket, ConnectError> {
    if !address.name.is_empty() {
        builder = builder.prefix(address.name);
    }
    builder.build().map_err(|error| ConnectError::Invalid { source: error.into() })
}

/// By the rules of both, which allow the same but for `_`.
fn bucket<'a>(address: &Address<'a>) -> Result<&'a str, ConnectError> {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let fits = (3..=222).contains(&address.place.len()) && address.place.chars().all(plain);
    let invalid = || {
        malformed("the bucket is not one: expected 3 or more lower-case letters, digits, `-`, `_` and `.`")
    };
    fits.then_some(address.place).ok_or_else(invalid)
}

#[cfg(feature = "bucket-s3")]
fn region(value: &str) -> Result<&str, ConnectError> {
    let fits = value.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    fits.then_some(value).ok_or_else(|| malformed("the region is not one, such as `eu-central-1`"))
}

/// Of an emulator, or of a server that speaks the same protocol.
fn endpoint(value: &str) -> Result<&str, ConnectError> {
    let host = value.strip_prefix("https://").or_else(|| value.strip_prefix("http://"));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':' | '[' | ']' | '/');
    let fits = host.is_some_and(|host| !host.is_empty() && host.chars().all(plain));
    fits.then_some(value)
        .ok_or_else(|| malformed("the endpoint is not one: expected `http://host:port` or `https://host`"))
}

/// Without TLS, so an emulator.
fn is_plain(endpoint: &str) -> bool {
    endpoint.starts_with("http://")
}
