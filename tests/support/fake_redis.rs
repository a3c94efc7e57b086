//! A fake of Redis, for answers that the installed server does not give: it says to each command what it is told to.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

/// Answers on threads of its own until the process ends.
#[derive(Debug)]
pub(crate) struct FakeRedis {
    port: u16,
}

impl FakeRedis {
    /// `answer` gives what goes over the wire for a command, which is told in upper case.
    pub(crate) fn start(answer: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(answer);
        thread::spawn(move || {
            for client in listener.incoming() {
                let (client, answer) = (client.unwrap(), answer.clone());
                thread::spawn(move || serve(&client, |command| answer(command)));
            }
        });
        Self { port }
    }

    /// A server that says so to INFO, and OK to whatever else.
    pub(crate) fn with_info(info: &str) -> Self {
        let info = bulk(info);
        Self::start(move |command| if command == "INFO" { info.clone() } else { "+OK\r\n".to_owned() })
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }
}

pub(crate) fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn serve(client: &TcpStream, answer: impl Fn(&str) -> String) {
    let (mut reader, mut writer) = (BufReader::new(client), client);
    while let Some(command) = command(&mut reader) {
        if writer.write_all(answer(&command).as_bytes()).is_err() {
            break;
        }
    }
}

/// The name of the next command: an array of texts, each led by its length.
fn command(reader: &mut BufReader<&TcpStream>) -> Option<String> {
    let parts = length(reader, '*')?;
    let mut name = None;
    for _ in 0..parts {
        let mut text = vec![0; length(reader, '$')? + 2];
        reader.read_exact(&mut text).ok()?;
        name.get_or_insert_with(|| String::from_utf8_lossy(&text).trim().to_ascii_uppercase());
    }
    name
}

fn length(reader: &mut BufReader<&TcpStream>, mark: char) -> Option<usize> {
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    line.trim().strip_prefix(mark)?.parse().ok()
}
