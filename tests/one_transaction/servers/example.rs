//! The example as a program that is killed: what a user copies keeps its promise.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;

use super::sql_server::fresh;
use super::{client, programs, report};

const PATIENCE: Duration = Duration::from_secs(60);

struct Service {
    child: tokio::process::Child,
    address: SocketAddr,
}

impl Service {
    async fn start(program: &Path, database: &Path) -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut command = tokio::process::Command::new(program);
        command.env("DATABASE", database).env("PORT", address.port().to_string()).env("LEASE_SECONDS", "3");
        command.env_remove("PUSHONCE_DISABLED").env_remove("K_SERVICE");
        command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
        let child = command.spawn().unwrap();
        let healthy = async {
            let ask = || http::Request::get("/healthz").body(Bytes::new()).unwrap();
            while client::send(address, ask()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, healthy).await.expect("the example becomes healthy");
        Self { child, address }
    }

    /// The status, or nothing where the process was killed.
    async fn pay(&self, order: &str) -> Option<u16> {
        let data = BASE64_STANDARD.encode(format!(r#"{{"order":"{order}","cents":1999}}"#));
        let body = format!(r#"{{"message":{{"messageId":"1","data":"{data}"}},"subscription":"s"}}"#);
        let request = http::Request::post("/").body(Bytes::from(body)).unwrap();
        client::send(self.address, request).await.ok().map(|answer| answer.status().as_u16())
    }
}

async fn payments(database: &Path) -> i64 {
    let options = SqliteConnectOptions::new().filename(database);
    let mut connection = sqlx::SqliteConnection::connect_with(&options).await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM payments").fetch_one(&mut connection).await.unwrap()
}

/// A file that is deleted with this.
struct File(PathBuf);

impl Drop for File {
    fn drop(&mut self) {
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", self.0.display()));
        }
    }
}

#[tokio::test]
async fn the_example_pays_each_order_once_through_kills_at_any_moment() {
    let database = File(std::env::temp_dir().join(fresh("payments")).with_extension("db"));
    let program = tokio::task::spawn_blocking(|| programs::example("one_transaction")).await.unwrap();
    let orders = 20_u32;
    for killed in 0..orders {
        let order = format!("po-{killed}");
        // The first delivery is killed somewhere on its way, later with each order.
        let mut service = Service::start(&program, &database.0).await;
        let delivery = service.pay(&order);
        let delay = tokio::time::sleep(Duration::from_micros(400) * killed);
        tokio::select! {
            biased;
            answer = delivery => assert!(matches!(answer, Some(200 | 503)), "{answer:?}"),
            () = delay => {}
        }
        service.child.kill().await.unwrap();
        let service = Service::start(&program, &database.0).await;
        let acked = async {
            while !matches!(service.pay(&order).await, Some(200 | 204)) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, acked).await.expect("it is acked at last");
        assert_eq!(service.pay(&order).await, Some(204));
    }
    assert_eq!(payments(&database.0).await, i64::from(orders));
    report::test("sqlite", "the_example_pays_each_order_once_through_kills_at_any_moment");
}
