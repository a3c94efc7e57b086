//! Whether a server can keep records at all: its version, and that it evicts none.

use redis::{InfoDict, Value};

use super::driver::Connection;
use super::fault;
use crate::store::StoreError;

/// The first version whose scripts may write after they have asked for the time.
const LEAST_VERSION: u64 = 5;

/// Asks the server, or each primary of a cluster, of what it will tell. // F75
pub(super) async fn check(mut connection: Connection) -> Result<(), StoreError> {
    match redis::cmd("INFO").query_async(&mut connection).await {
        Ok(Value::Map(nodes)) => nodes.iter().try_for_each(|(_, info)| judge(info)),
        Ok(info) => judge(&info),
        // It will not tell. A version that is too old still shows, by what it says to the script.
        Err(error) if error.code() == Some("NOPERM") => Ok(()),
        Err(error) => Err(fault::of_dial(false, error)),
    }
}

fn judge(info: &Value) -> Result<(), StoreError> {
    let Ok(info) = redis::from_redis_value_ref::<InfoDict>(info) else { return Ok(()) };
    let told = |name| info.get::<String>(name);
    let refused = |what| Err(StoreError::Refused { what, source: None });
    if let Some(version) = told("redis_version")
        && version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u64>().ok())
            .is_some_and(|major| major < LEAST_VERSION)
    {
        return refused(format!(
            "this is Redis {version}: Redis {LEAST_VERSION} or newer, or any Valkey, is needed"
        ));
    }
    let bounded = told("maxmemory").is_none_or(|limit| limit != "0");
    if let Some(policy) = told("maxmemory_policy")
        && policy != "noeviction"
        && bounded
    {
        return refused(format!(
            "maxmemory-policy is `{policy}`, so a record may be evicted, and a done key whose record is gone runs \
             again: set maxmemory-policy to `noeviction`, or keep pushonce on a server of its own"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(info: &str) -> Option<String> {
        judge(&Value::BulkString(info.into())).err().map(|error| error.to_string())
    }

    #[test]
    fn what_cannot_keep_records_is_refused_with_what_to_mend() {
        let old = refusal("# Server\r\nredis_version:4.0.14\r\n").unwrap();
        assert!(old.contains("Redis 4.0.14") && old.contains("Redis 5 or newer"), "{old}");
        for policy in ["allkeys-lru", "volatile-lru", "volatile-ttl"] {
            let evicting = refusal(&format!("maxmemory:1000\r\nmaxmemory_policy:{policy}\r\n")).unwrap();
            assert!(evicting.contains(policy) && evicting.contains("`noeviction`"), "{evicting}");
        }
        assert!(refusal("maxmemory_policy:allkeys-lru\r\n").is_some(), "the bound is not told");
    }

    #[test]
    fn what_keeps_its_records_or_does_not_tell_is_taken() {
        for info in [
            "redis_version:5.0.0\r\nmaxmemory:1000\r\nmaxmemory_policy:noeviction\r\n",
            "redis_version:7.2.4\r\nvalkey_version:8.1.0\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n",
            // Without a bound nothing is evicted.
            "redis_version:10.0.0\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n",
            "redis_version:unknown\r\n",
            "",
        ] {
            assert_eq!(refusal(info), None, "{info}");
        }
    }
}
