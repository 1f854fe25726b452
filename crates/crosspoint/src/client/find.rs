//! Finding the server: its address is given, it runs in the data directory, it is another command, or it is this
//! process.

use std::env;
use std::path::Path;
use std::sync::Once;

use anyhow::{Context, Result};

use super::address::Address;
use super::again::{self, Again};
use super::embedded::Embedded;
use super::failed::Failed;
use super::left::{self, Left};
use super::working;
use super::{Client, Found, Session};
use crate::command::flags::Reach;
use crate::config::{Config, SERVER_FILE, UNIX};
use crate::local::{SERVER_SOCKET, beside};
use crate::terminal::render;

const SERVER_VARIABLE: &str = "CROSSPOINT_SERVER";

/// What a command needs if no server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A store that exists.
    Existing,
    /// A store that exists, to look at jobs or to answer one, also through a command that does work with it.
    Look,
    /// The same for runs of workflows, whose stores are where they began.
    Run,
    /// Any store; a missing one is created.
    Any,
    /// Any store, only to leave work there. Work begun here would be cut short.
    Kept,
    /// Any store, opened again and again: no note is printed about it.
    Often,
    /// Any store; the command says itself where it does the work.
    Silent,
}

impl Need {
    /// Whether the command may work for long, so that others should be able to reach it.
    pub(super) fn does_work(self) -> bool {
        matches!(self, Need::Any | Need::Silent)
    }

    fn is_looking(self) -> bool {
        matches!(self, Need::Look | Need::Run)
    }

    /// Returns what to do where there is no store.
    fn hint(self) -> &'static str {
        match self {
            Need::Run => "go to the directory in which the run began, or name its store with --data DIR",
            Need::Existing | Need::Look | Need::Any | Need::Kept | Need::Often | Need::Silent => {
                "start one with crosspoint serve, or name one with --server URL or --data DIR"
            }
        }
    }
}

/// Returns the address that was given. An explicit data directory wins over the environment, as flags do elsewhere.
fn named(reach: &Reach) -> Option<String> {
    let variable = || env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty() && reach.store.data.is_none());
    reach.server.clone().or_else(variable)
}

pub(super) fn check_configuration(reach: &Reach) -> Result<()> {
    match named(reach) {
        Some(url) => Client::named(&url).map(|_| ()),
        None => Config::load(&reach.store.flags()).map(|_| ()),
    }
}

pub(super) async fn find(reach: &Reach, need: Need) -> Result<Session> {
    find_or_adapted(reach, need, |_| Ok(())).await
}

/// Returns the server that is named, or that runs here.
pub(super) async fn running_server(reach: &Reach) -> Result<Option<Client>> {
    match named(reach) {
        Some(url) => Ok(Some(Client::named(&url)?)),
        None => running(&Config::load(&reach.store.flags())?.data).await,
    }
}

pub(super) async fn find_or_adapted(
    reach: &Reach,
    need: Need,
    adapt: impl FnOnce(&mut Config) -> Result<()>,
) -> Result<Session> {
    let reached = |client: Client, config: Option<&Config>| {
        let client = client.told(Again::of(reach, config));
        Ok(Session { client, embedded: None })
    };
    if let Some(url) = named(reach) {
        return reached(Client::named(&url)?, None);
    }
    let config = Config::load(&reach.store.flags())?;
    if let Some(client) = running(&config.data).await? {
        return reached(client, Some(&config));
    }
    if need.is_looking()
        && let Some(client) = working(&config).await
    {
        return reached(client, Some(&config));
    }
    start((reach, config), need, adapt).await
}

/// Starts a server in this process for its own work. Where a server has the store of the data directory, this process
/// has one beside it.
pub(super) async fn here(reach: &Reach, adapt: impl FnOnce(&mut Config) -> Result<()>) -> Result<Session> {
    let mut config = Config::load(&reach.store.flags())?;
    let mut reach = Reach { server: None, store: reach.store.clone() };
    if running(&config.data).await?.is_some() {
        if reach.store.store.is_some() {
            let data = config.data.display();
            let message = format!("a server has the data directory {data}, and this command needs one of its own");
            return Err(Failed::other(message, "give it another one with --data DIR, or leave --store away").into());
        }
        (reach, config) = beside_server(&reach, &config)?;
    } else if env::var_os(SERVER_VARIABLE).is_some() {
        // The server that the environment names would be asked by the next commands, and knows nothing of this work.
        reach.store.data.get_or_insert_with(|| config.data.clone());
    }
    start((&reach, config), Need::Silent, adapt).await
}

