//! A small TCP forwarder, as an endpoint that a provider manages: its target can be switched, and
//! connections through it can be cut or fall silent.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

/// What happens to a connection in place of passing the next bytes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    BeforeTheWrite,
    AfterTheWrite,
}

/// Forwards to a port of this machine, on threads of its own, until the process ends.
#[derive(Debug)]
pub(crate) struct Forwarder {
    port: u16,
    line: Arc<Line>,
}

#[derive(Debug, Default)]
struct Line {
    target: AtomicU16,
    dialled: AtomicUsize,
    cut: Mutex<Option<Cut>>,
    silent: Mutex<bool>,
    sound: Condvar,
    open: Mutex<Vec<TcpStream>>,
}

impl Forwarder {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Line { target: target.into(), ..Line::default() });
        let accepting = line.clone();
        thread::spawn(move || listener.incoming().for_each(|client| accepting.accept(client.unwrap())));
        Self { port, line }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// New connections go there; those that are open stay.
    pub(crate) fn switch(&self, target: u16) {
        self.line.target.store(target, Ordering::SeqCst);
    }

    /// How many connections were opened through it.
    pub(crate) fn dialled(&self) -> usize {
        self.line.dialled.load(Ordering::SeqCst)
    }

    /// Cuts the connection on which the next request comes, before or after the server has got it.
    pub(crate) fn cut_next(&self, cut: Cut) {
        *self.line.cut.lock().unwrap() = Some(cut);
    }

    /// Whether a cut is still to come.
    pub(crate) fn has_next(&self) -> bool {
        self.line.cut.lock().unwrap().is_some()
    }

    /// Cuts all connections that are open.
    pub(crate) fn cut_all(&self) {
        for stream in self.line.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Passes nothing on any more, either way, and keeps what comes; or passes it on again.
    pub(crate) fn silence(&self, silent: bool) {
        *self.line.silent.lock().unwrap() = silent;
        self.line.sound.notify_all();
    }
}

impl Line {
    fn accept(self: &Arc<Self>, client: TcpStream) {
        self.dialled.fetch_add(1, Ordering::SeqCst);
        // Where nobody listens the client's connection is closed, too.
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst))) else {
            return;
        };
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
            self.open.lock().unwrap().push(stream.try_clone().unwrap());
        }
        for (from, to, cut) in
            [(&client, &server, Cut::BeforeTheWrite), (&server, &client, Cut::AfterTheWrite)]
        {
            let (line, from, to) = (self.clone(), from.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || line.pass(&from, &to, cut));
        }
    }

    fn pass(&self, mut from: &TcpStream, mut to: &TcpStream, cut: Cut) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let silent = self.silent.lock().unwrap();
            drop(self.sound.wait_while(silent, |silent| *silent).unwrap());
            if self.cut.lock().unwrap().take_if(|next| *next == cut).is_some()
                || to.write_all(&bytes[..count]).is_err()
            {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}
