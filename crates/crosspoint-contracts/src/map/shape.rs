//! Documents as trees of members.

use super::code::Codes;
use super::codec::Codec;
use super::read::In;
use super::write::{Fill, Out};
use crate::artifact::Form;
use crate::content::Json;
use crate::job::{Holds, Home, State};
use crate::json::Value;
use crate::kind::Kind;

/// One form that documents of a kind take.
pub(crate) struct Shape {
    /// The kind of the document.
    pub(crate) kind: Kind,
    /// Tells the shapes of one kind apart in the table; empty where there is only one.
    pub(crate) when: &'static str,
    /// The state of the job that the form of such a document tells.
    pub(crate) state: Option<State>,
    /// The members in the order in which they are written. The carrier is the last.
    pub(crate) members: &'static [Member],
    /// The open object in which facts are carried; `None` for the document itself.
    pub(crate) carrier: Option<&'static str>,
    /// Whether existing readers refuse members that they do not know at the top level.
    pub(crate) closed: bool,
    /// An accepted looseness: documents of this shape are read and never written.
    pub(crate) loose: bool,
}

/// One member of an object.
pub(crate) struct Member {
    pub(crate) name: &'static str,
    pub(crate) is: Is,
    pub(crate) need: Need,
    /// The contract leaves open what this member holds, so it fills its home only where the value fits.
    pub(crate) open: bool,
    /// All names of the same fact, this one among them; empty where it has but one.
    pub(crate) names: &'static [&'static str],
    /// The home that a text fills where it stands in place of an object: an accepted looseness.
    pub(crate) text: Option<Home>,
}

