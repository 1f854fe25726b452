//! `crosspoint serve`

mod banner;
mod presence;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, anyhow};
use crosspoint_engine::core::Mode;
use crosspoint_engine::runtime::Engine;
use tokio::net::TcpListener;
use tokio::runtime::Builder;

use crate::cli::{Format, Serve};
use crate::config::{Config, Flags, Limits, LogFormat, Server};
use crate::desk::Desk;
use crate::signals::Signals;
use crate::{Outcome, log, patience, render, server};
use presence::Presence;

/// What a program ends with that was interrupted.
const INTERRUPTED: i32 = 130;

pub(crate) fn run(arguments: &Serve) -> Result<Outcome> {
    let mut config = settle(arguments)?;
    let log = log::start(&config.server)?;
    fit_connections(&mut config.limits);
    let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let outcome = runtime.block_on(serve(&config));
    // Nobody waits for readers of the store or for agents that do not stop.
    runtime.shutdown_background();
    log.flush();
    outcome
}

async fn serve(config: &Config) -> Result<Outcome> {
    // The address first: taking up jobs only to find that nobody can be served would begin work in vain.
    let listener = match listen(&config.server).await {
        Ok(listener) => listener,
        Err(unheard) => return Ok(unheard.told(&config.server.listen)),
    };
    let address = listener.local_addr().context("cannot tell the address")?;
    let desk = Arc::new(Desk::default());
    let engine = patience::with_store(|| Engine::start(config.engine(Mode::Serve, &desk))).await?;
    let mut signals = Signals::new()?;
    banner::show(address, config, &engine);
    let presence = Presence::announce(&config.data, address)?;
    let serving = server::run(listener, (engine.clone(), desk), config, async {
        signals.next().await;
        tokio::spawn(exit_on_next(signals, presence.path().to_owned()));
    });
    tokio::select! {
        () = serving => Ok(Outcome::Fine),
        () = engine.died() => Err(anyhow!("jobs can no longer be committed; nothing is lost: start the server again")),
    }
}

/// Files that are open besides connections: the store's, the log, what agents use.
const FILES_RESERVED: u64 = 256;

/// A connection is an open file. Where the system allows fewer than are configured, no more are taken than there is room for, so
/// that whoever comes then is told, and the store can be read.
fn fit_connections(limits: &mut Limits) {
    let wanted = limits.connections_max as u64 + FILES_RESERVED;
    let allowed = rlimit::increase_nofile_limit(wanted).unwrap_or(wanted);
    if allowed < wanted {
        limits.connections_max = usize::try_from(allowed.saturating_sub(FILES_RESERVED)).unwrap_or(1).max(1);
        let (files, connections) = (allowed, limits.connections_max);
        tracing::warn!(files, connections, "the system allows fewer open files than [limits] connections needs");
    }
}

/// What is settled. Flags win.
fn settle(arguments: &Serve) -> Result<Config> {
    let flags = Flags { listen: arguments.listen.clone(), insecure: arguments.insecure, ..arguments.place.flags() };
    let mut config = Config::load(&flags)?;
    if let Some(level) = &arguments.log {
        config.server.log.clone_from(level);
    }
    if let Some(format) = arguments.log_format {
        config.server.log_format = match format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        };
    }
    Ok(config)
}

/// Why nobody can be heard.
enum Unheard {
    /// Others than this machine could reach it, and nobody would ask who they are.
    Exposed,
    Failed(io::Error),
}

impl From<io::Error> for Unheard {
    fn from(error: io::Error) -> Unheard {
        Unheard::Failed(error)
    }
}

/// Listens, where that is safe or wanted all the same. The name is looked up once, so that what was judged is what is opened.
async fn listen(server: &Server) -> Result<TcpListener, Unheard> {
    let addresses: Vec<SocketAddr> = tokio::net::lookup_host(&server.listen).await?.collect();
    let is_ours_alone = |address: &SocketAddr| address.ip().to_canonical().is_loopback();
    if !server.insecure && !addresses.iter().all(is_ours_alone) {
        return Err(Unheard::Exposed);
    }
    Ok(patience::with_address(|| TcpListener::bind(&*addresses)).await?)
}

impl Unheard {
    fn told(self, address: &str) -> Outcome {
        match self {
            Unheard::Failed(error) => cannot_listen(address, &error),
            Unheard::Exposed => {
                let message =
                    format!("{address} can be reached from other machines, and callers are not asked for a token");
                let hint = "listen on 127.0.0.1 and put a proxy in front that asks who is there; or say --insecure, and \
                    every program that reaches the port may submit, see and cancel all jobs";
                render::refused(&message, hint);
                Outcome::CouldNot
            }
        }
    }
}

fn cannot_listen(address: &str, error: &io::Error) -> Outcome {
    let hints = [
        (ErrorKind::AddrInUse, "another program has it; stop that one, or choose another: --listen 127.0.0.1:0"),
        (ErrorKind::AddrNotAvailable, "this machine does not have that address; 127.0.0.1 is always there"),
        (ErrorKind::PermissionDenied, "ports below 1024 are for root; choose another with --listen"),
    ];
    let known = hints.into_iter().find(|(kind, _)| *kind == error.kind());
    let hint = known.map_or("give an address and a port: --listen 127.0.0.1:7420", |(_, hint)| hint);
    render::refused(&format!("cannot listen on {address}: {error}"), hint);
    Outcome::CouldNot
}

/// Whoever asks twice does not want to wait. Nothing is lost by it: what is not on disk was not acknowledged.
async fn exit_on_next(mut signals: Signals, presence: PathBuf) {
    signals.next().await;
    let _ = std::fs::remove_file(presence);
    std::process::exit(INTERRUPTED);
}

/// For people: an address that a program on the same machine can use.
fn url(address: SocketAddr) -> String {
    let mut reachable = address;
    if address.ip().is_unspecified() {
        reachable.set_ip(if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() });
    }
    format!("http://{reachable}")
}
