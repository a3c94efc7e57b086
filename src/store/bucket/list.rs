//! What an operator asks of a bucket: whether it keeps conditions, and what is in it.

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use object_store::path::Path;

use super::client::Object;
use super::{Bucket, document, fault, version};
use crate::store::{BoxFuture, Filter, Found, Listing, Maintain, Page, StoreError, Stored};

/// How many objects of a page are read at once.
const AT_ONCE: usize = 8;

impl Bucket {
    /// Proves that it may be read and written, and that a write whose condition is false is not made: a
    /// server that ignores conditions answers it as written. Leaves nothing behind.
    pub(super) async fn prove(&self) -> Result<(), StoreError> {
        let nobody = self.names.nobody();
        self.client.get(&nobody).await?;
        // Of no object, since this one never is: both servers count and hash otherwise.
        let never = version::of(Some("\"00000000000000000000000000000000\""), Some("1"));
        if self.client.put(&nobody, "{}".to_owned(), never.as_ref()).await?.is_none() {
            return Ok(());
        }
        Err(self.refused(format!("{}, and wrote `{nobody}`, which may be deleted", fault::CONDITIONS)))
    }

    fn refused(&self, what: impl std::fmt::Display) -> StoreError {
        StoreError::Refused { what: format!("{}: {what}", self.client.objects), source: None }
    }

    async fn list_now(&self, filter: &Filter, page: &Page) -> Result<Listing, StoreError> {
        let folder =
            consumer(filter).map_or_else(|| self.names.all().clone(), |name| self.names.folder(name));
        let foreign = |_| self.refused("the page is not one that its list gave");
        let after = page.after.as_ref().map(Path::parse).transpose().map_err(foreign)?;
        let limit = page.limit.max(1);
        let mut names = self.client.names(&folder, after.as_ref(), limit.saturating_add(1)).await?;
        let more = names.len() > limit;
        names.truncate(limit);
        let next = names.last().filter(|_| more).map(ToString::to_string);
        let found: Vec<Option<Found>> = stream::iter(names)
            .map(|name| async move { self.found(&name, filter).await })
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        Ok(Listing { found: found.into_iter().flatten().collect(), next })
    }

    /// `None`: it is gone meanwhile, not a key's, or not what the filter takes.
    async fn found(&self, name: &Path, filter: &Filter) -> Result<Option<Found>, StoreError> {
        if !self.names.is_of_a_key(name, consumer(filter)) {
            return Ok(None);
        }
        let unreadable = |key: Option<String>, error| {
            let taken = key.as_ref().is_none_or(|key| key.starts_with(&filter.prefix));
            taken.then(|| Found { key: key.unwrap_or_else(|| name.to_string()), stored: Err(error) })
        };
        let object = match self.client.get(name).await {
            Ok(Some(object)) => object,
            Ok(None) => return Ok(None),
            Err(error @ StoreError::Corrupt { .. }) => return Ok(unreadable(None, error)),
            Err(error) => return Err(error),
        };
        let age = self.age(&object);
        let Object { body, version, .. } = object;
        Ok(match document::parse(&body) {
            Ok((key, record)) => filter
                .takes(&key, &record)
                .then(|| Found { key, stored: Ok(Stored { record, version, age }) }),
            Err(error) => unreadable(document::key(&body), error),
        })
    }
}

/// The one consumer that the filter takes.
fn consumer(filter: &Filter) -> Option<&str> {
    filter.prefix.split_once(':').map(|(consumer, _)| consumer).filter(|consumer| !consumer.is_empty())
}

impl Maintain for Bucket {
    /// Reads an object that never is, and writes it on a condition that never holds.
    fn check(&self) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.prove())
    }

    /// Always refused: object storage deletes on no condition, so a key that was claimed anew could be
    /// lost.
    fn purge_expired(&self, _limit: usize) -> BoxFuture<'_, Result<usize, StoreError>> {
        let what = "nothing is deleted on a condition here, so a key that was just claimed could be lost: let a \
            lifecycle rule of the bucket collect what expired, as the documentation of `Bucket` shows";
        Box::pin(std::future::ready(Err(self.refused(what))))
    }

    /// A prefix `consumer:` lists the folder of that consumer only. Each object is read. One that shows
    /// no key is shown by its name, whatever the filter.
    fn list<'a>(&'a self, filter: &'a Filter, page: &'a Page) -> BoxFuture<'a, Result<Listing, StoreError>> {
        Box::pin(self.list_now(filter, page))
    }
}
