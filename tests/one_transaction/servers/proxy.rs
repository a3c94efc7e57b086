//! A TCP proxy in front of a server that loses the answer to a commit, in each way in which it can be lost.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What happens to the next commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Both connections are dropped before the server has read it.
    Before,
    /// It is passed on, and both are dropped when its answer comes.
    After,
    /// It is passed on, and nothing comes back on a connection that stays open.
    Silent,
    /// The client is dropped at once, and it is passed on so much later.
    Late(Duration),
    /// The client is dropped at once, and the server so much later.
    LateRollback(Duration),
}

/// Listens on a port of its own; it ends when dropped, and every connection with it.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    next: Arc<Mutex<Option<Cut>>>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// In front of that server, to which a request with these bytes is a commit.
    pub(crate) async fn start(server: String, commit: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let next = Arc::<Mutex<Option<Cut>>>::default();
        let mut serving = JoinSet::new();
        let plan = next.clone();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                // A connection that ends in an error has ended.
                connections.spawn(pass(client, server, commit, plan.clone()));
            }
        });
        Self { address, next, _serving: serving }
    }

    pub(crate) fn cut_next(&self, cut: Cut) {
        *self.next.lock().unwrap() = Some(cut);
    }

    /// Whether the cut was made.
    pub(crate) fn was_cut(&self) -> bool {
        self.next.lock().unwrap().is_none()
    }
}

async fn pass(
    mut client: TcpStream,
    mut server: TcpStream,
    commit: &'static [u8],
    next: Arc<Mutex<Option<Cut>>>,
) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut asked, mut answered) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let bytes = &asked[..read?];
                if bytes.is_empty() {
                    return Ok(());
                }
                // A commit is sent alone, and waited for.
                let cut = if bytes.windows(commit.len()).any(|part| part == commit) { next.lock().unwrap().take() } else { None };
                let Some(cut) = cut else {
                    server.write_all(bytes).await?;
                    continue;
                };
                match cut {
                    Cut::Before => return Ok(()),
                    Cut::After => {
                        server.write_all(bytes).await?;
                        server.read_u8().await?;
                        return Ok(());
                    }
                    Cut::Silent => {
                        server.write_all(bytes).await?;
                        return std::future::pending().await;
                    }
                    Cut::Late(delay) => {
                        drop(client);
                        tokio::time::sleep(delay).await;
                        server.write_all(bytes).await?;
                        server.read_u8().await?;
                        return Ok(());
                    }
                    Cut::LateRollback(delay) => {
                        drop(client);
                        tokio::time::sleep(delay).await;
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
