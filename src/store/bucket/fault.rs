//! What a status, an error code and a broken connection mean for a read and a write: the one table.

use std::error::Error;
use std::iter::successors;
use std::time::Duration;

use http::StatusCode;
use object_store::client::{HttpError, HttpErrorKind};

use crate::store::StoreError;

/// The longest part of a server's message that an error repeats, in characters.
const QUOTED: usize = 300;

/// What was asked. It decides what an answer can mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    List,
    Create,
    Update,
}

impl Call {
    fn writes(self) -> bool {
        matches!(self, Self::Create | Self::Update)
    }
}

/// What an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// A write whose condition does not hold, or a read of what is not there. Nothing was written.
    Lost,
    /// It may pass, and nothing was written.
    PutOff,
    /// It may pass, and nobody knows whether it was written.
    Passing,
    /// It will not pass until this is mended.
    Mend(&'static str),
}

const BUCKET: &str = "there is no such bucket: create it, or mend its name";
const CREDENTIALS: &str = "the credentials are not valid";
const RIGHTS: &str = "grant the credentials s3:GetObject, s3:PutObject and s3:ListBucket (without the last S3 \
    answers so where nothing stands yet), or on Google Cloud the role roles/storage.objectUser; and have no \
    retention policy on the bucket";
const CLOCK: &str = "the clock of this machine is wrong";
const REGION: &str = "the bucket is in another region or at another endpoint: name that one";
const REQUEST: &str = "the server does not take this request: check bucket, region and endpoint";
/// Also for stores that were handed in.
pub(super) const CONDITIONS: &str = "it cannot replace an object on a condition, so two holders could both win: use S3 \
    or Google Cloud Storage, or on one machine SQLite";

/// The table. Codes go before statuses, since one status has codes of several meanings, and since the
/// library tells no status of a list.
fn meaning(call: Call, status: Option<StatusCode>, code: &str) -> Meaning {
    match (status.map_or(0, |status| status.as_u16()), code) {
        (_, "NoSuchBucket") => Meaning::Mend(BUCKET),
        // F84
        (_, "SlowDown" | "TooManyRequests") | (429, _) => Meaning::PutOff,
        (_, "ExpiredToken" | "TokenRefreshRequired") => Meaning::PutOff,
        (_, "RequestTimeTooSkewed") => Meaning::Mend(CLOCK),
        (_, "InvalidAccessKeyId" | "SignatureDoesNotMatch") | (401, _) => Meaning::Mend(CREDENTIALS),
        (_, "AccessDenied") | (403, _) => Meaning::Mend(RIGHTS),
        (404, _) if call == Call::Create => Meaning::Mend(BUCKET),
        // A 409 tells of another write on the way, not of one that stands: the reader decides. F83
        (304 | 409 | 412, _) if call.writes() => Meaning::Lost,
        (404, _) => Meaning::Lost,
        // A read has no condition: whatever this means, it does not say that nothing is there.
        (304 | 409 | 412, _) => Meaning::Passing,
        (301 | 308, _) | (_, "AuthorizationHeaderMalformed") => Meaning::Mend(REGION),
        (501, _) => Meaning::Mend(CONDITIONS),
        (400, "RequestTimeout") | (0..400 | 408 | 500.., _) => Meaning::Passing,
        _ => Meaning::Mend(REQUEST),
    }
}

/// The error that a failed call means; `None`: its condition does not hold, or nothing is there.
pub(super) fn of(
    place: &str,
    call: Call,
    error: object_store::Error,
    answered: Option<StatusCode>,
) -> Option<StoreError> {
    if let object_store::Error::NotImplemented { .. } | object_store::Error::NotSupported { .. } = error {
        return Some(refused(format!("{place}: {CONDITIONS}"), Some(error)));
    }
    let said = error.to_string();
    let status = answered.or_else(|| of_variant(&error));
    let code = tag(&said, "Code");
    let sent = !never_sent(&error);
    // An error document may repeat what the request was signed with, so it is told in parts only.
    let (shown, source) = match (status, code) {
        // No answer, or one that broke off.
        (status, None) if status.is_none_or(|status| status.is_success()) => {
            (quoted(&innermost(&error)), Some(error))
        }
        _ => (shown(status, &said), None),
    };
    match meaning(call, status, code.unwrap_or_default()) {
        Meaning::Lost => None,
        Meaning::Mend(remedy) => Some(refused(format!("{place}: {remedy}; it said: {shown}"), source)),
        Meaning::PutOff => Some(passing(shown, false, source)),
        Meaning::Passing => Some(passing(shown, call.writes() && sent, source)),
    }
}

