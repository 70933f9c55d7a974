//! A connection that gives back its place when it ends, and ends when its place is
//! needed.

use super::room::Room;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

#[derive(Debug)]
pub(in crate::http) struct Counted {
    stream: TcpStream,
    /// None: it has ended.
    ends: Option<oneshot::Receiver<()>>,
    _room: Arc<Room>,
}

impl Counted {
    pub(super) fn new(stream: TcpStream, room: Arc<Room>, ends: oneshot::Receiver<()>) -> Counted {
        Counted { stream, ends: Some(ends), _room: room }
    }

    /// An error once another connection has taken its place; until then the task is
    /// woken when that happens.
    fn ended(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let is_open = self.ends.as_mut().is_some_and(|ends| Pin::new(ends).poll(cx).is_pending());
        if is_open {
            return Ok(());
        }
        self.ends = None;
        Err(io::Error::other("it made way for another connection"))
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.ended(cx)?;
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.ended(cx)?;
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.ended(cx)?;
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
