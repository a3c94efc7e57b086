//! Servers that cannot keep records, addresses that lead nowhere, and what is said of them.

use std::io::Write as _;
use std::process::Command;
use std::time::Duration;

use pushonce::Store as _;
use pushonce::store::{self, Maintain as _, Redis};

use crate::fake_redis::FakeRedis;
use crate::redis_server::RedisServer;
use crate::{at, is_refused, key, passes, record, report, shared, standing, written};

// F75
#[tokio::test]
async fn a_server_that_is_too_old_is_refused() {
    let fake = FakeRedis::with_info("redis_version:4.0.14\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction");
    let store = at(fake.url()).build().unwrap();
    for error in [
        store.check().await.unwrap_err(),
        store.read(&key("po-1")).await.unwrap_err(),
        store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(),
    ] {
        is_refused(&error, "this is Redis 4.0.14: Redis 5 or newer");
    }
}

// F75
#[tokio::test]
async fn a_server_that_replicates_scripts_is_refused_by_what_it_says_to_the_script() {
    let said = "-ERR Error running script (call to f_1): @user_script:5: @user_script: 5: Write commands not \
        allowed after non deterministic commands. Call redis.replicate_commands() at the start of your script\r\n";
    let fake = FakeRedis::start(move |command| match command {
        "INFO" => "-NOPERM this user has no permissions to run the 'info' command\r\n".to_owned(),
        "EVALSHA" => said.to_owned(),
        _ => "+OK\r\n".to_owned(),
    });
    let store = at(fake.url()).build().unwrap();
    is_refused(&store.check().await.unwrap_err(), "lua-replicate-commands yes");
    is_refused(&store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(), "Redis 5 or newer");
}

#[tokio::test]
async fn a_server_that_evicts_is_refused_until_it_does_not() {
    let server = RedisServer::start(&["--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"]);
    let store = at(server.url()).build().unwrap();
    is_refused(&store.check().await.unwrap_err(), "set maxmemory-policy to `noeviction`");
    is_refused(&store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(), "`allkeys-lru`");
    let () = server.ask(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    store.check().await.unwrap();
    // A connection that is open is not asked again by calls, but by the check.
    let () = server.ask(&["CONFIG", "SET", "maxmemory-policy", "volatile-ttl"]);
    is_refused(&store.check().await.unwrap_err(), "`volatile-ttl`");
    // Without a bound nothing is ever evicted.
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    store.check().await.unwrap();
    report::test("redis", "a_server_that_evicts_is_refused_until_it_does_not");
}

#[tokio::test]
async fn a_server_that_is_full_takes_no_write_for_now_and_still_tells_what_is_done() {
    let server = RedisServer::start(&[]);
    let store = at(server.url()).build().unwrap();
    let version = written(store.swap(&key("po-1"), None, &record(1)).await);
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "1"]);
    let error = store.swap(&key("po-2"), None, &record(2)).await.unwrap_err();
    passes(&error, false);
    assert!(error.to_string().contains("OOM"), "{error}");
    assert_eq!(standing(&store, &key("po-1")).await.version, version);
    let () = server.ask(&["CONFIG", "SET", "maxmemory", "0"]);
    let _ = written(store.swap(&key("po-2"), None, &record(2)).await);
    report::test("redis", "a_server_that_is_full_takes_no_write_for_now_and_still_tells_what_is_done");
}

#[tokio::test]
async fn a_server_that_waits_for_replicas_takes_nothing_for_now() {
    let server = RedisServer::start(&["--min-replicas-to-write", "1"]);
    let store = at(server.url()).build().unwrap();
    passes(&store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(), false);
    report::test("redis", "a_server_that_waits_for_replicas_takes_nothing_for_now");
}

