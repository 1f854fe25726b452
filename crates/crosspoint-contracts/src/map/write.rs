//! Writing a job as a document, along a shape.

use std::borrow::Cow;
use std::ops::Range;

use uuid::Uuid;

use super::KEY;
use super::carry::{self, Marks};
use super::codec::{Codec, derived, quoted_id};
use super::outcome::{self, Mark};
use super::shape::{Is, Member, Need, Shape};
use crate::artifact::{self, Form, Left};
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Filled, Home, Job, Own, State};
use crate::json::{Tape, Value, push_known, push_name, push_quoted};
use crate::kind::Contract;

/// What a writer needs that no document has: time, new ids, and what the operator set.
#[derive(Clone, Copy, Debug)]
pub struct Fresh<'f> {
    /// Now, in RFC 3339 with `Z`.
    pub now: &'f str,
    /// An id nobody has used.
    pub id: Uuid,
    /// Agent types the operator added to the five of the message contract.
    pub agent_types: &'f [&'f str],
    /// The type of an agent that is known by another name or by none.
    pub agent_type: &'f str,
    /// Whether what the contract has no field for is carried. Where it is not, it is lost, and listed.
    pub carrying: Carrying,
}

/// Whether things are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying {
    /// Under one key in the open object.
    On,
    /// Not at all: for agents that refuse members they do not know.
    Off,
}

/// What is written where a job has nothing and readers want something.
#[derive(Clone, Copy)]
pub(crate) enum Fill {
    /// This JSON.
    Raw(&'static str),
    /// The new id.
    Id,
    /// An id for one message.
    MessageId,
    /// The same id as the request's.
    RequestUuid,
    /// An id for the trace that stays the same when the request is sent again.
    TraceId,
    /// The time.
    Now,
    /// What the failure means.
    Sentence,
    /// The type of the agent that does the work.
    AgentType,
}

/// A document that was written.
pub(crate) struct Written {
    pub(crate) text: String,
    /// What the contract has no field for, by home or place.
    pub(crate) homeless: Vec<Cow<'static, str>>,
}

/// A job on its way into a document.
pub(crate) struct Out<'j, 's> {
    job: &'j Job<'s>,
    fresh: &'j Fresh<'j>,
    shape: &'static Shape,
    contract: Contract,
    text: String,
    /// The way to the member that is being written. A pointer is made of it only where one is needed.
    path: Vec<&'static str>,
    /// Whether any member without a home is this contract's.
    has_own: bool,
    taken: [bool; Home::ALL.len()],
    own_taken: Vec<bool>,
    marks: Marks,
    artifacts_left: Vec<Left<'j, 's>>,
    /// What is filled in here, by place.
    filled: Vec<(Range<usize>, Json<'j>)>,
    /// The places of what is filled in, one after the other: most have short lives.
    places: String,
}

/// Writes a job in a shape.
pub(crate) fn document(job: &Job<'_>, shape: &'static Shape, fresh: &Fresh<'_>) -> Written {
    let mut out = Out {
        job,
        fresh,
        shape,
        contract: shape.kind.contract(),
        text: String::with_capacity(size_of_homes(job) + ENVELOPE_BYTES),
        path: Vec::with_capacity(4),
        has_own: job.own.iter().any(|own| own.contract == shape.kind.contract()),
        taken: [false; Home::ALL.len()],
        own_taken: own_taken(job, shape.kind.contract()),
        marks: Marks::default(),
        artifacts_left: whole(job),
        filled: Vec::new(),
        places: String::new(),
    };
    out.take_state();
    out.text.push('{');
    out.block(shape.members);
    if shape.carrier.is_none() {
        out.carried();
    }
    out.text.push('}');
    let homeless = out.homeless();
    Written { text: out.text, homeless }
}

/// About what a document has beside its content.
const ENVELOPE_BYTES: usize = 1024;

/// The whole document in one allocation, so that a large payload is copied once.
fn size_of_homes(job: &Job<'_>) -> usize {
    let homes = Home::ALL.iter().filter_map(|home| job.get(*home)).map(|value| value.get().len());
    homes.chain(job.own.iter().map(|own| own.value.get().len() + own.pointer.len() + 16)).sum()
}

/// What is kept of a document beside its members, such as an event's name, is for whoever frames it.
fn own_taken(job: &Job<'_>, contract: Contract) -> Vec<bool> {
    job.own.iter().map(|own| own.contract == contract && !own.pointer.starts_with('/')).collect()
}

/// Until a contract lists them, all artifacts are left.
fn whole<'j, 's>(job: &'j Job<'s>) -> Vec<Left<'j, 's>> {
    let artifacts = job.artifacts.iter().flatten();
    artifacts.enumerate().map(|(at, artifact)| Left::whole(artifact, at)).collect()
}

impl<'j, 's> Out<'j, 's> {
    pub(crate) fn job(&self) -> &'j Job<'s> {
        self.job
    }

