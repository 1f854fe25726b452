//! The canonical job: what a document of any contract says, in one form.
//!
//! Each contract reads its documents into a [`Canonical`] and writes them from one, and no contract knows another: N +
//! N translations, not N x N. A job is a row of [`Home`]s, each holding a JSON value as it was spelled, so that values
//! come out byte for byte as they went in. A member without a home is kept by its place in the contract it came from
//! ([`Own`]), and travels along.

mod home;
mod view;

pub(crate) use home::Holds;
pub use home::Home;
pub use view::{Event, Growth, Input, Outcome, RequestKey, RetryPolicy};

use std::fmt;

use crate::artifact::Artifact;
use crate::clause::Clause;
use crate::content::Json;
use crate::failure::Failure;
use crate::json::quoted;
use crate::kind::{Contract, Kind};

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Accepted, but not begun.
    Queued,
    /// Being worked on.
    Running,
    /// Waiting for a person.
    Waiting,
    /// Ended with success.
    Completed,
    /// Ended with a failure.
    Failed,
    /// Ended because it was cancelled.
    Cancelled,
}

const STATES: &[&str] = &["queued", "running", "waiting", "completed", "failed", "cancelled"];

/// The names of [`Failure::ALL`].
const FAILURES: &[&str] = &[
    "timeout",
    "unavailable",
    "invalid",
    "unauthenticated",
    "resource_limit",
    "unsupported",
    "agent_failed",
    "cancelled",
    "delegation",
    "conflict",
    "broken_contract",
    "internal",
];

impl State {
    const ALL: [State; 6] =
        [State::Queued, State::Running, State::Waiting, State::Completed, State::Failed, State::Cancelled];

    /// Returns the name, as it is spelled everywhere outside the five contracts.
    pub fn name(self) -> &'static str {
        match self {
            State::Queued => "queued",
            State::Running => "running",
            State::Waiting => "waiting",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Cancelled => "cancelled",
        }
    }

    fn json(self) -> &'static str {
        match self {
            State::Queued => "\"queued\"",
            State::Running => "\"running\"",
            State::Waiting => "\"waiting\"",
            State::Completed => "\"completed\"",
            State::Failed => "\"failed\"",
            State::Cancelled => "\"cancelled\"",
        }
    }

    /// Returns whether the job has ended, so that nothing follows.
    pub fn is_ended(self) -> bool {
        match self {
            State::Completed | State::Failed | State::Cancelled => true,
            State::Queued | State::Running | State::Waiting => false,
        }
    }
}

/// A member that has no home, and its place.
#[derive(Clone, PartialEq, Eq)]
pub struct Own<'s> {
    /// The contract that the member belongs to.
    pub contract: Contract,
    /// A JSON pointer into that contract's document.
    pub pointer: String,
    /// The member's value.
    pub value: Json<'s>,
}

// Names of members may be content too, so only the pointer's length is shown.
impl fmt::Debug for Own<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{} bytes]{:?}", self.contract.name(), self.pointer.len(), self.value)
    }
}

/// A member that a document has because its contract demands it, although the job does not have it in that form.
///
/// When the document comes back, the member is ignored as long as its value is unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Filled<'s> {
    pub(crate) contract: Contract,
    pub(crate) pointer: String,
    pub(crate) value: Json<'s>,
}

