//! The key server of the tests: what it publishes and signs, read by another implementation.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use pushonce::testing::{Claims, KeyServer};
use serde_json::Value;

const AUDIENCE: &str = "https://orders.example.run.app";
const CALLER: &str = "pusher@project.iam.gserviceaccount.com";

async fn fetched(keys: &KeyServer) -> Result<(StatusCode, Bytes), hyper_util::client::legacy::Error> {
    let client = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let answer = client.get(keys.url().parse().unwrap()).await?;
    Ok((answer.status(), answer.into_body().collect().await.unwrap().to_bytes()))
}

/// The claims, if the key of that id in the set has signed them.
fn read(token: &str, keys: &[u8]) -> Option<Value> {
    let keys: JwkSet = serde_json::from_slice(keys).unwrap();
    let key = DecodingKey::from_jwk(keys.find(&decode_header(token).unwrap().kid?)?).unwrap();
    let mut rules = Validation::new(Algorithm::RS256);
    rules.set_audience(&[AUDIENCE]);
    Some(decode::<Value>(token, &key, &rules).ok()?.claims)
}

#[tokio::test]
async fn its_tokens_are_signed_by_the_keys_that_it_publishes() {
    let keys = KeyServer::start().await;
    let (first, claims) = (keys.token(&Claims::new(AUDIENCE, CALLER)), Claims::new(AUDIENCE, CALLER));
    let (status, published) = fetched(&keys).await.unwrap();
    assert_eq!((status, serde_json::from_slice::<Value>(&published).unwrap()), (StatusCode::OK, keys.keys()));
    let read_back = read(&first, &published).expect("its own key");
    assert_eq!((&read_back["aud"], &read_back["email"]), (&AUDIENCE.into(), &CALLER.into()));
    assert_eq!(read_back["exp"].as_u64().unwrap() - read_back["iat"].as_u64().unwrap(), 3600);

    keys.rotate();
    let second = keys.token(&claims);
    assert!(read(&second, &published).is_none(), "signed with a key that was not published then");
    let (_, both) = fetched(&keys).await.unwrap();
    assert!(read(&first, &both).is_some() && read(&second, &both).is_some());
    keys.retire();
    let (_, newest) = fetched(&keys).await.unwrap();
    assert!(read(&first, &newest).is_none() && read(&second, &newest).is_some());
    assert_eq!(keys.fetches(), 3);
}

#[tokio::test]
async fn it_fails_to_order() {
    let keys = KeyServer::start().await;
    keys.down();
    fetched(&keys).await.unwrap_err();
    keys.up();
    keys.status(StatusCode::BAD_GATEWAY);
    keys.body(Some("sorry".into()));
    assert_eq!(fetched(&keys).await.unwrap(), (StatusCode::BAD_GATEWAY, "sorry".into()));
    assert_eq!(keys.fetches(), 2);
}
