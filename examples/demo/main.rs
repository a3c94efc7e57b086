//! Real-shaped pushes at two instances of a service that charges cards, and what came of each.
//!
//! `cargo run --example demo`: no Google, no database, nothing to set up; with `--features submit` tasks
//! are submitted too. The instances share one
//! store in memory, as two containers would share a database, and are spoken to over HTTP. Every
//! line is made from the answer that came back and from what the store says then. If anything is not
//! as promised the line says so, and the demo ends with code 1.

mod page;
mod push;
mod shop;
#[cfg(feature = "submit")]
mod submission;

use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use pushonce::store::Memory;
use pushonce::{Outcome, Store};

use self::page::Page;
use self::push::{Answer, Message, Sender, no_envelope};
use self::shop::{Cards, Instance, LEASE, key};

type BoxError = Box<dyn Error + Send + Sync>;

/// A subscription with a dead-letter topic gives up after so many deliveries; Pub/Sub's least is 5.
const ATTEMPTS: u32 = 5;
/// A demo that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(30);

fn main() -> ExitCode {
    match play() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the demo could not be played: {error}");
            ExitCode::FAILURE
        }
    }
}

fn play() -> Result<bool, BoxError> {
    let store: Arc<dyn Store> = Arc::new(Memory::new());
    let cards = Cards::default();
    let mut demo = Demo {
        a: Instance::start("A", &store, &cards)?,
        b: Instance::start("B", &store, &cards)?,
        page: Page::new(),
        sender: Sender::new(),
        store,
        cards,
    };
    tokio::runtime::Runtime::new()?.block_on(async { tokio::time::timeout(LIMIT, demo.story()).await? })
}

struct Demo {
    a: Instance,
    b: Instance,
    store: Arc<dyn Store>,
    cards: Cards,
    page: Page,
    sender: Sender,
}

impl Demo {
    async fn story(&mut self) -> Result<bool, BoxError> {
        let began = Instant::now();
        self.page.title();
        self.once().await?;
        self.burst().await?;
        self.failure().await?;
        self.crash().await?;
        self.poison().await?;
        #[cfg(feature = "submit")]
        submission::scene(&mut self.page, &self.sender, &self.store).await?;
        Ok(self.summary(began.elapsed()))
    }

    async fn once(&mut self) -> Result<(), BoxError> {
        self.page.heading("A message is delivered, and delivered again because our ack was lost on the way");
        let first = Message::order("PO-1001", "12.50");
        self.deliver(&first, 1, "new order PO-1001", &[Outcome::Ran]).await?;
        self.deliver(&first, 2, "the same message, attempt 2", &[Outcome::Duplicate]).await?;

        self.page.heading("The producer is not sure that it published, and publishes the order once more");
        let republished = Message::order("PO-1001", "12.50");
        self.deliver(&republished, 1, "PO-1001 under a new message id", &[Outcome::Duplicate]).await
    }

    async fn burst(&mut self) -> Result<(), BoxError> {
        self.page.heading("Five copies of one message arrive at the same moment, at both instances");
        let message = Message::order("PO-1002", "99.00");
        let copies = (0..5).map(|n| {
            let to = if n % 2 == 0 { &self.a } else { &self.b };
            let answer = self.sender.send(to.url(), message.push(1));
            async move { (to.name(), answer.await) }
        });
        let answers = join_all(copies).await;
        let ran = answers.iter().filter(|(_, answer)| answer.outcome() == Some(Outcome::Ran)).count();
        for (to, answer) in &answers {
            // On a slow machine a copy may come when the first is through already.
            let promised = match answer.outcome() {
                Some(Outcome::Ran) => ran == 1,
                Some(Outcome::InProgress | Outcome::Duplicate) => true,
                _ => false,
            };
            self.show(&format!("PO-1002 to instance {to}"), Some("PO-1002"), answer, promised).await?;
        }
        self.deliver(&message, 2, "Pub/Sub repeats what was nacked", &[Outcome::Duplicate]).await
    }