/// One unit of work, or a report on one.
#[derive(Clone)]
pub struct Canonical<'s> {
    /// The kind of document that the job came as, before any translation.
    pub origin: Kind,
    // Boxed because a job is handed on more often than it is read.
    homes: Box<[Option<Json<'s>>; Home::ALL.len()]>,
    /// Named pieces of output; `None` where the document does not mention any.
    pub artifacts: Option<Vec<Artifact<'s>>>,
    /// Members without a home.
    pub own: Vec<Own<'s>>,
    /// The contracts that the job went through, in order, since it left its own.
    pub(crate) via: Vec<Contract>,
    pub(crate) filled: Vec<Filled<'s>>,
    /// Carried members that this project did not write.
    pub(crate) strange: Vec<(String, Json<'s>)>,
    /// Further remarks of this project, under names of its own.
    pub(crate) remarks: Vec<(&'static str, Json<'s>)>,
    /// The id of the request that the job belongs to, where only the other events of its stream give it. Contracts that
    /// demand an id in every document get this one. When the document comes back, the id is ignored.
    pub(crate) stream_id: Option<Json<'s>>,
    /// Whether a value in it was not checked by a reader or nests deep, so that documents written from it are checked.
    pub(crate) wary: bool,
    /// Whether the job came as no document.
    pub(crate) is_made: bool,
}

impl<'s> Canonical<'s> {
    pub(crate) fn new(origin: Kind) -> Canonical<'s> {
        Canonical {
            origin,
            homes: Box::new([const { None }; Home::ALL.len()]),
            artifacts: None,
            own: Vec::new(),
            via: Vec::new(),
            filled: Vec::new(),
            strange: Vec::new(),
            remarks: Vec::new(),
            stream_id: None,
            wary: false,
            is_made: false,
        }
    }

    /// Returns the same job, no longer borrowed from the bytes that it was read from.
    pub fn into_owned(self) -> Canonical<'static> {
        let own = |own: Own<'_>| Own { contract: own.contract, pointer: own.pointer, value: own.value.into_owned() };
        let filled = |filled: Filled<'_>| Filled {
            contract: filled.contract,
            pointer: filled.pointer,
            value: filled.value.into_owned(),
        };
        Canonical {
            origin: self.origin,
            homes: Box::new((*self.homes).map(|value| value.map(Json::into_owned))),
            artifacts: self.artifacts.map(|artifacts| artifacts.into_iter().map(Artifact::into_owned).collect()),
            own: self.own.into_iter().map(own).collect(),
            via: self.via,
            filled: self.filled.into_iter().map(filled).collect(),
            strange: self.strange.into_iter().map(|(name, value)| (name, value.into_owned())).collect(),
            remarks: self.remarks.into_iter().map(|(name, value)| (name, value.into_owned())).collect(),
            stream_id: self.stream_id.map(Json::into_owned),
            wary: self.wary,
            is_made: self.is_made,
        }
    }

    /// Returns the value of a home, as JSON.
    pub fn get(&self, home: Home) -> Option<&Json<'s>> {
        self.homes[home as usize].as_ref()
    }

    /// Makes a job that came as no document; its facts are to be put into its homes. `origin` is the kind that it would
    /// have come as.
    pub fn made(origin: Kind, state: Option<State>) -> Canonical<'s> {
        let mut job = Canonical { is_made: true, ..Canonical::new(origin) };
        if let Some(state) = state {
            job.set_state(state);
        }
        job
    }

    /// Puts a value into a home, if the home holds such values. Returns whether it does.
    pub fn put(&mut self, home: Home, value: Json<'s>) -> bool {
        let fits = home.holds().accepts_json(value.get());
        if fits {
            self.set(home, value);
        }
        fits
    }

    /// Replaces the output: an object, a text, or both.
    pub fn give(&mut self, outputs: Option<Json<'s>>, text: Option<Json<'s>>) {
        self.homes[Home::Outputs as usize] = outputs;
        self.homes[Home::Text as usize] = text;
    }

    /// Adds a fact that no contract has a field for. It is carried, under a name that is not the name of a home.
    pub fn carry(&mut self, name: &str, value: Json<'s>) {
        self.strange.push((name.to_owned(), value));
    }

    /// Sets why the job failed, and the state: [`State::Cancelled`] for [`Failure::Cancelled`], else [`State::Failed`].
    pub fn fail(&mut self, failure: Failure) {
        self.set_failure(failure);
    }

    /// Puts a value into a home without checking it.
    pub(crate) fn set(&mut self, home: Home, value: Json<'s>) {
        self.homes[home as usize] = Some(value);
    }

    pub(crate) fn clear(&mut self, home: Home) {
        self.homes[home as usize] = None;
    }

    /// Returns the state of the job. A request has none.
    pub fn state(&self) -> Option<State> {
        let held = self.get(Home::State)?;
        // Nearly always it is spelled as we write it.
        let known = State::ALL.into_iter().find(|state| state.json() == held.get());
        known.or_else(|| State::ALL.into_iter().find(|state| held.text().is_some_and(|name| state.name() == name)))
    }

    pub(crate) fn set_state(&mut self, state: State) {
        self.set(Home::State, Json::new(state.json()));
    }

    /// Returns why the job failed.
    pub fn failure(&self) -> Option<Failure> {
        Failure::from_name(&self.get(Home::Failure)?.text()?)
    }

    /// Sets the failure and the state that goes with it: being cancelled is a state of its own.
    pub(crate) fn set_failure(&mut self, failure: Failure) {
        self.set(Home::Failure, Json::string(failure.name()));
        self.set_state(if failure == Failure::Cancelled { State::Cancelled } else { State::Failed });
    }

    /// Records that an agent broke its contract. The message names fields and clauses, never content.
    pub fn add_violation(&mut self, clause: &'static Clause, message: &str) {
        let mut all =
            self.get(Home::Violations).map_or("[", |held| held.get().trim_end().trim_end_matches(']')).to_owned();
        if !all.ends_with('[') {
            all.push(',');
        }
        all.push_str(&format!("{{\"clause\":{},\"message\":{}}}]", quoted(clause.id), quoted(message)));
        self.set(Home::Violations, Json::new(all));
    }

    /// Returns the member without a home that a contract's document had at this pointer, and its index.
    pub(crate) fn own_at(&self, contract: Contract, pointer: &str) -> Option<(usize, &Own<'s>)> {
        self.own.iter().enumerate().find(|(_, own)| own.contract == contract && own.pointer == pointer)
    }
}

impl fmt::Debug for Canonical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Canonical");
        shown.field("origin", &self.origin);
        for home in Home::ALL {
            if let Some(value) = self.get(*home) {
                shown.field(home.name(), value);
            }
        }
        shown.field("artifacts", &self.artifacts).field("own", &self.own.len()).finish()
    }
}
