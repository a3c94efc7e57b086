//! A real S3 server, the store in front of it, and the raw API past the store.
//!
//! `PUSHONCE_TEST_S3` is `http://ACCESS:SECRET@host:port` of a server that keeps conditions also in a
//! race, such as SeaweedFS, with credentials that may create a bucket.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use object_store::ObjectStoreExt as _;
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::signer::Signer as _;
use pushonce::Key;
use pushonce::store::{Bucket, BucketBuilder};
use sha2::{Digest as _, Sha256};

const VARIABLE: &str = "PUSHONCE_TEST_S3";
pub(crate) const BUCKET: &str = "pushonce-test";

/// The server, a bucket that is there, and a prefix that nobody else has.
#[derive(Debug)]
pub(crate) struct S3 {
    pub(crate) access: String,
    pub(crate) secret: String,
    pub(crate) host: String,
    pub(crate) prefix: String,
}

impl S3 {
    pub(crate) async fn start() -> Self {
        let url = std::env::var(VARIABLE).unwrap_or_default();
        assert!(!url.is_empty(), "set {VARIABLE}=http://ACCESS:SECRET@host:port of an S3 server");
        Self::at(&url).await
    }

    /// On the server of that URL.
    pub(crate) async fn at(url: &str) -> Self {
        let s3 = Self::of_url(url);
        // A signed PUT of nothing at all is one of the bucket.
        let signed = s3.raw().signed_url(Method::PUT, &Path::ROOT, Duration::from_secs(60)).await.unwrap();
        let create = Request::put(signed.as_str()).body(Empty::<Bytes>::new()).unwrap();
        let answer = Client::builder(TokioExecutor::new()).build_http().request(create).await.unwrap();
        // Conflict: another test was first.
        assert!(matches!(answer.status(), StatusCode::OK | StatusCode::CONFLICT), "{answer:?}");
        s3
    }

    fn of_url(url: &str) -> Self {
        let parts = url.strip_prefix("http://").and_then(|rest| {
            let (user, host) = rest.split_once('@')?;
            let (access, secret) = user.split_once(':')?;
            Some([access, secret, host.trim_end_matches('/')].map(str::to_owned))
        });
        let [access, secret, host] = parts.expect("http://ACCESS:SECRET@host:port of an S3 server");
        Self { access, secret, host, prefix: format!("t-{:016x}", RandomState::new().hash_one(0)) }
    }

    /// The library's client of the server, or of what stands before it at `host`.
    pub(crate) fn client(&self, host: &str) -> AmazonS3Builder {
        AmazonS3Builder::new()
            .with_bucket_name(BUCKET)
            .with_endpoint(format!("http://{host}"))
            .with_allow_http(true)
            .with_access_key_id(&self.access)
            .with_secret_access_key(&self.secret)
    }

    /// Server and clients have one clock here, so there is no margin to wait for.
    pub(crate) fn builder(&self, host: &str) -> BucketBuilder {
        Bucket::s3(self.client(host)).prefix(&self.prefix).clock_margin(Duration::ZERO)
    }

    pub(crate) fn store(&self) -> Bucket {
        self.builder(&self.host).request_timeout(Duration::from_secs(30)).build().unwrap()
    }

    /// Past the store: the library's client.
    pub(crate) fn raw(&self) -> AmazonS3 {
        self.client(&self.host).build().unwrap()
    }

    pub(crate) async fn delete(&self, key: &Key) {
        self.raw().delete(&name(&self.prefix, key)).await.unwrap();
    }
}

/// The object of a key, by the layout that is promised. Of a scope that is a plain name.
pub(crate) fn name(prefix: &str, key: &Key) -> Path {
    let hash = |text: &str| Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let (consumer, text) = (key.consumer().as_str(), key.text());
    let full = hash(&format!("{consumer}:{text}"));
    let (folder, stem) = match consumer {
        "pushonce-idempotency" => {
            let (length, rest) = text.split_once('.').expect("scope and key, each led by its length");
            (format!("idempotency/{}", &rest[..length.parse().unwrap()]), hash(text))
        }
        // Of a task's id it is the last digit, too.
        "pushonce-tasks" => {
            let stem = if text.len() == 36 { text.to_owned() } else { full };
            (format!("tasks/{}", &stem[stem.len() - 1..]), stem)
        }
        _ => (consumer.to_owned(), full),
    };
    folder.split('/').fold(Path::parse(prefix).unwrap(), Path::join).join(format!("{stem}.json"))
}
