//! The server: the native API, its description and metrics, and an end that leaves no caller waiting.
//!
//! In reading order: [`router`] names every endpoint, and [`openapi`] describes them; [`jobs`], [`agents`],
//! [`callers`], [`pull`], [`documents`], [`health`], [`events`] and [`output`] answer them; [`bridge_door`] is the door
//! of the bridge, and the doors of the other contracts are those of `crosspoint-http`; [`submit`] and [`query`] read
//! what comes in, [`view`] writes what goes out; [`process`] and [`metrics`] are what is counted.

mod access;
mod agents;
mod bridge_door;
mod callers;
#[cfg(feature = "demo-contract")]
#[path = "../tests/demo/demo_door.rs"]
mod demo_door;
mod documents;
mod events;
mod health;
mod jobs;
mod message;
mod metrics;
pub(crate) mod openapi;
mod output;
mod process;
mod pull;
mod query;
mod router;
mod submit;
mod tokens;
pub(crate) mod view;
mod workflows;

// Scans are counted in debug builds only.
#[cfg(all(test, debug_assertions))]
mod tests;

use std::convert::Infallible;
use std::future::{Future, pending};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::FromRef;
use bytes::Bytes;
use crosspoint_engine::runtime::Engine;
use crosspoint_http::connection;
use crosspoint_http::door::Doors;
use crosspoint_http::reach::Ours;
use crosspoint_http::site::{Plan, Site};
use crosspoint_http::socket::Listener;
use tokio_util::sync::CancellationToken;

use self::access::Access;
use self::documents::ReadingRoom;
use crate::agent_side::AgentSide;
use crate::backend::Orchestrator;
use crate::config::{Caller, Config};
use crate::deliver::{self, Deliveries, Recipient};
use crate::link::message::Hub;
use crate::pull::Queues;
use crate::schemas::Schemas;
use crate::workflow::{self, Places};

/// Interval at which a stopping server checks whether the last request has been answered.
const IDLE_PERIOD: Duration = Duration::from_millis(5);

/// Longest time that the last bytes of answers may take to leave when everything else has ended.
const FLUSH_TIME_MAX: Duration = Duration::from_secs(1);

/// Most connections over the socket beside a port, in addition to those of the port: callers that have taken all of
/// those do not lock the operator out.
pub(crate) const BESIDE_CONNECTIONS_MAX: usize = 256;

/// Where a server accepts connections.
pub(crate) struct Listeners {
    /// Where callers connect.
    pub(crate) main: Listener,
    /// The socket file that a server with a port has for commands of its own user.
    pub(crate) beside: Option<Listener>,
}

impl From<Listener> for Listeners {
    fn from(main: Listener) -> Listeners {
        Listeners { main, beside: None }
    }
}

/// The state that all requests share; clones share it.
#[derive(Clone)]
struct App(Arc<Shared>);

struct Shared {
    engine: Engine,
    side: AgentSide,
    /// Who may ask for what.
    access: Access,
    /// The callers that are told later.
    callers: Vec<Caller>,
    /// What they are told.
    deliveries: Arc<Deliveries>,
    /// The schemas of works.
    schemas: Arc<Schemas>,
    /// Where runs of workflows may work.
    site: Site,
    wait_max: Duration,
    sync_wait: Duration,
    /// Where documents are looked at.
    reading_room: ReadingRoom,
    /// The description of the API, made when it is first asked for.
    described: OnceLock<Bytes>,
}

impl FromRef<App> for Site {
    fn from_ref(app: &App) -> Site {
        app.0.site.clone()
    }
}

