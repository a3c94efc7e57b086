//! The connection: opened by the first call, and one attempt within one deadline for each call.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use gcloud_sdk::google::datastore::v1::commit_request::Mode;
use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google::datastore::v1::mutation::{
    ConflictDetectionStrategy, ConflictResolutionStrategy, Operation,
};
use gcloud_sdk::google::datastore::v1::read_options::{ConsistencyType, ReadConsistency};
use gcloud_sdk::google::datastore::v1::run_query_request::QueryType;
use gcloud_sdk::google_cloud_auth::credentials::anonymous;
use gcloud_sdk::tonic::transport::{ClientTlsConfig, Endpoint};
use gcloud_sdk::tonic::{Request, Response, Status};
use gcloud_sdk::{GoogleAuthHeaders, GoogleAuthMiddleware, GoogleAuthMiddlewareLayer};
use tokio::sync::OnceCell;
use tokio::time::{Instant, timeout_at};
use tower_layer::Layer as _;

use super::fault::{self, Call};
use super::{Space, pb};
use crate::store::StoreError;

const GOOGLE: &str = "https://datastore.googleapis.com";
/// How often an open connection is proved alive: a frozen instance or a dropped NAT entry closes none.
const KEEP_ALIVE: Duration = Duration::from_secs(60);
/// How long it then may stay silent. Short, since until then every call on it would wait in vain.
const KEEP_ALIVE_ANSWER: Duration = Duration::from_secs(5);

/// Who answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Server {
    /// Google Cloud, with Application Default Credentials.
    Google,
    /// An emulator at this URL, without credentials.
    Emulator(String),
    /// A stand-in for Google Cloud at this URL, without credentials; for tests.
    StandIn(String),
}

/// One write, with its condition.
pub(super) enum Write {
    Insert(pb::Entity),
    Update { entity: pb::Entity, base: i64 },
    Delete { key: pb::Key, base: i64 },
}

pub(super) struct Client {
    server: Server,
    timeout: Duration,
    connection: OnceCell<Connection>,
}

#[derive(Clone)]
struct Connection {
    api: DatastoreClient<GoogleAuthMiddleware>,
    credentials: Arc<GoogleAuthHeaders>,
}

impl Client {
    pub(super) fn new(server: Server, timeout: Duration) -> Self {
        Self { server, timeout, connection: OnceCell::new() }
    }

    pub(super) fn server(&self) -> &Server {
        &self.server
    }

    /// One strongly consistent lookup of one key.
    pub(super) async fn lookup(&self, space: &Space, key: pb::Key) -> Result<pb::LookupResponse, StoreError> {
        let strong = ConsistencyType::ReadConsistency(ReadConsistency::Strong.into());
        let request = pb::LookupRequest {
            project_id: space.project.clone(),
            database_id: space.database.clone(),
            read_options: Some(pb::ReadOptions { consistency_type: Some(strong) }),
            keys: vec![key],
            ..pb::LookupRequest::default()
        };
        let send = |mut api: DatastoreClient<_>, request| async move { api.lookup(request).await };
        let answer = self.call(space, Call::Lookup, request, send).await?;
        answer.ok_or_else(|| StoreError::unavailable("a lookup was answered as a lost write"))
    }

    /// One strongly consistent query of one kind.
    pub(super) async fn query(
        &self,
        space: &Space,
        query: pb::Query,
    ) -> Result<pb::QueryResultBatch, StoreError> {
        let strong = ConsistencyType::ReadConsistency(ReadConsistency::Strong.into());
        let request = pb::RunQueryRequest {
            project_id: space.project.clone(),
            database_id: space.database.clone(),
            partition_id: Some(space.partition()),
            read_options: Some(pb::ReadOptions { consistency_type: Some(strong) }),
            query_type: Some(QueryType::Query(query)),
            ..pb::RunQueryRequest::default()
        };
        let send = |mut api: DatastoreClient<_>, request| async move { api.run_query(request).await };
        let answer = self.call(space, Call::Query, request, send).await?;
        let batch = answer.and_then(|answer| answer.batch);
        batch.ok_or_else(|| StoreError::unavailable("a query was answered without a batch"))
    }

