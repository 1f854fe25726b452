//! The one HTTP agent of the tests: a script over a bare socket. It keeps requests as they came, and sends any bytes
//! that it is told to, so that it can break every rule there is.
//!
//! `run_agent`, `task_agent`, `message_agent` and `misbehaving_agents` are thin layers over it: they know what a
//! contract says.

mod connection;
mod request;

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

pub(crate) use self::connection::{
    After, CHUNKED_STREAM_HEAD, Connection, STREAM_HEAD, answer, chunk, event, json_answer,
};
pub(crate) use self::request::Request;

/// What a script does with one request.
pub(crate) type Script = fn(&Request, &mut Connection) -> After;

/// A script that is being followed, and the requests that it got.
pub(crate) struct ScriptedAgent {
    address: SocketAddr,
    received: Arc<Received>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Received {
    connections: AtomicUsize,
    requests: Mutex<Vec<Request>>,
    stopped: AtomicBool,
}

/// Whether paths begin with the name of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    Absent,
    InPaths,
}

impl ScriptedAgent {
    /// Follows a script on a free port. Each connection has a thread of its own.
    pub(crate) fn start(script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static) -> ScriptedAgent {
        ScriptedAgent::at(any_port(), script)
    }

    /// The same, at this address.
    pub(crate) fn at(
        address: SocketAddr,
        script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static,
    ) -> ScriptedAgent {
        ScriptedAgent::listen(address, Names::Absent, script)
    }

    /// Stands for many agents: the first part of a path is the agent's name, the rest is what the contract asks for. So
    /// each agent of a configuration has the same port and its own base path, and its own breaker too.
    pub(crate) fn start_many(
        script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static,
    ) -> ScriptedAgent {
        ScriptedAgent::listen(any_port(), Names::InPaths, script)
    }

    fn listen(
        address: SocketAddr,
        names: Names,
        script: impl Fn(&Request, &mut Connection) -> After + Send + Sync + 'static,
    ) -> ScriptedAgent {
        let listener = TcpListener::bind(address).expect("the port is free");
        let address = listener.local_addr().expect("it has an address");
        let received = Arc::new(Received::default());
        let (kept, script) = (received.clone(), Arc::new(script));
        let accepting = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if kept.stopped.load(Ordering::SeqCst) {
                    break;
                }
                kept.connections.fetch_add(1, Ordering::SeqCst);
                let (kept, script) = (kept.clone(), script.clone());
                thread::spawn(move || serve(stream, names, &kept, &*script));
            }
        });
        ScriptedAgent { address, received, accepting: Some(accepting) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The configuration of one of many agents, which takes work of its name.
    pub(crate) fn agent(&self, contract: &str, name: &str, keys: &str) -> String {
        configuration(name, contract, &format!("{}/{name}", self.url()), keys)
    }

    pub(crate) fn connections(&self) -> usize {
        self.received.connections.load(Ordering::SeqCst)
    }

    /// All requests so far.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.received.lock().clone()
    }

    /// The requests that one of many agents has had so far.
    pub(crate) fn requests_of(&self, agent: &str) -> Vec<Request> {
        self.received.lock().iter().filter(|request| request.agent == agent).cloned().collect()
    }

    /// The paths of all requests so far.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.path).collect()
    }
}

impl Drop for ScriptedAgent {
    fn drop(&mut self) {
        self.received.stopped.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees the flag. Its end closes the port.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ = accepting.join();
        }
    }
}

/// The configuration of an agent behind an address, which takes work of its name.
pub(crate) fn configuration(name: &str, contract: &str, url: &str, keys: &str) -> String {
    let way = if contract == "message" { format!("via = \"push:{url}\"") } else { format!("url = \"{url}\"") };
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"{contract}\"\n{way}\n{keys}\n")
}

/// An address without a listener, which stays so until the test listens there.
///
/// Its port lies below those that the system gives away, so that no listener on port 0 and no connection of another
/// test can have it meanwhile. Each test process begins at another port.
pub(crate) fn unused_address() -> SocketAddr {
    const FIRST: u32 = 12_000;
    const COUNT: u32 = 20_000;
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(16);
    let ports = (0..COUNT).map(|_| FIRST + start.wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed)) % COUNT);
    let addresses = ports.map(|port| SocketAddr::from(([127, 0, 0, 1], u16::try_from(port).expect("below 32,000"))));
    addresses.into_iter().find(|address| TcpListener::bind(address).is_ok()).expect("there is a free port")
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, Vec<Request>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a request, and counts those like it.
    fn keep(&self, mut request: Request) -> Request {
        let mut all = self.lock();
        request.turn = all.iter().filter(|other| other.is_like(&request)).count();
        all.push(request.clone());
        request
    }
}

fn serve(stream: TcpStream, names: Names, received: &Received, script: &dyn Fn(&Request, &mut Connection) -> After) {
    let _ = stream.set_nodelay(true);
    let mut connection = Connection::new(stream);
    let mut reading = connection.reader();
    while let Some(request) = Request::read(&mut reading, names) {
        if received.stopped.load(Ordering::SeqCst) {
            return;
        }
        let request = received.keep(request);
        match script(&request, &mut connection) {
            After::Keep => {}
            After::Close => return,
            After::Reset => return connection.reset(),
        }
    }
}

#[test]
fn a_script_can_end_a_connection_in_order_or_reset_it() {
    use std::io::{ErrorKind, Read, Write};

    let scripted = ScriptedAgent::start_many(|request, connection| {
        connection.send("half an ans");
        if request.agent == "reset" { After::Reset } else { After::Close }
    });
    for (path, ends) in [("/closed/x", Ok(())), ("/reset/x", Err(ErrorKind::ConnectionReset))] {
        let mut stream = TcpStream::connect(scripted.address()).expect("it listens");
        stream.write_all(format!("GET {path} HTTP/1.1\r\n\r\n").as_bytes()).expect("it can be asked");
        let mut said = String::new();
        let ended = stream.read_to_string(&mut said).map(|_| ()).map_err(|error| error.kind());
        assert_eq!((ended, said.as_str()), (ends, "half an ans"), "{path}");
    }
    let asked: Vec<String> = scripted.requests().into_iter().map(|request| request.agent + &request.path).collect();
    assert_eq!((asked, scripted.connections()), (vec!["closed/x".to_owned(), "reset/x".to_owned()], 2));
}
