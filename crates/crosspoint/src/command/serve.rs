//! `crosspoint serve`: runs the server.

mod banner;
pub(super) mod listening;
mod presence;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::builder::PossibleValuesParser;
use clap::{Args, ValueHint};
use crosspoint_engine::core::Mode;
use crosspoint_engine::runtime::{Engine, Readiness};
use crosspoint_engine::store::Fault;
use tokio::runtime::Builder;

use crate::agent_side::AgentSide;
use crate::command::flags::{Format, StoreFlags};
use crate::config::{Config, Flags, Limits, Loaded, LogFormat, SERVER_FILE};
use crate::local::SocketFile;
use crate::server::{BESIDE_CONNECTIONS_MAX, Listeners};
use crate::signals::Signals;
use crate::terminal::render;
use crate::{Exit, client, log, retrying, server};
use listening::{Listening, Unheard};
use presence::Presence;

/// Run the orchestrator: take jobs, make them durable, have agents do them
///
/// Without configuration it serves the sample agents echo, slow_echo, ask and fail. Jobs are kept in .crosspoint/ of
/// the working directory and survive anything: what was accepted is on disk, and what was under way when the server
/// ended is taken up at the next start. Ctrl-C stops it, and lets what is under way end; a second one ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint serve                                 on 127.0.0.1:7420
  crosspoint serve --listen 127.0.0.1:0            on a free port; it says which
  crosspoint serve --listen unix                   closed to other users
  crosspoint serve --log warn --log-format json    for machines
  curl -s 'localhost:7420/api/v1/jobs?wait=10' -d '{\"work\":\"echo\",\"input\":7}'

The log goes to stderr. The address is also in server.json, beside the data, as long as the server runs; commands of \
the same user ask over server.sock there, and need no token.

Exit codes: 0 stopped, 2 it could not start, 130 interrupted twice.")]
pub(crate) struct Serve {
    /// The address and port to listen on; port 0 is any free one; unix is a socket in the data directory [default:
    /// 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other)]
    pub(crate) listen: Option<String>,

    /// Serve an address that other machines reach, though no token is asked for
    #[arg(long)]
    pub(crate) insecure: bool,

    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// How much is logged: off, error, warn, info, debug [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["off", "error", "warn", "info", "debug"]), hide_possible_values = true)]
    pub(crate) log: Option<String>,

    /// How it is logged [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log_format: Option<Format>,
}

/// Exit code of an interrupted program.
const INTERRUPTED: i32 = 130;