    pub(crate) fn fresh(&self) -> &'j Fresh<'j> {
        self.fresh
    }

    /// Says that the document shows all that a home holds.
    pub(crate) fn take(&mut self, home: Home) {
        self.taken[home as usize] = true;
    }

    /// Says that this value, at the place that is being written, stands for something else or for nothing.
    pub(crate) fn stands_in(&mut self, value: Json<'j>) {
        let start = self.places.len();
        self.path.iter().for_each(|name| carry::push_token(&mut self.places, name));
        self.filled.push((start..self.places.len(), value));
    }

    /// A member of this contract without a home, at the place that is being written. It counts as shown.
    pub(crate) fn own_here(&mut self) -> Option<&'j str> {
        let (at, own) = self.own_at_path()?;
        self.own_taken[at] = true;
        Some(own.value.get())
    }

    /// What the form of the document says by itself. A document on work under way has a member that says it.
    fn take_state(&mut self) {
        let said = match self.shape.state {
            Some(State::Queued | State::Running | State::Waiting) if self.job.state() != Some(State::Running) => return,
            Some(State::Queued | State::Running | State::Waiting) => None,
            Some(State::Failed) => Some(Failure::AgentFailed),
            Some(State::Cancelled) => Some(Failure::Cancelled),
            Some(State::Completed) | None => None,
        };
        self.take(Home::State);
        if said.is_some() && said == self.job.failure() {
            self.take(Home::Failure);
        }
    }

    /// Whether a member without a home stands at this place and is this.
    pub(crate) fn own_is(&self, json: &str) -> bool {
        self.own_at_path().is_some_and(|(_, own)| own.value.get() == json)
    }

