//! The server for Cloud Run: `$PORT`, headers enough for a push with 100 attributes, SIGTERM, a bounded drain.

use std::future::{Future, IntoFuture};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};

use crate::task::{self, Drained};

/// A message may have 100 attributes, and unwrapped each is a header; hyper's own limit is 100 in all.
const HEADERS: usize = 256;
/// 100 attributes of 256 bytes of name and 1024 of value, and room for the rest.
const HEADER_BYTES: usize = 256 * 1024;
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// Cloud Run kills ten seconds after SIGTERM.
const DRAIN: Duration = Duration::from_secs(8);
const PORT: u16 = 8080;

/// Serves a router on `$PORT` (8080 if it is not set) until SIGTERM or Ctrl-C, then drains.
///
/// ```no_run
/// # #[tokio::main] async fn main() -> std::io::Result<()> {
/// let app = axum::Router::new();
/// pushonce::serve(app).await?;
/// # Ok(()) }
/// ```
///
/// Unlike `axum::serve` it takes a push whose 100 attributes came as headers, and it closes a
/// connection that sends no request within a minute, whether a new one or one between two
/// requests. On the signal it stops accepting, lets the requests and the settling in flight end, and
/// cancels what is left shortly before eight seconds are over; see [`drain`](crate::drain).
///
/// How long a body may take is the layer's to say
/// ([`body_timeout`](crate::IdempotentLayer::body_timeout)); a route without a layer has no such limit.
///
/// It speaks HTTP/1.1, as Cloud Run does to a container: leave its end-to-end HTTP/2 off.
pub fn serve(router: Router) -> Serve {
    // Turns handlers into routes, and so builds their layers, once instead of for each request.
    let router = router.with_state(());
    Serve { router, listener: None, drain: DRAIN, header_timeout: HEADER_TIMEOUT, signal: None }
}

/// A server to be awaited. Made by [`serve`].
#[must_use = "a server does nothing until it is awaited"]
pub struct Serve {
    router: Router,
    listener: Option<TcpListener>,
    drain: Duration,
    header_timeout: Duration,
    signal: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl std::fmt::Debug for Serve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serve")
            .field("listener", &self.listener)
            .field("drain", &self.drain)
            .finish_non_exhaustive()
    }
}

impl Serve {
    /// Listens there instead of on `0.0.0.0:$PORT`.
    pub fn listener(mut self, listener: TcpListener) -> Self {
        self.listener = Some(listener);
        self
    }

    /// How long to drain after the signal. Default eight seconds; keep it under Cloud Run's ten.
    pub fn drain(mut self, limit: Duration) -> Self {
        self.drain = limit;
        self
    }

    /// How long a connection may take to send the headers of a request. Default one minute.
    pub fn header_timeout(mut self, limit: Duration) -> Self {
        self.header_timeout = limit;
        self
    }

    /// Stops at this future's end instead of at SIGTERM or Ctrl-C.
    pub fn until(mut self, signal: impl Future<Output = ()> + Send + 'static) -> Self {
        self.signal = Some(Box::pin(signal));
        self
    }

    async fn run(self) -> io::Result<()> {
        let listener = match self.listener {
            Some(listener) => listener,
            None => TcpListener::bind(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port()?))).await?,
        };
        let mut signal = match self.signal {
            Some(signal) => signal,
            None => Box::pin(terminated()?),
        };
        tracing::info!(address = %listener.local_addr()?, "listening");
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.header_timeout)
            .max_headers(HEADERS)
            .max_header_size(HEADER_BYTES);
        let connections = GracefulShutdown::new();
        loop {
            tokio::select! {
                biased;
                () = &mut signal => break,
                accepted = listener.accept() => match accepted {
                    Ok((stream, _)) => connect(stream, &http, self.router.clone(), &connections),
                    // Out of file descriptors, or a caller that was gone at once: neither ends the service.
                    Err(error) => {
                        tracing::warn!(%error, "a connection was not accepted");
                        tokio::time::sleep(Duration::from_millis(50)).await;
                    }
                }
            }
        }
        drop(listener);
        tracing::info!(limit = ?self.drain, "stopping: draining what is in flight");
        // The answers of the work that ends are still sent while it is drained.
        let answered = pin!(connections.shutdown());
        let (drained, _) = tokio::join!(task::drain(self.drain), tokio::time::timeout(self.drain, answered));
        let Drained { cancelled, left } = drained;
        tracing::info!(cancelled, left, "drained");
        Ok(())
    }
}

impl IntoFuture for Serve {
    type Output = io::Result<()>;
    type IntoFuture = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.run())
    }
}

fn connect(stream: TcpStream, http: &http1::Builder, router: Router, connections: &GracefulShutdown) {
    // An answer is one small write; it should not wait for another.
    let _ = stream.set_nodelay(true);
    let connection = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let watched = connections.watch(connection);
    #[expect(
        clippy::disallowed_methods,
        reason = "a connection writes nothing; the work of its requests is tracked"
    )]
    drop(tokio::spawn(async move {
        if let Err(error) = watched.await {
            tracing::debug!(error = &error as &dyn std::error::Error, "a connection ended with an error");
        }
    }));
}

fn port() -> io::Result<u16> {
    match std::env::var("PORT") {
        Err(_) => Ok(PORT),
        Ok(text) => text.trim().parse().map_err(|_| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("`PORT` is {text:?}: expected a number below 65536"),
            )
        }),
    }
}

/// Ends at SIGTERM, which Cloud Run sends, or at Ctrl-C.
fn terminated() -> io::Result<impl Future<Output = ()> + Send> {
    #[cfg(unix)]
    let mut term = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    Ok(async move {
        #[cfg(unix)]
        let term = term.recv();
        #[cfg(not(unix))]
        let term = std::future::pending::<()>();
        tokio::select! {
            _ = term => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    })
}
