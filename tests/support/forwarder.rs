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
    /// Connections below this number are silent.
    silent: Mutex<usize>,
    sound: Condvar,
}

impl Forwarder {
    pub(crate) fn to(target: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let line = Arc::new(Line { target: target.into(), ..Line::default() });
        let accepting = line.clone();
        thread::spawn(move || listener.incoming().for_each(|client| accepting.accept(&client.unwrap())));
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

    /// Passes nothing on any more, either way, and keeps what comes.
    pub(crate) fn silence(&self) {
        self.line.silence_below(usize::MAX);
    }

    /// The same for the connections that are open; new ones are well.
    pub(crate) fn silence_open(&self) {
        self.line.silence_below(self.dialled());
    }

    /// Passes on what was kept and what comes.
    pub(crate) fn resume(&self) {
        self.line.silence_below(0);
    }
}

impl Line {
    fn silence_below(&self, number: usize) {
        *self.silent.lock().unwrap() = number;
        self.sound.notify_all();
    }

    fn accept(self: &Arc<Self>, client: &TcpStream) {
        let number = self.dialled.fetch_add(1, Ordering::SeqCst);
        // Where nobody listens the client's connection is closed, too.
        let Ok(server) = TcpStream::connect(("127.0.0.1", self.target.load(Ordering::SeqCst))) else {
            return;
        };
        for stream in [client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        for (from, to, cut) in [(client, &server, Cut::BeforeTheWrite), (&server, client, Cut::AfterTheWrite)]
        {
            let (line, from, to) = (self.clone(), from.try_clone().unwrap(), to.try_clone().unwrap());
            thread::spawn(move || line.pass(number, &from, &to, cut));
        }
    }

    fn pass(&self, number: usize, mut from: &TcpStream, mut to: &TcpStream, cut: Cut) {
        let mut bytes = [0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            let silent = self.silent.lock().unwrap();
            drop(self.sound.wait_while(silent, |silent| number < *silent).unwrap());
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