#[tokio::test]
async fn the_documented_permissions_are_enough_and_fewer_are_found_at_the_start() {
    let server = RedisServer::start(&[]);
    let user = "ACL SETUSER app on >pa55w0rd resetkeys ~pushonce:* resetchannels -@all \
        +evalsha +eval +time +exists +hmget +hset +hdel +pexpire +info +scan";
    let () = server.ask(&user.split_whitespace().collect::<Vec<_>>());
    let url = server.url().replace("//", "//app:pa55w0rd@");
    let store = Redis::new(&url).unwrap();
    store.check().await.unwrap();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    assert_eq!(store.list(&store::Filter::default(), &store::Page::default()).await.unwrap().found.len(), 1);
    let () = server.ask(&["ACL", "SETUSER", "app", "-hset"]);
    is_refused(&store.swap(&key("po-2"), None, &record(1)).await.unwrap_err(), "permissions");
    // Without it a write would land half, and be told as one that did not.
    let () = server.ask(&["ACL", "SETUSER", "app", "+hset", "-pexpire"]);
    is_refused(&store.check().await.unwrap_err(), "permissions");
    let () = server.ask(&["ACL", "SETUSER", "app", "+pexpire", "-hdel"]);
    is_refused(&store.check().await.unwrap_err(), "permissions");
    let () = server.ask(&["CONFIG", "SET", "requirepass", "operator"]);
    for (credentials, what) in
        [("", "NOAUTH"), ("app:wr0ng@", "check the user and the password"), (":wr0ng@", "check the user")]
    {
        let error = Redis::new(server.url().replace("//", &format!("//{credentials}")))
            .unwrap()
            .check()
            .await
            .unwrap_err();
        is_refused(&error, what);
        assert!(!format!("{error:?}").contains("wr0ng"), "{error:?}");
    }
    report::test("redis", "the_documented_permissions_are_enough_and_fewer_are_found_at_the_start");
}

#[tokio::test]
async fn a_wrong_database_and_a_wrong_kind_of_server_are_refused() {
    let error = at(format!("{}/9999", shared())).build().unwrap().check().await.unwrap_err();
    is_refused(&error, "no database of that number");
    let error = at(shared()).cluster().build().unwrap().check().await.unwrap_err();
    is_refused(&error, "take `cluster=true` from the address");
    let cluster = crate::cluster::shared();
    let numbered = at(cluster.url().replace('?', "/1?")).build().unwrap();
    is_refused(&numbered.check().await.unwrap_err(), "no database of that number");
    let single = at(cluster.url().replace("?cluster=true", "")).build().unwrap();
    let mut moved = 0;
    for text in 0..20 {
        if let Err(error) = single.swap(&key(&text.to_string()), None, &record(1)).await {
            is_refused(&error, "add `cluster=true`");
            moved += 1;
        }
    }
    assert!(moved > 0);
    report::test("redis", "a_wrong_database_and_a_wrong_kind_of_server_are_refused");
}

