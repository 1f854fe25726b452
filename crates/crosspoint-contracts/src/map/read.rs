//! Reads a document into a job, along its shape.

use std::collections::BTreeMap;

use super::alias::fills;
use super::carry::{self, Carry};
use super::outcome::{self, Mark};
use super::shape::{Is, Member, Need, Shape};
use super::{Codec, KEY};
use crate::artifact::{self, Form};
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Canonical, Home, Own, State};
use crate::json::{Text, Type, Value};
use crate::kind::Contract;

/// Most members that an object of a shape may have.
pub(super) const MEMBERS_MAX: usize = 24;

/// A document that is being read into a job.
pub(crate) struct In<'s> {
    pub(crate) job: Canonical<'s>,
    contract: Contract,
    /// Marks of forms, and artifacts, as they were carried.
    marks: carry::Marks,
    artifacts: Vec<artifact::Carried<'s>>,
    /// Whether anything was carried in this document.
    carried: bool,
    carrier: Option<&'static str>,
    /// The path to the member that is being read. A pointer is made of it only where one is needed.
    path: Vec<&'static str>,
    /// Values that stand in for something in this document, by place.
    filled: BTreeMap<String, Json<'s>>,
    /// Carried values of this contract's own members, by place. A value in the document itself takes precedence.
    own: BTreeMap<String, Json<'s>>,
}

/// Reads a valid document.
pub(crate) fn document<'s>(shape: &'static Shape, root: Value<'_, 's>) -> Canonical<'s> {
    let contract = shape.kind.contract();
    let carrier = shape.carrier.map_or(Some(root), |name| root.get(name));
    let carry = carrier.and_then(|carrier| carrier.get(KEY)).and_then(|value| Carry::read(value, shape.kind));
    let carried = carry.is_some();
    let Carry { mut job, marks, artifacts } = carry.unwrap_or_else(|| Carry::nothing(shape.kind));
    let filled = job.filled.iter().filter(|filled| filled.contract == contract);
    let filled = filled.map(|filled| (filled.pointer.clone(), filled.value.clone())).collect();
    let (ours, theirs): (Vec<_>, Vec<_>) = job.own.into_iter().partition(|own| own.contract == contract);
    job.own = theirs;
    let own = ours.into_iter().map(|own| (own.pointer, own.value)).collect();
    let mut found =
        In { job, contract, marks, artifacts, carried, carrier: shape.carrier, path: Vec::new(), filled, own };
    found.state(shape);
    found.block(shape.members, root);
    if found.job.state().is_none() && shape.says_why() {
        // A code that is missing or cannot be read: the work failed all the same.
        let carried = found.job.failure().unwrap_or(Failure::AgentFailed);
        found.job.set_failure(carried);
    }
    found.join_artifacts();
    let own = std::mem::take(&mut found.own).into_iter();
    found.job.own.extend(own.map(|(pointer, value)| Own { contract, pointer, value }));
    found.job.wary = carried;
    found.job
}

impl<'s> In<'s> {
    /// Sets the state that the form of a document tells. A failure without a code is the carried one, else the agent's.
    fn state(&mut self, shape: &Shape) {
        match shape.state {
            Some(State::Failed) => {
                let carried = self.job.failure().unwrap_or(Failure::AgentFailed);
                self.job.set_failure(carried);
            }
            Some(State::Cancelled) => self.job.set_failure(Failure::Cancelled),
            Some(State::Completed) => {
                self.job.set_state(State::Completed);
                self.job.clear(Home::Failure);
            }
            // A carried state cannot end a job that goes on.
            Some(State::Queued | State::Running | State::Waiting) => {
                if self.job.state().is_none_or(State::is_ended) {
                    self.job.set_state(State::Running);
                }
                self.job.clear(Home::Failure);
            }
            // A request has no state, and a failure's code sets it.
            None => self.job.clear(Home::State),
        }
    }

