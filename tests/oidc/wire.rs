//! Over real sockets, through the shipped server.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};
use pushonce::oidc::PushAuthLayer;
use pushonce::store::{Memory, Metered, Totals};
use pushonce::testing::{Claims, KeyServer, Push};
use pushonce::{IdempotentLayer, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::world::{AUDIENCE, CALLER, seconds};

/// A push as the field has it: Cloud Run has removed the signature.
const REMOVED: &[u8] = include_bytes!("removed-signature.http");
const REMOVED_AUDIENCE: &str = "https://orders-worker-7c1q9.a.run.app";
const REMOVED_CALLER: &str = "pusher@kestrel-orders-demo.iam.gserviceaccount.com";

struct Running {
    at: SocketAddr,
    store: Arc<Metered<Memory>>,
    _server: AbortOnDropHandle<()>,
}

impl Running {
    async fn under(auth: PushAuthLayer) -> Self {
        let store = Arc::new(Metered::new(Memory::new()));
        let once = IdempotentLayer::new("orders", store.clone());
        let app = Router::new()
            .route("/push/events", post(|| async {}).layer((auth, once)))
            .route("/healthz", get(|| async { "ok" }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        // Never told to stop, which would drain the whole process.
        let server = serve(app).listener(listener).until(std::future::pending());
        let server = tokio::spawn(async move { server.await.unwrap() });
        Self { at, store, _server: AbortOnDropHandle::new(server) }
    }

    /// The head of what is answered to these bytes.
    async fn answer(&self, request: &[u8]) -> String {
        let mut stream = BufReader::new(TcpStream::connect(self.at).await.unwrap());
        stream.write_all(request).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let line = tokio::time::timeout(seconds(60), stream.read_line(&mut head)).await;
            assert_ne!(line.expect("an answer").unwrap(), 0, "hung up after {head:?}");
        }
        head
    }
}

fn request(headers: &str) -> Vec<u8> {
    let body = Push::bytes("hello").body();
    let length = body.len();
    let head = format!("POST /push/events HTTP/1.1\r\nhost: h\r\n{headers}content-length: {length}\r\n\r\n");
    [head.as_bytes(), &body].concat()
}

#[tokio::test]
async fn a_push_with_a_good_token_is_let_in_and_others_are_not() {
    let keys = KeyServer::start().await;
    let service = Running::under(PushAuthLayer::verify([AUDIENCE], [CALLER]).keys_url(keys.url())).await;
    for refused in ["", "authorization: Bearer e30.e30.AAAA\r\n"] {
        let answer = service.answer(&request(refused)).await;
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
        assert!(answer.contains("pushonce-outcome: unauthorized\r\n"), "{answer}");
    }
    let other = keys.token(&Claims::new(AUDIENCE, "x@example.com"));
    let answer = service.answer(&request(&format!("authorization: Bearer {other}\r\n"))).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    assert_eq!(service.store.totals(), Totals::default());

    let token = keys.token(&Claims::new(AUDIENCE, CALLER));
    let answer = service.answer(&request(&format!("Authorization: Bearer {token}\r\n"))).await;
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("pushonce-outcome: ran"), "{answer}");
    assert_eq!(service.store.totals().creates.made.count, 1);
    let healthy = service.answer(b"GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n").await;
    assert!(healthy.starts_with("HTTP/1.1 200"), "{healthy}");
}

// F30
#[tokio::test]
async fn the_fields_push_without_a_signature_passes_in_the_mode_that_is_for_it() {
    let (audiences, callers) = ([REMOVED_AUDIENCE], [REMOVED_CALLER]);
    let verify = Running::under(PushAuthLayer::verify(audiences, callers)).await;
    assert!(verify.answer(REMOVED).await.starts_with("HTTP/1.1 401"));
    assert_eq!(verify.store.totals(), Totals::default());
    let platform = Running::under(PushAuthLayer::platform(audiences, callers)).await;
    let answer = platform.answer(REMOVED).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let other = Running::under(PushAuthLayer::platform(audiences, [CALLER])).await;
    assert!(other.answer(REMOVED).await.starts_with("HTTP/1.1 403"));
    assert_eq!(other.store.totals(), Totals::default());
}
