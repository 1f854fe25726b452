//! What every answer repeats of its request, whatever its agent says: ids and names.
//!
//! A contract says which facts these are. They are taken from the request when it comes in and are kept with its job as
//! a small JSON object, because the request itself may be megabytes and an answer is written many times.

use crosspoint_contracts::Contract;
use crosspoint_contracts::content::Json;
use crosspoint_contracts::job::{Canonical, Home};
use crosspoint_contracts::json::{Tape, Value};

/// Where the sender of an answer stands that was only asked to hand the work on: it gives way to the agent's own type
/// (MSG-18.2).
const RECIPIENT: &str = "recipient";

/// Says that the request was translated from another contract.
const TRANSLATED: &str = "translated";

/// About as long as what is kept, in bytes: a few ids and names.
const STORED_BYTES: usize = 256;

/// What an answer repeats of its request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Echo {
    homes: Vec<(Home, Json<'static>)>,
    recipient: Option<String>,
    /// Whether the request was translated from another contract, so that its answers say how they can be translated
    /// back (ALL-8).
    pub(crate) is_translated: bool,
}

impl Echo {
    /// Returns what can be read of it in a document, which may be broken.
    pub(crate) fn of(contract: Contract, document: &[u8], agent_types: &[Box<str>]) -> Echo {
        let types: Vec<&str> = agent_types.iter().map(|name| &**name).collect();
        Echo { homes: contract.echoes_in(document, &types), ..Echo::default() }
    }

    /// Returns what was found in a request when it was read.
    pub(crate) fn read_in_request(homes: Vec<(Home, Json<'static>)>, is_translated: bool) -> Echo {
        Echo { homes, is_translated, ..Echo::default() }
    }

    /// Returns it as it is kept with a job. `is_addressed` is whether the recipient of the request is the type of agent
    /// that the work is for.
    pub(crate) fn stored(&self, is_addressed: bool) -> Option<Box<str>> {
        let mut stored = String::with_capacity(STORED_BYTES);
        for (home, value) in &self.homes {
            let name = if *home == Home::Source && !is_addressed { RECIPIENT } else { home.name() };
            stored.push_str(if stored.is_empty() { "{\"" } else { ",\"" });
            [name, "\":", value.get()].into_iter().for_each(|part| stored.push_str(part));
        }
        if stored.is_empty() {
            return None;
        }
        if self.is_translated {
            [",\"", TRANSLATED, "\":true"].into_iter().for_each(|part| stored.push_str(part));
        }
        Some((stored + "}").into())
    }

    /// Reads what was kept with a job.
    pub(crate) fn read(stored: Option<&str>) -> Echo {
        let Some(Ok(tape)) = stored.map(|stored| Tape::scan(stored.as_bytes())) else { return Echo::default() };
        let mut echo = Echo::default();
        for (name, value) in tape.root().into_iter().flat_map(Value::members) {
            match Home::ALL.iter().find(|home| name == *home.name()) {
                Some(home) => echo.homes.push((*home, Json::new(value.source().to_owned()))),
                None if name == *RECIPIENT => echo.recipient = value.text().map(|text| text.decode().into_owned()),
                None if name == *TRANSLATED => echo.is_translated = value.boolean() == Some(true),
                None => {}
            }
        }
        echo
    }

    /// Whether it has this text.
    pub(crate) fn has(&self, home: Home, text: &str) -> bool {
        self.homes.iter().any(|(held, value)| *held == home && value.text().is_some_and(|held| held == text))
    }

    /// Returns whether what was kept with a job names a recipient, without reading all of it.
    pub(crate) fn has_recipient(stored: &str) -> bool {
        let tape = Tape::scan(stored.as_bytes()).ok();
        tape.as_ref().and_then(Tape::root).and_then(|root| root.get(RECIPIENT)?.text()).is_some()
    }

    /// Puts it into an answer in this contract.
    pub(crate) fn put(&self, canonical: &mut Canonical<'_>, to: Contract) {
        for (_, home) in to.exchange().echoes {
            if let Some((_, value)) = self.homes.iter().find(|(held, _)| held == home) {
                canonical.put(*home, value.clone());
            }
        }
    }

    /// Returns the recipient of the request, if the work is not for agents of that type alone.
    pub(crate) fn recipient(&self) -> Option<&str> {
        self.recipient.as_deref()
    }

    /// Returns the types of agents that it names. All of them were known when the request came in.
    pub(crate) fn types(&self) -> Vec<String> {
        let named = self.homes.iter().filter(|(home, _)| matches!(home, Home::Source | Home::Target));
        named.filter_map(|(_, value)| Some(value.text()?.into_owned())).chain(self.recipient.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_what_was_read() {
        let homes = vec![(Home::TaskId, Json::string("t")), (Home::Source, Json::string("infra"))];
        let echo = Echo { homes, ..Echo::default() };
        let stored = echo.stored(true).expect("there is something");
        assert_eq!(&*stored, r#"{"task_id":"t","source":"infra"}"#);
        assert_eq!(Echo::read(Some(&stored)).homes, echo.homes);
        assert!(echo.has(Home::TaskId, "t") && !echo.has(Home::TaskId, "u") && !echo.has(Home::Trace, "t"));
        let weak = Echo::read(echo.stored(false).as_deref());
        assert_eq!((weak.recipient(), weak.homes.len()), (Some("infra"), 1));
        assert_eq!(weak.types(), ["infra"]);
        assert_eq!(Echo::default().stored(true), None);
        let translated = Echo { is_translated: true, ..echo };
        assert!(Echo::read(translated.stored(true).as_deref()).is_translated && !weak.is_translated);
        for broken in ["", "{", "7", r#"{"unknown": 1}"#] {
            assert!(Echo::read(Some(broken)).homes.is_empty(), "{broken}");
        }
    }
}
