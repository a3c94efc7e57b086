//! What is fuzzed, by libFuzzer (`fuzz/`) and by the seeded changes of this test: one list, and where each begins.

mod delivery;
mod input;
mod keys;
mod routes;
mod rule;
mod token;

use std::fs;
use std::path::{Path, PathBuf};

/// Something that takes any bytes.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    /// Panics where a property does not hold; else says what came of the input.
    pub(crate) run: fn(&[u8]) -> &'static str,
    /// All that can come of one.
    pub(crate) ends: &'static [&'static str],
    /// Put before a recorded push to make an input of it; nothing where its inputs are no pushes.
    pub(crate) before: &'static [&'static str],
}

pub(crate) const TARGETS: [Target; 4] = [
    Target {
        name: "delivery",
        run: delivery::run,
        ends: &["refused", "wrapped", "unwrapped", "bare", "event"],
        before: &["POST / HTTP/1.1"],
    },
    Target {
        name: "keys",
        run: keys::run,
        ends: &["no delivery", "no rule", "no key", "key"],
        before: &[
            "#",
            "@po_id\t?/po\t?/id\t^orders",
            "@bucketId\t@objectId\t@eventType",
            "/results/images/0/digest",
        ],
    },
    Target {
        name: "routes",
        run: routes::run,
        ends: &["no request", "nothing there", "refused", "task", "replayed"],
        before: &[],
    },
    Target {
        name: "token",
        run: token::run,
        ends: &["no token", "wrong token", "wrong caller", "verified", "passed on"],
        before: &[],
    },
];

/// What is worth putting somewhere.
pub(crate) const WORDS: [&str; 48] = [
    "x-goog-pubsub-message-id: 1\n",
    "x-goog-pubsub-subscription-name: s\n",
    "x-goog-pubsub-delivery-attempt: 2\n",
    "x-goog-pubsub-ordering-key: k\n",
    "x-goog-ordering-key: k\n",
    "content-type: application/cloudevents+json\n",
    "content-type: application/json\n",
    "content-encoding: gzip\n",
    "ce-specversion: 1.0\n",
    "ce-id: 1\n",
    "ce-source: s\n",
    "ce-type: google.cloud.pubsub.topic.v1.messagePublished\n",
    "idempotency-key: \"k\"\n",
    "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\n",
    "x-tenant: acme\n",
    "x-serverless-authorization: Bearer {token}\n",
    "authorization: Bearer {token}\n",
    "{stripped}",
    "{kid}",
    "{\"message\":{\"messageId\":\"1\"}}",
    "\"messageId\":\"1\",",
    "\"message_id\":\"1\",",
    "\"subscription\":\"s\",",
    "\"deliveryAttempt\":5,",
    "\"orderingKey\":\"k\",",
    "\"attributes\":{\"a\":\"b\"},",
    "\"data\":\"e30=\",",
    "\"data_base64\":\"e30=\",",
    "\"datacontenttype\":\"text/plain\",",
    "\"specversion\":\"1.0\",",
    "\"task_type\":\"charge\",",
    "\"idempotency_key\":\"k\",",
    "\"input\":1e999,",
    "\"email_verified\":true,",
    "\"crit\":[\"exp\"],",
    "null",
    "[[[[[[[[",
    "\\u0000",
    "\\ud800",
    "18446744073709551615",
    "-1",
    "%2F",
    "%ff",
    "~01",
    "\t",
    "\n\n",
    "\u{feff}",
    "é",
];

/// Runs a future of a target to its end.
fn runtime<T>(future: impl Future<Output = T>) -> T {
    thread_local! {
        static RUNTIME: tokio::runtime::Runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    }
    RUNTIME.with(|runtime| runtime.block_on(future))
}

impl Target {
    /// What it begins with: the recorded pushes, the inputs that people wrote, and those in which a fault was found.
    /// By their paths.
    pub(crate) fn seeds(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut seeds = Vec::new();
        for (path, recorded) in ["tests/payloads", "tests/payloads/negative"].into_iter().flat_map(files) {
            for (at, line) in self.before.iter().enumerate() {
                // An envelope alone has no headers, and of a whole request the first line is another.
                let rest = match path.extension().is_some_and(|is| is == "http") {
                    true => recorded.splitn(2, |byte| *byte == b'\n').last().unwrap_or_default().to_vec(),
                    false => [b"content-type: application/json\n\n", &recorded[..]].concat(),
                };
                seeds.push((path.with_extension(at.to_string()), [line.as_bytes(), b"\n", &rest].concat()));
            }
        }
        for folder in ["seeds", "found"] {
            seeds.extend(files(Path::new("tests/fuzzed").join(folder).join(self.name)));
        }
        seeds
    }
}

/// The files of a folder; none where there is no such folder, since nothing may have been found yet.
fn files(folder: impl AsRef<Path>) -> Vec<(PathBuf, Vec<u8>)> {
    let mut paths: Vec<_> =
        fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}
