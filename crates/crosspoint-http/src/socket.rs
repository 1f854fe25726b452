//! The sources of connections: a port, or a socket file. The code that serves them need not know which.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::limit::Peer;
use super::reach::Arrival;

/// The source of connections.
pub enum Listener {
    /// On a port.
    Tcp(TcpListener),
    /// On a socket file.
    Unix(UnixListener),
}

/// One connection.
pub enum Stream {
    /// On a port, from this address.
    Tcp(TcpStream, SocketAddr),
    /// On a socket file.
    Unix(UnixStream),
}

impl Listener {
    /// Waits for the next connection.
    pub async fn accept(&self) -> io::Result<Stream> {
        match self {
            Listener::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                // Answers are small and whole: nothing is gained by waiting for more.
                let _ = stream.set_nodelay(true);
                Ok(Stream::Tcp(stream, from))
            }
            Listener::Unix(listener) => Ok(Stream::Unix(listener.accept().await?.0)),
        }
    }
}

impl Stream {
    /// Returns where the connection arrived.
    pub fn arrival(&self) -> Arrival {
        match self {
            Stream::Tcp(stream, _) => {
                stream.local_addr().map_or(Arrival::Local, |address| Arrival::Address(address.ip()))
            }
            Stream::Unix(_) => Arrival::Local,
        }
    }

    /// Returns where the connection comes from. A port's connection always has an address, also when it was reset:
    /// requests from nowhere else than a socket file may be those of the server's own user.
    pub fn peer(&self) -> Peer {
        match self {
            Stream::Tcp(_, from) => Peer::Address(from.ip()),
            Stream::Unix(_) => Peer::Local,
        }
    }

    /// Waits until there is something to read, or the other side has left.
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Stream::Tcp(stream, _) => stream.readable().await,
            Stream::Unix(stream) => stream.readable().await,
        }
    }

    /// Reads what is there, without waiting.
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream, _) => stream.try_read(buffer),
            Stream::Unix(stream) => stream.try_read(buffer),
        }
    }

    /// Discards what the system still holds for the other end. A socket file holds nothing after it was closed.
    pub fn forget_unsent(&self) {
        match self {
            Stream::Tcp(stream, _) => drop(stream.set_zero_linger()),
            Stream::Unix(_) => {}
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream, _) => Pin::new(stream).poll_read(cx, buf),
            Stream::Unix(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream, _) => Pin::new(stream).poll_write(cx, bytes),
            Stream::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Tcp(stream, _) => Pin::new(stream).poll_write_vectored(cx, slices),
            Stream::Unix(stream) => Pin::new(stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Tcp(stream, _) => stream.is_write_vectored(),
            Stream::Unix(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream, _) => Pin::new(stream).poll_flush(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Tcp(stream, _) => Pin::new(stream).poll_shutdown(cx),
            Stream::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
