//! What an error of Google's library means: refused, surely not sent, or nobody knows.

use google_cloud_gax::client_builder::Error as BuilderError;
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::error::PublishError as Failed;

use crate::publish::PublishError;
use crate::store::BoxError;

/// No client could be made, so nothing was sent.
pub(super) fn not_connected(error: BuilderError) -> PublishError {
    let what = "the Pub/Sub client cannot be made".to_owned();
    let source: Option<BoxError> = Some(error.into());
    PublishError::Unavailable { what, source }
}

/// In doubt nobody knows: a message that is there twice is dropped by its consumer, and one that is
/// taken for lost is lost.
pub(super) fn meant(failed: Failed) -> PublishError {
    let (kind, what) = match &failed {
        Failed::Rpc(error) => match error.status() {
            Some(status) => (by_code(status.code), format!("{}: {}", status.code, status.message)),
            None if error.is_transient_and_before_rpc() => {
                (Kind::Unavailable, "the request could not be made".to_owned())
            }
            None if error.is_authentication() => (Kind::Refused, "no access token".to_owned()),
            None if error.is_binding() || error.is_serialization() => {
                (Kind::Refused, "the library cannot send it".to_owned())
            }
            None => (Kind::Unanswered, "the answer was lost".to_owned()),
        },
        // It was not handed on. With a publisher for each message it cannot be.
        Failed::OrderingKeyPaused => (Kind::Unavailable, "its ordering key is held back".to_owned()),
        _ => (Kind::Unanswered, "the library ended before the answer".to_owned()),
    };
    let source: Option<BoxError> = Some(failed.into());
    match kind {
        Kind::Refused => PublishError::Refused { what, source },
        Kind::Unavailable => PublishError::Unavailable { what, source },
        Kind::Unanswered => PublishError::Unanswered { what, source },
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Refused,
    Unavailable,
    Unanswered,
}

/// Pub/Sub's error codes: <https://cloud.google.com/pubsub/docs/reference/error-codes>. Only what is
/// decided before a message is taken says that it was not.
fn by_code(code: Code) -> Kind {
    match code {
        Code::InvalidArgument
        | Code::NotFound
        | Code::PermissionDenied
        | Code::Unauthenticated
        | Code::FailedPrecondition
        | Code::Unimplemented => Kind::Refused,
        // Over a quota.
        Code::ResourceExhausted => Kind::Unavailable,
        _ => Kind::Unanswered,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use google_cloud_auth::errors::CredentialsError;
    use google_cloud_gax::error::Error;

    use super::*;

    fn of(error: Error) -> PublishError {
        meant(Failed::Rpc(Arc::new(error)))
    }

    #[test]
    fn what_happened_before_the_request_is_told_from_what_may_have_happened_after_it() {
        let unavailable = of(Error::authentication(CredentialsError::from_msg(true, "no network")));
        assert!(matches!(unavailable, PublishError::Unavailable { .. }), "{unavailable:?}");
        let unavailable = meant(Failed::OrderingKeyPaused);
        assert!(matches!(unavailable, PublishError::Unavailable { .. }), "{unavailable:?}");

        let refused = of(Error::authentication(CredentialsError::from_msg(false, "no such key")));
        assert!(matches!(refused, PublishError::Refused { .. }), "{refused:?}");
        let refused = of(Error::binding("no topic"));
        assert!(matches!(refused, PublishError::Refused { .. }), "{refused:?}");

        for error in [Error::timeout("late"), Error::io("reset"), Error::deser("no answer")] {
            let unanswered = of(error);
            assert!(matches!(unanswered, PublishError::Unanswered { .. }), "{unanswered:?}");
        }
        let unanswered = meant(Failed::Shutdown);
        assert!(matches!(unanswered, PublishError::Unanswered { .. }), "{unanswered:?}");
    }
}
