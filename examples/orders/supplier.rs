//! The outside world: what an order costs money at.

use axum::body::Body;
use http::uri::Scheme;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use pushonce::{Delivery, Lease};

use super::BoxError;
use super::settings::variable;

/// A supplier, which is sent each order.
#[derive(Clone)]
pub(super) struct Supplier {
    client: Client<HttpConnector, Body>,
    url: Option<http::Uri>,
}

impl Supplier {
    pub(super) fn from_env() -> Result<Self, BoxError> {
        let parsed = |url: String| {
            let parsed = url.parse::<http::Uri>().ok().filter(|url| url.scheme() == Some(&Scheme::HTTP));
            // Not repeated: a URL may hold a password.
            parsed.ok_or(
                "`SUPPLIER_URL` is no URL: expected http://host:port/path (this example speaks no TLS)",
            )
        };
        let url = variable("SUPPLIER_URL")?.map(parsed).transpose()?;
        Ok(Self { client: Client::builder(TokioExecutor::new()).build_http(), url })
    }

    pub(super) async fn send(&self, lease: &Lease, delivery: &Delivery) -> Result<(), BoxError> {
        let effect = lease.effect_id("supply");
        let Some(url) = &self.url else {
            tracing::info!(key = %lease.key(), effect, "no SUPPLIER_URL: nothing is sent");
            return Ok(());
        };
        let request = http::Request::post(url)
            .header("idempotency-key", effect)
            // A supplier that remembers the highest fence can refuse a holder that was replaced.
            .header("pushonce-fence", lease.fence())
            .header("pushonce-history", format!("{:?}", lease.history()))
            .body(Body::from(delivery.data()?))?;
        let status = self.client.request(request).await?.status();
        if !status.is_success() {
            return Err(format!("the supplier answered {status}").into());
        }
        Ok(())
    }
}
