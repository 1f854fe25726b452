//! The connections to one agent: idle ones, the last used first, and new ones if none is idle.
//!
//! A connection is usually driven by a task of its own, which hands every piece of an answer to the task that reads it:
//! two switches a piece. Here the task that waits for an answer drives the connection itself ([`drive`]). No task
//! drives an idle connection: whether it was closed meanwhile is found out when it is wanted again.

use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::Poll;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::FutureExt;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rustix::net::{RecvFlags, recv, sockopt};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::tls::Tls;
use super::{Unanswered, is_garbled};
use url::Url;

const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);

/// Longest time that a connection is kept open while idle. Servers close idle connections too, some after five seconds.
/// If a connection is closed just as a request goes out over it, it is not known whether the work began.
const IDLE_TIME_MAX: Duration = Duration::from_secs(3);

/// How long a connection is silent before a keepalive is sent, how many keepalives may go unanswered, and how long sent
/// bytes may go unacknowledged. Beyond that the connection is lost.
const KEEPALIVE_PERIOD: Duration = Duration::from_secs(15);
const KEEPALIVES_LOST_MAX: u32 = 3;
const UNHEARD_TIME_MAX: Duration = Duration::from_secs(30);

/// Most connections that are kept open while idle; further ones are closed.
const RESTING_MAX: usize = 256;

/// What bytes travel over: a socket, or TLS over one.
trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<W: AsyncRead + AsyncWrite + Send + Unpin> Wire for W {}

type Driven = Pin<Box<http1::Connection<TokioIo<Box<dyn Wire>>, Full<Bytes>>>>;

pub(crate) struct Connections(Arc<Inner>);

struct Inner {
    host: String,
    port: u16,
    /// `None` if the agent is not reached over TLS.
    tls: Option<Tls>,
    whose: Whose,
    resting: Mutex<Resting>,
    /// Why the last attempt to connect failed.
    trouble: Mutex<Option<String>>,
}

/// Whose address it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// That of the agent with this name.
    Agent(Box<str>),
    /// That of an orchestrator, which an agent tells of its work.
    Orchestrator,
    /// That of a caller. It is tried over and over, and those who try say so once.
    Callers,
}

#[derive(Default)]
struct Resting {
    connections: Vec<(Connection, Instant)>,
    /// Whether a task closes connections that are idle for too long.
    watched: bool,
}

/// A connection, for one request after the other.
pub(crate) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once the connection is over.
    driven: Option<Driven>,
    /// The socket of the connection, to check whether the agent has closed it.
    socket: OwnedFd,
    home: Weak<Inner>,
}

impl Connection {
    /// Waits for a future that this connection brings about, and drives the connection meanwhile.
    pub(crate) async fn drive<T>(&mut self, wanted: impl Future<Output = T>) -> T {
        drive(&mut self.driven, wanted).await
    }

    /// Makes the connection idle after an answer was read to its end: it is free for the next request.
    pub(crate) fn rest(self) {
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
        // An error of the connection also reaches the future that is waited for.
        if let Some(connection) = driven
            && connection.as_mut().poll(context).is_ready()
        {
            *driven = None;
        }
        wanted.as_mut().poll(context)
    })
    .await
}

