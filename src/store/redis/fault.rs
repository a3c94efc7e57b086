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
    ("user executing the script can't", Meaning::Mend(USER)),
    ("ACL failure in script", Meaning::Mend(USER)),
    ("MOVED", Meaning::Mend(CLUSTER)),
    ("ASK", Meaning::Mend(CLUSTER)),
    ("cluster support disabled", Meaning::Mend(NO_CLUSTER)),
    ("non deterministic commands", Meaning::Mend(EFFECTS)),
    ("DB index is out of range", Meaning::Mend(DATABASE)),
    ("SELECT is not allowed", Meaning::Mend(DATABASE)),
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

/// What the server said, in its own words and without the script's line, or else what the driver says.
fn said(error: &RedisError) -> String {
    let Some(code) = error.code() else { return error.to_string() };
    let detail = error.detail().unwrap_or_default();
    match detail.rsplit_once(" script: ") {
        Some((detail, line)) if line.contains("@user_script") => format!("{code} {detail}"),
        _ => format!("{code} {detail}"),
    }
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
pub(super) fn of_dial(tls: bool, error: RedisError) -> StoreError {
    match meaning(&error) {
        // A port without TLS waits for the end of what it takes for a command.
        None if tls && error.is_timeout() => {
            StoreError::unavailable("no TLS connection in time: is this the TLS port of the server?")
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver's error for an answer of the server.
    fn answered(text: &str) -> RedisError {
        let answer = redis::parse_redis_value(format!("-{text}\r\n").as_bytes()).unwrap();
        answer.extract_error().unwrap_err()
    }

    fn lost() -> RedisError {
        std::io::Error::from(std::io::ErrorKind::BrokenPipe).into()
    }

    #[test]
    fn what_the_server_did_not_carry_out_is_not_written_and_may_pass() {
        for (text, keeps) in [
            ("READONLY You can't write against a read only replica. script: 1f, on @user_script:5.", false),
            ("ERR Error running script (call to f_1f): @user_script:5: -READONLY You can't write", false),
            ("LOADING Redis is loading the dataset in memory", false),
            ("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", false),
            ("ERR max number of clients reached", false),
            ("OOM command not allowed when used memory > 'maxmemory'.", true),
            ("ERR Error running script (call to f_1f): @user_script:9: -OOM command not allowed", true),
            ("MISCONF Redis is configured to save RDB snapshots", true),
            ("NOREPLICAS Not enough good replicas to write.", true),
            ("BUSY Redis is busy running a script.", true),
            ("CLUSTERDOWN Hash slot not served", true),
        ] {
            for call in [Call::Read, Call::Write] {
                let error = of_call(call, false, answered(text));
                assert!(error.is_transient() && !error.may_have_written(), "{call:?} {text}: {error:?}");
            }
            // On a cluster the driver may have sent it before, to a node that it lost.
            let error = of_call(Call::Write, true, answered(text));
            assert!(error.is_transient() && error.may_have_written(), "{text}: {error:?}");
            assert!(!of_call(Call::Read, true, answered(text)).may_have_written(), "{text}");
            assert_eq!(keeps_the_connection(&answered(text)), keeps, "{text}");
            assert!(!of_dial(false, answered(text)).may_have_written(), "{text}");
        }
    }

    #[test]
    fn what_must_be_mended_is_refused_with_what_to_mend() {
        for (text, remedy) in [
            ("NOAUTH Authentication required.", "the user and the password"),
            ("WRONGPASS invalid username-password pair or user is disabled.", "the user and the password"),
            ("NOPERM this user has no permissions to run the 'evalsha' command", "the user's permissions"),
            (
                "ERR The user executing the script can't run this command or subcommand",
                "the user's permissions",
            ),
            (
                "ERR ACL failure in script: User app has no permissions to run the 'hset' command",
                "the user's permissions",
            ),
            ("ERR unknown command `EVALSHA`, with args beginning with: `READONLY`", "must allow EVAL"),
            ("MOVED 3999 127.0.0.1:6381", "add `cluster=true`"),
            ("ERR This instance has cluster support disabled", "take `cluster=true`"),
            ("ERR @user_script: 5: Write commands not allowed after non deterministic commands.", "Redis 5"),
            ("ERR DB index is out of range", "no database of that number"),
        ] {
            for error in [of_call(Call::Write, false, answered(text)), of_dial(false, answered(text))] {
                assert!(matches!(error, StoreError::Refused { .. }), "{text}: {error:?}");
                assert!(error.to_string().contains(remedy), "{error}");
            }
        }
        // The driver has followed as often as it may: the next call may find the slot at rest.
        assert!(of_call(Call::Write, true, answered("MOVED 3999 127.0.0.1:6381")).may_have_written());
        let foreign = of_call(Call::Read, false, answered("WRONGTYPE Operation against a key"));
        assert!(matches!(foreign, StoreError::Corrupt { .. }), "{foreign:?}");
    }

    #[test]
    fn what_nobody_knows_is_open_for_a_write_and_costs_the_connection() {
        for cluster in [false, true] {
            assert!(of_call(Call::Write, cluster, lost()).may_have_written());
            assert!(!of_call(Call::Read, cluster, lost()).may_have_written());
            assert!(of_call(Call::Write, cluster, answered("ERR something new")).may_have_written());
        }
        assert!(!keeps_the_connection(&lost()) && keeps_the_connection(&answered("ERR something new")));
        assert!(of_silence(Call::Write, Duration::ZERO).may_have_written());
        assert!(!of_silence(Call::Read, Duration::ZERO).may_have_written());
        assert!(!of_dial(false, lost()).may_have_written(), "nothing was sent");
    }
}
