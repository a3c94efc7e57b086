//! What a gRPC status means for each call: the one table.

use std::error::Error;

use gcloud_sdk::error::ErrorKind;
use gcloud_sdk::tonic::{Code, ConnectError, Status};

use super::Space;
use crate::store::StoreError;

/// The longest part of a server's message that an error repeats, in characters.
const QUOTED: usize = 300;

/// What was asked. It decides what an answer can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Lookup,
    Query,
    Insert,
    Update,
    Delete,
}

impl Call {
    pub(super) fn writes(self) -> bool {
        matches!(self, Self::Insert | Self::Update | Self::Delete)
    }
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// The condition does not hold, and nothing was written.
    Lost,
    /// It may pass.
    Passing,
    /// It will not pass until this is mended.
    Mend(&'static str),
}

const ROLE: &str = "enable the Cloud Datastore API in the project and grant its service account the role roles/datastore.user";
const CREDENTIALS: &str = "its credentials are not valid: check the Application Default Credentials";
const DATABASE: &str = "check the project and the database: is there one of that name?";
const MODE: &str = "the database must be Firestore in Datastore mode";
const REQUEST: &str = "the server does not take this request: check the project, the database and the kind";

/// The table. Every code that may pass after a commit leaves open whether the write landed: a server,
/// a proxy and our own connection all answer with the same codes.
fn meaning(call: Call, code: Code, message: &str) -> Meaning {
    match (code, call) {
        (Code::AlreadyExists, Call::Insert) | (Code::NotFound, Call::Update | Call::Delete) => Meaning::Lost,
        (Code::FailedPrecondition, _) if call.writes() && !tells_of_mode(message) => Meaning::Lost,
        (Code::FailedPrecondition, _) => Meaning::Mend(MODE),
        (Code::NotFound, _) => Meaning::Mend(DATABASE),
        (Code::PermissionDenied, _) => Meaning::Mend(ROLE),
        (Code::Unauthenticated, _) => Meaning::Mend(CREDENTIALS),
        (Code::InvalidArgument | Code::OutOfRange | Code::Unimplemented | Code::AlreadyExists, _) => {
            Meaning::Mend(REQUEST)
        }
        // Also ABORTED: it says that another writer was in the way, not which of the two is stored.
        (
            Code::Unavailable
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::Internal
            | Code::Unknown
            | Code::Cancelled
            | Code::ResourceExhausted
            | Code::DataLoss
            | Code::Ok,
            _,
        ) => Meaning::Passing,
    }
}

/// A stale version and a database of the wrong mode have the same code.
fn tells_of_mode(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("native mode") || message.contains("datastore mode")
}

/// The error that a status means; `None`: the condition does not hold, and nothing was written.
pub(super) fn of_status(space: &Space, call: Call, status: Status) -> Option<StoreError> {
    let (code, said) = (status.code(), quoted(status.message()));
    Some(match meaning(call, code, status.message()) {
        Meaning::Lost => return None,
        Meaning::Passing => StoreError::Unavailable {
            what: format!("{code:?}: {said}"),
            may_have_written: call.writes() && !never_sent(&status),
            source: Some(status.into()),
        },
        Meaning::Mend(remedy) => {
            refused(space, &format!("{code:?}: {remedy}; it said: {said}"), status.into())
        }
    })
}

/// The error of a connection that could not be prepared: no credentials, or no token for them.
/// Nothing was sent.
pub(super) fn of_credentials(space: &Space, error: gcloud_sdk::error::Error) -> StoreError {
    // A token endpoint that cannot be reached is an outage; credentials that can never work are not.
    let passing = match error.kind() {
        ErrorKind::Credentials(error) => error.is_transient(),
        ErrorKind::Http(_) | ErrorKind::GrpcStatus(_) => true,
        ErrorKind::HttpStatus(status) => status.is_server_error(),
        _ => false,
    };
    if passing {
        let what = "no access token could be fetched: is this Google Cloud, or are Application Default Credentials set up?".to_owned();
        return StoreError::Unavailable { what, may_have_written: false, source: Some(error.into()) };
    }
    refused(
        space,
        "no credentials: on Cloud Run give the service a service account, elsewhere run `gcloud auth \
         application-default login`, for an emulator set DATASTORE_EMULATOR_HOST",
        error.into(),
    )
}

fn refused(space: &Space, what: &str, source: crate::store::BoxError) -> StoreError {
    let database = if space.database.is_empty() { "(default)" } else { &space.database };
    let what = format!("Datastore, project `{}`, database `{database}`: {what}", space.project);
    StoreError::Refused { what, source: Some(source) }
}

/// Whether the connection failed before the request could leave.
fn never_sent(status: &Status) -> bool {
    std::iter::successors(status.source(), |&error| error.source()).any(|error| error.is::<ConnectError>())
}

fn quoted(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [Call; 5] = [Call::Lookup, Call::Query, Call::Insert, Call::Update, Call::Delete];
    const STALE: &str = "the stored version (35) does not match the required base version (34)";
    const NATIVE: &str =
        "The Cloud Datastore API is not available for Firestore in Native Mode database p/d.";

    fn space() -> Space {
        let name = || "p1".to_owned();
        Space { project: name(), database: String::new(), namespace: name(), kind: name() }
    }

    fn error(call: Call, code: Code, message: &str) -> Option<StoreError> {
        of_status(&space(), call, Status::new(code, message))
    }

    #[test]
    fn a_condition_that_does_not_hold_is_lost() {
        assert!(error(Call::Insert, Code::AlreadyExists, "entity already exists").is_none());
        assert!(error(Call::Update, Code::NotFound, "no entity to update").is_none());
        assert!(error(Call::Update, Code::FailedPrecondition, STALE).is_none());
        assert!(error(Call::Insert, Code::FailedPrecondition, "").is_none());
        assert!(error(Call::Delete, Code::FailedPrecondition, STALE).is_none());
        assert!(error(Call::Delete, Code::NotFound, "").is_none());
    }

    #[test]
    fn what_may_pass_is_transient_and_leaves_a_commit_open() {
        for code in [
            Code::Unavailable,
            Code::DeadlineExceeded,
            Code::Aborted,
            Code::Internal,
            Code::Unknown,
            Code::Cancelled,
            Code::ResourceExhausted,
            Code::DataLoss,
        ] {
            for call in CALLS {
                let error = error(call, code, "try again").unwrap();
                assert!(error.is_transient(), "{call:?} {code:?}");
                assert_eq!(error.may_have_written(), call.writes(), "{call:?} {code:?}");
            }
        }
    }

    #[test]
    fn what_must_be_mended_is_refused_with_what_to_mend() {
        for call in CALLS {
            for (code, message, remedy) in [
                (Code::PermissionDenied, "Missing or insufficient permissions.", "roles/datastore.user"),
                (Code::Unauthenticated, "invalid token", "Application Default Credentials"),
                (Code::InvalidArgument, "bad kind", "check the project, the database and the kind"),
                (Code::Unimplemented, "no such method", "check the project, the database and the kind"),
                (Code::FailedPrecondition, NATIVE, "must be Firestore in Datastore mode"),
            ] {
                let error = error(call, code, message).unwrap();
                let text = error.to_string();
                assert!(matches!(error, StoreError::Refused { .. }), "{call:?} {code:?}");
                assert!(text.contains(remedy) && text.contains(message) && text.contains("p1"), "{text}");
            }
        }
        for (call, code) in [
            (Call::Lookup, Code::NotFound),
            (Call::Query, Code::NotFound),
            (Call::Query, Code::FailedPrecondition),
            (Call::Insert, Code::NotFound),
            (Call::Lookup, Code::FailedPrecondition),
        ] {
            assert!(
                matches!(error(call, code, "").unwrap(), StoreError::Refused { .. }),
                "{call:?} {code:?}"
            );
        }
    }

    #[test]
    fn a_connection_that_was_refused_has_sent_nothing() {
        let unconnected = Status::from_error(Box::new(ConnectError("refused".into())));
        let error = of_status(&space(), Call::Insert, unconnected).unwrap();
        assert!(error.is_transient() && !error.may_have_written());
    }
}
