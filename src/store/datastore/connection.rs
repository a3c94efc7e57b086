//! The connection: opened by the first call, and replaced when it fell silent.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google_cloud_auth::credentials::anonymous;
use gcloud_sdk::tonic::transport::{ClientTlsConfig, Endpoint};
use gcloud_sdk::{GoogleAuthHeaders, GoogleAuthMiddleware, GoogleAuthMiddlewareLayer};
use tokio::sync::OnceCell;
use tokio::time::Instant;
use tower_layer::Layer as _;

use super::client::Server;
use super::{Space, fault};
use crate::store::StoreError;

const GOOGLE: &str = "https://datastore.googleapis.com";
/// How often an open connection is proved alive: a frozen instance or a dropped NAT entry closes none.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How long it then may stay silent. Short, since until then every call on it would wait in vain.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(5);
/// A call that was given up sooner says nothing of its connection.
const SILENT: Duration = Duration::from_secs(1);

/// The way to the server: one connection for all calls.
pub(super) struct Line {
    server: Server,
    timeout: Duration,
    credentials: OnceCell<Arc<GoogleAuthHeaders>>,
    connection: Mutex<Option<Connection>>,
}

#[derive(Clone)]
struct Connection {
    api: DatastoreClient<GoogleAuthMiddleware>,
    /// How many calls it has answered.
    answered: Arc<AtomicU64>,
}

impl Line {
    pub(super) fn new(server: Server, timeout: Duration) -> Self {
        Self { server, timeout, credentials: OnceCell::new(), connection: Mutex::new(None) }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// The connection for one call, with a token that is fresh. Nothing is dialled here: the channel dials
    /// with the first request, once for all who wait, and again after a failure or a loss.
    pub(super) async fn open(
        &self,
        space: &Space,
    ) -> Result<(DatastoreClient<GoogleAuthMiddleware>, Waiting<'_>), StoreError> {
        let refused = |error| fault::of_credentials(space, error);
        let credentials = self.credentials.get_or_try_init(|| self.log_in()).await.map_err(refused)?;
        credentials.headers().await.map_err(refused)?;
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let connection = match &*connection {
            Some(connection) => connection.clone(),
            None => connection.insert(self.connect(space, credentials).map_err(refused)?).clone(),
        };
        let before = connection.answered.load(Ordering::Relaxed);
        let waiting = Waiting { line: self, answered: connection.answered, before, since: Instant::now() };
        Ok((connection.api, waiting))
    }

    async fn log_in(&self) -> gcloud_sdk::error::Result<Arc<GoogleAuthHeaders>> {
        Ok(Arc::new(if self.server == Server::Google {
            GoogleAuthHeaders::from_adc().await?
        } else {
            GoogleAuthHeaders::from(anonymous::Builder::new().build())
        }))
    }

    fn connect(
        &self,
        space: &Space,
        credentials: &Arc<GoogleAuthHeaders>,
    ) -> gcloud_sdk::error::Result<Connection> {
        let url = match &self.server {
            Server::Google => GOOGLE,
            Server::Emulator(url) | Server::StandIn(url) => url,
        };
        let mut endpoint = Endpoint::from_shared(url.to_owned())?
            // Shorter than a call, so that a server that cannot be reached is told from one that is silent.
            .connect_timeout(self.timeout * 3 / 4)
            .tcp_keepalive(Some(KEEP_ALIVE))
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE_ANSWER)
            .keep_alive_while_idle(true);
        if self.server == Server::Google {
            endpoint = endpoint.tls_config(ClientTlsConfig::new().with_webpki_roots())?;
        }
        let mut auth = GoogleAuthMiddlewareLayer::new(credentials.clone(), None)?
            .amend_user_agent(concat!("pushonce/", env!("CARGO_PKG_VERSION")).to_owned())?;
        auth.set_additional_headers(routing(space)?);
        let api = DatastoreClient::new(auth.layer(endpoint.connect_lazy()));
        Ok(Connection { api, answered: Arc::default() })
    }
}

/// A call that waits for its answer. Dropped without one, it gives up the connection, if that has answered
/// nobody meanwhile: behind a lost NAT entry every call would wait in vain until the next proof of life.
/// A call that only its own key keeps waiting does no harm to others, who go on with what they have.
#[must_use = "dropped, it has no answer"]
pub(super) struct Waiting<'a> {
    line: &'a Line,
    answered: Arc<AtomicU64>,
    before: u64,
    since: Instant,
}

impl Waiting<'_> {
    pub(super) fn answered(self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.answered.load(Ordering::Relaxed) != self.before || self.since.elapsed() < SILENT {
            return;
        }
        let mut connection = self.line.connection.lock().unwrap_or_else(PoisonError::into_inner);
        // By now it may be another one.
        if connection.as_ref().is_some_and(|connection| Arc::ptr_eq(&connection.answered, &self.answered)) {
            *connection = None;
        }
    }
}

/// By this header Google routes to a named database; the values are checked names, of which only a
/// project's colon has to be escaped.
fn routing(space: &Space) -> gcloud_sdk::error::Result<http::HeaderMap> {
    let mut value = format!("project_id={}", space.project.replace(':', "%3A"));
    if !space.database.is_empty() {
        value = format!("{value}&database_id={}", space.database);
    }
    let value = http::HeaderValue::from_str(&value)?;
    Ok([(http::HeaderName::from_static("x-goog-request-params"), value)].into_iter().collect())
}
