//! Where the server is: named, running in the data directory, or this process.

use std::env;
use std::path::Path;
use std::sync::Once;

use anyhow::Result;

use super::address::Address;
use super::embedded::Embedded;
use super::failed::Failed;
use super::left::{self, Left};
use super::{Client, Found, Session};
use crate::cli::Reach;
use crate::config::{Config, SERVER_FILE, UNIX};
use crate::local::SERVER_SOCKET;
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
    if let Some(client) = running(&config.data).await? {
        return Ok(Session { client, embedded: None });
    }
    if need == Need::Existing && !config.store.path.exists() {
        let message = format!("there is no server, and no store at {}", config.store.path.display());
        let hint = "start one with crosspoint serve, or name one with --server URL or --data DIR";
        return Err(Failed::other(message, hint).into());
    }
    // To the millisecond, as times of jobs are written.
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

/// For a command that waits for a server: where none has left an address yet, one is looked for again and again.
pub(super) fn patient(reach: &Reach) -> Result<Client> {
    if let Some(url) = named(reach) {
        return Client::named(&url);
    }
    let config = Config::load(&reach.place.flags())?;
    // Where nobody listens, as far as anybody knows: the address by which servers are found that say nothing else.
    let url = match left::read(&config.data) {
        Left::At(url) => url,
        Left::Nothing | Left::Doubtful(_) if config.server.listen == UNIX => {
            return Client::new(Address::Socket(config.data.join(SERVER_SOCKET)), Found::Left(config.data));
        }
        Left::Nothing | Left::Doubtful(_) => format!("http://{}", config.server.listen),
    };
    Client::left(&url, &config.data)
}

/// The server that has left its address, if one answers there. What a server left that was killed is passed over.
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

/// Some commands look for their server again and again.
fn say_once(data: &Path, why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let file = render::visible(&data.join(SERVER_FILE).display().to_string());
        render::note(&format!("{file} is not believed: {why}; a server is named with --server URL"));
    });
}
