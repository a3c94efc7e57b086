//! `orders healthcheck`: asks the service on this machine, for an engine whose image has no shell and no curl.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::settings::variable;

/// Shorter than an engine waits by default, so that it is this program that says what is wrong.
const LIMIT: Duration = Duration::from_secs(5);
const USAGE: &str = "usage: orders [healthcheck]";

/// What the arguments ask for, if it is not to serve: done, with the code to end with.
pub(super) fn asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let first = arguments.next()?;
    if first != "healthcheck" || arguments.next().is_some() {
        eprintln!("{USAGE}");
        return Some(ExitCode::from(2));
    }
    match check() {
        Ok(()) => {
            println!("orders: healthy");
            Some(ExitCode::SUCCESS)
        }
        Err(error) => {
            eprintln!("orders: not healthy: {error}");
            Some(ExitCode::FAILURE)
        }
    }
}

fn check() -> Result<(), super::BoxError> {
    let port = match variable("PORT")? {
        Some(text) => text.parse().map_err(|_| format!("`PORT` is {text:?}"))?,
        None => 8080,
    };
    // On a thread, so that the limit is one for all of it; the end of the process ends the thread.
    let (sender, answer) = mpsc::channel();
    thread::spawn(move || sender.send(status(port)));
    let status = answer.recv_timeout(LIMIT).map_err(|_| format!("no answer within {LIMIT:?}"))??;
    if status.starts_with("HTTP/1.1 200 ") {
        return Ok(());
    }
    Err(format!("`GET /healthz` on port {port} was answered {status:?}").into())
}

/// The first line of the answer.
fn status(port: u16) -> io::Result<String> {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
    let mut line = Vec::new();
    // Enough for a line; whoever listens there need not be us.
    BufReader::new(stream.take(256)).read_until(b'\n', &mut line)?;
    Ok(String::from_utf8_lossy(&line).trim_end().to_owned())
}