    fn block(&mut self, members: &'static [Member], object: Value<'_, 's>) {
        let is_carrier = match self.carrier {
            None => self.path.is_empty(),
            Some(name) => self.path == [name],
        };
        // One pass sorts the members, because a document may have a million unknown ones.
        let mut known: [Option<Value<'_, 's>>; MEMBERS_MAX] = [None; MEMBERS_MAX];
        let mut unknown: Vec<(Text<'s>, Value<'_, 's>)> = Vec::new();
        for (name, value) in object.members() {
            match members.iter().position(|member| name == *member.name) {
                Some(at) => known[at] = known[at].or(Some(value)),
                None if self.carried && is_carrier && name == *KEY => {}
                None => unknown.push((name, value)),
            }
        }
        // In the order of the shape, because the meaning of a member may depend on the members before it.
        for (member, value) in members.iter().zip(known) {
            match value {
                Some(value) => self.enter(member.name, |found| found.member(member, value, object)),
                None => self.enter(member.name, |found| found.missing(member)),
            }
        }
        for (name, value) in unknown {
            let pointer = carry::pointer(&self.path, Some(&name.decode()));
            self.keep_at(pointer, value);
        }
    }

    fn enter(&mut self, name: &'static str, act: impl FnOnce(&mut Self)) {
        self.path.push(name);
        act(self);
        self.path.pop();
    }

    fn member(&mut self, member: &'static Member, value: Value<'_, 's>, object: Value<'_, 's>) {
        match &member.is {
            Is::Fixed(fixed) if *fixed == value.source() => {}
            Is::Fixed(_) | Is::Own(_) => self.keep_own(value),
            Is::Home(home, codec) => {
                self.home(member, *home, *codec, value);
                if fills(*home, member.other_names(), object) {
                    self.keep_own(value);
                }
            }
            Is::Alias(home, codec) => self.alias(member, *home, *codec, value, object),
            Is::Loose(read, _) => read(self, value),
            Is::Block(members) => self.inner_block(member, members, value),
            Is::Input => self.input(value),
            Is::Prompt => self.prompt(value),
            Is::PromptContext => self.prompt_context(value),
            Is::OutputObject => self.output_object(value),
            Is::OutputText => self.output_text(value),
            Is::Summary => self.plain(Home::Text, value),
            Is::Artifacts(form) => self.list_artifacts(*form, value),
            Is::Code(codes) => codes.read(self, value),
            Is::Made(made) => (made.read)(self, value),
        }
    }

    /// A missing member that stood in for a carried value was removed on the way, so the carried value is dropped too.
    fn missing(&mut self, member: &Member) {
        let stood_in = || self.filled.contains_key(&carry::pointer(&self.path, None));
        if let Is::Home(home, _) = member.is
            && !self.filled.is_empty()
            && stood_in()
        {
            self.job.clear(home);
        }
    }

    fn inner_block(&mut self, member: &Member, members: &'static [Member], value: Value<'_, 's>) {
        if let Some(home) = member.text.filter(|_| value.kind() == Type::String) {
            return self.plain(home, value);
        }
        if value.kind() != Type::Object {
            return self.misfit(value);
        }
        // An empty object says only that it was there. That need not be kept where the contract requires the object.
        let required = matches!(member.need, Need::Required(_));
        if value.members().next().is_none() && !required && !self.is_stand_in(value) {
            self.keep(value);
        }
        self.block(members, value);
    }

    fn home(&mut self, member: &Member, home: Home, codec: Codec, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if !home.holds().accepts(value) {
            return self.misfit(value);
        }
        let read: Json<'s> = match codec.read(value.source()) {
            std::borrow::Cow::Borrowed(same) => Json::new(same),
            std::borrow::Cow::Owned(other) => Json::new(other),
        };
        self.job.set(home, read);
        if codec.respells(value.source()) {
            self.keep(value);
        }
        if let Need::Follows(from) = &member.need {
            // The home must be empty while the value that would follow without it is computed.
            let read = self.job.get(home).cloned();
            self.job.clear(home);
            if from(&self.job).get() != value.source() {
                read.into_iter().for_each(|read| self.job.set(home, read));
            }
        }
    }

    fn plain(&mut self, home: Home, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if !home.holds().accepts(value) {
            return self.misfit(value);
        }
        self.job.set(home, Json::new(value.source()));
    }

    /// Keeps a value that its member cannot hold where it is. It is not used (ALL-11).
    pub(super) fn misfit(&mut self, value: Value<'_, 's>) {
        self.keep(value);
    }

    fn input(&mut self, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if value.kind() != Type::Object {
            return self.misfit(value);
        }
        match (self.marks.input == Some(Mark::Text)).then(|| outcome::prompt_parts(value)).flatten() {
            Some((prompt, context)) => {
                self.job.set(Home::Prompt, Json::new(prompt.source()));
                if let Some(context) = context {
                    self.job.set(Home::PromptContext, Json::new(context.source()));
                }
            }
            None => self.job.set(Home::Input, Json::new(value.source())),
        }
    }

