//! How a client was made: for a server that was named, was found, or is in a command.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::address::Address;
use super::left::{self, Left};
use super::{Client, Job, find};
use crate::command::flags::Reach;

/// How the server was found.
#[derive(Clone)]
pub(super) enum Found {
    /// Its address was given.
    Named,
    /// Through the address that it left in this data directory. The address may change after a restart.
    Left(PathBuf),
    /// It runs in this process since this time.
    Embedded(jiff::Timestamp),
    /// It is another command of this user, which does work with the store, and ends when that rests.
    Command,
}

impl Client {
    pub(super) fn named(url: &str) -> Result<Client> {
        Client::new(Address::read(url), Found::Named)
    }

    pub(super) fn left(url: &str, data: &Path) -> Result<Client> {
        Client::new(Address::read(url), Found::Left(data.to_owned()))
    }

    pub(super) fn embedded(socket: &Path, since: jiff::Timestamp) -> Result<Client> {
        Client::new(Address::Socket(socket.to_owned()), Found::Embedded(since))
    }

    /// Another command of this user that does work.
    pub(super) fn command_at(url: &str) -> Result<Client> {
        Client::new(Address::read(url), Found::Command)
    }

    /// Returns a client for a server that may not run yet and may not have left its address yet.
    pub(crate) fn patient(reach: &Reach) -> Result<Client> {
        find::patient(reach)
    }

    pub(crate) fn is_embedded(&self) -> bool {
        matches!(self.found, Found::Embedded(_))
    }

    /// Whether it is a server, and no command that ends when its work rests.
    pub(crate) fn is_server(&self) -> bool {
        matches!(self.found, Found::Named | Found::Left(_))
    }

    /// Whether no process drives this job: no server runs, and the job is older than this process, which drives only
    /// the jobs that it submitted itself.
    pub(crate) fn is_held(&self, job: &Job) -> bool {
        let Found::Embedded(since) = self.found else { return false };
        job.outcome().is_none() && job.is.created_at.parse::<jiff::Timestamp>().is_ok_and(|created| created < since)
    }

    /// Reads the server's address again, because it may be another one after a restart.
    pub(crate) fn look_again(&mut self) {
        let Found::Left(data) = &self.found else { return };
        let Left::At(url) = left::read(data) else { return };
        let address = Address::read(&url);
        if address != self.address
            && let Ok(client) = Client::new(address, self.found.clone())
        {
            *self = Client { again: self.again.clone(), ..client };
        }
    }

    /// Returns a client with the token that is in its place now, if that is another one than this client has.
    pub(crate) fn with_new_token(&self) -> Option<Client> {
        let client = Client::new(self.address.clone(), self.found.clone()).ok()?;
        let client = Client { again: self.again.clone(), ..client };
        let header = |client: &Client| client.line.token.as_ref().map(|token| token.header.clone());
        (header(&client).is_some() && header(&client) != header(self)).then_some(client)
    }
}
