//! What an exchange in a contract means beyond its documents: all that a door, a link and the engine must know of it.
//!
//! Each contract states this in `<contract>/exchange.rs`, as data. Code that serves callers or calls agents asks here,
//! so it has no branch on a contract. A new contract brings its own [`Exchange`], or does not compile.

mod details;
mod echo;

use std::borrow::Cow;
use std::ops::Range;

use crate::document::Document;
use crate::failure::Failure;
use crate::job::{Canonical, Home, Own};
use crate::kind::{Contract, Kind};
pub use crate::needs::{Is, Lack, Mark, Needs};
use crate::report::Finding;
pub use details::Fact;
pub(crate) use details::says_nothing;

/// What doors, links and the engine must know of a contract.
pub struct Exchange {
    /// The kind of document that asks for work.
    pub request: Kind,
    /// The kind of document that says how the work ended.
    pub response: Kind,
    /// Returns what a request says at places that only the contract knows.
    pub asked: for<'s> fn(&Document<'s>) -> Option<Asked<'s>>,
    /// The member by which a caller identifies its request.
    pub id: &'static str,
    /// The member that names the work.
    pub work: &'static str,
    /// Members whose values are compared, shown and logged whole: their pointers and their homes.
    pub names: &'static [(&'static str, Home)],
    /// Whether the work may be the name of an agent, which then gets it.
    pub work_may_name_agent: bool,
    /// Whether no two requests of a caller share an id, whatever else makes a repeat the same job. Callers then ask for
    /// work by that id.
    pub ids_are_unique: bool,
    /// Makes the input of a document in which it is not a single value.
    pub input: Option<MakeInput>,
    /// The pointer to the input; empty where the members of the input are members of the document.
    pub input_at: &'static str,
    /// What every answer repeats of its request: the home of the fact in the request, and its home in the answer. The
    /// caller's value takes precedence over the agent's.
    pub echoes: &'static [(Home, Home)],
    /// The members of a request that name types of agents.
    pub types: &'static [&'static str],
    /// How long the work may take where the request does not say, in seconds.
    pub seconds_default: Option<u32>,
    /// What the seconds of a request limit.
    pub seconds: Seconds,
    /// What every request tells its agent, even where the caller did not say it.
    pub request_has: &'static [Home],
    /// What an outcome needs of a response.
    pub needs: Needs,
    /// The long members of a response, which an outcome keeps as parts.
    pub parts: &'static [Part],
    /// Whether the output of work is a text in this contract, and not an object (ALL-8).
    pub gives_text: bool,
    /// How long the text of an output may be. Where there is no limit, the end of a longer text is given, and an open
    /// member says where the rest is (ALL-12).
    pub text_limit: Option<TextLimit>,
    /// How a long text goes to callers that are sent one document after the other.
    pub pieces: Option<Pieces>,
    /// The path to the agent's own error code in a response.
    pub code: &'static [&'static str],
    /// What a response says of a job where its agent did not.
    pub response_has: &'static [Known],
    /// What the details of an error say of a failure: the members that they must have, and the fact that each holds.
    pub details_have: fn(Failure) -> &'static [(&'static str, Fact)],
    /// Where a question to a person stands (ALL-5).
    pub question: Place,
    /// Where warnings to a caller stand.
    pub warnings: Place,
    /// Whether cancelled work is reported as an error, which then says whether to repeat it.
    pub cancelled_is_error: bool,
    /// Returns the HTTP status of an answer that says that the work ended with this failure.
    pub http_status: fn(Failure) -> u16,
    /// How requests are refused.
    pub refusing: Refusing,
}

/// Makes one JSON value of what a document gives its agent. Returns `None` if the document is not valid.
pub type MakeInput = fn(&[u8]) -> Option<String>;

/// What a request says at places that only the contract knows.
#[derive(Clone, Debug)]
pub struct Asked<'s> {
    /// The caller's id for the request; `None` where the contract has no such id. The carried facts may hold another
    /// id, from a caller before this one.
    pub id: Option<Cow<'s, str>>,
    /// The input, where it is a single value of the document.
    pub input: Option<&'s str>,
    /// Whom the document itself is for, where that is a type of agents and no agent. The carried facts may name an
    /// agent.
    pub recipient: Option<Cow<'s, str>>,
    /// The type of agent that the work is for. A recipient that only hands work on is none.
    pub addressed: Option<Cow<'s, str>>,
}

/// What the seconds of a request limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seconds {
    /// The whole job, from acceptance to its outcome.
    Total,
    /// Each attempt.
    EachAttempt {
        /// How much longer an attempt may take before it is given up, in seconds.
        grace_seconds: u32,
    },
}

/// What is known of a job without asking its agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The work. The caller's name for it takes precedence over the agent's.
    Work,
    /// When the work began.
    StartedAt,
    /// When the work ended.
    ReportedAt,
    /// How long the work took.
    Duration,
    /// How long the work took, in whole seconds.
    Seconds,
    /// The agent that did the work.
    Agent,
    /// How many times the work was tried again.
    Retries,
}

impl Known {
    /// Returns the home of the fact.
    pub fn home(self) -> Home {
        match self {
            Known::Work => Home::Work,
            Known::StartedAt => Home::StartedAt,
            Known::ReportedAt => Home::ReportedAt,
            Known::Duration | Known::Seconds => Home::Duration,
            Known::Agent => Home::Agent,
            Known::Retries => Home::Retries,
        }
    }
}

