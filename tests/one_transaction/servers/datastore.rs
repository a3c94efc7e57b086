//! One transaction on Datastore: the completing mutation goes into the handler's own transactional commit.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::post;
use gcloud_sdk::google::datastore::v1 as pb;
use gcloud_sdk::google::datastore::v1::commit_request::{Mode, TransactionSelector};
use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google::datastore::v1::key::PathElement;
use gcloud_sdk::google::datastore::v1::mutation::Operation;
use gcloud_sdk::google::datastore::v1::read_options::ConsistencyType;
use gcloud_sdk::google::datastore::v1::run_query_request::QueryType;
use gcloud_sdk::google::datastore::v1::transaction_options;
use gcloud_sdk::tonic::transport::Channel;
use pushonce::store::record::{Ended, State};
use pushonce::store::{BoxError, Datastore};
use pushonce::{
    Ack, CommitError, Completion, Failure, IdempotentLayer, IntoKey as _, Lease, Store as _, lock,
};
use tokio::sync::oneshot;

use super::both_emulators::on_both_emulators;
use super::emulator::{Emulator, PROJECT};
use super::proxy::{Cut, Proxy};
use crate::world::{DUPLICATE, RAN, RAN_LOUDLY, ROLLED_BACK, Runs, UNAVAILABLE, push};

const LEASE: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(60);

/// A store, the handler's own entities beside it, and the handler's own client.
struct Scene {
    store: Arc<Datastore>,
    namespace: String,
    api: DatastoreClient<Channel>,
}

impl Scene {
    async fn of(emulator: &Emulator) -> Arc<Self> {
        Self::through(emulator, &emulator.host).await
    }

    /// The handler reaches the server at that address.
    async fn through(emulator: &Emulator, host: &str) -> Arc<Self> {
        let channel = Channel::from_shared(format!("http://{host}")).unwrap().connect_lazy();
        let api = DatastoreClient::new(channel);
        Arc::new(Self { store: Arc::new(emulator.store()), namespace: emulator.namespace.clone(), api })
    }

    fn layer(&self) -> IdempotentLayer {
        IdempotentLayer::new("orders", self.store.clone())
    }

    fn app<F, W>(self: &Arc<Self>, layer: IdempotentLayer, work: F) -> Router
    where
        F: Fn(Arc<Self>, Lease) -> W + Clone + Send + Sync + 'static,
        W: Future<Output = Result<(), BoxError>> + Send + 'static,
    {
        let scene = self.clone();
        let handler = move |lease: Lease| {
            let work = work(scene.clone(), lease);
            async move { work.await.map(|()| Ack).map_err(Failure::from) }
        };
        Router::new().route("/", post(handler).layer(layer))
    }

    /// A commit in a transaction of its own, with one effect: an entity whose id the server chooses,
    /// so that one that is written twice is there twice.
    fn single_use(&self) -> pb::CommitRequest {
        let read_write = transaction_options::Mode::ReadWrite(transaction_options::ReadWrite::default());
        let options = pb::TransactionOptions { mode: Some(read_write) };
        self.request(TransactionSelector::SingleUseTransaction(options))
    }

    /// The same in a transaction that was begun before, and has read what is the handler's own.
    async fn begun(&self) -> Result<pb::CommitRequest, BoxError> {
        let request = pb::BeginTransactionRequest {
            project_id: PROJECT.into(),
            ..pb::BeginTransactionRequest::default()
        };
        let transaction = self.api.clone().begin_transaction(request).await?.into_inner().transaction;
        let read = pb::LookupRequest {
            project_id: PROJECT.into(),
            keys: vec![self.key(Some("an order"))],
            read_options: Some(pb::ReadOptions {
                consistency_type: Some(ConsistencyType::Transaction(transaction.clone())),
            }),
            ..pb::LookupRequest::default()
        };
        self.api.clone().lookup(read).await?;
        Ok(self.request(TransactionSelector::Transaction(transaction)))
    }

    fn request(&self, transaction: TransactionSelector) -> pb::CommitRequest {
        let effect = pb::Entity { key: Some(self.key(None)), ..pb::Entity::default() };
        pb::CommitRequest {
            project_id: PROJECT.into(),
            mode: Mode::Transactional.into(),
            transaction_selector: Some(transaction),
            mutations: vec![pb::Mutation {
                operation: Some(Operation::Insert(effect)),
                ..pb::Mutation::default()
            }],
            ..pb::CommitRequest::default()
        }
    }

    fn key(&self, name: Option<&str>) -> pb::Key {
        let id_type =
            name.map(|name| gcloud_sdk::google::datastore::v1::key::path_element::IdType::Name(name.into()));
        pb::Key {
            partition_id: Some(self.partition()),
            path: vec![PathElement { kind: "effect".into(), id_type }],
        }
    }

    fn partition(&self) -> pb::PartitionId {
        pb::PartitionId {
            project_id: PROJECT.into(),
            namespace_id: self.namespace.clone(),
            ..pb::PartitionId::default()
        }
    }

    async fn commit(&self, request: pb::CommitRequest) -> Result<(), BoxError> {
        let limit = Duration::from_secs(4);
        tokio::time::timeout(limit, self.api.clone().commit(request)).await??;
        Ok(())
    }

