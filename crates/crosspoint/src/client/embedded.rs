//! The server in this process. If no server runs, a command opens the store itself and talks to its own server over a
//! socket in the data directory, so that there is one way for everything. No port is opened, because only this command
//! uses it, and commands of its user that look at jobs meanwhile (see `working`). Only jobs that are submitted here,
//! for the first time or again, and those that are taken up by their ids are driven. Other existing jobs wait for
//! `serve`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use crosspoint_engine::core::Mode;
use crosspoint_engine::runtime::Engine;
use crosspoint_engine::store::Fault;
use crosspoint_http::socket::Listener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Failed;
use super::find::Need;
use super::working::{self, Note};
use crate::agent_side::AgentSide;
use crate::config::Config;
use crate::local::{self, SocketFile};
use crate::{retrying, server};

pub(super) struct Embedded {
    stop: CancellationToken,
    task: JoinHandle<()>,
    file: SocketFile,
    engine: Engine,
    note: Option<Note>,
}

impl Embedded {
    /// Opens the store and listens where only this user can connect.
    pub(super) async fn start(config: &Config, need: Need) -> Result<Embedded> {
        let side = AgentSide::new(config);
        let engine = retrying::with_store(|| Engine::start(config.engine(Mode::Held, &side))).await;
        let engine = engine.map_err(|fault| in_use(config, fault))?;
        if need == Need::Kept {
            engine.rest().await;
        }
        let (listener, file) = match local::listen(&config.data) {
            Ok(listening) => listening,
            Err(error) => {
                engine.stop(Duration::ZERO).await;
                return Err(error).with_context(|| format!("cannot make a socket in {}", config.data.display()));
            }
        };
        let note = need.does_work().then(|| Note::leave(config, file.path())).flatten();
        let stop = CancellationToken::new();
        let (stopped, mut config) = (stop.clone().cancelled_owned(), config.clone());
        // A command that ends must not wait for work that goes on later.
        config.server.drain = Duration::ZERO;
        // What callers are owed is left to `serve`, too.
        config.callers.iter_mut().for_each(|caller| caller.callback = None);
        let listeners = Listener::Unix(listener).into();
        let driven = engine.clone();
        let task = tokio::spawn(async move { server::run(listeners, (driven, side), &config, stopped).await });
        Ok(Embedded { stop, task, file, engine, note })
    }

    /// The path of its socket.
    pub(super) fn socket(&self) -> &Path {
        self.file.path()
    }

    /// Drives a job from now on that was there before.
    pub(super) async fn take_up(&self, id: &str) -> Result<()> {
        let id = self.engine.job_id(id).context("this is no id of a job")?;
        self.engine.take_up(id).await.map_err(|why| anyhow::anyhow!("the job {id} cannot be taken up: {why:?}"))
    }

    pub(super) async fn stop(mut self) {
        // No command should come any more.
        self.note = None;
        self.stop.cancel();
        let _ = self.task.await;
    }
}

/// Says which command has the store, if it is one that left its address.
fn in_use(config: &Config, fault: Fault) -> anyhow::Error {
    let working = matches!(fault, Fault::InUse { .. }).then(|| working::found(config)).flatten();
    let Some(working) = working else { return fault.into() };
    let store = config.store.path.display();
    let message =
        format!("the store {store} is in use by another command, process {}, until its work rests", working.pid);
    let hint = "wait for it, or give this one its own with --data DIR; crosspoint jobs list, show and answer reach it";
    Failed::other(message, hint).into()
}
