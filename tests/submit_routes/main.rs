//! The HTTP routes of submission, through a real router and, where they matter, over real sockets.

mod answers;
mod bodies;
mod failures;
mod keys;
mod log;
mod overload;
mod places;
mod sockets;
mod tenants;
mod traces;
mod world;