    /// Whether the job goes back to the contract it came from.
    pub(crate) fn returns(&self) -> bool {
        self.job.origin.contract() == self.contract
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

    /// The object that carries is written last, when it is known what is left.
    fn is_carrier(&self, member: &Member) -> bool {
        self.path.is_empty() && self.shape.carrier == Some(member.name)
    }

    pub(crate) fn enter<T>(&mut self, name: &'static str, act: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(name);
        let done = act(self);
        self.path.pop();
        done
    }

    /// What this contract has without a home at the place that is being written.
    fn own_at_path(&self) -> Option<(usize, &'j Own<'s>)> {
        if !self.has_own {
            return None;
        }
        self.job.own_at(self.contract, &carry::pointer(&self.path, None))
    }

    /// Members nobody knows go back to where they stood.
    fn unknown(&mut self, members: &'static [Member]) {
        if !self.has_own || (self.shape.closed && self.path.is_empty()) {
            return;
        }
        let here = carry::pointer(&self.path, None);
        for (at, own) in self.job.own.iter().enumerate().filter(|(_, own)| own.contract == self.contract) {
            let Some(token) = own.pointer.strip_prefix(&*here).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            if token.contains('/') {
                continue;
            }
            let name = token.replace("~1", "/").replace("~0", "~");
            // Where things are carried, one that is not ours must wait and see whether the key is free.
            let is_key = name == KEY && self.is_carrier_place();
            if !is_key && members.iter().all(|member| member.name != name) {
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
            return self.prompt_context(member.name);
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
        // An empty object that stood there stands there again. Anything else was carried by somebody else and goes on.
        let stood = self.own_at_path().is_some_and(|(_, own)| is_same(own.value.get(), "{}"));
        if stood {
            self.own_here();
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
        self.text.push('}');
        let wanted = match member.need {
            Need::Required(_) => true,
            Need::Recommended(_) => !self.returns(),
            Need::Optional | Need::Follows(_) => false,
        };
        if empty && wanted {
            self.stands_in(Json::new("{}"));
        } else if empty && !stood {
            self.text.truncate(before);
        }
    }

    fn value(&mut self, member: &'static Member) -> Option<Cow<'j, str>> {
        let value = match &member.is {
            Is::Fixed(fixed) => return Some(self.fixed(fixed)),
            Is::Home(home, codec) => self.home(*home, *codec),
            Is::Own(holds) => self.own(*holds),
            Is::Loose(..) => return None,
            Is::Input => self.input(),
            Is::Prompt => self.prompt(),
            Is::OutputObject => self.output_object(),
            Is::OutputText => self.output_text(),
            Is::Summary => self.home(Home::Text, Codec::Named("\"The work is done.\"")),
            Is::Artifacts(form) => self.artifacts(*form),
            Is::Code(codes) => Some(Cow::Owned(codes.written(self).get().to_owned())),
            Is::Made(made) => (made.write)(self).map(|json| Cow::Owned(json.get().to_owned())),
            // Both write themselves.
            Is::Block(_) | Is::PromptContext => return None,
        };
        value.or_else(|| self.open_own(member)).or_else(|| self.needed(member))
    }

    /// A fixed value may have been spelled in another way.
    fn fixed(&mut self, fixed: &'static str) -> Cow<'j, str> {
        let spelled = self.own_at_path().map(|(_, own)| own.value.get());
        let same = spelled.filter(|spelled| is_same(spelled, fixed));
        if same.is_some() {
            self.own_here();
        }
        Cow::Borrowed(same.unwrap_or(fixed))
    }

    fn home(&mut self, home: Home, codec: Codec) -> Option<Cow<'j, str>> {
        let held = self.job.get(home)?.get();
        let written = codec.write(held, self.fresh);
        if codec.is_exact(held, &written) {
            self.take(home);
        } else {
            self.stands_in(Json::new(written.clone()));
        }
        // The same number may have been spelled in another way.
        let spelled = self.own_here().filter(|spelled| is_same(spelled, &written));
        Some(spelled.map_or(written, Cow::Borrowed))
    }

    fn own(&mut self, holds: crate::job::Holds) -> Option<Cow<'j, str>> {
        let (_, own) = self.own_at_path()?;
        let fits = Tape::scan(own.value.get().as_bytes())
            .is_ok_and(|tape| tape.root().is_some_and(|root| holds.accepts(root)));
        if fits { self.own_here().map(Cow::Borrowed) } else { None }
    }

    /// Where the contract leaves open what stands there, it may be something that did not fit the home.
    fn open_own(&mut self, member: &Member) -> Option<Cow<'j, str>> {
        if member.open { self.own_here().map(Cow::Borrowed) } else { None }
    }

    /// What was filled in here when the job was in this contract before.
    fn filled_earlier(&self) -> Option<&'j Filled<'s>> {
        if self.job.filled.is_empty() {
            return None;
        }
        let here = carry::pointer(&self.path, None);
        self.job.filled.iter().find(|filled| filled.contract == self.contract && filled.pointer == here)
    }

    fn needed(&mut self, member: &Member) -> Option<Cow<'j, str>> {
        let fill = match &member.need {
            Need::Optional => return None,
            Need::Follows(from) => return Some(Cow::Owned(from(self.job).get().to_owned())),
            Need::Recommended(_) if self.returns() => return None,
            Need::Required(fill) | Need::Recommended(fill) => fill,
        };
        let earlier = self.filled_earlier();
        let value = match earlier {
            Some(earlier) => Cow::Borrowed(earlier.value.get()),
            None => self.fill(*fill, member),
        };
        self.stands_in(Json::new(value.clone()));
        Some(value)
    }

    /// The id of the request, which an event may leave to the others of its stream.
    fn request_id(&self) -> Option<&'j Json<'s>> {
        self.job.get(Home::RequestId).or(self.job.stream_id.as_ref())
    }

    fn fill(&self, fill: Fill, member: &Member) -> Cow<'j, str> {
        let id = |id: Uuid| Cow::Owned(quoted_id(id));
        match fill {
            Fill::Raw(json) => Cow::Borrowed(json),
            Fill::Id => match (&self.job.stream_id, &member.is) {
                (Some(request_id), Is::Home(_, codec)) => codec.write(request_id.get(), self.fresh),
                (Some(_) | None, _) => id(self.fresh.id),
            },
            Fill::MessageId => id(derived(&format!("message {}", self.fresh.id))),
            Fill::RequestUuid => match self.request_id() {
                Some(request_id) => Codec::Uuid.write(request_id.get(), self.fresh),
                None => id(self.fresh.id),
            },
            Fill::TraceId => match self.request_id() {
                Some(request_id) => id(derived(&format!("trace {}", request_id.get()))),
                None => id(derived(&format!("trace {}", self.fresh.id))),
            },
            Fill::Now => Cow::Owned(Json::string(self.fresh.now).get().to_owned()),
            Fill::Sentence => {
                let failure = self.job.failure().unwrap_or(Failure::AgentFailed);
                Cow::Owned(Json::string(failure.sentence()).get().to_owned())
            }
            Fill::AgentType => Cow::Owned(Json::string(self.fresh.agent_type).get().to_owned()),
        }
    }

    fn input(&mut self) -> Option<Cow<'j, str>> {
        let Some(prompt) = self.job.get(Home::Prompt) else {
            self.take(Home::Input);
            return self.job.get(Home::Input).map(|input| Cow::Borrowed(input.get()));
        };
        let context = self.job.get(Home::PromptContext);
        self.take(Home::Prompt);
        self.take(Home::PromptContext);
        self.marks.input = Some(Mark::Text);
        Some(Cow::Owned(outcome::prompt_object(prompt, context)))
    }