pub(crate) fn run(arguments: &Serve) -> Result<Exit> {
    let Loaded { mut config, warnings, .. } = settle(arguments)?;
    let log = log::start(&config.server)?;
    for warning in &warnings {
        tracing::warn!("{}", warning.line());
    }
    fit_connections(&mut config.limits);
    let runtime = Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    // In a task, because connections are then taken by a thread that can go on with them, and no other has to wake up.
    let outcome = runtime.block_on(runtime.spawn(async move { serve(&config).await }));
    // Does not wait for readers of the store, nor for agents that do not stop.
    runtime.shutdown_background();
    log.flush();
    outcome.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

async fn serve(config: &Config) -> Result<Exit> {
    // The address first: if it cannot be used, no job should have been taken up, and no work begun in vain.
    let Listening { listener, address, file, is_exposed } = match Listening::open(config).await {
        Ok(listening) => listening,
        Err(unheard) => return Ok(unheard.print(&config.server.listen)),
    };
    let side = AgentSide::new(config);
    let engine = retrying::with_store(|| Engine::start(config.engine(Mode::Serve, &side))).await?;
    if let Some(name) = server::name_of_two_tokens(&engine, config) {
        engine.stop(Duration::ZERO).await;
        return Ok(refuse_two_tokens(&name));
    }
    let is_closed = server::is_closed(&engine, config);
    if is_exposed && !is_closed {
        engine.stop(Duration::ZERO).await;
        return Ok(Unheard::Exposed.print(&config.server.listen));
    }
    let mut signals = Signals::new()?;
    let (file, beside) = match listening::publish(file, &config.data) {
        Ok(published) => published,
        Err(error) => return Ok(Unheard::from(error).print(&config.server.listen)),
    };
    banner::show(&address, (config, is_closed), &engine);
    let beside_path = file.as_ref().filter(|_| beside.is_some()).map(SocketFile::path);
    let presence = Presence::announce(&config.data, &address.url(), beside_path)?;
    if let Some(why) = client::doubt(&config.data) {
        tracing::warn!(why, "commands do not believe {SERVER_FILE}, and need --server {}", address.url());
    }
    let listeners = Listeners { main: listener, beside };
    let serving = server::run(listeners, (engine.clone(), side), config, async {
        signals.next().await;
        let left = [Some(presence.path()), file.as_ref().map(SocketFile::path)];
        tokio::spawn(exit_on_next(signals, left.into_iter().flatten().map(Path::to_owned).collect()));
    });
    tokio::select! {
        () = serving => Ok(Exit::Fine),
        () = engine.died() => Err(dead(&engine)),
    }
}

/// Says that a `token_file` has the name of a token of the store.
fn refuse_two_tokens(name: &str) -> Exit {
    let name = render::visible(name);
    let message = format!("the token_file of {name} has the name of a token that is, or was, in the store");
    let hint = format!(
        "who had that token owns jobs of this name: give the [[caller]] or [[agent]] another name, or leave out its \
         token_file and use the token of the store (crosspoint token rotate {name} makes a new one)"
    );
    render::refused(&message, &hint);
    Exit::CouldNot
}

/// Returns the error that says why the engine cannot go on.
fn dead(engine: &Engine) -> anyhow::Error {
    match engine.readiness() {
        // Another process has the store: starting this one again would be wrong.
        Readiness::Failing(fault) if matches!(*fault, Fault::Lost { .. }) => anyhow!("{fault}"),
        Readiness::Failing(_) | Readiness::Ready => {
            anyhow!("jobs can no longer be committed; nothing is lost: start the server again")
        }
    }
}

/// Files that are open besides connections of callers: those of the store, the log, those of agents, and connections
/// of commands over the socket in the data directory.
const FILES_RESERVED: u64 = 256 + BESIDE_CONNECTIONS_MAX as u64;

/// Reduces the limit of connections to what the system allows, because every connection is an open file. Connections
/// beyond the limit are then told so, and the store can still be read.
fn fit_connections(limits: &mut Limits) {
    let wanted = limits.connections_max as u64 + FILES_RESERVED;
    let allowed = rlimit::increase_nofile_limit(wanted).unwrap_or(wanted);
    if allowed < wanted {
        limits.connections_max = usize::try_from(allowed.saturating_sub(FILES_RESERVED)).unwrap_or(1).max(1);
        let (files, connections) = (allowed, limits.connections_max);
        tracing::warn!(files, connections, "the system allows fewer open files than [limits] connections needs");
    }
}

/// Loads the configuration. Flags override the file and the environment.
fn settle(arguments: &Serve) -> Result<Loaded> {
    let flags = Flags { listen: arguments.listen.clone(), insecure: arguments.insecure, ..arguments.store.flags() };
    let mut loaded = Loaded::load(&flags)?;
    let config = &mut loaded.config;
    if let Some(level) = &arguments.log {
        config.server.log.clone_from(level);
    }
    if let Some(format) = arguments.log_format {
        config.server.log_format = match format {
            Format::Text => LogFormat::Text,
            Format::Json => LogFormat::Json,
        };
    }
    Ok(loaded)
}

/// Exits at the next signal: a user who asks twice does not want to wait. Nothing is lost, because what is not on disk
/// was not acknowledged.
async fn exit_on_next(mut signals: Signals, left: Vec<PathBuf>) {
    signals.next().await;
    left.iter().for_each(|path| drop(std::fs::remove_file(path)));
    std::process::exit(INTERRUPTED);
}