/// No answer within the limit.
pub(super) fn of_silence(call: Call, limit: Duration) -> StoreError {
    let what = format!("no answer within {limit:?}");
    if call.writes() { StoreError::unanswered(what) } else { StoreError::unavailable(what) }
}

/// No credentials could be had, so nothing was sent.
pub(super) fn of_credentials(error: object_store::Error) -> StoreError {
    let what = "no credentials could be fetched: set them in the environment, or give the machine a role";
    passing(what.to_owned(), false, Some(error))
}

fn passing(what: String, may_have_written: bool, source: Option<object_store::Error>) -> StoreError {
    StoreError::Unavailable { what, may_have_written, source: source.map(Into::into) }
}

fn refused(what: String, source: Option<object_store::Error>) -> StoreError {
    StoreError::Refused { what, source: source.map(Into::into) }
}

/// The status that a variant stands for, where the client is not ours to watch.
fn of_variant(error: &object_store::Error) -> Option<StatusCode> {
    use object_store::Error;
    Some(match error {
        Error::NotFound { .. } => StatusCode::NOT_FOUND,
        Error::AlreadyExists { .. } => StatusCode::CONFLICT,
        Error::Precondition { .. } => StatusCode::PRECONDITION_FAILED,
        Error::NotModified { .. } => StatusCode::NOT_MODIFIED,
        Error::PermissionDenied { .. } => StatusCode::FORBIDDEN,
        Error::Unauthenticated { .. } => StatusCode::UNAUTHORIZED,
        _ => return None,
    })
}

/// Whether the connection failed before the request could leave.
fn never_sent(error: &object_store::Error) -> bool {
    causes(error)
        .filter_map(|cause| cause.downcast_ref::<HttpError>())
        .any(|error| error.kind() == HttpErrorKind::Connect)
}