/// Closes connections that are idle for too long, as long as any are idle.
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
    pub(crate) fn to(url: &Url, whose: Whose) -> Connections {
        // An IPv6 address stands in brackets within a URL.
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let tls = (url.scheme() == "https").then(|| Tls::new(&host));
        let port = url.port_or_known_default().unwrap_or(0);
        Connections(Arc::new(Inner { host, port, tls, whose, resting: Mutex::default(), trouble: Mutex::default() }))
    }

    /// Sends a request over an idle connection, or a new one. A request that an idle connection gives back unsent,
    /// because it was closed meanwhile, goes over the next.
    pub(crate) async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Response<Incoming>, Connection), Unanswered> {
        loop {
            let (mut connection, is_new) = match self.rested() {
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

    fn rested(&self) -> Option<Connection> {
        loop {
            let (mut connection, since) = self.0.resting().connections.pop()?;
            let Connection { sender, driven, .. } = &mut connection;
            // It may have been closed since. Or its last request is still being sent, to an agent that has answered
            // without reading it.
            let ready = drive(driven, sender.ready()).now_or_never();
            if since.elapsed() < IDLE_TIME_MAX
                && matches!(ready, Some(Ok(())))
                && driven.is_some()
                && is_open(&connection.socket)
            {
                return Some(connection);
            }
        }
    }

    async fn connect(&self) -> Result<Connection, Unanswered> {
        let connected = tokio::time::timeout(CONNECT_TIME_MAX, self.0.connect()).await;
        let timed_out = || io::Error::from(io::ErrorKind::TimedOut);
        let (sender, driven, socket) = connected.unwrap_or_else(|_| Err(timed_out())).map_err(|cause| {
            let Inner { host, port, whose, .. } = &*self.0;
            match whose {
                Whose::Agent(name) => {
                    tracing::warn!(agent = %name, host, port, %cause, "an agent cannot be connected to");
                }
                Whose::Orchestrator => tracing::warn!(host, port, %cause, "the orchestrator cannot be connected to"),
                Whose::Callers => tracing::debug!(host, port, %cause, "a caller cannot be connected to"),
            }
            *self.0.trouble() = Some(cause.to_string());
            Unanswered::Unconnected
        })?;
        *self.0.trouble() = None;
        Ok(Connection { sender, driven: Some(driven), socket, home: Arc::downgrade(&self.0) })
    }
}

impl Connections {
    /// Returns why the last attempt to connect failed; `None` if it did not.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.0.trouble().clone()
    }
}

impl Inner {
    fn trouble(&self) -> MutexGuard<'_, Option<String>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resting(&self) -> MutexGuard<'_, Resting> {
        self.resting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn connect(&self) -> io::Result<(SendRequest<Full<Bytes>>, Driven, OwnedFd)> {
        self.tls.as_ref().map_or(Ok(()), Tls::ready)?;
        let socket = self.socket().await?;
        let below = socket.as_fd().try_clone_to_owned()?;
        let wire: Box<dyn Wire> = match &self.tls {
            Some(tls) => Box::new(tls.connect(socket).await?),
            None => Box::new(socket),
        };
        let (sender, driven) = http1::handshake(TokioIo::new(wire)).await.map_err(io::Error::other)?;
        Ok((sender, Box::pin(driven), below))
    }

    /// Connects to the first of the host's addresses that answers. Each has its part of the time, so that a silent
    /// address does not use up the time of the others.
    async fn socket(&self) -> io::Result<TcpStream> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host((&*self.host, self.port)).await?.collect();
        let part = CONNECT_TIME_MAX / u32::try_from(addresses.len().max(1)).unwrap_or(u32::MAX);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in addresses {
            match tokio::time::timeout(part, TcpStream::connect(address)).await {
                Ok(Ok(socket)) => {
                    socket.set_nodelay(true)?;
                    watch_over(&socket)?;
                    return Ok(socket);
                }
                Ok(Err(error)) => last = error,
                Err(_) => last = io::ErrorKind::TimedOut.into(),
            }
        }
        Err(last)
    }
}

/// Asks the system itself: the runtime hears of a close only when it next polls, and a request that is sent before that
/// is lost.
fn is_open(socket: &OwnedFd) -> bool {
    match recv(socket, &mut [0_u8; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok((bytes, _)) => bytes > 0,
        Err(error) => error == rustix::io::Errno::AGAIN,
    }
}

/// Has the system check whether the agent is still there, also during a long wait for an answer: a machine that lost
/// its power closes nothing.
fn watch_over(socket: &TcpStream) -> io::Result<()> {
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, KEEPALIVE_PERIOD)?;
    sockopt::set_tcp_keepintvl(socket, KEEPALIVE_PERIOD)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVES_LOST_MAX)?;
    let unheard = u32::try_from(UNHEARD_TIME_MAX.as_millis()).unwrap_or(u32::MAX);
    Ok(sockopt::set_tcp_user_timeout(socket, unheard)?)
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// Returns connections to a listener, and the listener.
    async fn here() -> (Connections, TcpListener) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("http://{}/", listener.local_addr().expect("it has an address"));
        (Connections::to(&Url::parse(&url).expect("an address"), Whose::Agent("agent".into())), listener)
    }

    /// Posts this many bytes, and reads the answer to its end.
    async fn post(connections: &Connections, bytes: usize) -> Result<u16, Unanswered> {
        let mut request = Request::new(Full::new(Bytes::from(vec![b'x'; bytes])));
        *request.method_mut() = hyper::Method::POST;
        let (response, mut connection) = connections.send(request).await?;
        let status = response.status().as_u16();
        let mut body = response.into_body();
        while connection.drive(body.frame()).await.is_some() {}
        connection.rest();
        Ok(status)
    }

    /// Answers this many requests over one connection.
    async fn answer(socket: &mut TcpStream, times: usize) {
        for _ in 0..times {
            let mut buffer = [0; 4096];
            assert!(socket.read(&mut buffer).await.expect("a request") > 0);
            socket.write_all(ANSWER).await.expect("it is read");
        }
    }

    #[tokio::test]
    async fn a_connection_is_used_again_and_closed_when_it_has_rested_for_long() {
        let (connections, listener) = here().await;
        let serving = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            answer(&mut socket, 3).await;
            // The connection ends, and there is no other.
            let end = socket.read(&mut [0; 16]).await.expect("it ends");
            (end, listener.accept().now_or_never().is_none())
        });
        for _ in 0..3 {
            assert_eq!(post(&connections, 10).await, Ok(200));
        }
        assert_eq!(serving.await.expect("it ends"), (0, true));
        assert!(connections.0.resting().connections.is_empty());
    }

    #[tokio::test]
    async fn what_was_closed_while_it_rested_is_passed_over() {
        let (connections, listener) = here().await;
        let serving = tokio::spawn(async move {
            for _ in 0..5 {
                let (mut socket, _) = listener.accept().await.expect("a connection");
                answer(&mut socket, 1).await;
            }
        });
        for _ in 0..5 {
            assert_eq!(post(&connections, 10).await, Ok(200));
        }
        serving.await.expect("it ends");
    }

    #[tokio::test]
    async fn a_connection_over_which_a_request_was_never_read_is_not_used_again() {
        let (connections, listener) = here().await;
        let serving = tokio::spawn(async move {
            let (mut deaf, _) = listener.accept().await.expect("a connection");
            deaf.write_all(ANSWER).await.expect("it is read");
            let (mut socket, _) = listener.accept().await.expect("another connection");
            answer(&mut socket, 1).await;
            deaf
        });
        assert_eq!(post(&connections, 64 << 20).await, Ok(200), "it was answered before it was read");
        assert_eq!(post(&connections, 10).await, Ok(200));
        serving.await.expect("it ends");
    }

    #[tokio::test]
    async fn without_certificates_nobody_is_connected_to() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("it can be asked");
        let port = listener.local_addr().expect("it has an address").port();
        let inner = Inner {
            host: "127.0.0.1".to_owned(),
            port,
            tls: Some(Tls(None)),
            whose: Whose::Agent("agent".into()),
            resting: Mutex::default(),
            trouble: Mutex::default(),
        };
        let sent = Connections(Arc::new(inner)).send(Request::new(Full::default())).await;
        assert_eq!(sent.err(), Some(Unanswered::Unconnected));
        assert!(listener.accept().is_err(), "somebody came");
    }
}
