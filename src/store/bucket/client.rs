//! The calls: one attempt within one deadline for each, credentials included.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt as _, TryStreamExt as _};
#[cfg(feature = "bucket-s3")]
use object_store::aws::AwsCredentialProvider;
#[cfg(feature = "bucket-gcs")]
use object_store::gcp::GcpCredentialProvider;
use object_store::path::Path;
use object_store::{
    Attribute, Attributes, GetOptions, ObjectMeta, ObjectStore, PutMode, PutOptions, PutPayload,
};
use tokio::time::{Instant, timeout_at};

use super::fault::{self, Call};
use super::version;
use super::wire::Wire;
use crate::store::{StoreError, Version};

/// No record comes near it, and nothing larger is read into memory.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Where a call's credentials come from.
pub(super) enum Credentials {
    /// Known to the store that was handed in, or needed by nobody.
    Hidden,
    #[cfg(feature = "bucket-s3")]
    S3(AwsCredentialProvider),
    #[cfg(feature = "bucket-gcs")]
    Gcs(GcpCredentialProvider),
}

impl Credentials {
    /// Fetches them, unless they are fresh.
    async fn ready(&self) -> object_store::Result<()> {
        match self {
            Self::Hidden => Ok(()),
            #[cfg(feature = "bucket-s3")]
            Self::S3(provider) => provider.get_credential().await.map(drop),
            #[cfg(feature = "bucket-gcs")]
            Self::Gcs(provider) => provider.get_credential().await.map(drop),
        }
    }
}

pub(super) struct Client {
    pub(super) objects: Arc<dyn ObjectStore>,
    pub(super) credentials: Credentials,
    pub(super) timeout: Duration,
}

/// An object as it was read.
pub(super) struct Object {
    pub(super) body: Bytes,
    pub(super) version: Version,
    /// By the server's clock, in whole seconds.
    pub(super) modified: SystemTime,
    /// When the server answered, by its clock, if it told.
    pub(super) answered: Option<SystemTime>,
}

impl Client {
    /// One GET; `None` if there is no such object.
    pub(super) async fn get(&self, name: &Path) -> Result<Option<Object>, StoreError> {
        let wire = Arc::new(Wire::default());
        let options = GetOptions { extensions: wire.extensions(), ..GetOptions::default() };
        let fetched = async {
            let found = self.objects.get_opts(name, options).await?;
            let meta = found.meta.clone();
            let body = if meta.size > LARGEST { None } else { Some(found.bytes().await?) };
            Ok((meta, body))
        };
        let Some((meta, body)) = self.call(Call::Read, &wire, fetched).await? else { return Ok(None) };
        let corrupt = |what: String| StoreError::Corrupt { what };
        let body = body.ok_or_else(|| corrupt(format!("an object of {} bytes", meta.size)))?;
        let version = version::of(meta.e_tag.as_deref(), meta.version.as_deref())
            .ok_or_else(|| corrupt("an object without ETag and generation".to_owned()))?;
        Ok(Some(Object { body, version, modified: meta.last_modified.into(), answered: wire.date() }))
    }

    /// One PUT of a JSON document, only if the object is still of the version `seen` (`None`: only if
    /// there is none). `None`: the condition does not hold, or S3 could not tell, and nothing was
    /// written.
    pub(super) async fn put(
        &self,
        name: &Path,
        body: String,
        seen: Option<&Version>,
    ) -> Result<Option<Version>, StoreError> {
        let (call, mode) = match seen {
            None => (Call::Create, PutMode::Create),
            Some(version) => (Call::Update, PutMode::Update(version::condition(version)?)),
        };
        let wire = Arc::new(Wire::default());
        let attributes = Attributes::from_iter([
            (Attribute::ContentType, "application/json"),
            // Google serves public objects from caches unless told otherwise.
            (Attribute::CacheControl, "no-store"),
        ]);
        let options = PutOptions { mode, attributes, extensions: wire.extensions(), ..PutOptions::default() };
        let written = self.objects.put_opts(name, PutPayload::from(body), options);
        let Some(result) = self.call(call, &wire, written).await? else { return Ok(None) };
        // The write landed, but nobody can build on it: a read brings the version.
        let no_version = || StoreError::unanswered("the write was answered without a version");
        version::of(result.e_tag.as_deref(), result.version.as_deref()).map(Some).ok_or_else(no_version)
    }

    /// Up to `limit` objects of the folder whose names follow `after`, in the order of their names.
    pub(super) async fn names(
        &self,
        folder: &Path,
        after: Option<&Path>,
        limit: usize,
    ) -> Result<Vec<Path>, StoreError> {
        let objects: BoxStream<'static, object_store::Result<ObjectMeta>> = match after {
            None => self.objects.list(Some(folder)),
            Some(after) => self.objects.list_with_offset(Some(folder), after),
        };
        let names = objects.take(limit).map_ok(|object| object.location).try_collect();
        Ok(self.call(Call::List, &Arc::default(), names).await?.unwrap_or_default())
    }

    /// `None`: there is no such object, or the condition does not hold.
    async fn call<T>(
        &self,
        call: Call,
        wire: &Wire,
        attempt: impl Future<Output = object_store::Result<T>>,
    ) -> Result<Option<T>, StoreError> {
        let deadline = Instant::now() + self.timeout;
        // Credentials on their own first: only what fails before the request may say that nothing was written.
        timeout_at(deadline, self.credentials.ready())
            .await
            .map_err(|_| StoreError::unavailable(format!("no credentials within {:?}", self.timeout)))?
            .map_err(fault::of_credentials)?;
        match timeout_at(deadline, attempt).await {
            Ok(Ok(answer)) => Ok(Some(answer)),
            Ok(Err(error)) => {
                fault::of(&self.objects.to_string(), call, error, wire.status()).map_or(Ok(None), Err)
            }
            Err(_) => Err(fault::of_silence(call, self.timeout)),
        }
    }
}