    async fn effects(&self, emulator: &Emulator) -> usize {
        let kind = vec![pb::KindExpression { name: "effect".into() }];
        let request = pb::RunQueryRequest {
            project_id: PROJECT.into(),
            partition_id: Some(self.partition()),
            query_type: Some(QueryType::Query(pb::Query { kind, ..pb::Query::default() })),
            ..pb::RunQueryRequest::default()
        };
        let mut past = DatastoreClient::connect(format!("http://{}", emulator.host)).await.unwrap();
        past.run_query(request).await.unwrap().into_inner().batch.unwrap().entity_results.len()
    }

    async fn stands(&self, id: &str) -> (State, Ended, u32) {
        let stored = self.store.read(&("orders", id).into_key().unwrap()).await.unwrap().unwrap();
        (stored.record.state, stored.record.ended, stored.record.runs)
    }
}

/// The effect of a message, committed with its key.
async fn effect(scene: Arc<Scene>, lease: Lease) -> Result<(), BoxError> {
    let completion = lease.completion(&scene.store).await?;
    let mut request = scene.single_use();
    completion.execute(&mut request).await?;
    scene.commit(request).await
}

async fn effect_and_key_are_committed_together(emulator: Emulator) {
    let scene = Scene::of(&emulator).await;
    let runs = Runs::default();
    let app = scene.app(scene.layer(), move |scene, lease| {
        let begun = runs.add() == 0;
        async move {
            let completion = lease.completion(&scene.store).await?;
            let mut request = if begun { scene.begun().await? } else { scene.single_use() };
            completion.execute(&mut request).await?;
            scene.commit(request).await
        }
    });
    for (id, effects) in [("begun", 1), ("single use", 2)] {
        assert_eq!(push(&app, id).await, RAN, "{id}");
        assert_eq!(scene.stands(id).await, (State::Done, Ended::Fresh, 0));
        assert_eq!(push(&app, id).await, DUPLICATE, "{id}");
        assert_eq!(scene.effects(&emulator).await, effects);
    }
}