/// Where a value stands in a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the member of this home.
    Home(Home),
    /// At this pointer, in a member that only this contract has.
    Member(&'static str),
    /// Among the carried facts, under this name. A value that the agent itself wrote there is left alone.
    Carried(&'static str),
}

/// How long the text of an output may be in a contract that has no place to say that it is not whole.
pub struct TextLimit {
    /// Longest text, in bytes of UTF-8.
    pub bytes_max: usize,
    /// The code of the error that takes the place of a longer one.
    pub code: &'static str,
}

/// The blocks of a text, each with its place.
pub type Blocks<'t> = Vec<(String, &'t str)>;

/// How a text that is too long for one document goes to a caller that is sent several (MSG-9): in blocks, as the output
/// of a step, and its end in the response.
pub struct Pieces {
    /// Cuts a text, after its first bytes that were sent before, into blocks. Returns `None` if the text is short
    /// enough for the response.
    pub split: fn(&str, usize) -> Option<Blocks<'_>>,
    /// Returns the place of a block of a text whose length is not known yet.
    pub place: fn(Range<usize>) -> String,
    /// Returns the end of a text, which the response keeps.
    pub tail: fn(&str) -> &str,
}

/// A long member of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The path to the member.
    pub path: &'static [&'static str],
    /// What the member holds. Where several members hold the same thing, the first one counts, and another beside it is
    /// treated as any other member.
    pub holds: Holds,
    /// What replaces the member in the stored document of the agent.
    pub stand_in: &'static str,
}

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The agent's output.
    Output,
    /// Named pieces of output.
    Artifacts,
}

/// How a contract refuses requests.
pub struct Refusing {
    /// Why a document with this finding is refused, and the contract's code where it has a more exact one than the
    /// failure's.
    pub malformed: fn(&Finding) -> (Failure, Option<&'static str>),
    /// The clause that an empty id breaks, where the rules for the document allow an empty one.
    pub empty_id: Option<&'static str>,
    /// The code for a name that is longer than we take.
    pub too_long: Option<&'static str>,
    /// The code for a document that is longer than we take. Without a code the document is refused as invalid.
    pub too_large: Option<&'static str>,
    /// The wording where no agent takes the work.
    pub unknown_work: Wording,
    /// The wording where no agent has the name that the request gives.
    pub unknown_agent: Wording,
    /// The wording where the agent that the request names does not take the work.
    pub not_its_work: Wording,
    /// The wording where no agent of the type that the request is addressed to takes the work.
    pub wrong_type: Wording,
    /// How a request in a version that is not spoken is refused.
    pub unspoken: Option<Unspoken>,
    /// Returns the wording where the request key is that of a job with another work or with another input.
    pub conflict: fn(Differs) -> Wording,
    /// Whether a refusal names the wrong field in a member of its own.
    pub names_fields: bool,
    /// Whether a refusal carries the facts that the contract has no field for.
    pub carries: bool,
}

/// How a request in a version that is not spoken is refused.
pub struct Unspoken {
    /// The member that gives the version.
    pub member: &'static str,
    /// Returns what is wrong, which names the versions of both sides. It is given the version of the request, if that
    /// could be read.
    pub words: fn(Option<&str>) -> String,
}

/// What differs between two requests that share a name, as the key or the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Differs {
    /// The work differs.
    Work,
    /// The input differs.
    Input,
    /// Another name of the request is that of another job.
    Job,
    /// Another name of the request is new, and the job has as many names as it may have.
    Names,
}

/// How a refusal is worded. A part that is not given is worded as in the other contracts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wording {
    /// The contract's own code.
    pub code: Option<&'static str>,
    /// The clause that is broken.
    pub clause: Option<&'static str>,
    /// Where the request is wrong, as a JSON pointer.
    pub at: Option<&'static str>,
    /// What is wrong, and what to do about it.
    pub text: Option<(&'static str, &'static str)>,
}

impl Wording {
    /// The usual wording, at this place.
    pub const fn at(pointer: &'static str) -> Wording {
        Wording { code: None, clause: None, at: Some(pointer), text: None }
    }
}

/// The usual wording.
pub(crate) fn plain_conflict(_: Differs) -> Wording {
    Wording::default()
}

/// A document that breaks its contract, without a code of the contract's own.
pub(crate) fn plainly_invalid(_: &Finding) -> (Failure, Option<&'static str>) {
    (Failure::Invalid, None)
}

impl Contract {
    /// Returns the homes that make a repeat the same job (ALL-1). Empty where each request is a job of its own.
    pub fn key_homes(self) -> &'static [Home] {
        self.entry().map.key
    }

    /// Returns what an exchange in this contract means.
    pub fn exchange(self) -> &'static Exchange {
        self.entry().exchange
    }
}

impl<'s> Canonical<'s> {
    /// Puts a value at the place that a contract gives for it.
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

    /// Returns the value that a contract's document had at this place.
    pub fn placed(&self, contract: Contract, place: Place) -> Option<&crate::content::Json<'s>> {
        match place {
            Place::Home(home) => self.get(home),
            Place::Member(pointer) => self.own_at(contract, pointer).map(|(_, own)| &own.value),
            Place::Carried(name) => self.strange.iter().find(|(known, _)| known == name).map(|(_, value)| value),
        }
    }
}
