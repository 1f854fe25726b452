//! Failures as the codes of a contract.
//!
//! A code is the failure's own, or the agent's where it reads as the same failure. An agent's code that this contract
//! would take for another failure is carried instead, and so is a failure that shares its code with another.

use super::read::In;
use super::write::Out;
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Home};
use crate::json::Value;

/// How a contract writes and reads failures.
pub(crate) struct Codes {
    /// Returns the code of a failure.
    pub(crate) write: fn(Failure) -> &'static str,
    /// Returns what a code means.
    pub(crate) read: fn(&str) -> Failure,
    /// Returns what a code means beside the other members that a job is written with, where these tell.
    pub(crate) read_beside: Option<fn(&str, &Canonical<'_>) -> Failure>,
}

impl Codes {
    pub(crate) fn written(&self, out: &mut Out<'_, '_>) -> Json<'static> {
        let failure = out.job().failure().unwrap_or(Failure::AgentFailed);
        let default = (self.write)(failure);
        let own = out.job().get(Home::Code).map(|code| (code.text().unwrap_or_default().into_owned(), code.clone()));
        if let Some((text, code)) = &own
            && !text.is_empty()
            // When it is read again, it would be taken for the failure's own code.
            && text != default
            && (self.read)(text) == failure
        {
            out.take(Home::Failure);
            out.take(Home::Code);
            return code.clone().into_owned();
        }
        let code = Json::string(default);
        let read_again = match self.read_beside {
            Some(read) => read(default, out.job()),
            None => (self.read)(default),
        };
        if own.is_none() && read_again == failure {
            out.take(Home::Failure);
        } else {
            // The carried failure counts as long as the code that stands in for it is unchanged.
            out.stands_in(code.clone());
        }
        code
    }

    pub(crate) fn read<'s>(&self, found: &mut In<'s>, value: Value<'_, 's>) {
        if found.is_stand_in(value) {
            let carried = found.job.failure().unwrap_or(Failure::AgentFailed);
            return found.job.set_failure(carried);
        }
        let Some(text) = value.text() else { return found.misfit(value) };
        // Several failures may share a code. The carried one is meant.
        let carried = found.job.failure().filter(|carried| text == *(self.write)(*carried));
        let failure = carried.unwrap_or_else(|| (self.read)(&text.decode()));
        found.job.set_failure(failure);
        if text == *(self.write)(failure) {
            found.job.clear(Home::Code);
        } else {
            found.job.set(Home::Code, Json::new(value.source().to_owned()));
        }
    }
}