    fn prompt(&mut self) -> Option<Cow<'j, str>> {
        if let Some(prompt) = self.job.get(Home::Prompt) {
            self.take(Home::Prompt);
            return Some(Cow::Borrowed(prompt.get()));
        }
        let input = self.job.get(Home::Input)?.get();
        self.take(Home::Input);
        if let Some(prompt) = self.parts_of_input(|prompt, _| prompt) {
            self.marks.input = Some(Mark::Object);
            return Some(Cow::Owned(prompt));
        }
        self.marks.input = Some(Mark::Json);
        Some(Cow::Owned(outcome::encoded(input)))
    }

    /// Prompt and context, where the input is an object of just these.
    fn parts_of_input(&self, pick: impl FnOnce(String, Option<String>) -> String) -> Option<String> {
        let tape = Tape::scan(self.job.get(Home::Input)?.get().as_bytes()).ok()?;
        let (prompt, context) = outcome::prompt_parts(tape.root()?)?;
        if context.is_some_and(|context| !shows_beside_carried(context)) {
            return None;
        }
        Some(pick(prompt.source().to_owned(), context.map(|context| context.source().to_owned())))
    }

    /// The context of a prompt, with what is carried inside it.
    fn prompt_context(&mut self, name: &'static str) {
        let context = match self.marks.input {
            Some(_) => {
                self.parts_of_input(|_, context| context.unwrap_or_default()).filter(|context| !context.is_empty())
            }
            None => self.job.get(Home::PromptContext).map(|context| context.get().to_owned()),
        };
        self.take(Home::PromptContext);
        let free = self.carries_nothing() || context.as_deref().is_none_or(shows);
        let shown = context.as_deref().filter(|_| free);
        self.taken[Home::PromptContext as usize] = free;
        let before = self.text.len();
        push_known(&mut self.text, name);
        self.text.push('{');
        self.text.push_str(shown.map_or("", |context| context[1..context.len() - 1].trim()));
        let inside = self.text.len();
        self.carried();
        let carries = self.text.len() > inside;
        self.text.push('}');
        if context.is_none() && !carries {
            self.text.truncate(before);
        }
    }

