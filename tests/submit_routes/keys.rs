//! What is a valid key, in the header and in the body.

use http::{HeaderValue, Method, Request};

use super::world::{World, request};

const BODY: &str = r#"{"input":1}"#;

fn with_headers(values: &[&[u8]], body: &str) -> Request<axum::body::Body> {
    let mut request = request(Method::POST, "/tasks/charge", &[], body);
    for value in values {
        request.headers_mut().append("Idempotency-Key", HeaderValue::from_bytes(value).unwrap());
    }
    request
}

/// F95. Each is the key on its right, as the message says it.
#[tokio::test]
async fn the_header_is_quoted_or_bare_and_both_are_one_key() {
    let longest = "k".repeat(255);
    for (values, key) in [
        (&["abc"][..], "abc"),
        (&["\"abc\""], "abc"),
        (&[" \t abc\t "], "abc"),
        (&["  \"abc\"\t"], "abc"),
        (&["\" abc \""], " abc "),
        (&["a b"], "a b"),
        (&[r#""a\"b""#], r#"a"b"#),
        (&[r#""a\\b""#], r"a\b"),
        (&[r"a\b"], r"a\b"),
        (&["\"a,b\""], "a,b"),
        (&["abc, abc"], "abc"),
        (&["abc,\"abc\""], "abc"),
        (&["abc", "abc"], "abc"),
        (&["\"abc\"", "abc , abc"], "abc"),
        (&["a/b"], "a/b"),
        (&["../../x?y=z#w%2F%00;v='q'"], "../../x?y=z#w%2F%00;v='q'"),
        (&["null"], "null"),
        (&["0"], "0"),
        (&[&longest], &longest),
    ] {
        let world = World::new();
        let values: Vec<_> = values.iter().map(|value| value.as_bytes()).collect();
        let answer = world.send(with_headers(&values, BODY)).await;
        assert_eq!(answer.status, 202, "{values:?}: {}", answer.text);
        assert_eq!(world.attributes("idempotency-key"), [Some(key.to_owned())], "{values:?}");
        assert_eq!(answer.text("idempotency_key"), key);
        // And in the body it is the same key.
        let body = serde_json::json!({ "input": 1, "idempotency_key": key }).to_string();
        let again = world.submit("/tasks/charge", &[], &body).await;
        assert_eq!((again.told(), again.id()), ((409, "IDEMPOTENCY_IN_PROGRESS"), answer.id()), "{values:?}");
    }
}

/// F95. What is there and cannot be read is never "no key": that would submit without protection.
#[tokio::test]
async fn a_header_that_cannot_be_read_is_400_and_no_task() {
    let (long, longer, quoted) = ("k".repeat(256), "k".repeat(5000), format!("\"{}\"", "k".repeat(256)));
    for values in [
        &[&b""[..]][..],
        &[b"   "],
        &[b" \t "],
        &[b"\"\""],
        &[b"\"  \""],
        &[long.as_bytes()],
        &[longer.as_bytes()],
        &[quoted.as_bytes()],
        &[b"a", b"b"],
        &[b"a, b"],
        &[b"a,\"b\""],
        &[b"\"a\", \"b\""],
        &[b"a", b""],
        &[b"", b"a"],
        &[b"a,"],
        &[b",a"],
        &[b"a,,a"],
        &[b","],
        &["clé".as_bytes()],
        &["\"clé\"".as_bytes()],
        &[b"cl\xe9"],
        &[b"a", "é".as_bytes()],
        &[b"a\tb"],
        &[b"\"a\tb\""],
        &[b"\"abc"],
        &[b"\""],
        &[b"abc\""],
        &[b"a\"b\"c"],
        &[b"\"abc\"x"],
        &[b"\"abc\" \"abc\""],
        &[b"\"abc\";p=1"],
        &[br#""a\b""#],
        &[br#""abc\""#],
        &[br#""abc\"#],
    ] {
        let shown: Vec<_> = values.iter().map(|value| String::from_utf8_lossy(value)).collect();
        // A body with a key that is good does not help: the header wins.
        for body in [BODY, r#"{"input":1,"idempotency_key":"good"}"#] {
            let world = World::new();
            let answer = world.send(with_headers(values, body)).await;
            assert_eq!(answer.told(), (400, "IDEMPOTENCY_KEY_INVALID"), "{shown:?}: {}", answer.text);
            world.untouched();
        }
    }
}

#[tokio::test]
async fn the_bodys_key_is_a_text_and_null_is_none() {
    for (member, key) in [
        (r#","idempotency_key":"abc""#, Some("abc")),
        (r#","idempotency_key":"a,b""#, Some("a,b")),
        (r#","idempotency_key":"\"abc\"""#, Some("\"abc\"")),
        (r#","idempotency_key":"cl\u00e9""#, Some("clé")),
        (r#","idempotency_key":null"#, None),
        ("", None),
    ] {
        let world = World::new();
        let answer = world.submit("/tasks/charge", &[], &format!(r#"{{"input":1{member}}}"#)).await;
        assert_eq!(answer.status, 202, "{member}: {}", answer.text);
        assert_eq!(world.attributes("idempotency-key"), [key.map(str::to_owned)], "{member}");
    }
    let long = format!("\"{}\"", "k".repeat(256));
    for value in [
        "\"\"",
        "\" \"",
        "\"\\u0000\"",
        "\"a\\nb\"",
        "\"\\ud800\"",
        "1",
        "true",
        "[]",
        "{}",
        "[\"a\"]",
        &long,
    ] {
        let world = World::new();
        let body = format!(r#"{{"input":1,"idempotency_key":{value}}}"#);
        let answer = world.submit("/tasks/charge", &[], &body).await;
        assert_eq!(answer.told(), (400, "IDEMPOTENCY_KEY_INVALID"), "{value}: {}", answer.text);
        world.untouched();
    }
}

#[tokio::test]
async fn the_header_wins_over_the_bodys_field() {
    let world = World::new();
    for field in ["\"other\"", "\"\"", "null", "\"header\""] {
        let body = format!(r#"{{"input":1,"idempotency_key":{field}}}"#);
        world.submit("/tasks/charge", &[("idempotency-key", "header")], &body).await;
    }
    assert_eq!(world.attributes("idempotency-key"), [Some("header".to_owned())]);
    // The field's key is still free.
    assert_eq!(world.keyed("other").await.status, 202);
}

#[tokio::test]
async fn without_a_key_each_submission_is_a_task_and_no_key_is_recorded() {
    let world = World::new();
    let (one, other) =
        (world.submit("/tasks/charge", &[], BODY).await, world.submit("/tasks/charge", &[], BODY).await);
    assert_eq!((one.status, other.status), (202, 202));
    assert_ne!(one.id(), other.id());
    assert!(one.json.get("idempotency_key").is_none() && one.json.get("scope").is_none());
    assert_eq!(world.chaos.trips().swaps, 2, "one record for each task");
}

/// Path characters are safe: such keys name tasks of their own.
#[tokio::test]
async fn keys_that_look_like_paths_do_not_meet() {
    let world = World::new();
    let mut ids = Vec::new();
    for key in ["a/b", "a", "b", "a%2Fb", "./a/b", "a//b", "../a", "a:b", "type:charge"] {
        let answer = world.keyed(key).await;
        assert_eq!(answer.status, 202, "{key}");
        ids.push(answer.id());
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 9);
}
