//! The one script, which every read and every swap runs on the server, and what it answers.

use std::sync::LazyLock;
use std::time::Duration;

use redis::{Cmd, ErrorKind, RedisResult, ServerErrorKind};

use super::driver::Connection;
use crate::store::{StoreError, Version};

/// KEYS: the record's name. ARGV, for a swap alone: the token that must stand (blank: nothing may stand),
/// the document, its token, and for how many milliseconds the record is kept.
///
/// Times stay text, since a number of Lua's has 53 bits. Each way through ends in a write after TIME,
/// also that of a read. A replica refuses it: what it holds may be old. And a server that replicates
/// scripts, not their effects, refuses it too, so that the readiness check finds what a claim would find;
/// so too a user without the right to PEXPIRE, whose write would land and then fail, and never expire.
/// HSET comes first on its way, since a server that is full refuses a script's first write alone.
const CODE: &str = r"
local time = redis.call('TIME')
local now = time[1] .. string.format('%06d', time[2])
local stands = redis.call('EXISTS', KEYS[1])
local found = redis.call('HMGET', KEYS[1], 'document', 'token', 'written_us')
local token = ''
if stands == 1 then token = found[2] end
if ARGV[1] ~= token then
  redis.call('HDEL', KEYS[1], '')
  if stands == 0 then redis.call('PEXPIRE', KEYS[1], 1) end
  return {0, stands, found[1], found[2], found[3], now}
end
redis.call('HSET', KEYS[1], 'document', ARGV[2], 'token', ARGV[3], 'written_us', now)
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return {1, 1, false, false, false, now}
";

static DIGEST: LazyLock<String> = LazyLock::new(|| redis::Script::new(CODE).get_hash().to_owned());

/// What a swap writes, and over what.
#[derive(Clone, Copy)]
pub(super) struct Write<'a> {
    /// The token that must stand; blank: nothing may stand.
    pub(super) seen: &'a str,
    pub(super) document: &'a str,
    pub(super) token: &'a str,
    pub(super) kept_ms: u64,
}

/// Runs the script: by its digest, and whole on a server that does not have it (any more). That
/// answer means that nothing was done, so it is still one attempt. // F72
///
/// The driver's own `Script` would load it on every node of a cluster, and fail where one is down.
pub(super) async fn run(
    mut connection: Connection,
    name: &str,
    write: Option<Write<'_>>,
) -> RedisResult<Answer> {
    let no_script = ErrorKind::Server(ServerErrorKind::NoScript);
    match command("EVALSHA", &DIGEST, name, write).query_async(&mut connection).await {
        Err(error) if error.kind() == no_script => {
            command("EVAL", CODE, name, write).query_async(&mut connection).await
        }
        answer => answer,
    }
}

fn command(how: &str, script: &str, name: &str, write: Option<Write<'_>>) -> Cmd {
    let mut command = redis::cmd(how);
    command.arg(script).arg(1).arg(name);
    if let Some(Write { seen, document, token, kept_ms }) = write {
        command.arg(seen).arg(document).arg(token).arg(kept_ms);
    }
    command
}

/// Whether it wrote, whether anything stands, its document, token and time, and the server's time.
pub(super) type Answer = (bool, bool, Option<Vec<u8>>, Option<String>, Option<String>, String);

/// What the server keeps under a name.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) document: String,
    pub(super) version: Version,
    pub(super) age: Duration,
}

/// What stands, by an answer that did not write.
pub(super) fn kept(answer: Answer) -> Result<Option<Kept>, StoreError> {
    let (_, stands, document, token, written, now) = answer;
    if !stands {
        return Ok(None);
    }
    let corrupt = |what: &str| StoreError::Corrupt { what: what.to_owned() };
    let document = document.and_then(|document| String::from_utf8(document).ok());
    let micros = |text: &str| text.parse().map(Duration::from_micros).ok();
    let written = written.as_deref().and_then(micros).ok_or_else(|| corrupt("a hash without a time"))?;
    let now = micros(&now).ok_or_else(|| corrupt("a server without a time"))?;
    Ok(Some(Kept {
        document: document.ok_or_else(|| corrupt("a hash without a document"))?,
        version: Version::text(token.ok_or_else(|| corrupt("a hash without a token"))?),
        age: now.saturating_sub(written),
    }))
}
