//! The connections to one agent: those that rest, the last used first, and new ones where none does.
//!
//! A connection is usually driven by a task of its own, which hands every piece of an answer to the task that reads it: two switches a piece.
//! Here the task that waits for an answer drives the connection itself ([`drive`]), and a connection that rests is driven by nobody: whether it was
//! closed meanwhile is found out when it is wanted again.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use reqwest::Url;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls::Tls;
use super::{Unanswered, is_garbled};

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// A connection that nobody needs is closed after this. Servers close idle ones too, some after five seconds; one that is closed just as a
/// request goes out over it leaves nobody knowing whether the work began.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// So many connections rest at most; others are closed.
const RESTING_MAX: usize = 256;

/// What bytes travel over: a socket, or TLS over one.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

type Driven = Pin<Box<http1::Connection<TokioIo<Box<dyn Wire>>, Full<Bytes>>>>;

pub(super) struct Connections(Arc<Inner>);

struct Inner {
    host: String,
    port: u16,
    /// `None` where the agent is not asked over TLS.
    tls: Option<Tls>,
    resting: Mutex<Resting>,
}

#[derive(Default)]
struct Resting {
    connections: Vec<(Connection, Instant)>,
    /// Whether a task closes those that rest for too long.
    watched: bool,
}

/// A connection, for one request after the other.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is over.
    driven: Option<Driven>,
    home: Weak<Inner>,
}

impl Connection {
    /// Waits for what this connection brings about, and drives it meanwhile.
    pub(super) async fn drive<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        drive(&mut self.driven, wanted).await
    }

    /// The answer was read to its end: the connection is free for the next request.
    pub(super) fn rest(self) {
        let Some(home) = self.home.upgrade().filter(|_| self.driven.is_some() && !self.sender.is_closed()) else {
            return;
        };
        let mut resting = home.resting();
        if resting.connections.len() < RESTING_MAX {
            resting.connections.push((self, Instant::now()));
        }
        if !std::mem::replace(&mut resting.watched, true) {
            tokio::spawn(close_stale(Arc::downgrade(&home)));
        }
    }
}

async fn drive<T>(driven: &mut Option<Driven>, wanted: impl Future<Output = T>) -> T {
    let mut wanted = pin!(wanted);
    poll_fn(|context| {
        if let Poll::Ready(done) = wanted.as_mut().poll(context) {
            return Poll::Ready(done);
        }
        // What went wrong with it is told to whoever waits for it.
        if let Some(connection) = driven
            && connection.as_mut().poll(context).is_ready()
        {
            *driven = None;
        }
        wanted.as_mut().poll(context)
    })
    .await
}

/// Closes what rests for too long, as long as anything rests.
async fn close_stale(home: Weak<Inner>) {
    loop {
        tokio::time::sleep(IDLE_TIME_MAX).await;
        let Some(home) = home.upgrade() else { return };
        let mut resting = home.resting();
        // The oldest come first.
        let is_stale = |(_, since): &&(Connection, Instant)| since.elapsed() >= IDLE_TIME_MAX;
        let stale = resting.connections.iter().take_while(is_stale).count();
        resting.connections.drain(..stale);
        if resting.connections.is_empty() {
            resting.watched = false;
            return;
        }
    }
}

impl Connections {
    pub(super) fn to(url: &Url) -> Connections {
        // A host of six groups stands in brackets within a URL.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tls = (url.scheme() == "https").then(|| Tls::new(&host));
        let port = url.port_or_known_default().unwrap_or(0);
        Connections(Arc::new(Inner { host, port, tls, resting: Mutex::default() }))
    }

    /// Sends a request over a connection that rests, or a new one. What a connection that was closed meanwhile gives back unsent goes over the next.
    pub(super) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), Unanswered> {
        loop {
            let (mut connection, is_new) = match self.rested().await {
                Some(connection) => (connection, false),
                None => (self.connect().await?, true),
            };
            let Connection { sender, driven, .. } = &mut connection;
            let mut failed = match drive(driven, sender.try_send_request(request)).await {
                Ok(response) => return Ok((response, connection)),
                Err(failed) => failed,
            };
            match failed.take_message().filter(|_| !is_new) {
                Some(unsent) => request = unsent,
                None if is_garbled(failed.error()) => return Err(Unanswered::Garbled),
                None => return Err(Unanswered::Lost),
            }
        }
    }

    async fn rested(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.0.resting().connections.pop()?;
            let Connection { sender, driven, .. } = &mut connection;
            // It may have been closed since.
            let is_free = since.elapsed() < IDLE_TIME_MAX && drive(driven, sender.ready()).await.is_ok();
            if is_free && driven.is_some() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Unanswered> {
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, self.0.connect()).await;
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let (sender, driven) = connected.unwrap_or_else(|_| Err(timed_out())).map_err(|cause| {
            let Inner { host, port, .. } = &*self.0;
            tracing::warn!(host, port, %cause, "an agent cannot be connected to");
            Unanswered::Unconnected
        })?;
        Ok(Connection { sender, driven: Some(driven), home: Arc::downgrade(&self.0) })
    }
}

impl Inner {
    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> io::Result<(SendRequest<Full<Bytes>>, Driven)> {
        self.tls.as_ref().map_or(Ok(()), Tls::ready)?;
        let socket = self.socket().await?;
        let wire: Box<dyn Wire> = match &self.tls {
            Some(tls) => Box::new(tls.connect(socket).await?),
            None => Box::new(socket),
        };
        let (sender, driven) = http1::handshake(TokioIo::new(wire)).await.map_err(io::Error::other)?;
        Ok((sender, Box::pin(driven)))
    }

    /// The first of the host's addresses that answers. Each has its part of the time, so that one that is silent hides no other.
    async fn socket(&self) -> io::Result<TcpStream> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*self.host, self.port)).await?.collect();
        let part = CONNECT_TIME_MAX / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            match tokio::time::timeout(part, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => {
                    socket.set_nodelay(true)?;
                    return Ok(socket);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_certificates_nobody_is_connected_to() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be asked");
        let port = listener.local_addr().expect("it has an address").port();
        let inner = Inner { host: "127.0.0.1".to_owned(), port, tls: Some(Tls(None)), resting: Mutex::default() };
        let sent = Connections(Arc::new(inner)).send(Request::new(Full::default())).await;
        assert_eq!(sent.err(), Some(Unanswered::Unconnected));
        assert!(listener.accept().is_err(), "somebody came");
    }
}
