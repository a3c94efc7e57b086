//! Who may push: `PUSH_AUTH` and what belongs to it.

use axum::Router;

use super::BoxError;
use super::settings::variable;

/// What stands before the routes that are pushed to; nothing where `PUSH_AUTH` is `none`.
pub(super) struct Auth {
    #[cfg(feature = "oidc")]
    layer: Option<pushonce::oidc::PushAuthLayer>,
}

impl Auth {
    /// On Cloud Run somebody must have chosen: a default would be wrong for half of all services.
    pub(super) fn from_env() -> Result<Self, BoxError> {
        let on_cloud_run = std::env::var_os("K_SERVICE").is_some();
        match variable("PUSH_AUTH")?.as_deref() {
            None if on_cloud_run => Err("`PUSH_AUTH` is not set: on Cloud Run choose `platform` (the service requires authentication), `verify` (everybody may invoke it) or `none`".into()),
            Some("none") if on_cloud_run => {
                tracing::warn!("`PUSH_AUTH` is `none`: whoever reaches this service can have any message taken for done");
                Self::none()
            }
            None | Some("none") => Self::none(),
            Some(mode @ ("verify" | "platform")) => Self::checked(mode),
            Some(other) => {
                Err(format!("`PUSH_AUTH` is {other:?}: expected `verify`, `platform` or `none`").into())
            }
        }
    }

    #[cfg(not(feature = "oidc"))]
    fn none() -> Result<Self, BoxError> {
        Ok(Self {})
    }

    #[cfg(not(feature = "oidc"))]
    fn checked(mode: &str) -> Result<Self, BoxError> {
        Err(format!("`PUSH_AUTH` is `{mode}`, and this program was built without the feature `oidc`").into())
    }

    #[cfg(not(feature = "oidc"))]
    pub(super) fn before<S>(self, pushed: Router<S>) -> Router<S> {
        pushed
    }

    #[cfg(feature = "oidc")]
    fn none() -> Result<Self, BoxError> {
        Ok(Self { layer: None })
    }

    #[cfg(feature = "oidc")]
    fn checked(mode: &str) -> Result<Self, BoxError> {
        use pushonce::oidc::PushAuthLayer;

        let (audiences, callers) = (list("PUSH_AUDIENCE")?, list("PUSH_SERVICE_ACCOUNT")?);
        let layer = match mode {
            "platform" => PushAuthLayer::platform(audiences, callers),
            _ => PushAuthLayer::verify(audiences, callers),
        };
        let layer = match variable("PUSH_KEYS_URL")? {
            Some(url) => layer.keys_url(url),
            None => layer,
        };
        layer.check().map_err(|error| {
            format!(
                "`PUSH_AUTH` is `{mode}`, but `PUSH_AUDIENCE`, `PUSH_SERVICE_ACCOUNT` or `PUSH_KEYS_URL` is wrong: {error}"
            )
        })?;
        Ok(Self { layer: Some(layer) })
    }

    /// Before all routes that the router has by now.
    #[cfg(feature = "oidc")]
    pub(super) fn before<S: Clone + Send + Sync + 'static>(self, pushed: Router<S>) -> Router<S> {
        match self.layer {
            Some(layer) => pushed.route_layer(layer),
            None => pushed,
        }
    }
}

/// A comma-separated list; empty where the variable is not set.
#[cfg(feature = "oidc")]
fn list(name: &str) -> Result<Vec<String>, BoxError> {
    let text = variable(name)?.unwrap_or_default();
    Ok(text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
}
