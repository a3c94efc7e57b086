//! The publishers: what Pub/Sub gets from one call, and what a service of this process gets pushed.

#[path = "../../functional/client.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod client;
mod emulator;
#[path = "../support/example.rs"]
mod example;
#[path = "../support/fake_pubsub.rs"]
mod fake_pubsub;
mod in_process;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod proxy;
#[path = "../../functional/pubsub.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod pubsub;
mod pull_worker;
#[path = "../support/report.rs"]
mod report;
mod wire;
