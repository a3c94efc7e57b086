//! A dead-letter topic, and a publisher to it that may be ill: what was published, and what stood in the store then.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use pushonce::publish::{Message, PublishError, Publisher};
use pushonce::store::{BoxFuture, Record};

use crate::world::World;

/// The topic's name.
pub(crate) const TOPIC: &str = "projects/p/topics/orders-dead";

/// What a publisher does instead of an answer.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Ill {
    Refuses,
    Fails,
    /// It has published, and nobody knows.
    LosesAnswer,
    Panics,
    PanicsAtOnce,
    Hangs,
    /// It publishes, and meanwhile somebody takes the key of the message `m` away.
    Forgets,
}

pub(crate) const ILLS: [Ill; 6] =
    [Ill::Refuses, Ill::Fails, Ill::LosesAnswer, Ill::Panics, Ill::PanicsAtOnce, Ill::Hangs];

/// Keeps what is published, with what stood under the key of the message `m` then.
#[derive(Debug, Clone)]
pub(crate) struct Topic(Arc<Kept>);

#[derive(Debug)]
struct Kept {
    world: World,
    messages: Mutex<Vec<Message>>,
    stood: Mutex<Vec<Option<Record>>>,
    ills: Mutex<VecDeque<Ill>>,
}

impl Topic {
    pub(crate) fn of(world: &World) -> Self {
        let world = world.clone();
        let (messages, stood, ills) = Default::default();
        Self(Arc::new(Kept { world, messages, stood, ills }))
    }

    pub(crate) fn publisher(&self) -> Arc<dyn Publisher> {
        Arc::new(self.clone())
    }

    /// The next message meets this.
    pub(crate) fn next(&self, ill: Ill) {
        self.0.ills.lock().unwrap().push_back(ill);
    }

    /// What was published since the last time.
    pub(crate) fn messages(&self) -> Vec<Message> {
        std::mem::take(&mut self.0.messages.lock().unwrap())
    }

    /// The one message since the last time.
    pub(crate) fn message(&self) -> Message {
        let messages = self.messages();
        let [message] = &messages[..] else { panic!("expected one message: {messages:?}") };
        message.clone()
    }

    /// What stood under the key of the message `m` at each try so far.
    pub(crate) fn stood(&self) -> Vec<Option<Record>> {
        self.0.stood.lock().unwrap().clone()
    }
}

impl Publisher for Topic {
    fn publish<'a>(
        &'a self,
        topic: &'a str,
        message: &'a Message,
    ) -> BoxFuture<'a, Result<Arc<str>, PublishError>> {
        assert_eq!(topic, TOPIC);
        let ill = self.0.ills.lock().unwrap().pop_front();
        assert!(!matches!(ill, Some(Ill::PanicsAtOnce)), "at once");
        Box::pin(async move {
            let stood = self.0.world.record(("orders", "m")).await;
            self.0.stood.lock().unwrap().push(stood);
            let publish = || self.0.messages.lock().unwrap().push(message.clone());
            match ill {
                None => publish(),
                Some(Ill::Refuses) => {
                    return Err(PublishError::Refused { what: "no such topic".into(), source: None });
                }
                Some(Ill::Fails) => {
                    return Err(PublishError::Unavailable { what: "the topic is away".into(), source: None });
                }
                Some(Ill::LosesAnswer) => {
                    publish();
                    return Err(PublishError::Unanswered {
                        what: "the answer was lost".into(),
                        source: None,
                    });
                }
                Some(Ill::Hangs) => std::future::pending().await,
                Some(Ill::Forgets) => {
                    publish();
                    self.0.world.forget("m");
                }
                Some(Ill::Panics | Ill::PanicsAtOnce) => panic!("in the publisher"),
            }
            Ok("1".into())
        })
    }
}
