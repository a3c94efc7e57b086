//! A proxy in front of a server, which cuts or holds the call that has some bytes in it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

/// What happens to the next call that has the bytes in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It never reaches the server, and the connection breaks.
    CutBefore,
    /// The server carries it out, and the connection breaks before the answer.
    CutAfter,
    /// It never reaches the server, and nobody says so.
    Hold,
}

#[derive(Default)]
struct Shared {
    plan: Mutex<Option<(Fate, Vec<u8>)>>,
    connections: AtomicUsize,
    ending: Notify,
    /// What clients have sent, in the order of its coming.
    sent: Mutex<Vec<Vec<u8>>>,
}

pub(crate) struct Proxy {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

impl Proxy {
    pub(crate) async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, server)
    }

    pub(crate) fn on(listener: TcpListener, server: SocketAddr) -> Self {
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let for_all = shared.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                for_all.connections.fetch_add(1, Ordering::SeqCst);
                let shared = for_all.clone();
                tokio::spawn(async move {
                    let server = TcpStream::connect(server).await.unwrap();
                    // An end that is gone ends the other.
                    tokio::select! {
                        _ = carry(client, server, &shared) => {}
                        () = shared.ending.notified() => {}
                    }
                });
            }
        });
        Self { port, shared }
    }

    /// Once, for the next call that has these bytes in it.
    pub(crate) fn next(&self, fate: Fate, bytes: impl Into<Vec<u8>>) {
        *self.shared.plan.lock().unwrap() = Some((fate, bytes.into()));
    }

    /// Whether that call has come.
    pub(crate) fn met(&self) -> bool {
        self.shared.plan.lock().unwrap().is_none()
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Breaks every connection that is open.
    pub(crate) fn end_all(&self) {
        self.shared.ending.notify_waiters();
    }

    /// What clients have sent since the last time.
    pub(crate) fn take_sent(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut *self.shared.sent.lock().unwrap())
    }
}

async fn carry(mut client: TcpStream, mut server: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (mut asked, mut answered) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                shared.sent.lock().unwrap().push(bytes.to_vec());
                match fate(shared, bytes) {
                    None => server.write_all(bytes).await?,
                    Some(Fate::CutBefore) => return Ok(()),
                    Some(Fate::CutAfter) => {
                        server.write_all(bytes).await?;
                        // It has answered, so it has done it.
                        return server.read(&mut answered).await.map(drop);
                    }
                    Some(Fate::Hold) => {
                        // Until the client has had enough.
                        while client.read(&mut asked).await? > 0 {}
                        return Ok(());
                    }
                }
            }
            read = server.read(&mut answered) => {
                let bytes = &answered[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                client.write_all(bytes).await?;
            }
        }
    }
}

fn fate(shared: &Shared, bytes: &[u8]) -> Option<Fate> {
    let mut plan = shared.plan.lock().unwrap();
    let (_, sought) = plan.as_ref()?;
    let met = bytes.windows(sought.len()).any(|window| window == sought);
    if met { plan.take().map(|(fate, _)| fate) } else { None }
}
