//! The server: connections, the native API, and a shutdown that answers every request.
//!
//! In reading order: [`router`] names every endpoint, and [`openapi`] describes them. [`jobs`], [`agents`], [`pull`],
//! [`documents`], [`health`] and [`events`] answer them. [`run_door`], [`task_door`] and [`bridge_door`] answer in
//! contracts of their own, where [`door`] has work admitted and [`shaped`] puts refusals into the contract's shape.
//! [`submit`], [`query`] and [`body`] read requests, within limits; [`view`] and [`refusal`] write answers. [`reach`]
//! decides which requests are for this server at all. [`socket`], [`connection`], [`streamed`] and [`stall`] deal with
//! sockets, [`tally`], [`process`] and [`metrics`] with counters, and [`record`] with the log.

mod agents;
mod body;
mod bridge_door;
mod connection;
#[cfg(feature = "demo-contract")]
#[path = "../tests/demo/demo_door.rs"]
mod demo_door;
mod documents;
mod door;
mod event_stream;
mod events;
mod health;
mod jobs;
mod json;
mod metrics;
pub(crate) mod openapi;
mod process;
mod pull;
mod query;
mod reach;
mod record;
mod refusal;
mod refusal_document;
mod router;
mod run_door;
mod slow_reader;
mod socket;
mod submit;
mod tally;
mod task_door;
pub(crate) mod view;

// Scans are counted in debug builds only.
#[cfg(all(test, debug_assertions))]
mod tests;

use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_engine::runtime::Engine;
use tokio_util::sync::CancellationToken;

use self::documents::ReadingRoom;
pub(crate) use self::socket::Listener;
use self::tally::Tally;
use crate::config::{Config, Limits};
use crate::pull::Desk;

/// Interval at which a stopping server checks whether the last request has been answered.
const IDLE_PERIOD: Duration = Duration::from_millis(5);

/// Longest time that the last bytes of answers may take to leave when everything else has ended.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// The state that all requests share; clones share it.
#[derive(Clone)]
struct App(Arc<Shared>);

struct Shared {
    engine: Engine,
    desk: Arc<Desk>,
    limits: Limits,
    wait_max: Duration,
    sync_wait: Duration,
    /// Bytes of all bodies that are being read or are waiting to be committed.
    bodies_bytes: AtomicUsize,
    /// Number of requests that have not been answered.
    requests: AtomicUsize,
    tally: Tally,
    /// The names and addresses of this server.
    ours: reach::Ours,
    /// Limits how many documents are validated and translated at a time.
    reading_room: ReadingRoom,
    /// The description of the API, made when it is first requested.
    described: OnceLock<Bytes>,
    /// Cancelled when no new work is accepted any more.
    stopping: CancellationToken,
    /// Cancelled when no request is answered any more.
    closing: CancellationToken,
}

/// Serves until `shutdown` completes, then winds down: new work is refused, streams and waits end, requests under way
/// are answered, and attempts under way have `[server] drain_seconds` to end. Programs that have not ended by then are
/// asked to end, and have their grace.
///
/// Connections are accepted until the very end, so that a caller that connects in between gets an answer.
pub(crate) async fn run(
    listener: Listener,
    (engine, desk): (Engine, Arc<Desk>),
    config: &Config,
    shutdown: impl Future<Output = ()>,
) {
    process::started_at();
    let app = App::new(engine, desk, config);
    let connections = connection::Places::new(config.limits.connections_max);
    tokio::select! {
        never = connection::accept(&listener, &app, &connections) => match never {},
        () = pull::keep_leases(&app) => {}
        () = app.wind_down(config.server.drain, crate::link::parting_time(config), shutdown) => {}
    }
    drop(listener);
    app.0.closing.cancel();
    let _ = tokio::time::timeout(FLUSH_TIME_MAX, connections.all_free()).await;
}

impl App {
    fn new(engine: Engine, desk: Arc<Desk>, config: &Config) -> App {
        App(Arc::new(Shared {
            engine,
            desk,
            limits: config.limits.clone(),
            wait_max: config.server.wait_max,
            sync_wait: config.server.sync_wait,
            bodies_bytes: AtomicUsize::new(0),
            requests: AtomicUsize::new(0),
            tally: Tally::new(openapi::routes()),
            ours: reach::Ours::of(&config.server),
            reading_room: ReadingRoom::default(),
            described: OnceLock::new(),
            stopping: CancellationToken::new(),
            closing: CancellationToken::new(),
        }))
    }

    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn desk(&self) -> &Arc<Desk> {
        &self.0.desk
    }

    fn limits(&self) -> &Limits {
        &self.0.limits
    }

    fn tally(&self) -> &Tally {
        &self.0.tally
    }

    fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }

    async fn wind_down(&self, drain: Duration, parting: Duration, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!(attempts = self.engine().attempts(), "stopping");
        let until = Instant::now() + drain;
        self.stopping().cancel();
        self.engine().end_waits();
        self.engine().rest().await;
        self.desk().put_back(self.engine()).await;
        while self.0.requests.load(Ordering::Acquire) > 0 && Instant::now() < until {
            tokio::time::sleep(IDLE_PERIOD).await;
        }
        self.engine().stop_and_part(until.saturating_duration_since(Instant::now()), parting).await;
        tracing::info!("stopped");
    }
}
