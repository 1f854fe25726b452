//! Where the server is: named, running in the data directory, or this process.

use std::env;
use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use super::embedded::Embedded;
use super::failed::Failed;
use super::{Client, Session};
use crate::cli::Reach;
use crate::config::{Config, SERVER_FILE};
use crate::render;

const SERVER_VARIABLE: &str = "CROSSPOINT_SERVER";

/// What a command needs where there is no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    /// A store with something in it.
    Existing,
    /// Any store; it is made where there is none.
    Any,
    /// Any store, only to leave work there: to begin it here would be to cut it short.
    Kept,
    /// Any store, again and again: nothing is said about it.
    Often,
}

#[derive(Deserialize)]
struct ServerFile {
    url: String,
}

fn named(reach: &Reach) -> Option<String> {
    reach.server.clone().or_else(|| env::var(SERVER_VARIABLE).ok().filter(|url| !url.is_empty()))
}

pub(super) fn check_configuration(reach: &Reach) -> Result<()> {
    match named(reach) {
        Some(url) => Client::named(&url).map(|_| ()),
        None => Config::load(&reach.place.flags()).map(|_| ()),
    }
}

pub(super) async fn find(reach: &Reach, need: Need) -> Result<Session> {
    if let Some(url) = named(reach) {
        return Ok(Session { client: Client::named(&url)?, embedded: None });
    }
    let config = Config::load(&reach.place.flags())?;
    let file = config.data.join(SERVER_FILE);
    if let Some(client) = running(&file).await? {
        return Ok(Session { client, embedded: None });
    }
    if need == Need::Existing && !config.store.path.exists() {
        let message = format!("there is no server, and no store at {}", config.store.path.display());
        let hint = "start one with crosspoint serve, or name one with --server URL or --data DIR";
        return Err(Failed::other(message, hint).into());
    }
    // To the millisecond, as times of jobs are written.
    let since = jiff::Timestamp::from_millisecond(jiff::Timestamp::now().as_millisecond())?;
    let (embedded, url) = Embedded::start(&config, need).await?;
    if need == Need::Any {
        render::note(&format!(
            "no server runs here: the work is done by this command, in {}; a server of another directory is named with --server URL",
            config.data.display()
        ));
    }
    Ok(Session { client: Client::embedded(&url, since)?, embedded: Some(embedded) })
}

/// For a command that waits for a server: where none has left an address yet, one is looked for again and again.
pub(super) fn patient(reach: &Reach) -> Result<Client> {
    if let Some(url) = named(reach) {
        return Client::named(&url);
    }
    let config = Config::load(&reach.place.flags())?;
    let file = config.data.join(SERVER_FILE);
    // Where nobody listens, as far as anybody knows: the address by which servers are found that say nothing else.
    let url = read(&file).unwrap_or_else(|| format!("http://{}", config.server.listen));
    Client::left(&url, &file)
}

/// The server that the file names, if one answers there. What a server left that was killed is passed over.
async fn running(file: &Path) -> Result<Option<Client>> {
    let Some(url) = read(file) else { return Ok(None) };
    let client = Client::left(&url, file)?;
    match client.health().await {
        Ok(()) => Ok(Some(client)),
        Err(failed) if failed.is_slow() => Err(failed.into()),
        Err(_) => Ok(None),
    }
}

/// The address in the file; `None` where there is none, or it cannot be understood.
pub(super) fn read(file: &Path) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    Some(serde_json::from_str::<ServerFile>(&text).ok()?.url)
}
