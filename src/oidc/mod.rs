//! The push token: who may push, verified before anything is claimed.
//!
//! A push subscription with a service account sends a token that Google has signed (OIDC) with each
//! push. [`PushAuthLayer`] lets in the pushes whose token is genuine, was made for this service, and
//! names one of the expected service accounts. All others are refused before anything behind the layer
//! sees them: no key is claimed, no store is asked, no body is read.
//!
//! ```
//! use std::sync::Arc;
//! use axum::{Extension, Router, routing::post};
//! use pushonce::oidc::{Caller, PushAuthLayer};
//! use pushonce::{Ack, IdempotentLayer, Store, store::Memory};
//!
//! async fn charge(Extension(caller): Extension<Caller>) -> Ack {
//!     println!("pushed by {}", caller.email);
//!     Ack
//! }
//!
//! # fn main() -> Result<(), pushonce::oidc::InvalidPushAuth> {
//! let auth = PushAuthLayer::verify(
//!     ["https://orders-7c1q9.a.run.app"],
//!     ["pusher@my-project.iam.gserviceaccount.com"],
//! );
//! auth.check()?;
//!
//! let store: Arc<dyn Store> = Arc::new(Memory::new());
//! let once = IdempotentLayer::new("charge", store);
//! // The first of the two is outermost: it sees a request first, and the other only what it lets in.
//! let app: Router = Router::new().route("/charge", post(charge).layer((auth, once)));
//! # let _ = app;
//! # Ok(()) }
//! ```
//!
//! Where layers are added one by one, the one that is added *last* is outermost: so
//! `router.route("/charge", post(charge).layer(once)).route_layer(auth)` has the same order, for all
//! routes that the router has by then. The other way round the guard would claim keys for strangers.
//!
//! # Two modes, and who chooses
//!
//! You do, in code; nothing that a request says can change it.
//!
//! - [`verify`](PushAuthLayer::verify): the signature is checked here, with the keys that Google
//!   publishes. For a service that everybody may invoke (`allUsers`), and for every other place than
//!   Cloud Run.
//! - [`platform`](PushAuthLayer::platform): for a Cloud Run service that *requires authentication*.
//!   Cloud Run has then checked the token, and hands it on with `SIGNATURE_REMOVED_BY_GOOGLE` in place
//!   of the signature ([Cloud Run's troubleshooting page][removed]), so that nobody can check it again.
//!   Only that text passes. On a service that is open anybody can write it: never choose this there.
//!
//! A token that belongs to the other mode is refused, and the log line says what the two ways out are.
//!
//! # What is checked
//!
//! | | `verify` | `platform` |
//! |---|---|---|
//! | one `Authorization: Bearer` header, of at most 8 KiB | yes | yes |
//! | `alg` is RS256; no `crit`; keys in the header (`jwk`, `jku`, `x5u`) are not looked at | yes | yes |
//! | signature, with the key that Google publishes under `kid` | yes | Cloud Run |
//! | `exp`, and `nbf` if it is there, within 30 seconds | yes | yes |
//! | `iat`, within 30 seconds | yes | if it is there |
//! | `iss` is `https://accounts.google.com` or `accounts.google.com` | yes | yes |
//! | `aud` is one of the accepted audiences, or a list with one of them | yes | yes |
//! | `email_verified` is `true` (the text `"true"` is not), `email` is one of the expected callers | yes | yes |
//!
//! Audiences are compared as whole texts, and never with the request's `Host` or path, which the caller
//! chooses. An audience alone proves nothing: anybody with a service account of their own can have a
//! token made for any audience. So there is no layer without a caller.
//!
//! The layer checks every request, whatever its method. Put it on the routes that are pushed to, and
//! not on a health check. `PUSHONCE_DISABLED` does not switch it off.
//!
//! A token in `X-Serverless-Authorization` is for Cloud Run alone. Where there is one, Cloud Run checks
//! that one and passes `Authorization` on unchecked ([service-to-service][s2s]), so in `platform` such
//! a request is refused; in `verify` the header is not looked at. Pub/Sub does not send it.
//!
//! A token can be used again by whoever has seen it, until it expires (an hour at most). The guard
//! behind the layer then sees a duplicate, if the message is the same.
//!
//! # What is answered
//!
//! Each refusal is a nack with the header `pushonce-outcome: unauthorized`; it uses up a delivery
//! attempt, as every nack does.
//!
//! | | status | `reason` |
//! |---|---|---|
//! | no token | 401, `WWW-Authenticate: Bearer` | `missing`, `elsewhere` |
//! | a token that is wrong | 401, and `error="invalid_token"` (RFC 6750) | `malformed`, `algorithm`, `signature-removed`, `signature-present`, `unknown-key`, `signature`, `claim-missing`, `issuer`, `audience`, `expired`, `not-yet-valid`, `email-unverified` |
//! | a good token of another account | 403 | `caller` |
//! | no keys to check it with | 503, `Retry-After` | `keys-unavailable` |
//!
//! An error line (`event = "unauthorized"`) has the reason, the expected and the received audience and
//! e-mail, and how many lines were left out: there is one in ten seconds for each reason. It never has
//! the token. The counter `pushonce_unauthorized_total` has the label `reason`, and counts all; each
//! reason begins at zero when a route has the layer.
//!
//! # The keys
//!
//! Google's keys are fetched at the first token, once for all who wait, and live as long as
//! `Cache-Control` says, from a minute to a day. A token with a key id that is not known makes them be
//! fetched anew, at most every 30 seconds. While the key server is down, the last keys are used until
//! a day after they were fetched, with a warning; so a key that Google withdraws is believed for a day
//! at most. A server that failed is asked again after five seconds. Without keys, and for an unknown key
//! id while the server is down, the answer is 503, since the token may be good.
//!
//! [removed]: https://cloud.google.com/run/docs/troubleshooting#signature-removed
//! [s2s]: https://cloud.google.com/run/docs/authenticating/service-to-service

mod bearer;
mod config;
mod fetch;
mod invalid;
mod keys;
mod layer;
mod refusal;
mod report;
mod service;
mod token;

pub use self::invalid::InvalidPushAuth;
pub use self::layer::PushAuthLayer;
pub use self::service::{PushAuthService, ResponseFuture};
pub use self::token::Caller;
