//! What an outcome needs of an agent's answer (ALL-11).
//!
//! People write agents from a contract's document alone, and leave out or misspell much of it. An answer is still worth
//! its outcome if three things can be told: that it is this job's, whether the work went well, and, of a success, what
//! came of it. Each contract names the members that tell them, in its `exchange.rs`. They are the only members that an
//! outcome can be lost by. Whatever is wrong with any other member is recorded beside the outcome.

use crate::job::State;
use crate::json::{Type, Value};

/// The members that an outcome needs, by their paths: `payload/status` is the member `status` of `payload`.
pub struct Needs {
    /// The members that say which request is answered. A missing id is no loss on the connection that carried the
    /// request; another id is.
    pub ids: &'static [&'static str],
    /// What says how the work stands. The first mark that is there counts.
    pub marks: &'static [Mark],
    /// The members that hold the output. One of them must be there in a success.
    pub outputs: &'static [&'static str],
}

/// A member with a value that says how the work stands.
pub struct Mark {
    /// The path to the member.
    pub path: &'static str,
    /// The value.
    pub is: Is,
    /// How the work stands then.
    pub means: State,
}

/// The value of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Is {
    /// This string.
    Word(&'static str),
    /// This boolean.
    Truth(bool),
    /// Any value but null.
    There,
}

/// What an answer lacks that its outcome needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lack {
    /// The answer is no JSON object on which all readers agree.
    Sense,
    /// It cannot be told how the work stands.
    Mark,
    /// The work went well, and the output is missing.
    Output,
}

impl Lack {
    /// Returns what is missing, as one sentence for the job's caller.
    pub const fn sentence(self) -> &'static str {
        match self {
            Lack::Sense => "The agent's answer could not be read.",
            Lack::Mark => "The agent's answer does not say whether the work went well.",
            Lack::Output => "The agent's answer says that the work went well, and has no output.",
        }
    }
}

/// Whether the output of a contract is a text or an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Text,
    Object,
}

impl Mark {
    pub(crate) const fn word(path: &'static str, word: &'static str, means: State) -> Mark {
        Mark { path, is: Is::Word(word), means }
    }

    pub(crate) const fn truth(path: &'static str, truth: bool, means: State) -> Mark {
        Mark { path, is: Is::Truth(truth), means }
    }

    pub(crate) const fn there(path: &'static str, means: State) -> Mark {
        Mark { path, is: Is::There, means }
    }

    fn is_in(&self, root: Value<'_, '_>) -> bool {
        at(root, self.path).is_some_and(|value| match self.is {
            Is::Word(word) => value.text().is_some_and(|text| text == *word),
            Is::Truth(truth) => value.boolean() == Some(truth),
            Is::There => !value.is_null(),
        })
    }
}

impl Needs {
    /// Returns how the work stands, where the answer tells it.
    pub(crate) fn state(&self, root: Value<'_, '_>) -> Option<State> {
        self.marks.iter().find(|mark| mark.is_in(root)).map(|mark| mark.means)
    }

    /// Returns the id of the request that is answered, where the answer has one. An empty id is none.
    pub(crate) fn id(&self, root: Value<'_, '_>) -> Option<String> {
        let id = |path: &&str| Some(at(root, path)?.text()?.decode().into_owned()).filter(|id| !id.is_empty());
        self.ids.iter().find_map(id)
    }

    /// Returns what the answer lacks.
    pub(crate) fn lack(&self, root: Value<'_, '_>, form: Form) -> Option<Lack> {
        let wanted = match form {
            Form::Text => Type::String,
            Form::Object => Type::Object,
        };
        let has_output = || self.outputs.iter().any(|path| at(root, path).is_some_and(|value| value.kind() == wanted));
        match self.state(root) {
            None => Some(Lack::Mark),
            Some(State::Completed) if !has_output() => Some(Lack::Output),
            Some(_) => None,
        }
    }
}

/// Returns the value at a path.
fn at<'t, 's>(root: Value<'t, 's>, path: &str) -> Option<Value<'t, 's>> {
    path.split('/').try_fold(root, Value::get)
}