/// Serves until `shutdown` completes, then winds down: new work is refused, streams and waits end, requests under way
/// are answered, and attempts under way have `[server] drain_seconds` to end. Programs that have not ended by then are
/// asked to end, and have their grace.
///
/// Connections are accepted until the very end, so that a caller that connects in between gets an answer.
pub(crate) async fn run(
    listeners: Listeners,
    (engine, side): (Engine, AgentSide),
    config: &Config,
    shutdown: impl Future<Output = ()>,
) {
    process::started_at();
    let app = App::new(engine, side, config);
    let connections = connection::Places::new(config.limits.connections_max);
    let beside = connection::Places::new(BESIDE_CONNECTIONS_MAX);
    let router = router::router(app.clone());
    tokio::select! {
        never = connection::accept(&listeners.main, &app.0.site, &router, &connections) => match never {},
        never = accept_beside(listeners.beside.as_ref(), &app.0.site, &router, &beside) => match never {},
        () = pull::keep_leases(&app) => {}
        () = app.hub().keep_looking(app.engine()) => {}
        () = workflow::sweep(app.engine(), app.places()) => {}
        () = app.wind_down(config.server.drain, crate::link::parting_time(config), shutdown) => {}
    }
    drop(listeners);
    app.0.site.closing().cancel();
    let all_free = async { tokio::join!(connections.all_free(), beside.all_free()) };
    let _ = tokio::time::timeout(FLUSH_TIME_MAX, all_free).await;
}

async fn accept_beside(
    listener: Option<&Listener>,
    site: &Site,
    router: &Router,
    places: &connection::Places,
) -> Infallible {
    match listener {
        Some(listener) => connection::accept(listener, site, router, places).await,
        None => pending().await,
    }
}

/// Whether a server with this store and configuration asks for tokens.
pub(crate) fn is_closed(engine: &Engine, config: &Config) -> bool {
    Access::new(engine.clone(), config).is_closed()
}

/// Returns a name that has a token both in the configuration and in the store. The one would inherit the jobs of the
/// other.
pub(crate) fn name_of_two_tokens(engine: &Engine, config: &Config) -> Option<Arc<str>> {
    let grants = engine.grants();
    let access = Access::new(engine.clone(), config);
    access.configured().map(|identity| identity.name.clone()).find(|name| grants.get(name).is_some())
}

impl App {
    fn new(engine: Engine, side: AgentSide, config: &Config) -> App {
        let plan = Plan {
            limits: config.limits.site(),
            routes: openapi::routes(),
            ours: Ours::new(&config.server.listen, &config.server.names),
            doors: router::DOORS.to_vec(),
        };
        let recipients = config.callers.iter().map(Recipient::from).collect();
        let deliveries = Deliveries::start(engine.clone(), recipients, deliver::message::telling(&engine));
        App(Arc::new(Shared {
            deliveries,
            access: Access::new(engine.clone(), config),
            engine,
            side,
            callers: config.callers.clone(),
            schemas: config.schemas.clone(),
            site: Site::new(plan),
            wait_max: config.server.wait_max,
            sync_wait: config.server.sync_wait,
            reading_room: ReadingRoom::default(),
            described: OnceLock::new(),
        }))
    }

    /// Returns what the doors of contracts need.
    fn doors(&self) -> Doors<Orchestrator> {
        let backend = Orchestrator {
            engine: self.engine().clone(),
            schemas: self.0.schemas.clone(),
            stopping: self.stopping().clone(),
        };
        Doors { backend, site: self.0.site.clone(), wait_max: self.0.wait_max, sync_wait: self.0.sync_wait }
    }

    fn engine(&self) -> &Engine {
        &self.0.engine
    }

    fn places(&self) -> &Places {
        &self.0.side.places
    }

    fn queues(&self) -> &Arc<Queues> {
        &self.0.side.queues
    }

    fn deliveries(&self) -> &Deliveries {
        &self.0.deliveries
    }

    fn access(&self) -> &Access {
        &self.0.access
    }

    fn callers(&self) -> &[Caller] {
        &self.0.callers
    }

    fn hub(&self) -> &Arc<Hub> {
        &self.0.side.hub
    }

    fn stopping(&self) -> &CancellationToken {
        self.0.site.stopping()
    }

    async fn wind_down(&self, drain: Duration, parting: Duration, shutdown: impl Future<Output = ()>) {
        shutdown.await;
        tracing::info!(attempts = self.engine().attempts(), "stopping");
        let until = Instant::now() + drain;
        self.stopping().cancel();
        self.engine().end_waits();
        let resting = async {
            self.engine().rest().await;
            self.queues().put_back(self.engine()).await;
        };
        tokio::join!(resting, self.deliveries().close(until));
        while self.0.site.is_answering() && Instant::now() < until {
            tokio::time::sleep(IDLE_PERIOD).await;
        }
        self.engine().stop_and_part(until.saturating_duration_since(Instant::now()), parting).await;
        tracing::info!("stopped");
    }
}