    async fn failure(&mut self) -> Result<(), BoxError> {
        self.page.heading("The card service is down, then heals");
        let message = Message::order("PO-1003", "7.20");
        self.cards.down(true);
        self.deliver(&message, 1, "new order PO-1003", &[Outcome::Failed]).await?;
        self.deliver(&message, 2, "attempt 2, still down", &[Outcome::Failed]).await?;
        self.cards.down(false);
        self.deliver(&message, 3, "attempt 3, it is up again", &[Outcome::Ran]).await
    }

    async fn crash(&mut self) -> Result<(), BoxError> {
        self.page.heading(
            "Instance B charges the card and is killed before it can record that: its runtime is shut down \
             in mid-work,\n  which ends its tasks and sockets as SIGKILL would. Its claim holds for the rest \
             of its lease",
        );
        let message = Message::order("PO-1004", "45.00");
        self.b.hang();
        let answer = tokio::spawn(self.sender.send(self.b.url(), message.push(1)));
        // If the charge does not come, the answer tells.
        let _ = tokio::time::timeout(LEASE, self.cards.charging("PO-1004")).await;
        self.b.kill();
        let answer = answer.await?;
        let promised = answer.died();
        self.show("PO-1004 to instance B, which is killed", Some("PO-1004"), &answer, promised).await?;
        let held = self.sender.send(self.a.url(), message.push(2)).await;
        let promised = held.outcome() == Some(Outcome::InProgress) && held.retry_after().is_some();
        self.show("attempt 2, at once, to instance A", Some("PO-1004"), &held, promised).await?;
        // Pub/Sub backs off by itself; the demo waits as long as it was asked to.
        tokio::time::sleep(held.retry_after().unwrap_or(LEASE)).await;
        self.deliver(&message, 3, "attempt 3, after the lease has lapsed", &[Outcome::Ran]).await
    }

    async fn poison(&mut self) -> Result<(), BoxError> {
        self.page.heading(&format!(
            "A poison message fails whenever it comes: after {ATTEMPTS} attempts Pub/Sub moves it to the dead-letter topic"
        ));
        let message = Message::order("PO-1005", "-1.00");
        for attempt in 1..=ATTEMPTS {
            let sent = format!("PO-1005 of -1.00, attempt {attempt}");
            self.deliver(&message, attempt, &sent, &[Outcome::Failed]).await?;
        }
        self.page.heading("What cannot be told apart from others is refused, and never acked");
        let unkeyed = Message::note("an order without a number");
        let answer = self.sender.send(self.a.url(), unkeyed.push(1)).await;
        let promised = answer.outcome() == Some(Outcome::Unkeyed);
        self.show("a message without an order number", None, &answer, promised).await?;
        let answer = self.sender.send(self.a.url(), no_envelope("PO-1006, please")).await;
        let promised = answer.outcome() == Some(Outcome::Refused);
        self.show("a body that is no envelope", None, &answer, promised).await
    }

    /// Sends a message to instance A and shows what came of it.
    async fn deliver(
        &mut self,
        message: &Message,
        attempt: u32,
        sent: &str,
        expected: &[Outcome],
    ) -> Result<(), BoxError> {
        let answer = self.sender.send(self.a.url(), message.push(attempt)).await;
        let promised = answer.outcome().is_some_and(|outcome| expected.contains(&outcome));
        self.show(sent, message.order_id(), &answer, promised).await
    }

    async fn show(
        &mut self,
        sent: &str,
        order: Option<&str>,
        answer: &Answer,
        promised: bool,
    ) -> Result<(), BoxError> {
        let standing = match order {
            Some(order) => self.store.read(&key(order)?).await?,
            None => None,
        };
        self.page.line(sent, answer, standing.as_ref(), promised);
        Ok(())
    }

    fn summary(&mut self, took: Duration) -> bool {
        let (calls, charged) = (self.cards.calls(), self.cards.charged());
        let expected: Vec<_> =
            ["PO-1001", "PO-1002", "PO-1003", "PO-1004"].map(|order| (order.to_owned(), 1)).into();
        self.page.promise(charged == expected, &format!("each of four orders is charged once: {charged:?}"));
        let repeats = self.cards.repeats();
        self.page.promise(repeats == 1, &format!("one call of the card service is a repeat: {repeats}"));
        self.page.summary(calls, &charged, repeats, took)
    }
}
