//! Functions of `crosspoint-agent`. One agent serves most of them, in all contracts; each that asks for its work, and
//! each that dies, is an agent of its own.
//!
//! One that dies is gone as a killed process is: its runtime is dropped, and with it all its tasks and connections and
//! the port. In the contract of messages it is started again (MSG-5), with the file of its answers.

#[path = "function/handler.rs"]
mod handler;

use std::io::ErrorKind::WouldBlock;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fs, thread};

use crosspoint_agent::{Agent, Url};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;

use self::handler::Function;
use super::super::doors::Door;
use super::super::ledger::Ledger;
use super::{Kind, NO_LISTENER, Purpose, QUIET_KEYS, Way, name};
use crate::support::message_puller;
use crate::support::scripted_agent::configuration;

/// The name of the agents that serve.
const NAME: &str = "matrix";

/// How much one agent does at a time: more than all cells want.
const CONCURRENCY: usize = 1_000;

const WAYS: [Way; 5] = [Way::Run, Way::Task, Way::Pushed, Way::Pulled, Way::Workflow];

pub(super) struct Agents {
    /// The agent of most functions, and one that wants a token. They have their ports before the server has its
    /// configuration, and serve when there is a server.
    plain: Bound,
    locked: Bound,
    dying: Vec<Dying>,
    directory: PathBuf,
    server: OnceLock<Url>,
    ledger: Arc<Ledger>,
    runtime: Option<Runtime>,
    stopped: Arc<AtomicBool>,
}

struct Bound {
    address: SocketAddr,
    listener: Mutex<Option<TcpListener>>,
}

struct Dying {
    way: Way,
    door: Door,
    bound: Bound,
    death: Arc<Notify>,
}

impl Agents {
    pub(super) fn bind(directory: &Path, ledger: Arc<Ledger>) -> Agents {
        let dying = |door: Door| WAYS.map(|way| Dying { way, door, bound: Bound::new(), death: Arc::default() });
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Agents {
            plain: Bound::new(),
            locked: Bound::new(),
            dying: Door::ALL.into_iter().flat_map(dying).collect(),
            directory: directory.join("functions"),
            server: OnceLock::new(),
            ledger,
            runtime: Some(runtime.expect("a runtime can be made")),
            stopped: Arc::default(),
        }
    }

    pub(super) fn configuration(&self, door: Door) -> String {
        WAYS.map(|way| self.of_way(way, door)).concat()
    }

    fn of_way(&self, way: Way, door: Door) -> String {
        let died = self.dying.iter().find(|dying| dying.way == way && dying.door == door).expect("there is one");
        let (plain, locked, died) = (self.plain.url(), self.locked.url(), died.bound.url());
        // An answer in one piece shows no life, so only the total time ends it.
        let quiet = if way == Way::Workflow { "total_seconds = 2\n" } else { QUIET_KEYS };
        let is_told_by_silence = matches!(way, Way::Task | Way::Pushed | Way::Pulled);
        let dying = if is_told_by_silence { QUIET_KEYS } else { "" };
        // A function does no request twice, so a failure that may be tried again is. In messages that is understood.
        let plain_keys = if matches!(way, Way::Pushed | Way::Pulled) { "" } else { "repeatable = true\n" };
        let all = [
            (Purpose::Plain, &*plain, plain_keys),
            (Purpose::Quiet, &plain, quiet),
            (Purpose::Strict, &plain, ""),
            (Purpose::Dying, &died, dying),
            (Purpose::Locked, &locked, ""),
            (Purpose::Away, NO_LISTENER, ""),
        ];
        all.map(|(purpose, url, keys)| configured(way, &name(Kind::Function(way), door, purpose), url, keys)).concat()
    }

    /// Has all agents serve or ask, except for those that are away.
    pub(super) fn serve(&self, server: &str) {
        fs::create_dir_all(&self.directory).expect("it can be made");
        self.server.set(server.parse().expect("an address")).expect("there is one server");
        let doors = || Door::ALL.into_iter().flat_map(|door| WAYS.map(|way| (door, way)));
        let mut plain = self.agent(NAME).forgetful();
        for (door, way) in doors().filter(|(_, way)| *way != Way::Pulled) {
            for purpose in [Purpose::Plain, Purpose::Quiet] {
                plain = plain.on(&name(Kind::Function(way), door, purpose), self.function(None).handler());
            }
        }
        self.start(plain, &self.plain);
        let token = self.directory.join("token");
        fs::write(&token, "a-token-that-the-server-does-not-have").expect("it can be written");
        self.start(self.agent(NAME).forgetful().token_file(token), &self.locked);
        for door in Door::ALL {
            [Purpose::Plain, Purpose::Quiet].iter().for_each(|purpose| self.pull(door, *purpose));
        }
        self.dying.iter().for_each(|dying| self.live(dying));
    }

