//! The part of the path that varies.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use super::problem::{Code, Problem};

/// The last part that varies, decoded: each of these routes has one, and what they are nested under may
/// have others, of any name.
pub(super) struct Part(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Part {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let all = Path::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let last = all.ok().and_then(|Path(mut all)| all.pop());
        last.map(|(_, part)| Self(part)).ok_or_else(|| {
            Problem::new(Code::InvalidPath, "A part of the path is not UTF-8, percent-encoded.")
        })
    }
}
