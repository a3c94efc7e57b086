//! Who may push: `PUSH_AUTH` and what belongs to it.

use axum::Router;
#[cfg(feature = "oidc")]
use pushonce::oidc::PushAuthLayer as Layer;
/// Without the feature there is no layer to be made.
#[cfg(not(feature = "oidc"))]
use tower_layer::Identity as Layer;

use super::BoxError;
use super::settings::variable;

/// What stands before the routes that are pushed to; nothing where `PUSH_AUTH` is `none`.
pub(super) struct Auth(Option<Layer>);

impl Auth {
    /// On Cloud Run somebody must have chosen: a default would be wrong for half of all services.
    pub(super) fn from_env() -> Result<Self, BoxError> {
        let on_cloud_run = std::env::var_os("K_SERVICE").is_some();
        match variable("PUSH_AUTH")?.as_deref() {
            None if on_cloud_run => Err("`PUSH_AUTH` is not set: on Cloud Run choose `platform` (the service requires authentication), `verify` (everybody may invoke it) or `none`".into()),
            None => Ok(Self(None)),
            Some("none") => {
                if on_cloud_run {
                    tracing::warn!("`PUSH_AUTH` is `none`: whoever may invoke this service can have a message taken for done");
                }
                Ok(Self(None))
            }
            Some(mode @ ("verify" | "platform")) => checked(mode).map(|layer| Self(Some(layer))),
            Some(other) => {
                Err(format!("`PUSH_AUTH` is {other:?}: expected `verify`, `platform` or `none`").into())
            }
        }
    }

    /// Before all routes that the router has by now.
    pub(super) fn before<S: Clone + Send + Sync + 'static>(self, pushed: Router<S>) -> Router<S> {
        match self.0 {
            Some(layer) => pushed.route_layer(layer),
            None => pushed,
        }
    }
}

#[cfg(not(feature = "oidc"))]
fn checked(mode: &str) -> Result<Layer, BoxError> {
    Err(format!(
        "`PUSH_AUTH` is `{mode}`, which needs the feature `oidc`, and this program was built without it"
    )
    .into())
}

#[cfg(feature = "oidc")]
fn checked(mode: &str) -> Result<Layer, BoxError> {
    use pushonce::oidc::InvalidPushAuth as Invalid;

    let (audiences, callers) = (list("PUSH_AUDIENCE")?, list("PUSH_SERVICE_ACCOUNT")?);
    let mut layer = match mode {
        "platform" => Layer::platform(audiences, callers),
        _ => Layer::verify(audiences, callers),
    };
    if let Some(url) = variable("PUSH_KEYS_URL")? {
        layer = layer.keys_url(url);
    }
    layer.check().map_err(|error| {
        let name = match error {
            Invalid::NoAudience | Invalid::Audience { .. } => "PUSH_AUDIENCE",
            Invalid::NoCaller | Invalid::Caller { .. } => "PUSH_SERVICE_ACCOUNT",
            Invalid::KeysUrl => "PUSH_KEYS_URL",
            // No variable's fault.
            _ => return format!("`PUSH_AUTH={mode}`: {error}"),
        };
        format!("`{name}`, with `PUSH_AUTH={mode}`: {error}")
    })?;
    Ok(layer)
}

/// A comma-separated list; empty where the variable is not set.
#[cfg(feature = "oidc")]
fn list(name: &str) -> Result<Vec<String>, BoxError> {
    let text = variable(name)?.unwrap_or_default();
    Ok(text.split(',').map(str::trim).filter(|one| !one.is_empty()).map(str::to_owned).collect())
}
