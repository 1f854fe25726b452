//! Writes input and outcome in the form that a contract has (ALL-8), and its artifacts.

use std::borrow::Cow;

use super::Out;
use crate::artifact::Form;
use crate::job::Home;
use crate::json::{Tape, Value, push_known};
use crate::map::outcome::{self, Mark};
use crate::map::shape::Member;
use crate::map::{KEY, carry};

impl<'j> Out<'j, '_> {
    pub(super) fn input(&mut self) -> Option<Cow<'j, str>> {
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

    pub(super) fn prompt(&mut self) -> Option<Cow<'j, str>> {
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

    /// Returns what `pick` makes of prompt and context, where the input is an object of just these.
    fn parts_of_input(&self, pick: impl FnOnce(String, Option<String>) -> String) -> Option<String> {
        let tape = Tape::scan(self.job.get(Home::Input)?.get().as_bytes()).ok()?;
        let (prompt, context) = outcome::prompt_parts(tape.root()?)?;
        if context.is_some_and(|context| !shows_beside_carried(context)) {
            return None;
        }
        Some(pick(prompt.source().to_owned(), context.map(|context| context.source().to_owned())))
    }

    /// Writes the context of a prompt, with the carried facts inside it.
    pub(super) fn prompt_context(&mut self, member: &Member) {
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
        push_known(&mut self.text, member.name);
        self.text.push('{');
        self.text.push_str(shown.map_or("", |context| context[1..context.len() - 1].trim()));
        let inside = self.text.len();
        self.carried();
        let carries = self.text.len() > inside;
        self.text.push('}');
        if context.is_none() && !carries {
            self.text.truncate(before);
            if let Some(misfit) = self.misfit(member) {
                push_known(&mut self.text, member.name);
                self.text.push_str(&misfit);
            }
        }
    }

    pub(crate) fn output_object(&mut self) -> Option<Cow<'j, str>> {
        if let Some(outputs) = self.job.get(Home::Outputs) {
            self.take(Home::Outputs);
            return Some(Cow::Borrowed(outputs.get()));
        }
        let text = self.job.get(Home::Text)?;
        self.take(Home::Text);
        self.marks.output = Some(Mark::Text);
        Some(Cow::Owned(outcome::wrapped("output", text.get())))
    }

    pub(super) fn output_text(&mut self) -> Option<Cow<'j, str>> {
        if let Some(text) = self.job.get(Home::Text) {
            self.take(Home::Text);
            return Some(Cow::Borrowed(text.get()));
        }
        let outputs = self.job.get(Home::Outputs)?;
        self.take(Home::Outputs);
        self.marks.output = Some(Mark::Json);
        Some(Cow::Owned(outcome::encoded(outputs.get())))
    }

    pub(super) fn artifacts(&mut self, form: Form) -> Option<Cow<'j, str>> {
        let (list, left) = form.write(self.job.artifacts.as_deref()?);
        self.artifacts_left = left;
        self.marks.artifacts = true;
        Some(Cow::Owned(self.with_misfits(list)))
    }

    /// Returns the list with the items that are no artifacts back in their places (ALL-11).
    fn with_misfits(&mut self, list: String) -> String {
        let misfits = self.own_items();
        if misfits.is_empty() || self.context.completing {
            return list;
        }
        let Ok(tape) = Tape::scan(list.as_bytes()) else { return list };
        let mut items: Vec<&str> = tape.root().into_iter().flat_map(Value::items).map(Value::source).collect();
        for (place, at) in misfits {
            items.insert(place.min(items.len()), self.job.own[at].value.get());
            self.own_taken[at] = true;
        }
        format!("[{}]", items.join(","))
    }

    /// Returns the members without a home that are items of the array that is being written: their places, and where
    /// they are kept.
    fn own_items(&self) -> Vec<(usize, usize)> {
        if !self.has_own {
            return Vec::new();
        }
        let here = carry::pointer(&self.path, None) + "/";
        let own = self.job.own.iter().enumerate().filter(|(_, own)| own.contract == self.contract);
        let mut items: Vec<(usize, usize)> =
            own.filter_map(|(at, own)| Some((own.pointer.strip_prefix(&here)?.parse().ok()?, at))).collect();
        items.sort_unstable();
        items
    }
}

/// Whether an object can be told from an absent one, and from the carried facts, where both stand in one object.
fn shows_beside_carried(object: Value<'_, '_>) -> bool {
    object.members().next().is_some() && object.get(KEY).is_none()
}

fn shows(object: &str) -> bool {
    Tape::scan(object.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(shows_beside_carried))
}
