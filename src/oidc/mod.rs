//! The push token: who may push, verified before anything is claimed.
