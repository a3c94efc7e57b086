//! A producer that dies after its publish, and whose task is over before anybody submits again.

use std::sync::Arc;

use pushonce::Outcome;

use crate::PATIENCE;
use crate::faster::{caller, ended};
use crate::on_servers::on_servers;
use crate::point::Point;
use crate::program::Role;
use crate::site::Site;
use crate::supplier::Supplier;
use crate::work::{self, Topic};

on_servers! {
    [sqlite datastore_emulator firestore_emulator redis postgres mariadb s3 fake_gcs] {
        a_task_that_is_over_before_its_dead_producer_is_missed_is_replayed_at_once
    }
}

async fn a_task_that_is_over_before_its_dead_producer_is_missed_is_replayed_at_once(site: &Site) {
    let supplier = Supplier::start().await;
    let to = work::address(&supplier.url("/"));
    let mut caller = caller(site, Arc::new(Topic(to)));
    let producer = Role::Submitter { key: &caller.key };
    let mut producer = producer.start(site, &supplier.url("/"), Some(Point::AfterPublish));
    producer.await_log(PATIENCE, &Point::AfterPublish.announcement()).await;
    producer.kill_9().await;
    let push = work::pushes(&supplier).remove(0);
    assert_eq!(push.send(&work::worker(site.store(), to)).await.outcome, Some(Outcome::Ran));
    ended(&mut caller, &supplier).await;
}