    /// One mutation in a commit of its own, outside any transaction. `None`: its condition does not
    /// hold, and nothing was written.
    pub(super) async fn commit(
        &self,
        space: &Space,
        write: Write,
    ) -> Result<Option<pb::MutationResult>, StoreError> {
        let (call, mutation) = match write {
            Write::Insert(entity) => (Call::Insert, mutation(Operation::Insert(entity))),
            Write::Update { entity, base } => (Call::Update, on_version(base, Operation::Update(entity))),
            Write::Delete { key, base } => (Call::Delete, on_version(base, Operation::Delete(key))),
        };
        let request = pb::CommitRequest {
            project_id: space.project.clone(),
            database_id: space.database.clone(),
            mode: Mode::NonTransactional.into(),
            mutations: vec![mutation],
            ..pb::CommitRequest::default()
        };
        let send = |mut api: DatastoreClient<_>, request| async move { api.commit(request).await };
        let Some(answer) = self.call(space, call, request, send).await? else { return Ok(None) };
        let result = answer.mutation_results.into_iter().next().unwrap_or_default();
        // FAIL makes a conflict an error; a server that reports it in this way has written nothing either.
        Ok((!result.conflict_detected).then_some(result))
    }

    /// One attempt within the request timeout, the access token included.
    async fn call<Q, A, F>(
        &self,
        space: &Space,
        call: Call,
        message: Q,
        send: impl FnOnce(DatastoreClient<GoogleAuthMiddleware>, Request<Q>) -> F,
    ) -> Result<Option<A>, StoreError>
    where
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let limit = self.timeout;
        let deadline = Instant::now() + limit;
        // The token on its own first: only what fails before the request may say that nothing was written.
        let connection = timeout_at(deadline, self.connection(space))
            .await
            .map_err(|_| StoreError::unavailable(format!("no access token within {limit:?}")))??;
        let mut request = Request::new(message);
        // So that the server gives up too, and fewer writes land late.
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        match timeout_at(deadline, send(connection.api, request)).await {
            Ok(Ok(answer)) => Ok(Some(answer.into_inner())),
            Ok(Err(status)) => fault::of_status(space, call, status).map_or(Ok(None), Err),
            Err(_) if call.writes() => Err(StoreError::unanswered(format!("no answer within {limit:?}"))),
            Err(_) => Err(StoreError::unavailable(format!("no answer within {limit:?}"))),
        }
    }

    /// The one connection, with a token that is fresh.
    async fn connection(&self, space: &Space) -> Result<Connection, StoreError> {
        let credentials = |error| fault::of_credentials(space, error);
        let connection =
            self.connection.get_or_try_init(|| self.open(space)).await.map_err(credentials)?.clone();
        connection.credentials.headers().await.map_err(credentials)?;
        Ok(connection)
    }

    // Nothing is dialled here either: the channel dials with the first request, once for all who wait,
    // and again after a failure or a loss.
    async fn open(&self, space: &Space) -> gcloud_sdk::error::Result<Connection> {
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
        let credentials = Arc::new(if self.server == Server::Google {
            endpoint = endpoint.tls_config(ClientTlsConfig::new().with_webpki_roots())?;
            GoogleAuthHeaders::from_adc().await?
        } else {
            GoogleAuthHeaders::from(anonymous::Builder::new().build())
        });
        let mut auth = GoogleAuthMiddlewareLayer::new(credentials.clone(), None)?
            .amend_user_agent(concat!("pushonce/", env!("CARGO_PKG_VERSION")).to_owned())?;
        auth.set_additional_headers(routing(space)?);
        let api = DatastoreClient::new(auth.layer(endpoint.connect_lazy()));
        Ok(Connection { api, credentials })
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

pub(super) fn on_version(base: i64, operation: Operation) -> pb::Mutation {
    pb::Mutation {
        conflict_detection_strategy: Some(ConflictDetectionStrategy::BaseVersion(base)),
        // Without it the Firestore emulator writes whatever the version is.
        conflict_resolution_strategy: ConflictResolutionStrategy::Fail.into(),
        ..mutation(operation)
    }
}

fn mutation(operation: Operation) -> pb::Mutation {
    pb::Mutation { operation: Some(operation), ..pb::Mutation::default() }
}
