//! An emulator of Firestore in Datastore mode: the store in front of it, and the raw API past the store.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use gcloud_sdk::google::datastore::v1 as pb;
use gcloud_sdk::google::datastore::v1::commit_request::Mode;
use gcloud_sdk::google::datastore::v1::datastore_client::DatastoreClient;
use gcloud_sdk::google::datastore::v1::key::PathElement;
use gcloud_sdk::google::datastore::v1::key::path_element::IdType;
use gcloud_sdk::google::datastore::v1::mutation::Operation;
use gcloud_sdk::google::datastore::v1::value::ValueType;
use gcloud_sdk::tonic::transport::Channel;
use pushonce::store::record::{Id, Record};
use pushonce::store::{Datastore, DatastoreBuilder};
use pushonce::{IntoKey, Key};

pub(crate) const PROJECT: &str = "p1";

/// One emulator, and a namespace that nobody else has.
pub(crate) struct Emulator {
    pub(crate) host: String,
    pub(crate) namespace: String,
}

impl Emulator {
    fn of(variable: &str, what: &str) -> Self {
        let host = std::env::var(variable).ok().filter(|host| !host.is_empty());
        Self::at(&host.unwrap_or_else(|| panic!("set {variable}=host:port of {what}")))
    }

    /// The emulator at that `host:port`.
    pub(crate) fn at(host: &str) -> Self {
        Self { host: host.to_owned(), namespace: format!("t-{:016x}", RandomState::new().hash_one(0)) }
    }

    pub(crate) fn datastore() -> Self {
        Self::of("DATASTORE_EMULATOR_HOST", "the Datastore emulator, run with --firestore_in_datastore_mode")
    }

    pub(crate) fn firestore() -> Self {
        Self::of("PUSHONCE_TEST_FIRESTORE", "the Firestore emulator, run with --database-mode=datastore-mode")
    }

    pub(crate) fn builder(&self, host: &str) -> DatastoreBuilder {
        let builder = Datastore::builder(PROJECT).namespace(&self.namespace).emulator(host);
        builder.request_timeout(Duration::from_secs(30))
    }

    pub(crate) fn store(&self) -> Datastore {
        self.builder(&self.host).build().unwrap()
    }

    /// Past the store: the raw API.
    async fn raw(&self) -> DatastoreClient<Channel> {
        DatastoreClient::connect(format!("http://{}", self.host)).await.unwrap()
    }

    fn raw_key(&self, key: &Key) -> pb::Key {
        let partition_id = pb::PartitionId {
            project_id: PROJECT.into(),
            namespace_id: self.namespace.clone(),
            ..Default::default()
        };
        let id_type = Some(IdType::Name(key.stored_name(1500)));
        pb::Key {
            partition_id: Some(partition_id),
            path: vec![PathElement { kind: "pushonce".into(), id_type }],
        }
    }

    pub(crate) async fn raw_read(&self, key: &Key) -> Option<pb::EntityResult> {
        let request = pb::LookupRequest {
            project_id: PROJECT.into(),
            keys: vec![self.raw_key(key)],
            ..Default::default()
        };
        self.raw().await.lookup(request).await.unwrap().into_inner().found.into_iter().next()
    }

    async fn raw_write(&self, operation: Operation) {
        let request = pb::CommitRequest {
            project_id: PROJECT.into(),
            mode: Mode::NonTransactional.into(),
            mutations: vec![pb::Mutation { operation: Some(operation), ..Default::default() }],
            ..Default::default()
        };
        self.raw().await.commit(request).await.unwrap();
    }

    pub(crate) async fn delete(&self, key: &Key) {
        self.raw_write(Operation::Delete(self.raw_key(key))).await;
    }

    /// Rewrites one text property of the entity, as another version or an operator would.
    pub(crate) async fn rewrite(&self, key: &Key, property: &str, text: &str) {
        let mut entity = self.raw_read(key).await.unwrap().entity.unwrap();
        entity.properties.get_mut(property).unwrap().value_type = Some(ValueType::StringValue(text.into()));
        self.raw_write(Operation::Update(entity)).await;
    }
}

pub(crate) fn key() -> Key {
    ("orders", "po-1").into_key().unwrap()
}

pub(crate) fn record(token: u128) -> Record {
    let document = r#"{"format":100,"state":"claimed","verb":"lock","fence":7,"holder":"0a","token":"01",
        "lease_us":900000000,"ttl_us":604800000000,"ended":"fresh","written_us":1700000000000000,
        "expires_us":1800000000000001}"#;
    let mut record = Record::decode(document.as_bytes()).unwrap();
    record.token = Id::from_bits(token);
    record
}