#[tokio::test]
async fn tls_to_a_port_without_it_is_an_error_and_no_panic() {
    // Redis waits for the rest of what it takes for a command; other servers answer.
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = other.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in other.incoming() {
            let _ = client.unwrap().write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for parameter in ["", "?cluster=true"] {
        let url = format!("{}{parameter}", shared().replace("redis://", "rediss://"));
        let store = Redis::builder(url).request_timeout(Duration::from_secs(1)).build().unwrap();
        let error = store.swap(&key("po-1"), None, &record(1)).await.unwrap_err();
        passes(&error, false);
        assert!(error.to_string().contains("TLS port") || !parameter.is_empty(), "{error}");
        let store = Redis::new(format!("rediss://127.0.0.1:{port}{parameter}")).unwrap();
        is_refused(&store.check().await.unwrap_err(), "is this the TLS port");
    }
    report::test("redis", "tls_to_a_port_without_it_is_an_error_and_no_panic");
}

#[tokio::test]
async fn a_server_with_a_certificate_of_its_own_authority_is_trusted_by_its_root_alone() {
    let files = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(crate::fresh());
    std::fs::create_dir_all(&files).unwrap();
    let file = |name: &str| files.join(name).to_str().unwrap().to_owned();
    // One certificate that is its own authority will do.
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
        ])
        .args([
            "-subj",
            "/CN=test",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
        ])
        .args(["-keyout", &file("key"), "-out", &file("pem")])
        .output()
        .expect("openssl must be installed");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let server = RedisServer::start(&[]);
    let tls = RedisServer::free_port().to_string();
    for (name, value) in [
        ("tls-cert-file", &*file("pem")),
        ("tls-key-file", &file("key")),
        ("tls-ca-cert-file", &file("pem")),
        ("tls-auth-clients", "no"),
    ] {
        let _: redis::Value = server.ask(&["CONFIG", "SET", name, value]);
    }
    let _: redis::Value = server.ask(&["CONFIG", "SET", "tls-port", &tls]);
    let url = format!("rediss://127.0.0.1:{tls}");
    let store = Redis::new(format!("{url}?ca={}", file("pem"))).unwrap();
    let _ = written(store.swap(&key("po-1"), None, &record(1)).await);
    let by_builder =
        Redis::builder(&url).root_certificate(std::fs::read(file("pem")).unwrap()).build().unwrap();
    by_builder.check().await.unwrap();
    is_refused(&Redis::new(&url).unwrap().check().await.unwrap_err(), "its certificate one that is trusted");
    report::test("redis", "a_server_with_a_certificate_of_its_own_authority_is_trusted_by_its_root_alone");
}

#[tokio::test]
async fn a_server_that_accepts_and_never_answers_has_been_asked_nothing() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("redis://{}", silent.local_addr().unwrap());
    for url in [url.clone(), format!("{url}?cluster=true")] {
        let store = at(url).request_timeout(Duration::from_millis(300)).build().unwrap();
        passes(&store.swap(&key("po-1"), None, &record(1)).await.unwrap_err(), false);
        passes(&store.read(&key("po-1")).await.unwrap_err(), false);
    }
}

#[test]
fn an_address_is_read_and_never_repeated() {
    let described = |url: &str| format!("{:?}", Redis::new(url).unwrap());
    assert_eq!(
        described("redis://app:pa55w0rd@host:6380/2?prefix=orders"),
        r#"Redis { nodes: ["host:6380"], prefix: "orders", cluster: false }"#
    );
    assert_eq!(
        described("rediss://:pa55w0rd@one:7000,two:7001,three?cluster=true"),
        r#"Redis { nodes: ["one:7000", "two:7001", "three:6379"], prefix: "pushonce", cluster: true }"#
    );
    assert!(described("redis://[::1]:6379").contains("::1:6379"));
    assert!(!format!("{:?}", Redis::builder("redis://:pa55w0rd@host")).contains("pa55w0rd"));
    for (url, expected) in [
        ("redis:host", "two slashes"),
        ("valkey://pa55w0rd@host", "neither `redis` nor `rediss`"),
        ("redis://", "a host, a port"),
        ("redis://u:pa55w0rd@host:x", "a host, a port"),
        ("redis://u:pa55w0rd@host/x", "the database's number"),
        ("redis://u:pa55w0rd#@host", "%23"),
        ("redis://u:pa55w0rd@one,two", "several hosts"),
        ("redis://host?cluster=pa55w0rd", "neither `true` nor `false`"),
        ("redis://host?prefx=pa55w0rd", "the parameter `prefx` is unknown"),
        ("redis://host?pa55w0rd", "a parameter has no value"),
        ("redis://host?prefix=a{b", "is not a prefix"),
        ("rediss://u:pa55w0rd@host?ca=/nonexistent", "certificate cannot be read"),
    ] {
        let error = Redis::new(url).map(drop).unwrap_err();
        let text = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(|error| error.to_string() + &format!("{error:?}"))
            .collect::<String>();
        assert_eq!((text.contains(expected), text.contains("pa55w0rd")), (true, false), "{url}: {text}");
    }
    for limit in [Duration::ZERO, Duration::from_secs(301)] {
        assert!(Redis::builder("redis://host").request_timeout(limit).build().is_err());
    }
}