    fn prompt(&mut self, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if value.kind() != Type::String {
            return self.misfit(value);
        }
        match (self.marks.input == Some(Mark::Json)).then(|| outcome::decoded(value)).flatten() {
            Some(object) => self.job.set(Home::Input, Json::new(object)),
            None => self.job.set(Home::Prompt, Json::new(value.source())),
        }
    }

    /// The carrier of this contract is part of the input, so what we put there is taken out first.
    fn prompt_context(&mut self, value: Value<'_, 's>) {
        if value.kind() != Type::Object {
            return self.misfit(value);
        }
        let rest = if self.carried { outcome::without(value, KEY) } else { value.source().into() };
        if !(self.carried && rest == "{}") {
            self.job.set(Home::PromptContext, Json::new(rest));
        }
        if self.marks.input != Some(Mark::Object) {
            return;
        }
        // An object of prompt and context that was written as the two members.
        if let Some(prompt) = self.job.get(Home::Prompt) {
            let object = outcome::prompt_object(prompt, self.job.get(Home::PromptContext));
            self.job.set(Home::Input, Json::new(object));
            self.job.clear(Home::Prompt);
            self.job.clear(Home::PromptContext);
        }
    }

    pub(crate) fn output_object(&mut self, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if value.kind() != Type::Object {
            return self.misfit(value);
        }
        match (self.marks.output == Some(Mark::Text)).then(|| outcome::unwrapped(value, "output")).flatten() {
            Some(text) => self.job.set(Home::Text, Json::new(text.source())),
            None => self.job.set(Home::Outputs, Json::new(value.source())),
        }
    }

    pub(crate) fn output_text(&mut self, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if value.kind() != Type::String {
            return self.misfit(value);
        }
        match (self.marks.output == Some(Mark::Json)).then(|| outcome::decoded(value)).flatten() {
            Some(object) => self.job.set(Home::Outputs, Json::new(object)),
            None => self.job.set(Home::Text, Json::new(value.source())),
        }
    }

    fn list_artifacts(&mut self, form: Form, value: Value<'_, 's>) {
        if self.is_stand_in(value) {
            return;
        }
        if value.kind() != Type::Array {
            return self.misfit(value);
        }
        let mut listed = Vec::new();
        for (at, item) in value.items().enumerate() {
            match form.read(item) {
                Some(artifact) => listed.push(artifact),
                None => self.keep_at(carry::pointer(&self.path, Some(&at.to_string())), item),
            }
        }
        self.job.artifacts = Some(listed);
    }

    fn join_artifacts(&mut self) {
        let carried = std::mem::take(&mut self.artifacts);
        if !carried.is_empty() || self.marks.artifacts {
            let listed = self.job.artifacts.take().unwrap_or_default();
            self.job.artifacts = Some(artifact::joined(listed, carried));
        }
    }

    /// Keeps a member without a home by its place.
    pub(crate) fn keep(&mut self, value: Value<'_, 's>) {
        self.keep_at(carry::pointer(&self.path, None), value);
    }

    fn keep_at(&mut self, pointer: String, value: Value<'_, 's>) {
        let value = Json::new(value.source());
        self.own.remove(&pointer);
        self.job.own.push(Own { contract: self.contract, pointer, value });
    }

    /// Keeps a member without a home by its place, unless it only stands in for something.
    fn keep_own(&mut self, value: Value<'_, 's>) {
        if !self.is_stand_in(value) {
            self.keep(value);
        }
    }

    /// Whether this value was filled in when the document was written, and is unchanged.
    pub(crate) fn is_stand_in(&self, value: Value<'_, '_>) -> bool {
        !self.filled.is_empty() && self.stands_in_at(&carry::pointer(&self.path, None), value)
    }

    /// Whether a value stood in for something at this place when the document was written.
    pub(crate) fn has_stand_in(&self, pointer: &str) -> bool {
        self.filled.contains_key(pointer)
    }

    fn stands_in_at(&self, pointer: &str, value: Value<'_, '_>) -> bool {
        self.filled.get(pointer).is_some_and(|filled| outcome::same(filled.get(), value))
    }

    /// Returns an object without those of its members that stand in for something.
    pub(crate) fn without_stand_ins(&self, object: Value<'_, 's>) -> Json<'s> {
        let mut rest = String::from("{");
        let mut all = true;
        for (name, value) in object.members() {
            let stands_in = self.stands_in_at(&carry::pointer(&self.path, Some(&name.decode())), value);
            all &= !stands_in;
            if !stands_in {
                crate::json::push_name(&mut rest, &name.decode());
                rest.push_str(value.source());
            }
        }
        rest.push('}');
        if all { Json::new(object.source()) } else { Json::new(rest) }
    }
}
