//! What talking in a contract means beyond its documents: all that a door, a link and the engine must know of it.
//!
//! A contract says it in `<contract>/exchange.rs`, as data. Code that serves callers or calls agents asks here, and so has no branch on a
//! contract: a new one brings an [`Exchange`] of its own, or does not compile.

use std::borrow::Cow;

use crate::document::Document;
use crate::failure::Failure;
use crate::job::{Home, Job, Own};
use crate::kind::{Contract, Kind};
use crate::report::Finding;

/// What doors, links and the engine must know of a contract.
pub struct Exchange {
    /// The kind of document that asks for work.
    pub request: Kind,
    /// The kind that says what came of it.
    pub response: Kind,
    /// What a request says, of which only the contract knows where it stands.
    pub asked: for<'s> fn(&Document<'s>) -> Option<Asked<'s>>,
    /// The member by which a caller knows its request.
    pub id: &'static str,
    /// The member that names the work.
    pub work: &'static str,
    /// Names that are compared, shown and logged whole, by the pointer of their member.
    pub names: &'static [(&'static str, Home)],
    /// Whether the work may be the name of an agent, to whom it then goes.
    pub work_may_name_agent: bool,
    /// Whether no two requests of a caller have one id, whatever else makes a repeat the same job. Callers then ask for work by that id.
    pub ids_are_unique: bool,
    /// Makes the input of a document in which it is no single value.
    pub input: Option<MakeInput>,
    /// How long the work may take where the request does not say.
    pub seconds_default: Option<u32>,
    /// What every request says to its agent, though the caller did not.
    pub request_has: &'static [Home],
    /// The long members of a response, which an outcome keeps as parts.
    pub parts: &'static [Part],
    /// Whether what comes of work is a text to it, and not an object (ALL-8).
    pub gives_text: bool,
    /// Where the agent's own code stands in a response.
    pub code: &'static [&'static str],
    /// What a response says of a job where its agent did not.
    pub response_has: &'static [Known],
    /// Where a question to a person stands (ALL-5).
    pub question: Place,
    /// Where warnings to a caller stand.
    pub warnings: Place,
    /// Whether cancelled work is told as an error, which then says whether to repeat it.
    pub cancelled_is_error: bool,
    /// The HTTP status of an answer that says that work has ended with this.
    pub http_status: fn(Failure) -> u16,
    /// How requests are refused.
    pub refusing: Refusing,
}

/// Makes one JSON value of what a document gives its agent; `None` where it is no valid one.
pub type MakeInput = fn(&[u8]) -> Option<String>;

/// What a request says, of which only the contract knows where it stands.
#[derive(Clone, Debug)]
pub struct Asked<'s> {
    /// What its caller calls it; `None` where the contract has no such id. What is carried may name another, by which somebody before the
    /// caller knows it.
    pub id: Option<Cow<'s, str>>,
    /// The input, where it is one value of the document.
    pub input: Option<&'s str>,
}

/// What is known of a job without its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The work. What the caller calls it counts, whatever the agent says.
    Work,
    /// When it began.
    StartedAt,
    /// When it ended.
    ReportedAt,
    /// How long it took.
    Duration,
    /// Who did it.
    Agent,
    /// How often it was tried again.
    Retries,
}

impl Known {
    /// Where it lives.
    pub fn home(self) -> Home {
        match self {
            Known::Work => Home::Work,
            Known::StartedAt => Home::StartedAt,
            Known::ReportedAt => Home::ReportedAt,
            Known::Duration => Home::Duration,
            Known::Agent => Home::Agent,
            Known::Retries => Home::Retries,
        }
    }
}

/// Where something stands in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the member of this home.
    Home(Home),
    /// At this pointer, in a member that only this contract has.
    Member(&'static str),
    /// Where things are carried, under this name; an agent's own word there is left alone.
    Carried(&'static str),
}

/// A long member of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The way to it.
    pub path: &'static [&'static str],
    /// What it is. Of several members for one thing the first counts: another beside it is a member like any other.
    pub holds: Holds,
    /// What stands for it in the agent's document.
    pub stand_in: &'static str,
}

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// What the agent gave.
    Output,
    /// Named pieces of it.
    Artifacts,
}

/// How a contract refuses requests.
pub struct Refusing {
    /// Why a document is refused for this, and the contract's code where it has a more exact one than the failure's.
    pub malformed: fn(&Finding) -> (Failure, Option<&'static str>),
    /// The clause that an empty id breaks, where the document's own rules let one pass.
    pub empty_id: Option<&'static str>,
    /// The code for a name that is longer than we take.
    pub too_long: Option<&'static str>,
    /// The code for a document that is longer than we take. Without one it is merely invalid.
    pub too_large: Option<&'static str>,
    /// No agent takes the work.
    pub unknown_work: Wording,
    /// No agent has the name that the request gives.
    pub unknown_agent: Wording,
    /// The agent that the request names does not take the work.
    pub not_its_work: Wording,
    /// The request key is that of a job with another work, or with another input.
    pub conflict: fn(Differs) -> Wording,
    /// Whether the field that is wrong is named by itself.
    pub names_fields: bool,
    /// Whether what has no field is carried.
    pub carries: bool,
}

/// What differs between two requests of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// The work.
    Work,
    /// The input.
    Input,
}

/// How a refusal is worded. What is not given is worded as everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wording {
    /// The contract's own code.
    pub code: Option<&'static str>,
    /// The clause that is broken.
    pub clause: Option<&'static str>,
    /// Where in the request it is wrong, as a JSON pointer.
    pub at: Option<&'static str>,
    /// What is wrong, and what to do about it.
    pub text: Option<(&'static str, &'static str)>,
}

impl Wording {
    /// As everywhere, at this place.
    pub const fn at(pointer: &'static str) -> Wording {
        Wording { code: None, clause: None, at: Some(pointer), text: None }
    }
}

/// As everywhere.
pub(crate) fn plain_conflict(_: Differs) -> Wording {
    Wording::default()
}

/// A document that breaks its contract, without a code of the contract's own.
pub(crate) fn plainly_invalid(_: &Finding) -> (Failure, Option<&'static str>) {
    (Failure::Invalid, None)
}

impl Contract {
    /// The homes that make a repeat the same job (ALL-1); none where each request is a job of its own.
    pub fn key_homes(self) -> &'static [Home] {
        self.entry().map.key
    }

    /// What talking in it means.
    pub fn exchange(self) -> &'static Exchange {
        self.entry().exchange
    }
}

impl<'s> Job<'s> {
    /// Puts a value where a contract says that it stands.
    pub fn place(&mut self, contract: Contract, place: Place, value: crate::content::Json<'s>) {
        match place {
            Place::Home(home) => drop(self.put(home, value)),
            Place::Member(pointer) => {
                self.own.retain(|own| own.contract != contract || own.pointer != pointer);
                self.own.push(Own { contract, pointer: pointer.to_owned(), value });
            }
            Place::Carried(name) => self.remarks.push((name, value)),
        }
    }

    /// What a contract's document had at such a place.
    pub fn placed(&self, contract: Contract, place: Place) -> Option<&crate::content::Json<'s>> {
        match place {
            Place::Home(home) => self.get(home),
            Place::Member(pointer) => self.own_at(contract, pointer).map(|(_, own)| &own.value),
            Place::Carried(name) => self.strange.iter().find(|(known, _)| known == name).map(|(_, value)| value),
        }
    }
}
