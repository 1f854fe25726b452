//! What is left when all members are written. It is carried under the one key, or lost.

use std::borrow::Cow;

use super::{Carrying, Out, WriteContext};
use crate::artifact;
use crate::content::Json;
use crate::job::{Canonical, Home, Own};
use crate::json::{Tape, Type, push_known, push_quoted};
use crate::kind::Contract;
use crate::map::shape::{Is, Member, Shape};
use crate::map::{KEY, carry};
use crate::translate::Homeless;

/// Marks what is kept of a document beside its members, such as an event's name: the code that frames the document
/// writes it.
pub(super) fn taken_before(job: &Canonical<'_>, shape: &Shape, context: &WriteContext<'_>) -> Vec<bool> {
    let is_beside = |own: &Own<'_>| !own.pointer.is_empty() && !own.pointer.starts_with('/');
    // To a caller, a member of the contract that is null is absent (ALL-11).
    let is_absent = |own: &Own<'_>| context.completing && own.value.get() == "null" && shape.knows_at(&own.pointer);
    let contract = shape.kind.contract();
    job.own.iter().map(|own| own.contract == contract && (is_beside(own) || is_absent(own))).collect()
}

impl Shape {
    /// Whether documents of this kind, in this shape or another, have such a member.
    pub(super) fn knows(&self, name: &str) -> bool {
        self.siblings().flat_map(|shape| shape.members).any(|member| member.name == name)
    }

    /// Whether documents of this kind, in this shape or another, have a member at this place.
    fn knows_at(&self, pointer: &str) -> bool {
        self.siblings().any(|shape| has_at(shape.members, pointer))
    }

    fn siblings(&self) -> impl Iterator<Item = &'static &'static Shape> + use<> {
        let kind = self.kind;
        crate::map::of(kind.contract()).shapes.iter().filter(move |shape| shape.kind == kind)
    }
}

fn has_at(members: &[Member], pointer: &str) -> bool {
    let Some(place) = pointer.strip_prefix('/') else { return false };
    let (name, within) = place.split_at(place.find('/').unwrap_or(place.len()));
    let mut named = members.iter().filter(|member| member.name == name);
    named.any(|member| within.is_empty() || matches!(&member.is, Is::Block(inner) if has_at(inner, within)))
}

