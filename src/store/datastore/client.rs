//! The calls: each is one attempt within one deadline.

use std::error::Error as _;
use std::future::Future;
use std::time::Duration;

use gcloud_sdk::GoogleAuthMiddleware;
use gcloud_sdk::google::datastore::v1::commit_request::Mode;
use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google::datastore::v1::mutation::{
    ConflictDetectionStrategy, ConflictResolutionStrategy, Operation,
};
use gcloud_sdk::google::datastore::v1::read_options::{ConsistencyType, ReadConsistency};
use gcloud_sdk::google::datastore::v1::run_query_request::QueryType;
use gcloud_sdk::tonic::{Request, Response, Status};
use tokio::time::{Instant, timeout_at};

use super::connection::Line;
use super::fault::{self, Call};
use super::{Space, pb};
use crate::store::StoreError;

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
    line: Line,
    timeout: Duration,
}

impl Client {
    pub(super) fn new(server: Server, timeout: Duration) -> Self {
        Self { line: Line::new(server, timeout), timeout }
    }

    pub(super) fn server(&self) -> &Server {
        self.line.server()
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
        let (api, waiting) = timeout_at(deadline, self.line.open(space))
            .await
            .map_err(|_| StoreError::unavailable(format!("no access token within {limit:?}")))??;
        let mut request = Request::new(message);
        // So that the server gives up too, and fewer writes land late.
        request.set_timeout(deadline.saturating_duration_since(Instant::now()));
        let answer = timeout_at(deadline, send(api, request)).await;
        // A status that has a source was made here: the channel counts the time too.
        if matches!(&answer, Ok(Ok(_))) || matches!(&answer, Ok(Err(status)) if status.source().is_none()) {
            waiting.answered();
        }
        match answer {
            Ok(Ok(answer)) => Ok(Some(answer.into_inner())),
            Ok(Err(status)) => fault::of_status(space, call, status).map_or(Ok(None), Err),
            Err(_) if call.writes() => Err(StoreError::unanswered(format!("no answer within {limit:?}"))),
            Err(_) => Err(StoreError::unavailable(format!("no answer within {limit:?}"))),
        }
    }
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
