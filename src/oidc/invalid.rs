//! What is wrong with a layer that cannot be built.

/// A layer that would let in nobody, or anybody. Do not start the service; mend what the text says.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidPushAuth {
    /// No audience is accepted.
    #[error("there is no audience: expected the one that the push subscription's tokens are made for")]
    NoAudience,
    /// No caller is expected. Anybody can have a token for any audience made, so an audience proves nothing.
    #[error("there is no caller: expected the e-mail of the service account that the push subscription uses")]
    NoCaller,
    /// An audience is blank, or has blanks around it.
    #[error("the audience {value:?} is blank or has blanks around it")]
    Audience {
        /// What was given.
        value: String,
    },
    /// A caller is no e-mail.
    #[error("the caller {value:?} is no e-mail of a service account")]
    Caller {
        /// What was given.
        value: String,
    },
    /// Keys from there could be anybody's.
    // Not repeated: a URL may hold a password.
    #[error(
        "the URL of the keys is none, or not safe: expected https, or http to this machine, without a password"
    )]
    KeysUrl,
    /// TLS cannot be set up.
    #[error("TLS cannot be set up: {what}")]
    Tls {
        /// What rustls said.
        what: String,
    },
}
