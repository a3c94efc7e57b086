//! What one call met on the wire: the status that was answered, and the server's time.

use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use chrono::DateTime;
use http::header::DATE;
use http::{HeaderMap, StatusCode};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use object_store::{ClientOptions, Extensions};

use crate::store::BoxFuture;

/// The answer to one call, if there was one. It rides on the request as an extension, because the
/// library tells most statuses in words only, and drops the server's time.
#[derive(Debug, Default)]
pub(super) struct Wire(OnceLock<Answer>);

#[derive(Debug)]
struct Answer {
    status: StatusCode,
    date: Option<SystemTime>,
}

impl Wire {
    /// What makes a request tell this wire its answer.
    pub(super) fn extensions(self: &Arc<Self>) -> Extensions {
        let mut extensions = Extensions::new();
        extensions.insert(self.clone());
        extensions
    }

    /// The status; `None` if nobody answered, or on a client that is not watched.
    pub(super) fn status(&self) -> Option<StatusCode> {
        self.0.get().map(|answer| answer.status)
    }

    /// When the server answered, by its own clock, in whole seconds.
    pub(super) fn date(&self) -> Option<SystemTime> {
        self.0.get().and_then(|answer| answer.date)
    }
}

/// The library's own HTTP client, with every answer noted on its call.
#[derive(Debug, Default)]
pub(super) struct Watching(ReqwestConnector);

#[derive(Debug)]
struct Watched(HttpClient);

impl HttpConnector for Watching {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Watched(self.0.connect(options)?)))
    }
}

impl HttpService for Watched {
    fn call<'a, 'f>(&'a self, request: HttpRequest) -> BoxFuture<'f, Result<HttpResponse, HttpError>>
    where
        'a: 'f,
        Self: 'f,
    {
        let wire = request.extensions().get::<Arc<Wire>>().cloned();
        Box::pin(async move {
            let response = self.0.execute(request).await?;
            if let Some(wire) = wire {
                let answer = Answer { status: response.status(), date: date(response.headers()) };
                // Nothing is sent twice in one call; if it were, the first answer would count.
                let _ = wire.0.set(answer);
            }
            Ok(response)
        })
    }
}

fn date(headers: &HeaderMap) -> Option<SystemTime> {
    let date = headers.get(DATE)?.to_str().ok()?;
    DateTime::parse_from_rfc2822(date).ok().map(SystemTime::from)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn a_date_is_read_as_http_writes_it() {
        let of = |text: &'static str| date(&HeaderMap::from_iter([(DATE, text.parse().unwrap())]));
        let right = UNIX_EPOCH + Duration::from_secs(784_111_777);
        assert_eq!(of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(right));
        assert_eq!(of("yesterday"), None);
        assert_eq!(date(&HeaderMap::new()), None);
    }
}
