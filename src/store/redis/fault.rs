//! What an error of the driver or an answer of the server means, and whether a write may have reached it.

use std::time::Duration;

use redis::{ErrorKind, RedisError};

use crate::store::StoreError;

/// The most that is repeated of a message, in characters.
const QUOTED: usize = 300;

/// What was asked. It decides what no answer can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
}

/// What a refusal of the server means. None of them has written anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// It may pass.
    Passing,
    /// This server will not, but the one that a new connection finds may.
    Elsewhere,
    /// It will not pass until this is mended.
    Mend(&'static str),
    /// What stands under the name is no hash.
    Foreign,
}

const USER: &str = "check the user and the password of the address, and the user's permissions";
const COMMANDS: &str = "the server must allow EVAL, EVALSHA and the commands of the script";
const CLUSTER: &str = "this server is a node of a cluster: add `cluster=true` to the address";
const NO_CLUSTER: &str = "this server is no cluster: take `cluster=true` from the address";
const EFFECTS: &str = "scripts cannot write after TIME here: Redis 5 or newer is needed, and `lua-replicate-commands yes` before Redis 7";
const DATABASE: &str = "the server has no database of that number";

const TLS: &str =
    "no TLS connection: is this the TLS port of the server, and its certificate one that is trusted here?";
const ADDRESS: &str = "check the address";

/// The table, looked through from the top for words of the answer, since its code is not always told:
/// before version 7 a server hides that of an error inside of a script behind `ERR Error running
/// script`, and the driver hides that of a cluster's first connection.
const ANSWERS: &[(&str, Meaning)] = &[
    // First, since it repeats what was asked.
    ("unknown command", Meaning::Mend(COMMANDS)),
    ("NOAUTH", Meaning::Mend(USER)),
    ("WRONGPASS", Meaning::Mend(USER)),
    ("authentication failed", Meaning::Mend(USER)),
    ("NOPERM", Meaning::Mend(USER)),
    ("can't access this command", Meaning::Mend(USER)),
    ("MOVED", Meaning::Mend(CLUSTER)),
    ("ASK", Meaning::Mend(CLUSTER)),
    ("cluster support disabled", Meaning::Mend(NO_CLUSTER)),
    ("non deterministic commands", Meaning::Mend(EFFECTS)),
    ("DB index is out of range", Meaning::Mend(DATABASE)),
    ("invalid peer certificate", Meaning::Mend(TLS)),
    ("corrupt message", Meaning::Mend(TLS)),
    ("received fatal alert", Meaning::Mend(TLS)),
    ("WRONGTYPE", Meaning::Foreign),
    ("READONLY", Meaning::Elsewhere),
    ("LOADING", Meaning::Elsewhere),
    ("MASTERDOWN", Meaning::Elsewhere),
    ("max number of clients", Meaning::Elsewhere),
    // Full, and right not to evict: it passes as records expire, or with more memory.
    ("OOM", Meaning::Passing),
    ("MISCONF", Meaning::Passing),
    ("NOREPLICAS", Meaning::Passing),
    ("BUSY", Meaning::Passing),
    ("CLUSTERDOWN", Meaning::Passing),
    ("TRYAGAIN", Meaning::Passing),
];

/// `None`: no answer of the server, or none that is known.
fn meaning(error: &RedisError) -> Option<Meaning> {
    let said = said(error);
    ANSWERS.iter().find(|(words, _)| said.contains(words)).map(|(_, meaning)| *meaning)
}

/// What the server said, in its own words, or else what the driver says.
fn said(error: &RedisError) -> String {
    error
        .code()
        .map_or_else(|| error.to_string(), |code| format!("{code} {}", error.detail().unwrap_or_default()))
}

/// The error of a call that was sent.
pub(super) fn of_call(call: Call, cluster: bool, error: RedisError) -> StoreError {
    match meaning(&error) {
        Some(Meaning::Mend(_)) if cluster && error.is_cluster_error() => passing(call == Call::Write, error),
        Some(Meaning::Mend(remedy)) => refused(remedy, error),
        Some(Meaning::Foreign) => StoreError::Corrupt { what: quoted(&error) },
        // The driver of a cluster sends again what a lost connection left open, and tells of the last try alone.
        Some(Meaning::Passing | Meaning::Elsewhere) => passing(cluster && call == Call::Write, error),
        None => passing(call == Call::Write, error),
    }
}

/// The error of a call that was not answered in time.
pub(super) fn of_silence(call: Call, limit: Duration) -> StoreError {
    let what = format!("no answer within {limit:?}");
    if call == Call::Write { StoreError::unanswered(what) } else { StoreError::unavailable(what) }
}

/// The error of a connection that did not come about. Nothing was sent.
pub(super) fn of_dial(error: RedisError) -> StoreError {
    match meaning(&error) {
        Some(Meaning::Mend(remedy)) => refused(remedy, error),
        None if error.kind() == ErrorKind::InvalidClientConfig => refused(ADDRESS, error),
        _ => passing(false, error),
    }
}

/// Whether the connection can still be used.
pub(super) fn keeps_the_connection(error: &RedisError) -> bool {
    match meaning(error) {
        Some(Meaning::Elsewhere) => false,
        Some(Meaning::Passing | Meaning::Mend(_) | Meaning::Foreign) => true,
        None => error.code().is_some(),
    }
}

fn passing(may_have_written: bool, error: RedisError) -> StoreError {
    StoreError::Unavailable { what: quoted(&error), may_have_written, source: Some(error.into()) }
}

fn refused(remedy: &str, error: RedisError) -> StoreError {
    StoreError::Refused { what: format!("{remedy}; it said: {}", quoted(&error)), source: Some(error.into()) }
}

fn quoted(error: &RedisError) -> String {
    said(error).lines().next().unwrap_or_default().chars().take(QUOTED).collect()
}