async fn what_was_never_committed_and_a_200_are_nacked_and_the_redelivery_runs(emulator: Emulator) {
    let (scene, runs) = (Scene::of(&emulator).await, Runs::default());
    let app = scene.app(scene.layer(), move |scene, lease| {
        let first = runs.add() == 0;
        async move {
            if !first {
                return effect(scene, lease).await;
            }
            let completion = lease.completion(&scene.store).await?;
            let mut request = scene.begun().await?;
            completion.execute(&mut request).await?;
            let Some(TransactionSelector::Transaction(transaction)) = request.transaction_selector else {
                panic!("it was begun");
            };
            let rollback = pb::RollbackRequest {
                project_id: PROJECT.into(),
                transaction,
                ..pb::RollbackRequest::default()
            };
            scene.api.clone().rollback(rollback).await?;
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    assert_eq!(scene.stands("m").await, (State::Released, Ended::Failed, 1));
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(push(&app, "m").await, DUPLICATE);
    assert_eq!(scene.effects(&emulator).await, 1);
}

async fn a_handler_that_was_replaced_commits_nothing(emulator: Emulator) {
    for careless in [false, true] {
        let scene = Scene::of(&emulator).await;
        let id = format!("m-{careless}");
        let (begun, has_begun) = oneshot::channel();
        let begun = Arc::new(std::sync::Mutex::new(Some(begun)));
        let app = scene.app(scene.layer().lease(LEASE), move |scene, lease| {
            let begun = begun.clone();
            async move {
                let completion = lease.completion(&scene.store).await?;
                let mut request = scene.single_use();
                completion.execute(&mut request).await?;
                begun.lock().unwrap().take().unwrap().send(()).unwrap();
                let replaced = async {
                    while scene.store.read(lease.key()).await.unwrap().unwrap().record.fence == lease.fence()
                    {
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                };
                tokio::time::timeout(PATIENCE, replaced).await?;
                let committed = scene.commit(request).await;
                assert!(committed.is_err(), "a holder that was replaced has committed");
                if careless { Ok(()) } else { committed }
            }
        });
        let zombie = tokio::spawn({
            let id = id.clone();
            async move { push(&app, &id).await }
        });
        has_begun.await.unwrap();
        let (go, gone) = oneshot::channel::<()>();
        let store: Arc<dyn pushonce::Store> = scene.store.clone();
        let key = ("orders", id.as_str()).into_key().unwrap();
        let heir = tokio::spawn(async move {
            lock(key, &store).wait(PATIENCE).run(async move { Ok(gone.await?) }).await
        });
        assert_eq!(zombie.await.unwrap(), UNAVAILABLE, "{careless}");
        assert_eq!(scene.stands(&id).await, (State::Claimed, Ended::Unknown, 1));
        go.send(()).unwrap();
        heir.await.unwrap().unwrap();
        assert_eq!(scene.effects(&emulator).await, 0);
    }
}

async fn a_commit_that_comes_after_the_answer_fails(emulator: Emulator) {
    let scene = Scene::of(&emulator).await;
    let kept = Arc::new(std::sync::Mutex::new(None));
    let keep = kept.clone();
    let app = scene.app(scene.layer(), move |scene, lease| {
        let keep = keep.clone();
        async move {
            let completion = lease.completion(&scene.store).await?;
            let mut request = scene.single_use();
            completion.execute(&mut request).await?;
            *keep.lock().unwrap() = Some(request);
            Ok(())
        }
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
    let late = kept.lock().unwrap().take().unwrap();
    scene.commit(late).await.expect_err("its condition is false now");
    assert_eq!((scene.effects(&emulator).await, scene.stands("m").await.0), (0, State::Released));
}

async fn a_handler_error_after_the_commit_is_acked_and_logged(emulator: Emulator) {
    let scene = Scene::of(&emulator).await;
    let app = scene.app(scene.layer(), |scene, lease| async move {
        effect(scene, lease).await?;
        Err("after the commit".into())
    });
    assert_eq!(push(&app, "m").await, RAN_LOUDLY);
    assert_eq!(push(&app, "m").await, DUPLICATE);
    assert_eq!((scene.effects(&emulator).await, scene.stands("m").await.0), (1, State::Done));
}

async fn the_answer_to_a_commit_is_lost(emulator: Emulator) {
    for (cut, careless) in
        [(Cut::Before, false), (Cut::Before, true), (Cut::Silent, false), (Cut::Silent, true)]
    {
        // Only the handler goes through the proxy, and its commit names the kind of its effect.
        let proxy = Arc::new(Proxy::start(emulator.host.clone(), b"effect").await);
        let scene = Scene::through(&emulator, &proxy.address.to_string()).await;
        let before = scene.effects(&emulator).await;
        let (runs, cutting) = (Runs::default(), proxy.clone());
        let app = scene.app(scene.layer(), move |scene, lease| {
            let (first, proxy) = (runs.add() == 0, cutting.clone());
            async move {
                if first {
                    proxy.cut_next(cut);
                }
                let committed = effect(scene, lease).await;
                assert!(proxy.was_cut() && committed.is_err() == first, "{committed:?}");
                if careless { Ok(()) } else { committed }
            }
        });
        let id = format!("{cut:?}-{careless}");
        let (told, again) = match (cut, careless) {
            (Cut::Before, _) => (ROLLED_BACK, RAN),
            (_, true) => (RAN, DUPLICATE),
            (_, false) => (RAN_LOUDLY, DUPLICATE),
        };
        assert_eq!(push(&app, &id).await, told, "{id}");
        assert_eq!(push(&app, &id).await, again, "{id}");
        assert_eq!(scene.effects(&emulator).await, before + 1, "{id}");
        assert_eq!(scene.stands(&id).await.0, State::Done);
    }
}

async fn a_commit_that_is_no_transaction_is_refused_before_it_is_sent(emulator: Emulator) {
    let scene = Scene::of(&emulator).await;
    let app = scene.app(scene.layer(), |scene, lease| async move {
        let completion: Completion<Datastore> = lease.completion(&scene.store).await?;
        let good = scene.single_use();
        for bad in [
            pb::CommitRequest { mode: Mode::NonTransactional.into(), ..good.clone() },
            pb::CommitRequest { transaction_selector: None, ..good.clone() },
            pb::CommitRequest { database_id: "other".into(), ..good.clone() },
            pb::CommitRequest { project_id: "other".into(), ..good.clone() },
        ] {
            let mut request = bad.clone();
            let refused = completion.execute(&mut request).await.unwrap_err();
            assert!(matches!(refused, CommitError::RolledBack { source: Some(_) }), "{refused:?}");
            assert_eq!(request, bad);
        }
        Ok(())
    });
    assert_eq!(push(&app, "m").await, ROLLED_BACK);
}

async fn a_lease_that_is_renewed_is_completed_on_its_newest_version(emulator: Emulator) {
    let scene = Scene::of(&emulator).await;
    let app = scene.app(scene.layer().lease(LEASE).renew(), |scene, lease| async move {
        // The version that the claim had would be fenced out.
        let version =
            async || scene.store.read(lease.key()).await.map(|stored| stored.map(|found| found.version));
        let claimed = version().await?;
        let renewed = async {
            while version().await? == claimed {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok::<_, BoxError>(())
        };
        tokio::time::timeout(PATIENCE, renewed).await??;
        effect(scene.clone(), lease).await
    });
    assert_eq!(push(&app, "m").await, RAN);
    assert_eq!(push(&app, "m").await, DUPLICATE);
    assert_eq!(scene.effects(&emulator).await, 1);
}

on_both_emulators! {
    effect_and_key_are_committed_together
    what_was_never_committed_and_a_200_are_nacked_and_the_redelivery_runs
    a_handler_that_was_replaced_commits_nothing
    a_commit_that_comes_after_the_answer_fails
    a_handler_error_after_the_commit_is_acked_and_logged
    the_answer_to_a_commit_is_lost
    a_commit_that_is_no_transaction_is_refused_before_it_is_sent
    a_lease_that_is_renewed_is_completed_on_its_newest_version
}
