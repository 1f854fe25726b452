//! A proxy that loses answers: it stands between two sides that speak HTTP, and knows just enough of it to tell where a
//! request or an answer ends.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;

use crate::support::persistent_callers::Dice;
use crate::support::server::until;

/// A port that stays the same, also while it is shut and whatever is behind it.
pub(super) struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// The port before it is opened for the first time. It takes no connection yet.
    reserved: Mutex<Option<TcpListener>>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    /// What is behind it.
    behind: Mutex<SocketAddr>,
    dice: Mutex<Dice>,
    /// How many of a hundred exchanges are lost.
    losses: u64,
    is_shut: AtomicBool,
    /// All connections of both sides, to be cut.
    open: Mutex<BTreeMap<usize, TcpStream>>,
    opened: AtomicUsize,
    before: AtomicUsize,
    after: AtomicUsize,
    torn: AtomicUsize,
}

/// What happens to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Request and answer arrive.
    Whole,
    /// The request does not arrive.
    Before,
    /// The request arrives whole, and no byte of its answer does.
    After,
    /// The request arrives whole, and a part of its answer does.
    Torn,
}

/// Where an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    ByItself,
    WithItsConnection,
}

impl Proxy {
    /// A proxy that is not open yet. Once it is, it loses that many exchanges of a hundred: a fifth of these before the
    /// request has arrived, the others after it.
    pub(super) fn unopened(losses: u64, seed: u64) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared {
            behind: Mutex::new(address),
            dice: Mutex::new(Dice(seed)),
            losses,
            is_shut: AtomicBool::new(true),
            open: Mutex::default(),
            opened: AtomicUsize::new(0),
            before: AtomicUsize::new(0),
            after: AtomicUsize::new(0),
            torn: AtomicUsize::new(0),
        });
        Proxy { address, shared, reserved: Mutex::new(Some(listener)), accepting: Mutex::default() }
    }

    /// A proxy that is open.
    pub(super) fn before(behind: SocketAddr, losses: u64, seed: u64) -> Proxy {
        let proxy = Proxy::unopened(losses, seed);
        proxy.open(behind);
        proxy
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Number of answers that were lost after their request had arrived.
    pub(super) fn answers_lost(&self) -> usize {
        self.shared.after.load(Ordering::SeqCst) + self.shared.torn.load(Ordering::SeqCst)
    }

    /// Number of requests that were lost.
    pub(super) fn requests_lost(&self) -> usize {
        self.shared.before.load(Ordering::SeqCst)
    }

    /// Cuts all connections, and refuses new ones.
    pub(super) fn shut(&self) {
        if self.shared.is_shut.swap(true, Ordering::SeqCst) {
            return;
        }
        // Wakes the accepting thread, which then sees the flag. Its end closes the port.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = lock(&self.accepting).take() {
            let _ = accepting.join();
        }
        lock(&self.shared.open).values().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }

    /// Takes connections again, for what is at this address now.
    pub(super) fn open(&self, behind: SocketAddr) {
        *lock(&self.shared.behind) = behind;
        let reserved = lock(&self.reserved).take();
        let listener = reserved.unwrap_or_else(|| until("the port is free", || TcpListener::bind(self.address).ok()));
        self.shared.is_shut.store(false, Ordering::SeqCst);
        *lock(&self.accepting) = Some(accept(listener, self.shared.clone()));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shut();
    }
}

fn accept(listener: TcpListener, shared: Arc<Shared>) -> JoinHandle<()> {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            if shared.is_shut.load(Ordering::SeqCst) {
                return;
            }
            let shared = shared.clone();
            // A connection that breaks is what this is for.
            thread::spawn(move || drop(shared.carry(stream)));
        }
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Carries one request after the other, until one is lost.
    fn carry(&self, mut near: TcpStream) -> io::Result<()> {
        near.set_nodelay(true)?;
        let _near = self.watch(&near)?;
        let mut requests = BufReader::new(near.try_clone()?);
        while let Some((request, _)) = message(&mut requests, Side::Request)? {
            if self.is_shut.load(Ordering::SeqCst) {
                break;
            }
            let fate = self.fate();
            if fate == Fate::Before {
                self.before.fetch_add(1, Ordering::SeqCst);
                return lose(&near, request.len());
            }
            let behind = *lock(&self.behind);
            let mut far = TcpStream::connect(behind)?;
            far.set_nodelay(true)?;
            let _far = self.watch(&far)?;
            far.write_all(&request)?;
            let Some((answer, ends)) = message(&mut BufReader::new(&far), Side::Answer)? else { return Ok(()) };
            match fate {
                Fate::Whole | Fate::Before => near.write_all(&answer)?,
                Fate::After => {
                    self.after.fetch_add(1, Ordering::SeqCst);
                    return lose(&near, answer.len());
                }
                Fate::Torn => {
                    self.torn.fetch_add(1, Ordering::SeqCst);
                    near.write_all(&answer[..answer.len() / 2])?;
                    return lose(&near, answer.len());
                }
            }
            if ends == Ends::WithItsConnection {
                return near.shutdown(Shutdown::Both);
            }
        }
        Ok(())
    }

    fn fate(&self) -> Fate {
        let mut dice = lock(&self.dice);
        if dice.below(100) >= self.losses {
            return Fate::Whole;
        }
        match dice.below(5) {
            0 => Fate::Before,
            1 | 2 => Fate::After,
            _ => Fate::Torn,
        }
    }

    /// Lets a connection be cut until this is dropped.
    fn watch(&self, stream: &TcpStream) -> io::Result<Watched<'_>> {
        let number = self.opened.fetch_add(1, Ordering::SeqCst);
        lock(&self.open).insert(number, stream.try_clone()?);
        Ok(Watched { shared: self, number })
    }
}

