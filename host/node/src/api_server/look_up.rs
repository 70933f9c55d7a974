//! Connecting to a host by its name.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

/// The C library's look-up cannot be given up: one that hangs keeps its thread. So there is one
/// at a time, and whoever waits for it gives up waiting.
static LOOKING: Semaphore = Semaphore::const_new(1);

/// Connects to `HOST:PORT`, by the first of its addresses that can be reached.
pub(super) async fn connect(address: &str) -> io::Result<TcpStream> {
    let looked_up = look_up(address, |address| Ok(address.to_socket_addrs()?.collect()));
    TcpStream::connect(&*looked_up.await?).await
}

/// What somebody who may hang says, by a thread that nobody waits for at the end.
async fn look_up(
    address: &str,
    ask: impl FnOnce(&str) -> io::Result<Vec<SocketAddr>> + Send + 'static,
) -> io::Result<Vec<SocketAddr>> {
    // A number needs nobody.
    if let Ok(number) = address.parse() {
        return Ok(vec![number]);
    }
    let alone = LOOKING.acquire().await.map_err(io::Error::other)?;
    let (answer, answered) = oneshot::channel();
    let address = address.to_owned();
    std::thread::Builder::new().name("look-up".to_owned()).spawn(move || {
        let _alone = alone;
        let _ = answer.send(ask(&address));
    })?;
    answered.await.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests;
