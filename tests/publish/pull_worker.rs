//! The example `pull_worker` as a process on the real emulator: one effect for each order, and no message left.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::example::example;
use crate::pubsub::{Message, PubSub};
use crate::report;

/// Nothing here takes longer: what hangs fails its test.
const LIMIT: Duration = Duration::from_secs(60);

/// A topic, its subscription, and a folder for what the workers keep.
struct Site {
    pubsub: PubSub,
    folder: PathBuf,
}

impl Site {
    async fn new(test: &str) -> Self {
        let pubsub = PubSub::from_env(test).await;
        pubsub.topic("orders").await;
        for subscription in ["charges", "again"] {
            pubsub.pull_from(subscription, "orders").await;
        }
        let folder = std::env::temp_dir().join(pubsub.name("folder"));
        std::fs::create_dir(&folder).unwrap();
        Self { pubsub, folder }
    }

    async fn publish(&self, message: Message) -> String {
        self.pubsub.publish("orders", message).await
    }

    fn worker(&self, subscription: &str, ledger: &Path) -> Worker {
        let store = format!("sqlite://{}", self.folder.join("keys.db").display());
        let mut child = Command::new(example("pull_worker"))
            .env("SUBSCRIPTION", self.pubsub.resource("subscriptions", subscription))
            .env("PUSHONCE_STORE", store)
            .env("LEDGER", ledger)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Worker { child, lines, log: Vec::new() }
    }

    /// One more order, PO-9, and the end; all that the worker logged. What was nacked would be back, and
    /// logged, before this order. Once the worker has ended nobody can look: the emulator goes on to give
    /// messages to a stream that has ended, where they wait a minute.
    async fn left_nothing(&self, mut worker: Worker) -> Vec<String> {
        self.publish(order("PO-9")).await;
        worker.says(" charged id=", 1).await;
        worker.terminate();
        worker.ends().await
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

struct Worker {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    log: Vec<String>,
}

impl Worker {
    /// Waits until it has logged this so often since the last wait.
    async fn says(&mut self, what: &str, times: usize) {
        let said = tokio::time::timeout(LIMIT, async {
            let mut left = times;
            while left > 0 {
                let line = self.lines.next_line().await.unwrap();
                let line = line.unwrap_or_else(|| panic!("the worker ended: {:#?}", self.log));
                left -= usize::from(line.contains(what));
                self.log.push(line);
            }
        });
        said.await
            .unwrap_or_else(|_| panic!("the worker did not say {what:?} {times} times: {:#?}", self.log));
    }

    fn terminate(&self) {
        let id = i32::try_from(self.child.id().unwrap()).unwrap();
        kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    }

    /// Waits for its end; all that it has logged.
    async fn ends(mut self) -> Vec<String> {
        self.says("stopped", 1).await;
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await.unwrap().unwrap();
        assert!(status.success(), "{status}: {:#?}", self.log);
        assert!(self.log.iter().any(|line| line.contains("acks_sent=true")), "{:#?}", self.log);
        self.log
    }
}

fn order(number: &str) -> Message {
    Message::new(number).attribute("po_id", number)
}

fn said(log: &[String], what: &str) -> usize {
    log.iter().filter(|line| line.contains(what)).count()
}

/// The orders that were charged, sorted.
fn charged(ledger: &Path) -> Vec<String> {
    let lines = std::fs::read_to_string(ledger).unwrap();
    let mut orders: Vec<_> = lines.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
    orders.sort();
    orders
}

#[tokio::test]
async fn two_copies_of_an_order_are_one_charge_and_no_message_is_left() {
    let site = Site::new("pull-twice").await;
    let ledger = site.folder.join("charges.log");
    let mut worker = site.worker("charges", &ledger);
    site.publish(order("PO-1")).await;
    site.publish(order("PO-1")).await;
    // Without an order number each message is its own.
    site.publish(Message::new("note")).await;
    site.publish(Message::new("note")).await;
    worker.says(" id=", 4).await;
    let log = site.left_nothing(worker).await;
    assert_eq!(charged(&ledger), ["PO-1", "PO-9", "note", "note"]);
    assert_eq!([said(&log, "acked without a charge"), said(&log, "delivered again")], [1, 0], "{log:#?}");

    // Another worker on another subscription, which has all of it to come, knows what was charged by the first.
    let mut worker = site.worker("again", &ledger);
    worker.says("acked without a charge", 5).await;
    worker.terminate();
    worker.ends().await;
    report::test("pubsub-emulator", "two_copies_of_an_order_are_one_charge_and_no_message_is_left");
}

#[tokio::test]
async fn a_failure_is_delivered_again_until_it_succeeds() {
    let site = Site::new("pull-failed").await;
    let folder = site.folder.join("not there yet");
    let ledger = folder.join("charges.log");
    let mut worker = site.worker("charges", &ledger);
    site.publish(order("PO-2")).await;
    worker.says("to be delivered again", 2).await;
    std::fs::create_dir(&folder).unwrap();
    worker.says(" charged id=", 1).await;
    let log = site.left_nothing(worker).await;
    assert_eq!(charged(&ledger), ["PO-2", "PO-9"]);
    assert_eq!([said(&log, " charged id="), said(&log, "acked without a charge")], [2, 0], "{log:#?}");
    report::test("pubsub-emulator", "a_failure_is_delivered_again_until_it_succeeds");
}

/// The work hangs in the opening of a pipe, until somebody reads from it.
#[tokio::test]
async fn at_sigterm_what_is_in_work_ends_and_its_ack_is_sent() {
    let site = Site::new("pull-term").await;
    let pipe = site.folder.join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut worker = site.worker("charges", &pipe);
    site.publish(order("PO-3")).await;
    worker.says("in work", 1).await;
    worker.terminate();
    worker.says("stopping", 1).await;
    let opened = pipe.clone();
    let read = tokio::task::spawn_blocking(move || charged(&opened));
    worker.says(" charged id=", 1).await;
    worker.ends().await;
    assert_eq!(read.await.unwrap(), ["PO-3"]);
    report::test("pubsub-emulator", "at_sigterm_what_is_in_work_ends_and_its_ack_is_sent");
}
