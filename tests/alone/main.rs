//! What changes a whole process for good: each test runs in a process of its own.

#[path = "../support/alone.rs"]
mod alone;
mod detached;
mod disabled;
mod drain;
mod undos;
#[expect(dead_code, reason = "shared with the tests of the verbs, which use all of it")]
#[path = "../verbs/world.rs"]
mod world;