/// A fact that the document does not show.
enum Left<'j> {
    /// A fact with a name of ours.
    Known(&'static str),
    /// A member without a home, by its contract and place.
    Own(Contract, &'j str),
    /// A carried value that is not ours, by its name.
    Strange(&'j str),
}

impl Left<'_> {
    fn into_homeless(self) -> Homeless {
        match self {
            Left::Known(name) => Homeless::Known(name),
            Left::Own(contract, pointer) => {
                // What is kept beside a document's members has a word as its place; a document kept whole has an empty
                // one.
                let gap = match pointer.as_bytes().first() {
                    Some(b'/') => "",
                    Some(_) => " ",
                    None => " document",
                };
                Homeless::Own([contract.name(), gap, pointer].concat())
            }
            Left::Strange(name) => Homeless::Own(name.to_owned()),
        }
    }
}

impl<'j, 's> Out<'j, 's> {
    /// Whether the target of a request is a type of agents, and the contract of its agent has none. There a target is
    /// an agent, so the type is carried.
    pub(super) fn is_foreign_type(&self) -> bool {
        let has_types = |contract: Contract| !contract.exchange().types.is_empty();
        self.context.is_dispatch() && has_types(self.job.origin.contract()) && !has_types(self.contract)
    }

    /// Returns the homes that hold a value that the document does not show.
    pub(super) fn homes_left(&self) -> impl Iterator<Item = (Home, &'j Json<'s>)> + use<'_, 'j, 's> {
        let left = Home::ALL.iter().filter(|home| !self.taken[**home as usize]);
        left.filter_map(|home| Some((*home, self.job.get(*home)?)))
    }

    fn own_left(&self) -> impl Iterator<Item = (Contract, &'j str, &'j str)> + use<'_, 'j, 's> {
        let left = self.job.own.iter().zip(&self.own_taken).filter(|(_, taken)| !**taken);
        left.map(|(own, _)| (own.contract, own.pointer.as_str(), own.value.get()))
    }

    /// Whether artifacts must be carried because no member lists them. That they are none must be carried too.
    fn lists_nothing(&self) -> bool {
        self.job.artifacts.is_some() && !self.marks.artifacts
    }

    pub(super) fn homeless(&self) -> Vec<Homeless> {
        self.left().map(Left::into_homeless).collect()
    }

    /// Returns what the document does not show.
    fn left(&self) -> impl Iterator<Item = Left<'j>> + use<'_, 'j, 's> {
        let homes = self.homes_left().map(|(home, _)| Left::Known(home.name()));
        // An empty carrier is carried as such, but it is not lost: the object is there.
        let is_carrier =
            |pointer: &str| pointer.strip_prefix('/') == self.shape.carrier && self.shape.carrier.is_some();
        let own =
            self.own_left().filter(move |(contract, pointer, _)| *contract != self.contract || !is_carrier(pointer));
        let own = own.map(|(contract, pointer, _)| Left::Own(contract, pointer));
        let listed = !self.artifacts_left.is_empty() || self.lists_nothing();
        let artifacts = listed.then_some(Left::Known(artifact::CARRIED));
        let strange = self.job.strange.iter().map(|(name, _)| Left::Strange(name));
        // Where nothing is carried, a reader cannot tell that a text was an object.
        let off = self.context.carrying == Carrying::Off;
        let forms = [("form of input", self.marks.input), ("form of output", self.marks.output)];
        let forms = forms.into_iter().filter(move |(_, mark)| off && mark.is_some()).map(|(name, _)| Left::Known(name));
        homes.chain(artifacts).chain(own).chain(strange).chain(forms)
    }

    /// Whether the key is not needed: carrying is off, or the document is back where it came from and shows everything.
    pub(super) fn carries_nothing(&self) -> bool {
        let back = || self.returns() && self.left().count() == usize::from(self.strange_key().is_some());
        self.context.carrying == Carrying::Off || back()
    }

    /// Returns the value that stood under the key and that we did not write.
    fn strange_key(&self) -> Option<(usize, &'j Own<'s>)> {
        match self.shape.carrier {
            Some(carrier) => self.own_below(&[carrier, KEY]),
            None => self.own_below(&[KEY]),
        }
    }

    /// Writes what is left, under the one key. A document that is back where it came from does not say how it got
    /// there.
    pub(super) fn carried(&mut self) {
        if self.carries_nothing() {
            let strange = self.strange_key();
            let there = strange.map(|(_, own)| own.value.get());
            if let Some(value) = self.with_remarks(there) {
                push_known(&mut self.text, KEY);
                self.text.push_str(&value);
            }
            if let Some((at, _)) = strange {
                self.own_taken[at] = true;
            }
            return;
        }
        let mut text = std::mem::take(&mut self.text);
        push_known(&mut text, KEY);
        text.push('{');
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
        carry::push_strange(&mut text, &self.job.strange);
        let is_new = |name: &str| self.job.strange.iter().all(|(known, _)| known != name);
        for (name, value) in self.job.remarks.iter().filter(|(name, _)| is_new(name)) {
            push_known(&mut text, name);
            text.push_str(value.get());
        }
        text.push('}');
        self.text = text;
    }

    /// Returns the value under the key where nothing is carried: the value that stood there, with our remarks added.
    /// The value stays as it is if it is no object, and a member that has the name of a remark is left alone. Returns
    /// `None` where there is nothing to write.
    fn with_remarks(&self, there: Option<&'j str>) -> Option<Cow<'j, str>> {
        let remarks = &self.job.remarks;
        if remarks.is_empty() || self.context.carrying == Carrying::Off {
            return there.map(Cow::Borrowed);
        }
        let mut text = String::from("{");
        let tape = there.and_then(|there| Tape::scan(there.as_bytes()).ok());
        let root = tape.as_ref().and_then(Tape::root);
        match (there, root.filter(|root| root.kind() == Type::Object)) {
            (Some(there), Some(_)) => text = there.trim_end().strip_suffix('}')?.trim_end().to_owned(),
            (Some(there), None) => return Some(Cow::Borrowed(there)),
            (None, _) => {}
        }
        let is_new = |name: &str| root.is_none_or(|root| root.get(name).is_none());
        for (name, value) in remarks.iter().filter(|(name, _)| is_new(name)) {
            push_known(&mut text, name);
            text.push_str(value.get());
        }
        text.push('}');
        Some(Cow::Owned(text))
    }

    fn push_artifacts(&self, text: &mut String) {
        if self.artifacts_left.is_empty() && !self.lists_nothing() {
            return;
        }
        push_known(text, artifact::CARRIED);
        text.push('[');
        for left in &self.artifacts_left {
            if !text.ends_with('[') {
                text.push(',');
            }
            left.push(text);
        }
        text.push(']');
    }

    /// Writes the contracts on the way here, up to the last time that this contract was met, and what they had filled
    /// in. An answer that we make ourselves in the caller's own contract stood nowhere else, so it does not say what
    /// was filled in.
    fn push_filled(&self, text: &mut String) {
        let back = self.returns();
        if back && self.job.is_made && self.context.completing {
            return;
        }
        let mut way: Vec<Contract> =
            self.job.via.iter().copied().take_while(|via| !back && *via != self.contract).collect();
        let earlier = self.job.filled.iter().filter(|filled| way.contains(&filled.contract));
        let earlier = earlier.map(|filled| (filled.contract, filled.pointer.as_str(), filled.value.get()));
        let here = self.filled.iter().map(|(range, value)| (self.contract, &self.places[range.clone()], value.get()));
        let all: Vec<_> = earlier.chain(here).collect();
        way.push(self.contract);
        if !back || !all.is_empty() {
            push_known(text, "filled");
            carry::push_places(text, &way, &all);
        }
    }
}
