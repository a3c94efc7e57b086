//! Who is compared, and on what.

use std::fmt;

use crate::subject::variable;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Store {
    Memory,
    Redis,
    Postgres,
    Datastore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Contender {
    /// The layer.
    Pushonce,
    /// `benches/by_hand.rs`.
    ByHand,
    /// The Python library.
    Peer,
    /// A handler that sends our two writes and nothing else.
    Calls,
    /// The same two writes in a loop, without HTTP.
    Loop,
    /// A handler that reads the envelope as JSON, and no store.
    Envelope,
    /// A handler, and no store.
    Axum,
}

impl Store {
    pub(crate) const ALL: [Self; 4] = [Self::Memory, Self::Redis, Self::Postgres, Self::Datastore];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Datastore => "datastore-emulator",
        }
    }

    pub(crate) fn contenders(self) -> &'static [Contender] {
        use Contender::{Axum, ByHand, Calls, Envelope, Loop, Peer, Pushonce};
        match self {
            Self::Memory => &[Axum, Pushonce, Envelope, Peer],
            Self::Redis => &[Pushonce, Peer],
            Self::Postgres => &[ByHand, Pushonce, Peer, Calls, Loop],
            Self::Datastore => &[Pushonce, Peer, Calls, Loop],
        }
    }

    /// Where the server is, as `host:port`.
    pub(crate) fn host(self) -> Option<String> {
        let url = match self {
            Self::Memory => return None,
            Self::Redis => variable("PUSHONCE_TEST_REDIS"),
            Self::Postgres => variable("PUSHONCE_TEST_POSTGRES"),
            Self::Datastore => variable("DATASTORE_EMULATOR_HOST"),
        };
        let rest = url.split_once("://").map_or(&*url, |(_, rest)| rest);
        let rest = rest.split('/').next().unwrap_or(rest);
        Some(rest.rsplit_once('@').map_or(rest, |(_, host)| host).to_owned())
    }
}

impl Contender {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pushonce => "pushonce",
            Self::ByHand => "by hand",
            Self::Peer => "Python peer",
            Self::Calls => "two calls in a handler",
            Self::Loop => "two calls in a loop",
            Self::Envelope => "axum reads the envelope",
            Self::Axum => "bare axum",
        }
    }
}

impl fmt::Display for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How many processes the peer has, and how many threads each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workers {
    pub(crate) workers: u32,
    pub(crate) threads: u32,
}

impl Workers {
    pub(crate) const ONE: Self = Self { workers: 1, threads: 1 };

    /// The three settings of which the best is taken. Its memory store is one process's.
    pub(crate) fn tried(store: Store) -> [Self; 3] {
        let settings =
            if store == Store::Memory { [(1, 4), (1, 8), (1, 16)] } else { [(1, 8), (2, 8), (4, 4)] };
        settings.map(|(workers, threads)| Self { workers, threads })
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} × {}", self.workers, self.threads)
    }
}
