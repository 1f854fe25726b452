//! The commands that a user is told to give next, as they can be pasted: with the options by which this one found its
//! server or its store.

use std::ffi::OsStr;
use std::path::Path;

use super::address::Address;
use super::{Client, Failed};
use crate::command::flags::{Reach, StoreFlags};
use crate::config::{Config, DATABASE};
use crate::local::beside;
use crate::terminal::{render, shell};

/// Options by which other commands reach a server or a store, each with a space before it.
#[derive(Clone, Default)]
pub(super) struct Again {
    /// For the same one.
    options: String,
    /// For the store of commands beside the server here, if there is one.
    beside: Option<String>,
}

impl Again {
    pub(super) fn of(reach: &Reach, config: Option<&Config>) -> Again {
        let is_there = |config: &&Config| beside::directory(&config.data).join(DATABASE).exists();
        let beside = config.filter(is_there).map(|config| options(&reach_beside(reach, config)));
        Again { options: options(reach), beside }
    }
}

/// Returns how commands reach the store beside a server. Where the configuration says which store the server has, the
/// data directory alone would name that one.
pub(super) fn reach_beside(reach: &Reach, config: &Config) -> Reach {
    let data = beside::directory(&config.data);
    let is_elsewhere = config.store.path.parent() != Some(&config.data);
    let store = is_elsewhere.then(|| format!("sqlite:{}", data.join(DATABASE).display()));
    Reach { server: None, store: StoreFlags { config: reach.store.config.clone(), data: Some(data), store } }
}

fn options(reach: &Reach) -> String {
    let StoreFlags { config, data, store } = &reach.store;
    // A password is not printed. The command then says that it is missing.
    let server = reach.server.as_deref().map(|url| Address::read(url).shown());
    let given = [
        ("--server", server.as_deref().map(OsStr::new)),
        ("--config", config.as_deref().map(Path::as_os_str)),
        ("--data", data.as_deref().map(Path::as_os_str)),
        ("--store", store.as_deref().map(OsStr::new)),
    ];
    let given = given.into_iter().filter_map(|(name, value)| Some(format!(" {name} {}", shell::word(value?))));
    given.collect()
}

impl Client {
    pub(super) fn told(self, again: Again) -> Client {
        Client { again, ..self }
    }

    /// Returns a command that reaches the same server or store: `crosspoint`, these words, and the options of this one.
    pub(crate) fn command(&self, words: &str) -> String {
        render::visible(&format!("crosspoint {words}{}", self.again.options))
    }

    /// Returns the same for the store of commands beside the server here, if there is one.
    pub(crate) fn command_beside(&self, words: &str) -> Option<String> {
        self.again.beside.as_ref().map(|options| render::visible(&format!("crosspoint {words}{options}")))
    }

    /// Says where else a job may be that is not known here.
    pub(crate) fn no_such_job(&self, words: &str, failed: Failed) -> Failed {
        match self.command_beside(words) {
            Some(command) => {
                let hint = format!("a command beside the server has its own store: {command}");
                failed.hinted(reqwest::StatusCode::NOT_FOUND, &hint)
            }
            None => failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_can_be_pasted_and_show_no_password() {
        let store = StoreFlags { data: Some("my data".into()), ..StoreFlags::default() };
        let reach = Reach { server: Some("http://me:secret@host:1".to_owned()), store };
        assert_eq!(options(&reach), " --server http://host:1 --data 'my data'");
        assert_eq!(options(&Reach::default()), "");
    }

    #[test]
    fn a_store_that_is_configured_elsewhere_is_named_too() {
        let mut config = Config::default();
        assert_eq!(options(&reach_beside(&Reach::default(), &config)), " --data .crosspoint/embedded");
        config.store.path = "elsewhere.db".into();
        let both = " --data .crosspoint/embedded --store sqlite:.crosspoint/embedded/jobs.db";
        assert_eq!(options(&reach_beside(&Reach::default(), &config)), both);
    }
}
