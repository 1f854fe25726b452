//! Finding the server: its address is given, it runs in the data directory, or it is this process.

use std::env;
use std::path::Path;
use std::sync::Once;

use anyhow::Result;

use super::address::Address;
use super::embedded::Embedded;
use super::failed::Failed;
use super::left::{self, Left};
use super::{Client, Found, Session};
use crate::command::flags::Reach;
use crate::config::{Config, SERVER_FILE, UNIX};
use crate::local::SERVER_SOCKET;
use crate::terminal::render;

const SERVER_VARIABLE: &str = "CROSSPOINT_SERVER";

/// What a command needs if no server runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A store that exists.
    Existing,
    /// Any store; a missing one is created.
    Any,
    /// Any store, only to leave work there. Work begun here would be cut short.
    Kept,
    /// Any store, opened again and again: no note is printed about it.
    Often,
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
    if let Some(url) = named(reach) {
        return Ok(Session { client: Client::named(&url)?, embedded: None });
    }
    let config = Config::load(&reach.store.flags())?;
    if let Some(client) = running(&config.data).await? {
        return Ok(Session { client, embedded: None });
    }
    start(config, need, adapt).await
}

pub(super) async fn here(reach: &Reach, adapt: impl FnOnce(&mut Config) -> Result<()>) -> Result<Session> {
    let config = Config::load(&reach.store.flags())?;
    if running(&config.data).await?.is_some() {
        let message =
            format!("a server has the store in {}, and this command needs one of its own", config.data.display());
        return Err(Failed::other(message, "give it another place with --data DIR").into());
    }
    start(config, Need::Any, adapt).await
}

/// Starts a server in this process.
async fn start(mut config: Config, need: Need, adapt: impl FnOnce(&mut Config) -> Result<()>) -> Result<Session> {
    adapt(&mut config)?;
    if need == Need::Existing && !config.store.path.exists() {
        let message = format!("there is no server, and no store at {}", config.store.path.display());
        let hint = "start one with crosspoint serve, or name one with --server URL or --data DIR";
        return Err(Failed::other(message, hint).into());
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
    Ok(Session { client: Client::embedded(embedded.socket(), since)?, embedded: Some(embedded) })
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
