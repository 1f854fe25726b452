//! Writes a job as a document, along a shape.

mod fill;
mod form;
mod rest;

pub(crate) use fill::Fill;
pub use fill::{Carrying, WriteContext};

use std::borrow::Cow;
use std::ops::Range;

use super::KEY;
use super::carry::{self, Marks};
use super::codec::{Codec, quoted_id};
use super::outcome;
use super::shape::{Is, Member, Need, Shape};
use crate::artifact::Left;
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Home, Own, State};
use crate::json::{Tape, push_known, push_name};
use crate::kind::Contract;
use crate::translate::Homeless;

/// The text of a document, before it is put into a frame.
pub(crate) struct Body {
    pub(crate) text: String,
    /// Facts that the contract has no field for, by home or place.
    pub(crate) homeless: Vec<Homeless>,
    pub(crate) filled: FilledPlaces,
}

/// The places of values that were filled in.
#[derive(Default)]
pub(crate) struct FilledPlaces {
    places: String,
    ranges: Vec<Range<usize>>,
}

impl FilledPlaces {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.places[range.clone()])
    }
}

/// A job that is being written as a document.
pub(crate) struct Out<'j, 's> {
    job: &'j Canonical<'s>,
    context: &'j WriteContext<'j>,
    shape: &'static Shape,
    contract: Contract,
    text: String,
    /// The path to the member that is being written. A pointer is made of it only where one is needed.
    path: Vec<&'static str>,
    /// Whether any member without a home belongs to this contract.
    has_own: bool,
    taken: [bool; Home::ALL.len()],
    own_taken: Vec<bool>,
    marks: Marks,
    artifacts_left: Vec<Left<'j, 's>>,
    /// Values that are filled in here, by place.
    filled: Vec<(Range<usize>, Json<'j>)>,
    /// The places of filled-in values, one after the other in one string, because most are dropped soon.
    places: String,
}

/// Writes a job in a shape.
pub(crate) fn document(job: &Canonical<'_>, shape: &'static Shape, context: &WriteContext<'_>) -> Body {
    let mut out = Out {
        job,
        context,
        shape,
        contract: shape.kind.contract(),
        text: String::with_capacity(size_of_homes(job) + ENVELOPE_BYTES),
        path: Vec::with_capacity(4),
        has_own: job.own.iter().any(|own| own.contract == shape.kind.contract()),
        taken: [false; Home::ALL.len()],
        own_taken: rest::taken_before(job, shape, context),
        marks: Marks::default(),
        artifacts_left: if lists_artifacts(shape) { Vec::new() } else { whole(job) },
        filled: Vec::new(),
        places: String::new(),
    };
    out.take_state();
    out.text.push('{');
    out.block(shape.members);
    if !out.is_all_there_is() {
        if shape.carrier.is_none() {
            out.carried();
        }
        out.text.push('}');
    }
    let homeless = out.homeless();
    let filled = FilledPlaces { places: out.places, ranges: out.filled.into_iter().map(|(range, _)| range).collect() };
    Body { text: out.text, homeless, filled }
}

/// Approximate size of a document without its content, in bytes.
const ENVELOPE_BYTES: usize = 1024;

/// Returns the size of the content, so that the whole document is one allocation and a large payload is copied once.
fn size_of_homes(job: &Canonical<'_>) -> usize {
    let homes = Home::ALL.iter().filter_map(|home| job.get(*home)).map(|value| value.get().len());
    homes.chain(job.own.iter().map(|own| own.value.get().len() + own.pointer.len() + 16)).sum()
}

fn lists_artifacts(shape: &Shape) -> bool {
    shape.members.iter().any(|member| matches!(member.is, Is::Artifacts(_)))
}

/// Returns all artifacts, for contracts that do not list them.
fn whole<'j, 's>(job: &'j Canonical<'s>) -> Vec<Left<'j, 's>> {
    let artifacts = job.artifacts.iter().flatten();
    artifacts.enumerate().map(|(at, artifact)| Left::whole(artifact, at)).collect()
}

impl<'j, 's> Out<'j, 's> {
    pub(crate) fn job(&self) -> &'j Canonical<'s> {
        self.job
    }

    pub(crate) fn context(&self) -> &'j WriteContext<'j> {
        self.context
    }

    /// Notes that the document shows all that a home holds.
    pub(crate) fn take(&mut self, home: Home) {
        self.taken[home as usize] = true;
    }

    /// Notes that this value, at the place that is being written, stands in for another value or for none.
    pub(crate) fn stands_in(&mut self, value: Json<'j>) {
        let start = self.places.len();
        self.path.iter().for_each(|name| carry::push_token(&mut self.places, name));
        self.filled.push((start..self.places.len(), value));
    }

    pub(super) fn contract(&self) -> Contract {
        self.contract
    }

    /// Returns the path to the member that is being written.
    pub(super) fn path(&self) -> &[&'static str] {
        &self.path
    }

    /// Returns the member without a home at the place that is being written.
    pub(crate) fn own(&self) -> Option<&'j str> {
        self.own_at_path().map(|(_, own)| own.value.get())
    }

