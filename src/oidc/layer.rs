//! `PushAuthLayer`: its setters.

use std::fmt;
use std::sync::Arc;

use tower_layer::Layer;

use super::config::{Gate, Mode};
use super::fetch::KeyServer;
use super::invalid::InvalidPushAuth;
use super::keys::Keys;
use super::report::Reports;
use super::service::PushAuthService;
use super::token::Expected;
use crate::meter;
use crate::time::{Clock, system_clock};

/// The `jwks_uri` of <https://accounts.google.com/.well-known/openid-configuration>.
const GOOGLE: &str = "https://www.googleapis.com/oauth2/v3/certs";

/// A [`tower_layer::Layer`] that lets in the pushes of the expected service accounts and nobody else.
/// See [the manual](crate::oidc).
///
/// Clones share their keys: make one, and clone it for each route.
///
/// # Panics
/// `Router::layer` and `MethodRouter::layer` panic on a layer that cannot work, as axum does on a
/// path that is none: at start, never at the first message. [`check`](Self::check) tells it as an error.
#[derive(Clone)]
#[must_use = "a layer lets everybody in until a router or a service is wrapped in it"]
pub struct PushAuthLayer {
    expected: Expected,
    /// Of the keys; `None` where Cloud Run checks the signature.
    url: Option<String>,
    clock: Arc<dyn Clock>,
    reports: Arc<Reports>,
    mode: Result<Mode, InvalidPushAuth>,
}

impl PushAuthLayer {
    /// Checks each token by its signature: for a service that everybody may invoke, on Cloud Run or
    /// elsewhere.
    ///
    /// `audiences` are the accepted ones, each compared as a whole: the text of the subscription's
    /// setting `audience` (without one it is the whole push endpoint). `callers` are the e-mails of the
    /// service accounts that the push subscriptions use. Neither may be empty.
    pub fn verify<A, C>(audiences: A, callers: C) -> Self
    where
        A: IntoIterator<Item: Into<String>>,
        C: IntoIterator<Item: Into<String>>,
    {
        Self::new(Some(GOOGLE.to_owned()), audiences, callers)
    }

    /// Trusts Cloud Run to have checked each token: for a service that requires authentication, and
    /// for no other. Cloud Run then hands tokens on with a fixed text in place of the signature, which
    /// anybody could write to a service that is open. What the token says is checked all the same.
    ///
    /// `audiences` and `callers` as for [`verify`](Self::verify).
    pub fn platform<A, C>(audiences: A, callers: C) -> Self
    where
        A: IntoIterator<Item: Into<String>>,
        C: IntoIterator<Item: Into<String>>,
    {
        Self::new(None, audiences, callers)
    }

    fn new<A, C>(url: Option<String>, audiences: A, callers: C) -> Self
    where
        A: IntoIterator<Item: Into<String>>,
        C: IntoIterator<Item: Into<String>>,
    {
        let expected = Expected {
            audiences: audiences.into_iter().map(Into::into).collect(),
            callers: callers.into_iter().map(Into::into).collect(),
        };
        let (clock, reports) = (system_clock(), Arc::default());
        Self { expected, url, clock, reports, mode: Ok(Mode::Platform) }.with_mode()
    }

    fn with_mode(mut self) -> Self {
        self.mode = match &self.url {
            Some(url) => KeyServer::new(url)
                .map(|server| Mode::Verify(Arc::new(Keys::new(server, self.clock.clone())))),
            None => Ok(Mode::Platform),
        };
        self
    }

    /// Takes the keys from another server than Google's: for tests. HTTPS, or HTTP to this machine.
    /// [`platform`](Self::platform) needs none, and asks none.
    pub fn keys_url(mut self, url: impl Into<String>) -> Self {
        self.url = self.url.map(|_| url.into());
        self.with_mode()
    }

    /// Judges the times of tokens, and the age of keys, by another clock: for tests.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self.with_mode()
    }

    /// Whether the layer can work.
    ///
    /// # Errors
    /// [`InvalidPushAuth`], which says what to mend. Do not start the service.
    pub fn check(&self) -> Result<(), InvalidPushAuth> {
        self.gate().map(drop)
    }

    fn gate(&self) -> Result<Gate, InvalidPushAuth> {
        self.expected.checked()?;
        let Self { expected, clock, reports, mode, .. } = self.clone();
        Ok(Gate { mode: mode?, expected, clock, reports })
    }
}

impl fmt::Debug for PushAuthLayer {
    // Without the URL, which may be one that was refused for its password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PushAuthLayer")
            .field("expected", &self.expected)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl<S> Layer<S> for PushAuthLayer {
    type Service = PushAuthService<S>;

    #[expect(clippy::panic, reason = "a configuration error at start, as documented")]
    fn layer(&self, inner: S) -> PushAuthService<S> {
        match self.gate() {
            Ok(gate) => {
                meter::announce_refusals();
                PushAuthService::new(inner, Arc::new(gate))
            }
            Err(error) => panic!("this PushAuthLayer cannot work: {error}"),
        }
    }
}