struct Watched<'s> {
    shared: &'s Shared,
    number: usize,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        lock(&self.shared.open).remove(&self.number);
    }
}

/// Ends a connection: in order, or with a reset.
fn lose(stream: &TcpStream, chance: usize) -> io::Result<()> {
    if chance.is_multiple_of(2) {
        // Without lingering, the system sends a reset when the last copy of the socket is dropped.
        return Ok(set_socket_linger(stream, Some(Duration::ZERO))?);
    }
    stream.shutdown(Shutdown::Both)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Request,
    Answer,
}

/// Reads one request or answer as it came; `None` if the connection ends before it is whole.
fn message(stream: &mut impl BufRead, side: Side) -> io::Result<Option<(Vec<u8>, Ends)>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read_until(b'\n', &mut bytes)? == 0 {
            return Ok(None);
        }
    }
    let head = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
    let header = |name: &str| head.lines().filter_map(|line| line.split_once(':')).find(|(one, _)| *one == name);
    let is_empty = head.starts_with("http/1.1 204");
    if header("transfer-encoding").is_some() {
        while chunk(stream, &mut bytes)? > 0 {}
    } else if let Some((_, length)) = header("content-length") {
        let length = length.trim().parse().map_err(io::Error::other)?;
        take(stream, length, &mut bytes)?;
    } else if side == Side::Answer && !is_empty {
        stream.read_to_end(&mut bytes)?;
        return Ok(Some((bytes, Ends::WithItsConnection)));
    }
    Ok(Some((bytes, Ends::ByItself)))
}

/// Reads one chunk with its length, and returns that. The last one has none.
fn chunk(stream: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let begin = bytes.len();
    stream.read_until(b'\n', bytes)?;
    let digits = String::from_utf8_lossy(&bytes[begin..]).trim().to_owned();
    let length = usize::from_str_radix(&digits, 16).map_err(io::Error::other)?;
    take(stream, length + 2, bytes)?;
    Ok(length)
}

fn take(stream: &mut impl BufRead, length: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
    let begin = bytes.len();
    bytes.resize(begin + length, 0);
    stream.read_exact(&mut bytes[begin..])
}

#[cfg(test)]
mod tests {
    use crate::effects::proxy::Proxy;
    use crate::support::scripted_agent::{After, CHUNKED_STREAM_HEAD, STREAM_HEAD, ScriptedAgent, chunk};
    use crate::support::server::{Answer, exchange};

    /// Answers with a length, in chunks, or up to the end of the connection.
    fn scripted() -> ScriptedAgent {
        ScriptedAgent::start(|request, connection| match &*request.path {
            "/length" => connection.whole(200, "text/plain", &request.body),
            "/chunks" => {
                let said = [CHUNKED_STREAM_HEAD.as_bytes(), &chunk("one, "), &chunk(&request.body), &chunk("")];
                connection.send(said.concat());
                After::Keep
            }
            "/nothing" => connection.whole(204, "text/plain", ""),
            _ => {
                connection.send([STREAM_HEAD.as_bytes(), &request.body].concat());
                After::Close
            }
        })
    }

    fn ask(proxy: &Proxy, path: &str) -> Option<Answer> {
        exchange(proxy.address(), "POST", path, &[], b"two")
    }

    #[test]
    fn what_is_not_lost_arrives_as_it_was() {
        let agent = scripted();
        let proxy = Proxy::before(agent.address(), 0, 1);
        for (path, body) in [("/length", "two"), ("/chunks", "one, two"), ("/nothing", "")] {
            assert_eq!(ask(&proxy, path).map(|answer| answer.text()).as_deref(), Some(body), "{path}");
        }
        assert!(ask(&proxy, "/close").is_none(), "our reader takes no answer without a length");
        assert_eq!(agent.paths(), ["/length", "/chunks", "/nothing", "/close"]);
        assert_eq!((proxy.answers_lost(), proxy.requests_lost()), (0, 0));
    }

    #[test]
    fn what_is_lost_is_counted_and_the_agent_has_had_all_but_the_lost_requests() {
        let agent = scripted();
        let proxy = Proxy::before(agent.address(), 100, 7);
        for _ in 0..40 {
            assert!(ask(&proxy, "/length").is_none());
            assert!(ask(&proxy, "/chunks").is_none());
        }
        let had = agent.requests();
        assert!(had.iter().all(|request| request.body == b"two"), "what arrives is whole");
        assert!(proxy.requests_lost() > 0 && proxy.answers_lost() > 0);
        assert_eq!((had.len(), had.len() + proxy.requests_lost()), (proxy.answers_lost(), 80));
    }

    #[test]
    fn a_shut_port_refuses_and_opens_again_before_another_agent() {
        let (agent, next) = (scripted(), scripted());
        let proxy = Proxy::before(agent.address(), 0, 1);
        assert!(ask(&proxy, "/length").is_some());
        proxy.shut();
        let refused = std::net::TcpStream::connect(proxy.address()).expect_err("it is shut");
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused);
        proxy.open(next.address());
        assert!(ask(&proxy, "/length").is_some());
        assert_eq!((agent.requests().len(), next.requests().len()), (1, 1));
    }
}