    /// Returns the member without a home at the place that is being written, and marks it as shown.
    pub(crate) fn own_here(&mut self) -> Option<&'j str> {
        let (at, own) = self.own_at_path()?;
        self.own_taken[at] = true;
        Some(own.value.get())
    }

    /// Writes the document as it was, if it was no object with members and nothing else is known of the job. Returns
    /// whether it did.
    fn is_all_there_is(&mut self) -> bool {
        let whole =
            self.job.own_at(self.contract, "").filter(|_| self.text == "{" && self.homes_left().next().is_none());
        let Some((at, own)) = whole else { return false };
        self.own_taken[at] = true;
        self.text.clear();
        self.text.push_str(own.value.get());
        true
    }

    /// Takes what the form of the document tells by itself. A document on work under way has a member for the state.
    fn take_state(&mut self) {
        let implied = match self.shape.state {
            Some(State::Queued | State::Running | State::Waiting) if self.job.state() != Some(State::Running) => return,
            Some(State::Queued | State::Running | State::Waiting) => None,
            Some(State::Failed) => Some(Failure::AgentFailed),
            Some(State::Cancelled) => Some(Failure::Cancelled),
            Some(State::Completed) | None => None,
        };
        self.take(Home::State);
        if implied.is_some() && implied == self.job.failure() {
            self.take(Home::Failure);
        }
    }

    /// Whether the member without a home at this place has this value.
    pub(crate) fn own_is(&self, json: &str) -> bool {
        self.own_at_path().is_some_and(|(_, own)| own.value.get() == json)
    }

    /// Whether the job goes back to the contract that it came from.
    pub(crate) fn returns(&self) -> bool {
        self.job.origin.contract() == self.contract
    }

    /// Whether merely recommended members are left out: nothing is added to a document that goes back. A request to an
    /// agent is a document of ours, even where its caller speaks the same contract.
    pub(crate) fn leaves_out(&self) -> bool {
        self.returns() && !self.context.completing && !self.context.is_dispatch()
    }

    fn block(&mut self, members: &'static [Member]) {
        let carrier = members.iter().find(|member| self.is_carrier(member));
        let others = members.iter().filter(|member| carrier.is_none_or(|carrier| carrier.name != member.name));
        for member in others {
            self.enter(member.name, |out| out.member(member));
        }
        self.unknown(members);
        if let Some(carrier) = carrier {
            self.enter(carrier.name, |out| out.member(carrier));
        }
    }

    /// Whether the member is the carrier, which is written last, when it is known what is left.
    fn is_carrier(&self, member: &Member) -> bool {
        self.path.is_empty() && self.shape.carrier == Some(member.name)
    }

    pub(crate) fn enter<T>(&mut self, name: &'static str, act: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(name);
        let done = act(self);
        self.path.pop();
        done
    }

    /// Returns the member without a home at the place that is being written, and its index.
    fn own_at_path(&self) -> Option<(usize, &'j Own<'s>)> {
        if !self.has_own {
            return None;
        }
        self.own_below(&self.path)
    }

    /// Returns the member without a home at the end of a path, and its index.
    pub(super) fn own_below(&self, path: &[&'static str]) -> Option<(usize, &'j Own<'s>)> {
        let is_there = |own: &Own<'_>| own.contract == self.contract && carry::below(&own.pointer, path) == Some("");
        self.job.own.iter().enumerate().find(|(_, own)| is_there(own))
    }

    /// Writes members that the contract does not know back to their places.
    fn unknown(&mut self, members: &'static [Member]) {
        if !self.has_own || (self.shape.closed && self.path.is_empty()) {
            return;
        }
        for (at, own) in self.job.own.iter().enumerate().filter(|(_, own)| own.contract == self.contract) {
            let token = carry::below(&own.pointer, &self.path).and_then(|rest| rest.strip_prefix('/'));
            let Some(token) = token.filter(|token| !self.own_taken[at] && !token.contains('/')) else { continue };
            let name = token.replace("~1", "/").replace("~0", "~");
            // A foreign value under the key of the carrier has to wait until it is known whether the key is free.
            let is_key = name == KEY && self.is_carrier_place();
            // What only another shape of the document has would make an answer contradict itself.
            let is_stray = self.context.completing && self.path.is_empty() && self.shape.knows(&name);
            if !is_key && !is_stray && members.iter().all(|member| member.name != name) {
                push_name(&mut self.text, &name);
                self.text.push_str(own.value.get());
                self.own_taken[at] = true;
            }
        }
    }

    fn is_carrier_place(&self) -> bool {
        self.path.first().copied() == self.shape.carrier && self.path.len() <= 1
    }

    fn member(&mut self, member: &'static Member) {
        if let Is::Block(members) = &member.is {
            return self.inner_block(member, members);
        }
        if let Is::PromptContext = member.is {
            return self.prompt_context(member);
        }
        let before = self.filled.len();
        if let Some(value) = self.value(member) {
            push_known(&mut self.text, member.name);
            self.text.push_str(&value);
        } else {
            self.filled.truncate(before);
        }
    }

    fn inner_block(&mut self, member: &'static Member, members: &'static [Member]) {
        // An empty object that stood here is written again. Any other value was carried here by another program and is
        // passed on.
        let stood = self.own_at_path().filter(|(_, own)| is_same(own.value.get(), "{}")).map(|(at, _)| at);
        if let Some(at) = stood {
            self.own_taken[at] = true;
            // With something carried inside, the object is no longer empty, so the fact that it was empty is carried
            // too.
            self.own_taken[at] = self.shape.carrier != Some(member.name) || self.carries_nothing();
        }
        let before = self.text.len();
        push_known(&mut self.text, member.name);
        self.text.push('{');
        let inside = self.text.len();
        self.block(members);
        if self.shape.carrier == Some(member.name) {
            self.carried();
        }
        let empty = self.text.len() == inside;
        if empty
            && stood.is_none()
            && let Some(misfit) = self.misfit(member)
        {
            self.text.truncate(before);
            push_known(&mut self.text, member.name);
            return self.text.push_str(&misfit);
        }
        self.text.push('}');
        let wanted = match member.need {
            Need::Required(_) => true,
            Need::Recommended(_) => !self.leaves_out(),
            Need::Optional | Need::Follows(_) => false,
        };
        if empty && wanted {
            self.stands_in(Json::new("{}"));
        } else if empty && stood.is_none() {
            self.text.truncate(before);
        }
    }

    fn value(&mut self, member: &'static Member) -> Option<Cow<'j, str>> {
        let value = match &member.is {
            Is::Fixed(fixed) => return Some(self.fixed(fixed)),
            Is::Home(home, _) if self.own().is_none() && self.had_names(*home, member.other_names()) => return None,
            Is::Home(home, codec) => self.home(*home, *codec),
            Is::Alias(home, codec) => return self.alias(member, *home, *codec),
            Is::Own(holds) => self.fitting_own(member, *holds),
            Is::Loose(..) => return None,
            Is::Input => self.input(),
            Is::Prompt => self.prompt(),
            Is::OutputObject => self.output_object(),
            Is::OutputText => self.output_text(),
            Is::Summary => self.home(Home::Text, Codec::Named("\"The work is done.\"")),
            Is::Artifacts(form) => self.artifacts(*form),
            Is::Code(codes) => Some(Cow::Owned(codes.written(self).get().to_owned())),
            Is::Made(made) => (made.write)(self).map(|json| Cow::Owned(json.get().to_owned())),
            // Both are written elsewhere.
            Is::Block(_) | Is::PromptContext => return None,
        };
        value.or_else(|| self.misfit(member)).or_else(|| self.needed(member))
    }

    /// Returns a fixed value, in the spelling in which it came.
    fn fixed(&mut self, fixed: &'static str) -> Cow<'j, str> {
        let spelled = self.own_at_path().map(|(_, own)| own.value.get());
        let same = spelled.filter(|spelled| is_same(spelled, fixed));
        if same.is_some() {
            self.own_here();
        }
        Cow::Borrowed(same.unwrap_or(fixed))
    }

    fn home(&mut self, home: Home, codec: Codec) -> Option<Cow<'j, str>> {
        if home == Home::Target && self.is_foreign_type() {
            return None;
        }
        let held = self.job.get(home)?.get();
        let known_as = self.context.known_as.filter(|_| matches!(home, Home::RequestId | Home::TaskId)).map(quoted_id);
        let exact = known_as.as_ref().map(|id| id == held);
        let written = known_as.map_or_else(|| codec.write(held, self.context), Cow::Owned);
        if exact.unwrap_or_else(|| codec.is_exact(held, &written)) {
            self.take(home);
        } else {
            self.stands_in(Json::new(written.clone()));
        }
        // The same number may have come in another spelling.
        let spelled = self.own_at_path().map(|(_, own)| own.value.get()).filter(|own| is_same(own, &written));
        let Some(spelled) = spelled else { return Some(written) };
        self.own_here();
        Some(Cow::Borrowed(spelled))
    }

    fn fitting_own(&mut self, member: &Member, holds: crate::job::Holds) -> Option<Cow<'j, str>> {
        let (_, own) = self.own_at_path()?;
        if matches!(member.need, Need::Required(Fill::MessageId)) && self.is_new_message() {
            return None;
        }
        let fits = holds.accepts_json(own.value.get());
        if fits { self.own_here().map(Cow::Borrowed) } else { None }
    }

    /// Returns the value that did not fit the member and stood in its place. A document that goes back has it there
    /// again. A member that the contract demands must fit, and so must every member of an answer to a caller: there the
    /// value is carried, and null is absent.
    fn misfit(&mut self, member: &Member) -> Option<Cow<'j, str>> {
        let (at, own) = self.own_at_path()?;
        let is_answer = self.context.completing;
        if !member.open && (is_answer || matches!(member.need, Need::Required(_) | Need::Follows(_))) {
            self.own_taken[at] |= is_answer && own.value.get() == "null";
            return None;
        }
        self.own_taken[at] = true;
        Some(Cow::Borrowed(own.value.get()))
    }
}

fn is_same(spelled: &str, fixed: &str) -> bool {
    Tape::scan(spelled.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| outcome::same(fixed, root)))
}