    /// Lets the agent come that was away.
    pub(super) fn come(&self, door: Door) {
        self.pull(door, Purpose::Away);
    }

    fn agent(&self, name: &str) -> Agent {
        Agent::new(name).concurrency(CONCURRENCY).report_to(self.server())
    }

    fn server(&self) -> Url {
        self.server.get().expect("it is known before there is work").clone()
    }

    fn function(&self, death: Option<Arc<Notify>>) -> Function {
        Function { ledger: self.ledger.clone(), death }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().expect("it is there until the end")
    }

    fn start(&self, agent: Agent, bound: &Bound) {
        let listener = bound.taken();
        self.runtime().spawn(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it is in the runtime");
            agent.serve(listener, std::future::pending()).await.expect("it serves");
        });
    }

    /// Has an agent ask for its work.
    fn pull(&self, door: Door, purpose: Purpose) {
        let name = name(Kind::Function(Way::Pulled), door, purpose);
        let agent = self.agent(&name).forgetful().on(&name, self.function(None).handler());
        let server = self.server();
        self.runtime().spawn(async move { agent.connect(server).pull(std::future::pending()).await.expect("it asks") });
    }

    /// Begins the life of an agent that dies, in a runtime of its own.
    fn live(&self, dying: &Dying) {
        let (way, server, stopped) = (dying.way, self.server(), self.stopped.clone());
        let work = name(Kind::Function(way), dying.door, Purpose::Dying);
        let answers = self.directory.join(format!("{work}.answers"));
        let own = if way == Way::Pulled { work.clone() } else { NAME.to_owned() };
        let (function, death) = (self.function(Some(dying.death.clone())), dying.death.clone());
        let (address, mut listener) = (dying.bound.address, Some(dying.bound.taken()));
        let agent = move || {
            let agent = Agent::new(&own).report_to(server.clone()).answers(&answers);
            (agent.on(&work, function.clone().handler()), server.clone())
        };
        thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                let (agent, server) = agent();
                let listener = listener.take().unwrap_or_else(|| bound_to(address));
                let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
                let has_died = runtime.block_on(async {
                    let serving = async {
                        if way == Way::Pulled {
                            return agent.connect(server).pull(std::future::pending()).await;
                        }
                        let listener = tokio::net::TcpListener::from_std(listener).expect("it is in the runtime");
                        agent.serve(listener, std::future::pending()).await
                    };
                    tokio::select! {
                        served = serving => {
                            // A process that is gone uses no file. Threads of the last life may take a moment.
                            assert!(served.is_err_and(|error| error.kind() == WouldBlock), "it lives until it dies");
                            false
                        }
                        () = death.notified() => true,
                    }
                });
                runtime.shutdown_background();
                if has_died && !matches!(way, Way::Pushed | Way::Pulled) {
                    return;
                }
            }
        });
    }
}

impl Drop for Agents {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.dying.iter().for_each(|dying| dying.death.notify_one());
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

impl Bound {
    fn new() -> Bound {
        let listener = bound_to(SocketAddr::from(([127, 0, 0, 1], 0)));
        Bound { address: listener.local_addr().expect("it has an address"), listener: Mutex::new(Some(listener)) }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn taken(&self) -> TcpListener {
        self.listener.lock().unwrap_or_else(PoisonError::into_inner).take().expect("it is taken once")
    }
}

fn bound_to(address: SocketAddr) -> TcpListener {
    let listener = TcpListener::bind(address).expect("the port is free");
    listener.set_nonblocking(true).expect("it can be set");
    listener
}

/// The configuration of one function. Its work is of its name.
fn configured(way: Way, name: &str, url: &str, keys: &str) -> String {
    let keys = format!("concurrency = 64\n{keys}");
    match way {
        Way::Run => configuration(name, "run", url, &keys),
        Way::Task => configuration(name, "task", url, &keys),
        Way::Pushed => configuration(name, "message", url, &keys),
        Way::Pulled => message_puller::configuration(name, &keys),
        Way::Workflow => configuration(name, "workflow", &format!("{url}/agents/{NAME}/envelope"), &keys),
    }
}
