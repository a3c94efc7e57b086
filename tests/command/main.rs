//! The program `pushonce`, as it is built: what it prints, what it ends with, and what it finds in real plans.

mod asked;
mod auth;
mod dead_letters;
mod documented;
mod edit;
mod followed;
mod graded;
mod grants;
mod input;
mod keys;
mod letters;
mod lists;
mod numbers;
mod plans;
mod program;
mod projects;
mod servers;
mod tasks;
mod terminal;
mod times;
mod uncertain;
mod wrong;

#[path = "../../functional/client.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod client;
#[path = "../support/datastore_emulator.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod emulator;
#[path = "../support/fake_gcs.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod fake_gcs;
#[path = "../support/on_servers.rs"]
mod on_servers;
#[path = "../support/proxy.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod proxy;
#[path = "../../functional/pubsub.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod pubsub;
#[path = "../support/report.rs"]
mod report;
#[path = "../support/s3.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod s3;
#[path = "../support/site.rs"]
#[expect(dead_code, reason = "the tools are whole; these tests take what they need")]
mod site;