/// Returns how the store beside a server is reached, and the configuration with it.
fn beside_server(reach: &Reach, config: &Config) -> Result<(Reach, Config)> {
    let data = &config.data;
    let shown = || format!("cannot make {}", beside::directory(data).display());
    let directory = beside::make(data).with_context(shown)?;
    let own = again::reach_beside(reach, config);
    let own_store = format!("a server has the store here: this command uses one in {}", directory.display());
    render::note(&render::visible(&own_store));
    let config = Config::load(&own.store.flags())?;
    Ok((own, config))
}

/// Starts a server in this process.
async fn start(
    (reach, mut config): (&Reach, Config),
    need: Need,
    adapt: impl FnOnce(&mut Config) -> Result<()>,
) -> Result<Session> {
    adapt(&mut config)?;
    let again = Again::of(reach, Some(&config));
    let store = config.store.path.try_exists();
    if let Err(why) = &store {
        let message = format!("the store {} cannot be looked at: {why}", config.store.path.display());
        return Err(Failed::other(message, "use it as the user whose it is, or name another with --data").into());
    }
    if (need == Need::Existing || need.is_looking()) && store.is_ok_and(|is_there| !is_there) {
        let message = format!("there is no server, and no store at {}", config.store.path.display());
        return Err(Failed::other(message, need.hint()).into());
    }
    // To the millisecond, like the times of jobs.
    let since = jiff::Timestamp::from_millisecond(jiff::Timestamp::now().as_millisecond())?;
    let embedded = Embedded::start(&config, need).await?;
    if need == Need::Any {
        render::note(&format!(
            "no server runs here: the work is done by this command, in {}; a server of another directory is named with --server URL",
            config.data.display()
        ));
    }
    let client = Client::embedded(embedded.socket(), since)?.told(again);
    Ok(Session { client, embedded: Some(embedded) })
}

/// Returns the command that does work with this store, if it answers. That of a killed command is passed over.
async fn working(config: &Config) -> Option<Client> {
    let client = Client::command_at(&working::found(config)?.url).ok()?;
    client.health().await.ok().map(|()| client)
}

/// Returns a client for a command that waits for a server. If no server has left an address yet, the command looks
/// again and again.
pub(super) fn patient(reach: &Reach) -> Result<Client> {
    if let Some(url) = named(reach) {
        return Client::named(&url);
    }
    let config = Config::load(&reach.store.flags())?;
    // No server is known to listen, so this is the configured address, where a server would listen.
    let url = match left::read(&config.data) {
        Left::At(url) => url,
        Left::Nothing | Left::Doubtful(_) if config.server.listen == UNIX => {
            return Client::new(Address::Socket(config.data.join(SERVER_SOCKET)), Found::Left(config.data));
        }
        Left::Nothing | Left::Doubtful(_) => format!("http://{}", config.server.listen),
    };
    Client::left(&url, &config.data)
}

/// Returns the server that has left its address, if it answers there. The address of a killed server is passed over.
async fn running(data: &Path) -> Result<Option<Client>> {
    let url = match left::read(data) {
        Left::At(url) => url,
        Left::Nothing => return Ok(None),
        Left::Doubtful(why) => {
            say_once(data, why);
            return Ok(None);
        }
    };
    let client = Client::left(&url, data)?;
    match client.health().await {
        Ok(()) => Ok(Some(client)),
        Err(failed) if failed.is_slow() => Err(failed.into()),
        Err(_) => Ok(None),
    }
}

/// Prints the note once, because some commands look for their server again and again.
fn say_once(data: &Path, why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let file = render::visible(&data.join(SERVER_FILE).display().to_string());
        render::note(&format!("{file} is not believed: {why}; a server is named with --server URL"));
    });
}
