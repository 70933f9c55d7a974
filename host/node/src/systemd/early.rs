//! Systemd itself, where it answers root before there is a bus.
//!
//! Its signals there bear a name that no bus gives anybody, and are no messages to the library
//! that speaks D-Bus. So one call is made here, of which no more has to be known than whether
//! it was done.

use super::bus::Unanswered;
use super::manager::{MANAGER, MANAGER_PATH, SYSTEMD};
use super::problem::Problem;
use std::io;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::time::timeout;
use zbus::Message;

/// Where systemd answers root.
pub const PRIVATE: &str = "/run/systemd/private";

/// More than an answer to a call has that is answered by nothing.
const MOST: u64 = 1 << 20;
/// Longer than a line is by which it says that it knows who asks.
const LINE: usize = 1024;

/// As the first bytes of a message say: a reply, or a refusal.
const REPLY: u8 = 2;
const REFUSAL: u8 = 3;

/// Lets systemd read its units anew.
pub async fn reload_before_the_bus(socket: &Path, limit: Duration) -> Result<(), Problem> {
    let absent = |error: io::Error| Unanswered::Absent(format!("{}: {error}", socket.display()));
    let done = match timeout(limit, reload(socket)).await {
        Ok(Ok(true)) => return Ok(()),
        Ok(Ok(false)) => Unanswered::Lost("it refused to read its units".to_owned()),
        Ok(Err(error)) => absent(error),
        Err(_) => Unanswered::Late,
    };
    Err(Problem::unanswered("daemon-reload", limit, done))
}

/// Whether it was done.
async fn reload(socket: &Path) -> io::Result<bool> {
    let call = Message::method_call(MANAGER_PATH, "Reload")
        .destination(SYSTEMD)
        .interface(MANAGER)
        .build(&())
        .map_err(io::Error::other)?;
    let mut stream = UnixStream::connect(socket).await?;
    let user = rustix::process::geteuid().as_raw().to_string();
    let user: String = user.bytes().map(|digit| format!("{digit:02x}")).collect();
    // At once, and the call only after the answer: one that comes together with BEGIN is read
    // with it, and looked at when something more is heard, which may be never.
    stream.write_all(format!("\0AUTH EXTERNAL {user}\r\nBEGIN\r\n").as_bytes()).await?;
    if !line(&mut stream).await?.starts_with(b"OK ") {
        return Err(io::Error::other("it does not take orders from this user"));
    }
    stream.write_all(call.data()).await?;
    loop {
        // Signals come in between.
        match message(&mut stream).await? {
            REPLY => return Ok(true),
            REFUSAL => return Ok(false),
            _ => {}
        }
    }
}

async fn line(stream: &mut UnixStream) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") && line.len() < LINE {
        line.push(stream.read_u8().await?);
    }
    Ok(line)
}

/// Reads one message; which kind it is.
async fn message(stream: &mut UnixStream) -> io::Result<u8> {
    let mut head = [0; 16];
    stream.read_exact(&mut head).await?;
    let [order, kind, _, _, b0, b1, b2, b3, _, _, _, _, f0, f1, f2, f3] = head;
    let number = |bytes| match order {
        b'l' => u64::from(u32::from_le_bytes(bytes)),
        _ => u64::from(u32::from_be_bytes(bytes)),
    };
    let (body, fields) = (number([b0, b1, b2, b3]), number([f0, f1, f2, f3]));
    let rest = fields.next_multiple_of(8) + body;
    if rest > MOST {
        return Err(io::Error::other("it says more than an answer is"));
    }
    let read = tokio::io::copy(&mut stream.take(rest), &mut tokio::io::sink()).await?;
    match read == rest {
        true => Ok(kind),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