/// What a member is.
pub(crate) enum Is {
    /// The same value in every document of this shape.
    Fixed(&'static str),
    /// A fact with a home.
    Home(Home, Codec),
    /// A fact with a home, under another of its names.
    Alias(Home, Codec),
    /// A member that only this contract knows: kept by its place. A carried value is believed if it fits.
    Own(Holds),
    /// Read but never written: an accepted looseness.
    Loose(Read, &'static [Home]),
    /// An object of known members.
    Block(&'static [Member]),
    /// The input, as an object.
    Input,
    /// The input, as a text.
    Prompt,
    /// What goes with the prompt. This member is the carrier too.
    PromptContext,
    /// The outcome, as an object.
    OutputObject,
    /// The outcome, as a text.
    OutputText,
    /// The outcome, as a sentence for people.
    Summary,
    /// Named pieces of output.
    Artifacts(Form),
    /// The failure, as this contract's code.
    Code(&'static Codes),
    /// A member that the contract computes.
    Made(Made),
}

/// Reads a value into a job.
pub(crate) type Read = for<'t, 's> fn(&mut In<'s>, Value<'t, 's>);

/// How a contract computes a member.
pub(crate) struct Made {
    pub(crate) write: fn(&mut Out<'_, '_>) -> Option<Json<'static>>,
    pub(crate) read: Read,
    /// The homes to show in the table.
    pub(crate) homes: &'static [Home],
}

/// What is written where the job has no value.
pub(crate) enum Need {
    /// Nothing is written.
    Optional,
    /// This value, because readers refuse the document without it.
    Required(Fill),
    /// This value, in documents that we originate. A document that goes back where it came from stays as it was.
    Recommended(Fill),
    /// The value that follows from the rest of the job. The home is filled only where a document says something else.
    Follows(fn(&crate::job::Canonical<'_>) -> Json<'static>),
}

impl Member {
    const fn new(name: &'static str, is: Is) -> Member {
        Member { name, is, need: Need::Optional, open: false, names: &[], text: None }
    }

    pub(crate) const fn required(mut self, fill: Fill) -> Member {
        self.need = Need::Required(fill);
        self
    }

    pub(crate) const fn recommended(mut self, fill: Fill) -> Member {
        self.need = Need::Recommended(fill);
        self
    }

    pub(crate) const fn follows(mut self, from: fn(&crate::job::Canonical<'_>) -> Json<'static>) -> Member {
        self.need = Need::Follows(from);
        self
    }

    pub(crate) const fn open(mut self) -> Member {
        self.open = true;
        self
    }

    /// The same fact may stand under each of these names, and the first that is there counts.
    pub(crate) const fn named(mut self, names: &'static [&'static str]) -> Member {
        self.names = names;
        self
    }

    /// An accepted looseness: a text in place of this object fills the home.
    pub(crate) const fn or_text(mut self, home: Home) -> Member {
        self.text = Some(home);
        self
    }

    /// Returns the homes that the member fills, its own first.
    pub(crate) fn homes(&self) -> &[Home] {
        match &self.is {
            Is::Fixed(_) | Is::Own(_) | Is::Block(_) | Is::Artifacts(_) => &[],
            Is::Home(home, _) | Is::Alias(home, _) => std::slice::from_ref(home),
            Is::Input => &[Home::Input, Home::Prompt, Home::PromptContext],
            Is::Prompt => &[Home::Prompt, Home::Input],
            Is::PromptContext => &[Home::PromptContext],
            Is::OutputObject => &[Home::Outputs, Home::Text],
            Is::OutputText => &[Home::Text, Home::Outputs],
            Is::Summary => &[Home::Text],
            Is::Code(_) => &[Home::Failure, Home::Code],
            Is::Loose(_, homes) | Is::Made(Made { homes, .. }) => homes,
        }
    }

    /// Whether the member, or one inside it, may hold the time at which it is written, or the id of its message.
    pub(crate) fn is_stamped(&self) -> bool {
        let is_filled = match self.need {
            Need::Required(fill) | Need::Recommended(fill) => matches!(fill, Fill::Now | Fill::MessageId),
            Need::Optional | Need::Follows(_) => false,
        };
        is_filled
            || match &self.is {
                Is::Home(_, codec) | Is::Alias(_, codec) => matches!(codec, Codec::Sent | Codec::Own(_)),
                Is::Block(members) => members.iter().any(Member::is_stamped),
                Is::Fixed(_)
                | Is::Own(_)
                | Is::Loose(..)
                | Is::Input
                | Is::Prompt
                | Is::PromptContext
                | Is::OutputObject
                | Is::OutputText
                | Is::Summary
                | Is::Artifacts(_)
                | Is::Code(_)
                | Is::Made(_) => false,
            }
    }
}

pub(crate) const fn fixed(name: &'static str, value: &'static str) -> Member {
    Member::new(name, Is::Fixed(value)).required(Fill::Raw(value))
}

pub(crate) const fn home(name: &'static str, home: Home, codec: Codec) -> Member {
    Member::new(name, Is::Home(home, codec))
}

pub(crate) const fn own(name: &'static str, holds: Holds) -> Member {
    Member::new(name, Is::Own(holds))
}

pub(crate) const fn alias(name: &'static str, home: Home, codec: Codec) -> Member {
    Member::new(name, Is::Alias(home, codec))
}

pub(crate) const fn loose(name: &'static str, read: Read, homes: &'static [Home]) -> Member {
    Member::new(name, Is::Loose(read, homes))
}

pub(crate) const fn block(name: &'static str, members: &'static [Member]) -> Member {
    Member::new(name, Is::Block(members))
}

pub(crate) const fn input(name: &'static str) -> Member {
    Member::new(name, Is::Input)
}

pub(crate) const fn prompt(name: &'static str) -> Member {
    Member::new(name, Is::Prompt).required(Fill::Raw("\"{}\""))
}

pub(crate) const fn prompt_context(name: &'static str) -> Member {
    Member::new(name, Is::PromptContext)
}

pub(crate) const fn output_object(name: &'static str) -> Member {
    Member::new(name, Is::OutputObject).required(Fill::Raw("{}"))
}

pub(crate) const fn output_text(name: &'static str) -> Member {
    Member::new(name, Is::OutputText).required(Fill::Raw("\"\""))
}

pub(crate) const fn summary(name: &'static str) -> Member {
    Member::new(name, Is::Summary).required(Fill::Raw("\"The work is done.\""))
}

pub(crate) const fn artifacts(name: &'static str, form: Form) -> Member {
    Member::new(name, Is::Artifacts(form))
}

pub(crate) const fn code(name: &'static str, codes: &'static Codes) -> Member {
    Member::new(name, Is::Code(codes))
}

pub(crate) const fn made(name: &'static str, made: Made) -> Member {
    Member::new(name, Is::Made(made))
}
