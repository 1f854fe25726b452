//! Where a server listens: on a port and a socket file in its data directory, or on the file alone.

use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

use crosspoint_http::socket::Listener;
use tokio::net::TcpListener;

use crate::config::{Config, Server, UNIX};
use crate::local::{self, SCHEME, SERVER_SOCKET, SocketFile};
use crate::terminal::render;
use crate::{Exit, retrying};

/// Where callers connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Address {
    Port(SocketAddr),
    /// An absolute path.
    File(PathBuf),
}

/// Why the server cannot listen.
pub(super) enum Unheard {
    /// Other machines reach the address, and no token is asked for.
    Exposed,
    Failed(io::Error),
}

impl From<io::Error> for Unheard {
    fn from(error: io::Error) -> Unheard {
        Unheard::Failed(error)
    }
}

/// An open socket. Its file, if it has one, is removed with this value.
pub(super) struct Listening {
    pub(super) listener: Listener,
    pub(super) address: Address,
    pub(super) file: Option<SocketFile>,
    /// Whether other machines reach it, and the operator has not allowed that without tokens.
    pub(super) is_exposed: bool,
}

impl Listening {
    /// Listens on the configured address, if that is safe or explicitly allowed. A socket file does not have its
    /// published name yet: it gets that by [`publish`] when a server is behind it. So does the one beside a port.
    pub(super) async fn open(config: &Config) -> Result<Listening, Unheard> {
        if config.server.listen == UNIX {
            return Ok(retrying::with_address(|| async { in_directory(&config.data) }).await?);
        }
        // A store that is not there has no tokens: nothing is opened in vain.
        let may_be_closed = config.store.path.exists() || config.callers.iter().any(|caller| caller.token.is_some());
        let (listener, is_exposed) = on_port(&config.server, may_be_closed).await?;
        let address = Address::Port(listener.local_addr()?);
        Ok(Listening { listener: Listener::Tcp(listener), address, file: None, is_exposed })
    }
}

/// Gives the socket file its published name. A server with a port gets such a socket beside it, for commands of its own
/// user, and does without if the directory takes none.
pub(super) fn publish(file: Option<SocketFile>, data: &Path) -> io::Result<(Option<SocketFile>, Option<Listener>)> {
    if let Some(mut file) = file {
        file.publish(data)?;
        return Ok((Some(file), None));
    }
    match beside(data) {
        Ok((file, listener)) => Ok((Some(file), Some(listener))),
        Err(error) => {
            let kind = error.kind();
            tracing::warn!(%kind, "there is no {SERVER_SOCKET} in the data directory: commands ask at the address");
            Ok((None, None))
        }
    }
}

fn beside(data: &Path) -> io::Result<(SocketFile, Listener)> {
    let (listener, mut file) = local::listen(data)?;
    file.publish(data)?;
    Ok((file, Listener::Unix(listener)))
}

fn in_directory(data: &Path) -> io::Result<Listening> {
    if local::is_served(data) {
        return Err(ErrorKind::AddrInUse.into());
    }
    let (listener, file) = local::listen(data)?;
    let address = Address::File(file.path().with_file_name(SERVER_SOCKET));
    Ok(Listening { listener: Listener::Unix(listener), address, file: Some(file), is_exposed: false })
}

/// Looks the name up once, so that the addresses that were checked are those that are opened. Returns whether it must
/// not be served without tokens.
async fn on_port(server: &Server, may_be_closed: bool) -> Result<(TcpListener, bool), Unheard> {
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&server.listen).await?.collect();
    let is_ours_alone = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    let is_exposed = !server.insecure && !addresses.iter().all(is_ours_alone);
    if is_exposed && !may_be_closed {
        return Err(Unheard::Exposed);
    }
    let listener = retrying::with_address(|| TcpListener::bind(&*addresses)).await?;
    // The runtime has the system queue 128 connections: a burst of one caller would keep all others out for a second.
    rustix::net::listen(&listener, local::BACKLOG).map_err(io::Error::from)?;
    Ok((listener, is_exposed))
}

impl Address {
    /// The address on which it really listens, for people.
    pub(super) fn shown(&self) -> String {
        match self {
            Address::Port(address) => format!("http://{address}"),
            Address::File(path) => format!("{SCHEME}{}", path.display()),
        }
    }

    /// An address that programs on the same machine can use.
    pub(super) fn url(&self) -> String {
        match self {
            Address::Port(address) => {
                let mut reachable = *address;
                match address {
                    SocketAddr::V4(v4) if v4.ip().is_unspecified() => reachable.set_ip(Ipv4Addr::LOCALHOST.into()),
                    SocketAddr::V6(v6) if v6.ip().is_unspecified() => reachable.set_ip(Ipv6Addr::LOCALHOST.into()),
                    SocketAddr::V4(_) | SocketAddr::V6(_) => {}
                }
                format!("http://{reachable}")
            }
            Address::File(_) => self.shown(),
        }
    }

    /// A warning for the operator if other machines reach the server.
    pub(super) fn exposure(&self, is_closed: bool) -> Option<String> {
        let Address::Port(address) = self else { return None };
        if is_closed {
            return None;
        }
        let ip = address.ip().to_canonical();
        let who = "no token is asked for: every program that reaches it may submit, see and cancel all jobs";
        match (ip.is_loopback(), ip.is_unspecified()) {
            (true, _) => None,
            (false, true) => Some(format!("it listens on every address of this machine; {who}")),
            (false, false) => Some(who.to_owned()),
        }
    }
}

impl Unheard {
    pub(super) fn print(self, address: &str) -> Exit {
        match self {
            Unheard::Failed(error) => cannot_listen(address, &error, "127.0.0.1:7420"),
            Unheard::Exposed => {
                let message =
                    format!("{address} can be reached from other machines, and callers are not asked for a token");
                let hint = "make a token first: crosspoint token create NAME --for admin, and one for each caller; or say \
                    --insecure, and every program that reaches the port may submit, see and cancel all jobs";
                render::refused(&message, hint);
                Exit::CouldNot
            }
        }
    }
}

/// Says why an address cannot be listened on, and what to do about it. `example` is an address as it should be written.
pub(in crate::command) fn cannot_listen(address: &str, error: &io::Error, example: &str) -> Exit {
    let hints = [
        (ErrorKind::AddrInUse, "another program has it; stop that one, or choose another: --listen 127.0.0.1:0"),
        (ErrorKind::AddrNotAvailable, "this machine does not have that address; 127.0.0.1 is always there"),
        (ErrorKind::PermissionDenied, "ports below 1024 are for root; choose another with --listen"),
    ];
    let known = hints.into_iter().find(|(kind, _)| *kind == error.kind());
    let hint = match known {
        _ if address == UNIX => {
            "one server a data directory: stop the other, or choose another directory with --data".to_owned()
        }
        Some((_, hint)) => hint.to_owned(),
        None => format!("give an address and a port: --listen {example}"),
    };
    render::refused(&format!("cannot listen on {address}: {error}"), &hint);
    Exit::CouldNot
}
