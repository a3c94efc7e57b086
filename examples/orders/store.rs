//! The store of `PUSHONCE_STORE`, and whether it can be reached.

use std::sync::Arc;

use pushonce::store::{Maintain, Memory, open};

use super::BoxError;
use super::settings::{chain, variable};

/// The store of `PUSHONCE_STORE`; nothing is dialled.
pub(super) fn from_env() -> Result<Arc<dyn Maintain>, BoxError> {
    let url = variable("PUSHONCE_STORE")?;
    if let Some(url) = url {
        return Ok(open(&url).map_err(|error| format!("`PUSHONCE_STORE`: {}", chain(&error)))?);
    }
    if std::env::var_os("K_SERVICE").is_some() {
        return Err("`PUSHONCE_STORE` is not set: on Cloud Run an instance's memory is no store, since others do not see it".into());
    }
    tracing::warn!("`PUSHONCE_STORE` is not set: every key is forgotten when this process ends");
    Ok(Arc::new(Memory::new()))
}

/// Asks the store once: a fault that will not pass should stop the start, an outage should not.
pub(super) async fn reach(store: &dyn Maintain) -> Result<(), BoxError> {
    match store.check().await {
        Ok(()) => Ok(()),
        Err(error) if error.is_transient() => {
            tracing::warn!(
                error = chain(&error),
                "starting without the store; pushes are answered 503 until it is there"
            );
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
