//! A store whose round trips are counted.

use std::sync::Arc;

use pushonce::Store;
use pushonce::store::chaos::{Chaos, Trips};

use crate::proxy::Proxy;
use crate::site::Site;

/// A store, and what counts its trips.
pub(crate) struct Counted {
    pub(crate) store: Arc<dyn Store>,
    by: By,
}

enum By {
    /// The bytes between the store and its server.
    Wire(Proxy),
    /// The calls of the store, where no server is.
    Calls(Arc<Chaos>),
}

impl Counted {
    pub(crate) async fn on(site: &Site) -> Self {
        if ["memory", "sqlite", "object-store-memory"].contains(&site.name) {
            let chaos = Chaos::new(site.store());
            return Self { store: chaos.clone(), by: By::Calls(chaos) };
        }
        let proxy = site.proxy().await;
        Self { store: site.store_on_one_connection_at(&proxy.address()), by: By::Wire(proxy) }
    }

    /// The trips since the last call.
    pub(crate) fn take(&self) -> usize {
        match &self.by {
            By::Wire(proxy) => proxy.take(),
            By::Calls(chaos) => {
                let Trips { reads, swaps } = chaos.take();
                usize::try_from(reads + swaps).expect("a small number")
            }
        }
    }
}
