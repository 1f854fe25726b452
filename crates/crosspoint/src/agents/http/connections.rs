//! The connections to one agent: those that rest, the last used first, and new ones where none does.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
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

type Sender = SendRequest<Full<Bytes>>;

pub(super) struct Connections(Arc<Inner>);

struct Inner {
    host: String,
    port: u16,
    /// `None` where the agent is not asked over TLS.
    tls: Option<Tls>,
    resting: Mutex<Vec<(Sender, Instant)>>,
}

/// A connection whose answer is being read.
pub(super) struct Held {
    sender: Sender,
    home: Weak<Inner>,
}

impl Held {
    /// The answer was read to its end: the connection is free for the next request.
    pub(super) fn rest(self) {
        let Some(home) = self.home.upgrade() else { return };
        let now = Instant::now();
        let mut resting = home.resting.lock().unwrap_or_else(PoisonError::into_inner);
        // The oldest come first.
        let stale = resting.iter().take_while(|(_, since)| now.duration_since(*since) > IDLE_TIME_MAX).count();
        resting.drain(..stale);
        if resting.len() < RESTING_MAX && !self.sender.is_closed() {
            resting.push((self.sender, now));
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
    ) -> Result<(Response<Incoming>, Held), Unanswered> {
        loop {
            let (mut sender, is_new) = match self.rested().await {
                Some(sender) => (sender, false),
                None => (self.connect().await?, true),
            };
            let mut failed = match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, Held { sender, home: Arc::downgrade(&self.0) })),
                Err(failed) => failed,
            };
            match failed.take_message().filter(|_| !is_new) {
                Some(unsent) => request = unsent,
                None if is_garbled(failed.error()) => return Err(Unanswered::Garbled),
                None => return Err(Unanswered::Lost),
            }
        }
    }

    async fn rested(&self) -> Option<Sender> {
        loop {
            let (mut sender, since) = self.0.resting.lock().unwrap_or_else(PoisonError::into_inner).pop()?;
            if since.elapsed() <= IDLE_TIME_MAX && sender.ready().await.is_ok() {
                return Some(sender);
            }
        }
    }

    async fn connect(&self) -> Result<Sender, Unanswered> {
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, self.0.connect()).await;
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        connected.unwrap_or_else(|_| Err(timed_out())).map_err(|cause| {
            let Inner { host, port, .. } = &*self.0;
            tracing::warn!(host, port, %cause, "an agent cannot be connected to");
            Unanswered::Unconnected
        })
    }
}

impl Inner {
    async fn connect(&self) -> io::Result<Sender> {
        self.tls.as_ref().map_or(Ok(()), Tls::ready)?;
        let socket = self.socket().await?;
        match &self.tls {
            Some(tls) => spoken_over(tls.connect(socket).await?).await,
            None => spoken_over(socket).await,
        }
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

/// HTTP/1.1 over a connection. It is driven by a task of its own, which ends with it.
async fn spoken_over(socket: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> io::Result<Sender> {
    let (sender, connection) = http1::handshake(TokioIo::new(socket)).await.map_err(io::Error::other)?;
    tokio::spawn(async move {
        // Who waits for an answer is told what went wrong.
        let _ = connection.await;
    });
    Ok(sender)
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
