//! Submission and its worker in one process: the API that takes tasks, and the push route that works on them.
//!
//! | route | what it is |
//! |---|---|
//! | `POST /queues/{queue}/tasks`, `POST /tasks/{type}`, `GET /tasks/{id}`, `POST /tasks/{id}/cancel` | submission |
//! | `POST /push` | the worker |
//! | `POST /dead-letters` | where messages go that can never succeed |
//! | `GET /healthz` | |
//!
//! Any queue and any type of task will do. The work takes half a second, or what the input says:
//! `{"work_ms": 3000}`. A task of the type `flaky` fails the first time, and succeeds when it is
//! delivered again; one of the type `poison` is dead-lettered.
//!
//! | variable | default |
//! |---|---|
//! | `PUSHONCE_STORE`: an address as `store::connect` takes it | `memory:` |
//! | `PUSHONCE_TOPIC`: `projects/p/topics/t`, to publish to Pub/Sub (feature `publish`; an emulator by `PUBSUB_EMULATOR_HOST`) | messages go straight to the worker |
//! | `PUSHONCE_DEAD_LETTER_TOPIC`: the topic for dead letters beside it | Pub/Sub's own attempts come first |
//! | `PORT` | 8080 |
//!
//! With Pub/Sub a push subscription of the topic brings the messages to `/push`, and one of the
//! dead-letter topic brings those to `/dead-letters`. On Cloud Run both routes need the push token
//! checked: see the example `orders`.

mod publisher;
mod worker;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use pushonce::submit::{Submitter, routes};
use pushonce::{IdempotentLayer, Store, dead_letter, store};

use self::publisher::Published;

type BoxError = Box<dyn Error + Send + Sync>;

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("submit: not started: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    #[cfg(feature = "telemetry")]
    pushonce::telemetry::init()?;
    let url = variable("PUSHONCE_STORE").unwrap_or_else(|| "memory:".to_owned());
    let store: Arc<dyn Store> = store::connect(&url).map_err(|error| format!("`PUSHONCE_STORE`: {error}"))?;
    let Published { publisher, topic, dead_letters, in_process } = publisher::from_env()?;

    let submitter = Submitter::new(store.clone(), publisher.clone(), topic).checked()?;
    let mut layer = IdempotentLayer::new("worker", store.clone()).follow(submitter.tasks());
    if let Some(topic) = dead_letters {
        layer = layer.dead_letters(publisher, topic);
    }
    layer.check()?;
    let receiver = dead_letter::receiver(store).follow(submitter.tasks());

    let app = Router::new()
        .route("/push", post(worker::work).layer(layer))
        .nest("/dead-letters", receiver.router())
        .route("/healthz", get(async || "ok"))
        .merge(routes(submitter).router());
    if let Some(in_process) = in_process {
        in_process.connect(app.clone());
    }
    pushonce::serve(app).await?;
    Ok(())
}

/// A variable without the blanks around it; one that is blank is not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}