    fn output_object(&mut self) -> Option<Cow<'j, str>> {
        if let Some(outputs) = self.job.get(Home::Outputs) {
            self.take(Home::Outputs);
            return Some(Cow::Borrowed(outputs.get()));
        }
        let text = self.job.get(Home::Text)?;
        self.take(Home::Text);
        self.marks.output = Some(Mark::Text);
        Some(Cow::Owned(outcome::wrapped("output", text.get())))
    }

    fn output_text(&mut self) -> Option<Cow<'j, str>> {
        if let Some(text) = self.job.get(Home::Text) {
            self.take(Home::Text);
            return Some(Cow::Borrowed(text.get()));
        }
        let outputs = self.job.get(Home::Outputs)?;
        self.take(Home::Outputs);
        self.marks.output = Some(Mark::Json);
        Some(Cow::Owned(outcome::encoded(outputs.get())))
    }

    fn artifacts(&mut self, form: Form) -> Option<Cow<'j, str>> {
        let (list, left) = form.write(self.job.artifacts.as_deref()?);
        self.artifacts_left = left;
        self.marks.artifacts = true;
        Some(Cow::Owned(list))
    }

    /// Homes that hold something the document does not show.
    fn homes_left(&self) -> impl Iterator<Item = (Home, &'j Json<'s>)> + use<'_, 'j, 's> {
        let left = Home::ALL.iter().filter(|home| !self.taken[**home as usize]);
        left.filter_map(|home| Some((*home, self.job.get(*home)?)))
    }

    fn own_left(&self) -> impl Iterator<Item = (Contract, &'j str, &'j str)> + use<'_, 'j, 's> {
        let left = self.job.own.iter().zip(&self.own_taken).filter(|(_, taken)| !**taken);
        left.map(|(own, _)| (own.contract, own.pointer.as_str(), own.value.get()))
    }

    /// Artifacts that no member lists must be carried even where there are none.
    fn lists_nothing(&self) -> bool {
        self.job.artifacts.is_some() && !self.marks.artifacts
    }

    fn homeless(&self) -> Vec<Cow<'static, str>> {
        let homes = self.homes_left().map(|(home, _)| Cow::Borrowed(home.name()));
        // What is kept beside a document has a word for a place.
        let gap = |place: &str| if place.starts_with('/') { "" } else { " " };
        let own = self.own_left().map(|(contract, place, _)| [contract.name(), gap(place), place].concat().into());
        let artifacts = (!self.artifacts_left.is_empty() || self.lists_nothing()).then_some(artifact::CARRIED.into());
        let strange = self.job.strange.iter().map(|(name, _)| name.clone().into());
        homes.chain(artifacts).chain(own).chain(strange).collect()
    }

    /// Whether the key is not needed here: the document is back where it came from and shows everything.
    fn carries_nothing(&self) -> bool {
        let back = || self.returns() && self.homeless().len() == usize::from(self.strange_key().is_some());
        self.fresh.carrying == Carrying::Off || back()
    }

    /// What stood under the key and was not ours.
    fn strange_key(&self) -> Option<(usize, &'j Own<'s>)> {
        let carrier = self.shape.carrier.map(|name| format!("/{name}")).unwrap_or_default();
        self.job.own_at(self.contract, &format!("{carrier}/{KEY}"))
    }

    /// What is left, under the one key. A document that is back where it came from needs no word on how it got there.
    fn carried(&mut self) {
        if self.carries_nothing() {
            if let Some((at, own)) = self.strange_key() {
                self.own_taken[at] = true;
                push_name(&mut self.text, KEY);
                self.text.push_str(own.value.get());
            }
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        // The brace before may be the end of an object's other members.
        if !text.ends_with('{') {
            text.push(',');
        }
        push_quoted(&mut text, KEY);
        text.push_str(":{");
        push_known(&mut text, "from");
        push_quoted(&mut text, self.job.origin.name());
        carry::push_marks(&mut text, self.marks);
        for (home, value) in self.homes_left() {
            push_known(&mut text, home.name());
            text.push_str(value.get());
        }
        self.push_artifacts(&mut text);
        let own: Vec<_> = self.own_left().collect();
        if !own.is_empty() {
            push_known(&mut text, "fields");
            let mut contracts = Contract::ALL.to_vec();
            contracts.retain(|contract| own.iter().any(|(owner, ..)| owner == contract));
            carry::push_places(&mut text, &contracts, &own);
        }
        self.push_filled(&mut text);
        for (name, value) in &self.job.strange {
            push_name(&mut text, name);
            text.push_str(value.get());
        }
        text.push('}');
        self.text = text;
    }

    fn push_artifacts(&self, text: &mut String) {
        if self.artifacts_left.is_empty() && !self.lists_nothing() {
            return;
        }
        push_name(text, artifact::CARRIED);
        text.push('[');
        for left in &self.artifacts_left {
            if !text.ends_with('[') {
                text.push(',');
            }
            left.push(text);
        }
        text.push(']');
    }

    /// The way here, up to the last time this contract was met, and what was filled in on it.
    fn push_filled(&self, text: &mut String) {
        let back = self.returns();
        let mut way: Vec<Contract> =
            self.job.via.iter().copied().take_while(|via| !back && *via != self.contract).collect();
        let earlier = self.job.filled.iter().filter(|filled| way.contains(&filled.contract));
        let earlier = earlier.map(|filled| (filled.contract, filled.pointer.as_str(), filled.value.get()));
        let here = self.filled.iter().map(|(place, value)| (self.contract, &self.places[place.clone()], value.get()));
        let all: Vec<_> = earlier.chain(here).collect();
        way.push(self.contract);
        if !back || !all.is_empty() {
            push_known(text, "filled");
            carry::push_places(text, &way, &all);
        }
    }
}

/// Whether an object can be told from nothing, and from what is carried, where both stand in one object.
fn shows_beside_carried(object: Value<'_, '_>) -> bool {
    object.members().next().is_some() && object.get(KEY).is_none()
}

fn shows(object: &str) -> bool {
    Tape::scan(object.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(shows_beside_carried))
}

fn is_same(spelled: &str, fixed: &str) -> bool {
    Tape::scan(spelled.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| outcome::same(fixed, root)))
}