fn causes(error: &object_store::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    successors(Some(error as &(dyn Error + 'static)), |&error| error.source())
}

fn innermost(error: &object_store::Error) -> String {
    causes(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The status, and what the server's error document says of it.
fn shown(status: Option<StatusCode>, said: &str) -> String {
    let told = ["Code", "Message", "Details"].iter().filter_map(|name| tag(said, name));
    let status = status.map(|status| status.as_u16().to_string());
    let parts: Vec<_> = status.as_deref().into_iter().chain(told).collect();
    quoted(&parts.join(", "))
}

/// The text of an element in a server's error document.
fn tag<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(value, _)| value)
}

fn quoted(message: &str) -> String {
    message.lines().next().unwrap_or_default().chars().take(QUOTED).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: [Call; 4] = [Call::Read, Call::List, Call::Create, Call::Update];
    const WRITES: [Call; 2] = [Call::Create, Call::Update];

    /// What the library makes of an answer that it has no variant for.
    fn answered(call: Call, status: u16, code: &str) -> Option<StoreError> {
        let body = format!(
            "<Error><Code>{code}</Code><Message>as it is</Message><CanonicalRequest>x-amz-security-token:s3cr3t\
             </CanonicalRequest></Error>"
        );
        let error = object_store::Error::Generic { store: "S3", source: body.into() };
        of("AmazonS3(b)", call, error, StatusCode::from_u16(status).ok())
    }

    /// Every text of an error and of its sources.
    fn told(error: &StoreError) -> String {
        successors(Some(error as &dyn Error), |&error| error.source()).map(ToString::to_string).collect()
    }

    #[test]
    fn a_condition_that_does_not_hold_is_lost_and_what_is_not_there_is_absent() {
        for (status, code) in [(409, "ConditionalRequestConflict"), (412, "PreconditionFailed"), (304, "")] {
            for call in WRITES {
                assert!(answered(call, status, code).is_none(), "{call:?} {status}");
            }
        }
        assert!(answered(Call::Read, 404, "NoSuchKey").is_none());
        for (status, code) in [(409, "OperationAborted"), (412, "PreconditionFailed"), (304, "")] {
            let error = answered(Call::Read, status, code).expect("no proof that nothing is there");
            assert!(error.is_transient() && !error.may_have_written(), "{status}: {error:?}");
        }
        assert!(answered(Call::Update, 404, "NoSuchKey").is_none());
    }

    // F84
    #[test]
    fn what_was_put_off_was_certainly_not_written() {
        for (status, code) in [(429, ""), (429, "TooManyRequests"), (503, "SlowDown"), (400, "ExpiredToken")]
        {
            for call in CALLS {
                let error = answered(call, status, code).unwrap();
                assert!(error.is_transient() && !error.may_have_written(), "{call:?} {status}");
            }
        }
    }

    #[test]
    fn what_may_pass_leaves_a_write_open() {
        for (status, code) in
            [(500, "InternalError"), (502, ""), (503, "ServiceUnavailable"), (504, ""), (408, ""), (200, "")]
        {
            for call in CALLS {
                let error = answered(call, status, code).unwrap();
                assert!(error.is_transient(), "{call:?} {status}");
                assert_eq!(error.may_have_written(), WRITES.contains(&call), "{call:?} {status}");
            }
        }
        let stalled = answered(Call::Create, 400, "RequestTimeout").unwrap();
        assert!(stalled.is_transient() && stalled.may_have_written());
    }

    #[test]
    fn what_must_be_mended_is_refused_with_what_to_mend() {
        for call in CALLS {
            for (status, code, remedy) in [
                (404, "NoSuchBucket", "no such bucket"),
                (403, "AccessDenied", "s3:PutObject"),
                (403, "", "roles/storage.objectUser"),
                (403, "RequestTimeTooSkewed", "the clock of this machine"),
                (403, "SignatureDoesNotMatch", "credentials are not valid"),
                (401, "", "credentials are not valid"),
                (301, "PermanentRedirect", "another region"),
                (400, "AuthorizationHeaderMalformed", "another region"),
                (501, "NotImplemented", "on a condition"),
                (400, "InvalidRequest", "check bucket, region and endpoint"),
            ] {
                let error = answered(call, status, code).unwrap();
                let text = error.to_string();
                assert!(matches!(error, StoreError::Refused { .. }), "{call:?} {status} {code}");
                assert!(text.contains(remedy) && text.contains("AmazonS3(b)"), "{text}");
                assert!(text.contains("as it is") && text.contains(code), "{text}");
            }
        }
        assert!(matches!(answered(Call::Create, 404, ""), Some(StoreError::Refused { .. })));
    }

    #[test]
    fn no_error_repeats_what_a_request_was_signed_with() {
        for status in [400, 403, 500, 503] {
            let error = answered(Call::Create, status, "SignatureDoesNotMatch").unwrap();
            assert!(!told(&error).contains("s3cr3t"), "{}", told(&error));
        }
    }

    #[test]
    fn a_connection_that_was_refused_has_sent_nothing_and_one_that_broke_may_have() {
        for (kind, open) in [
            (HttpErrorKind::Connect, false),
            (HttpErrorKind::Request, true),
            (HttpErrorKind::Interrupted, true),
            (HttpErrorKind::Timeout, true),
        ] {
            let broken = HttpError::new(kind, std::io::Error::other("the wire"));
            let error = object_store::Error::Generic { store: "S3", source: Box::new(broken) };
            let error = of("AmazonS3(b)", Call::Create, error, None).unwrap();
            assert_eq!((error.is_transient(), error.may_have_written()), (true, open), "{kind:?}");
            assert!(error.to_string().contains("the wire"), "{error}");
        }
    }

    #[test]
    fn an_answer_that_broke_off_tells_how() {
        let broken = HttpError::new(HttpErrorKind::Interrupted, std::io::Error::other("the wire"));
        let error = object_store::Error::Generic { store: "S3", source: Box::new(broken) };
        let error = of("AmazonS3(b)", Call::Read, error, Some(StatusCode::OK)).unwrap();
        assert!(error.is_transient() && error.to_string().contains("the wire"), "{error}");
    }

    #[test]
    fn a_store_without_conditions_is_refused_with_the_reason() {
        let error = object_store::Error::NotImplemented {
            operation: "update".to_owned(),
            implementer: "LocalFileSystem".to_owned(),
        };
        let error = of("LocalFileSystem(file:///)", Call::Update, error, None).unwrap();
        assert!(matches!(error, StoreError::Refused { .. }));
        assert!(error.to_string().contains("two holders could both win"), "{error}");
    }
}
