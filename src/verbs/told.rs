//! The reply of the verbs: hands the result to whoever awaits it, and tells of what must not pass in silence.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::plan::{Plan, Ran, Reply};
use super::watch::unhurt;
use crate::chain::chain_about;
use crate::key::Key;
use crate::lease::{AfterCommit, CommitError, Lease, Place, RunError, Skip};
use crate::meter;
use crate::store::BoxFuture;
use crate::store::record::{Progress, Verb};

/// A hook that is told of a key whose work succeeded although nobody recorded it.
pub(super) type OnUncertain = Arc<dyn Fn(&Key) + Send + Sync>;

/// Made of a plan, called whether its caller is there or not: so an operator is told also where the caller hung up.
pub(super) struct Told<T> {
    place: Arc<Place>,
    verb: Verb,
    hook: Option<OnUncertain>,
    began: bool,
    result: oneshot::Sender<Result<Ran<T>, RunError>>,
}

impl<T> Told<T> {
    pub(super) fn new(
        plan: &Plan,
        hook: Option<OnUncertain>,
        result: oneshot::Sender<Result<Ran<T>, RunError>>,
    ) -> Self {
        Self { place: plan.place.clone(), verb: plan.settings.verb, hook, began: false, result }
    }
}

impl<T: Send + 'static> Reply<T> for Told<T> {
    async fn closed(&mut self) {
        self.result.closed().await;
    }

    fn began(&mut self, _: &Lease) {
        self.began = true;
    }

    fn send(self, result: Result<Ran<T>, RunError>) -> Option<BoxFuture<'static, ()>> {
        let Self { place, verb, hook, began, result: sender } = self;
        let key = &place.key;
        let lost = verb == Verb::AtMostOnce && result.as_ref().is_err_and(|error| began || is_lost(error));
        meter::count(key.consumer(), outcome(&result, lost));
        match &result {
            Ok(Ran { uncertain: Some(why), .. }) => {
                // In full, however the key is written elsewhere: somebody has to look into it.
                tracing::error!(
                    event = "uncertain",
                    key = key.shown(),
                    ?why,
                    "done, but not recorded: it may run again"
                );
                unhurt(|| drop(hook.inspect(|hook| hook(key))));
            }
            Err(RunError::Work(error)) if error.is::<AfterCommit>() => {
                tracing::error!(
                    event = "ran",
                    key = key.to_string(),
                    error = chain_about(key, &**error),
                    "committed; what was to follow is not done"
                );
            }
            Err(error) if lost => {
                tracing::error!(
                    event = "lost",
                    key = key.to_string(),
                    error = chain_about(key, error),
                    "begun, and never run again"
                );
            }
            _ => {}
        }
        // An error means that nobody waits, which changes nothing.
        let _ = sender.send(result);
        None
    }
}

/// Whether an earlier run was marked, did not end as far as anybody knows, and will not be tried again.
fn is_lost(error: &RunError) -> bool {
    let RunError::Skipped(Skip::Duplicate { receipt: Some(receipt), .. }) = error else { return false };
    receipt.progress == Progress::Started
}

/// The name of its outcome, as the layer names it; but work that fails of what another verb met inside of
/// it has failed, where the layer looks for that among the sources.
fn outcome<T>(result: &Result<Ran<T>, RunError>, lost: bool) -> &'static str {
    match result {
        Ok(Ran { uncertain: None, .. }) => "ran",
        Ok(Ran { uncertain: Some(_), .. }) => "uncertain",
        Err(RunError::Work(error)) if error.is::<AfterCommit>() => "ran",
        Err(_) if lost => "lost",
        Err(RunError::Skipped(Skip::Duplicate { conflict: true, .. })) => "conflict",
        Err(RunError::Skipped(Skip::Duplicate { .. })) => "duplicate",
        Err(RunError::Skipped(Skip::InProgress { .. })) => "in-progress",
        Err(RunError::Work(_) | RunError::Commit(CommitError::RolledBack { .. })) => "failed",
        Err(RunError::Misuse(_) | RunError::Commit(CommitError::Misuse(_))) => "misuse",
        Err(RunError::Key(_)) => "unkeyed",
        Err(RunError::Store(_) | RunError::Shutdown(_) | RunError::Commit(_)) => "unavailable",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::lease::{Misuse, Shutdown};
    use crate::pubsub::outcome_of;
    use crate::store::StoreError;

    #[test]
    fn an_error_has_the_name_that_the_layer_gives_it() {
        let duplicate = |conflict| RunError::Skipped(Skip::Duplicate { receipt: None, conflict });
        let misuse = || Misuse::Setting("no".into());
        for error in [
            duplicate(false),
            duplicate(true),
            RunError::Skipped(Skip::InProgress { left: Duration::ZERO }),
            RunError::Store(StoreError::unavailable("no")),
            RunError::Shutdown(Shutdown),
            RunError::Misuse(misuse()),
            RunError::Commit(CommitError::Misuse(misuse())),
            RunError::Commit(CommitError::RolledBack { source: None }),
            RunError::Commit(CommitError::Unknown { source: None }),
            RunError::Work(AfterCommit { source: "no".into() }.into()),
            RunError::Work("no".into()),
        ] {
            let layers = outcome_of(&error).outcome.name();
            assert_eq!(outcome(&Err::<Ran<()>, _>(error), false), layers);
        }
    }
}
