//! The one TLS provider of the process.

/// Names rustls' provider, once, unless the user's program has named one.
///
/// A driver that names none panics at its first connection where a build has two of them in it.
pub(crate) fn install() {
    // An error means that there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
}
