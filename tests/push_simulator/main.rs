//! The simulated push subscription, and the layer behind it.

mod contention;
mod dead_letters;
mod faults;
mod formula;
mod ordering;
mod subscription;
mod tokens;
mod wire;
mod world;
