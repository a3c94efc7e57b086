//! What goes over a connection at once, and what client and server speak.

use std::io;

use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::OwnedReadHalf;

pub(super) const PREFACE: usize = 24;
const FRAME_HEADER: usize = 9;
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;

/// What client and server speak, without TLS: what is a request and what its answer depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speech {
    /// They take turns, so each change of direction is a round trip, and what comes next is the answer.
    Turns,
    /// HTTP/2, where every request has a stream of its own and either side may speak in between.
    Streams,
}

/// What was read at once: a frame of HTTP/2, or else whatever had come.
pub(super) struct Piece {
    pub(super) kind: u8,
    pub(super) stream: u32,
    pub(super) bytes: Vec<u8>,
}

impl Piece {
    pub(super) async fn read(from: &mut OwnedReadHalf, speech: Speech) -> io::Result<Self> {
        match speech {
            Speech::Turns => {
                let mut bytes = vec![0; 64 * 1024];
                let count = from.read(&mut bytes).await?;
                if count == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                bytes.truncate(count);
                Ok(Self { kind: DATA, stream: 1, bytes })
            }
            Speech::Streams => {
                let mut bytes = vec![0; FRAME_HEADER];
                from.read_exact(&mut bytes).await?;
                let length = usize::from(bytes[0]) << 16 | usize::from(bytes[1]) << 8 | usize::from(bytes[2]);
                let (kind, stream) =
                    (bytes[3], u32::from_be_bytes([bytes[5] & 0x7f, bytes[6], bytes[7], bytes[8]]));
                bytes.resize(FRAME_HEADER + length, 0);
                from.read_exact(&mut bytes[FRAME_HEADER..]).await?;
                Ok(Self { kind, stream, bytes })
            }
        }
    }
}
