//! Rewrites output of the domain as an output envelope.

use std::borrow::Cow;

use super::change::{Change, Refused};
use super::note::note;
use super::object::{Object, typed};
use super::{OURS, Options};
use crate::json::{self, Text, Type, Value};
use crate::report::pointer;
use crate::workflow::clause::{WF_107, WF_108, WF_113};
use crate::workflow::path;

/// Members that have a place of their own. All other members are summarised in notes.
const PLACED: [&str; 8] =
    ["success", "summary", "artifacts", "notes", "recommendation", NEXT_RECOMMENDATION, "state_updates", OURS];

/// The older name of the recommendation.
const NEXT_RECOMMENDATION: &str = "next_recommendation";

/// Members in which older agents name the index file, if `paths.index` does not.
const INDEX_MEMBERS: [&str; 2] = ["index_path", "index_file"];

/// Members in which older agents say what went wrong. The first holds a sentence, so it is tried first.
const ERRORS: [&str; 2] = ["error_message", "error"];

/// The sentence that says what went wrong.
struct Complaint<'t, 's> {
    /// The member that holds it.
    member: &'static str,
    sentence: Value<'t, 's>,
}

impl Complaint<'_, '_> {
    /// Whether the member holds nothing else.
    fn is_all(&self) -> bool {
        self.sentence.member_name().is_some_and(|name| name == *self.member)
    }
}

struct Rewriting<'t, 's> {
    root: Value<'t, 's>,
    artifacts: Vec<Cow<'s, str>>,
    notes: Vec<Cow<'s, str>>,
    changes: Vec<Change>,
}

pub(super) fn rewrite(root: Value<'_, '_>, options: &Options<'_>) -> Result<(String, Vec<Change>), Refused> {
    let success = said(root, "success").map(|_| typed(Some(root), &["success"], Type::Boolean, &WF_107));
    let success = success.transpose()?.flatten();
    let artifacts = typed(Some(root), &["artifacts"], Type::Array, &WF_108)?;
    let notes = typed(Some(root), &["notes"], Type::Array, &WF_113)?;
    let failed = success.and_then(Value::boolean).or(options.success) == Some(false);
    let complaint = complaint(root).filter(|_| failed && said(root, "summary").is_none());
    demand(
        success.is_some() || options.success.is_some(),
        said(root, "summary").is_some() || complaint.is_some() || options.summary.is_some(),
    )?;

    let mut rewriting = Rewriting { root, artifacts: items(artifacts), notes: items(notes), changes: Vec::new() };
    for name in ["success", "summary"] {
        if root.get(name).is_some_and(Value::is_null) {
            rewriting.changes.push(Change::LeftOut { from: pointer(&[name]), why: "it is null" });
        }
    }
    let mut output = Object::default();
    rewriting.success(success, options, &mut output);
    rewriting.summary(complaint.as_ref(), options, &mut output);
    rewriting.state_updates(artifacts, options)?;
    rewriting.other_members(complaint.as_ref());
    rewriting.lists(artifacts.is_some(), notes.is_some(), &mut output);
    rewriting.recommendation(failed, &mut output)?;
    root.get(OURS).map(|ours| output.keep(ours));
    Ok((output.finish(), rewriting.changes))
}

/// Returns a member that says something: null says as much as nothing.
fn said<'t, 's>(root: Value<'t, 's>, name: &str) -> Option<Value<'t, 's>> {
    root.get(name).filter(|value| !value.is_null())
}

/// Returns the items of an array, as they were spelled.
fn items<'s>(array: Option<Value<'_, 's>>) -> Vec<Cow<'s, str>> {
    array.into_iter().flat_map(Value::items).map(|item| Cow::Borrowed(item.source())).collect()
}

/// Demands what only the agent knows: whether the work succeeded, and what happened. All missing members are named at
/// once.
fn demand(has_success: bool, has_summary: bool) -> Result<(), Refused> {
    let known = [("success", has_success), ("summary", has_summary)];
    let missing: Vec<&str> = known.iter().filter(|(_, is_known)| !is_known).map(|(name, _)| *name).collect();
    if missing.is_empty() { Ok(()) } else { Err(Refused::Missing(missing)) }
}

/// Returns the sentence of an error: the member itself, or the message in it.
fn complaint<'t, 's>(root: Value<'t, 's>) -> Option<Complaint<'t, 's>> {
    let is_sentence = |value: &Value<'_, '_>| value.text().is_some_and(|text| !text.is_empty());
    ERRORS.iter().find_map(|&member| {
        let error = root.get(member)?;
        let sentence = Some(error).filter(is_sentence).or_else(|| error.get("message").filter(is_sentence))?;
        Some(Complaint { member, sentence })
    })
}

impl<'s> Rewriting<'_, 's> {
    fn success(&mut self, success: Option<Value<'_, 's>>, options: &Options<'_>, output: &mut Object<'s>) {
        match (success, options.success) {
            (Some(success), _) => drop(output.keep(success)),
            (None, Some(given)) => self.give("success", if given { "true" } else { "false" }, output),
            (None, None) => {}
        }
    }

    /// Adds a value that the caller gave.
    fn give(&mut self, name: &'static str, json: &str, output: &mut Object<'s>) {
        output.add(name, json);
        self.changes.push(Change::Given { at: pointer(&[name]) });
    }

    fn summary(&mut self, complaint: Option<&Complaint<'_, 's>>, options: &Options<'_>, output: &mut Object<'s>) {
        let Some(complaint) = complaint else {
            match (said(self.root, "summary"), options.summary) {
                (Some(summary), _) => drop(output.keep(summary)),
                (None, Some(given)) => self.give("summary", &json::quoted(given), output),
                (None, None) => {}
            }
            return;
        };
        output.add("summary", complaint.sentence.source());
        let to = pointer(&["summary"]);
        self.changes.push(if complaint.is_all() {
            Change::Moved { from: pointer(&[complaint.member]), to }
        } else {
            Change::Copied { from: pointer(&[complaint.member, "message"]), to }
        });
    }

    fn state_updates(&mut self, artifacts: Option<Value<'_, '_>>, options: &Options<'_>) -> Result<(), Refused> {
        let Some(updates) = self.root.get("state_updates") else { return Ok(()) };
        let from = pointer(&["state_updates"]);
        // An artifact is a whole file. A file without updates would only empty the index.
        if is_empty(updates) {
            self.changes.push(Change::LeftOut { from, why: "it updates nothing" });
            return Ok(());
        }
        let path = index_path(self.root, options)?;
        unwritten(&path, artifacts)?;
        let to = pointer(&["artifacts", &self.artifacts.len().to_string()]);
        self.artifacts.push(index_artifact(&path, updates).into());
        self.changes.push(Change::Filed { from, to });
        Ok(())
    }

    /// Summarises in notes the members that have no place of their own.
    fn other_members(&mut self, complaint: Option<&Complaint<'_, '_>>) {
        let moved = complaint.filter(|complaint| complaint.is_all()).map(|complaint| complaint.member);
        for (name, value) in self.root.members() {
            let spelled = name.decode();
            if PLACED.contains(&&*spelled) || moved == Some(&*spelled) {
                continue;
            }
            let from = pointer(&[&spelled]);
            if ERRORS.contains(&&*spelled) && value.is_null() {
                self.changes.push(Change::LeftOut { from, why: "it is null, and an output has no error object" });
                continue;
            }
            let to = pointer(&["notes", &self.notes.len().to_string()]);
            self.notes.push(json::quoted(&note(name, value)).into());
            self.changes.push(Change::Summarised { from, to });
        }
    }

    fn lists(&mut self, had_artifacts: bool, had_notes: bool, output: &mut Object<'s>) {
        let list = |items: &[Cow<'_, str>]| format!("[{}]", items.join(","));
        output.add("artifacts", &list(&self.artifacts));
        if !had_artifacts && self.artifacts.is_empty() {
            self.changes.push(Change::Added { at: pointer(&["artifacts"]), value: "[]" });
        }
        if had_notes || !self.notes.is_empty() {
            output.add("notes", &list(&self.notes));
        }
    }

    fn recommendation(&mut self, failed: bool, output: &mut Object<'s>) -> Result<(), Refused> {
        let (from, to) = (pointer(&[NEXT_RECOMMENDATION]), pointer(&["recommendation"]));
        let own = self.root.get("recommendation");
        let next = self.root.get(NEXT_RECOMMENDATION);
        if let Some(recommendation) = own {
            output.keep(recommendation);
        }
        match (own, next) {
            (None, None) => {}
            (Some(_), None) => return Ok(()),
            (_, Some(next)) if next.is_null() => {
                self.changes.push(Change::LeftOut { from, why: "it is null" });
                if own.is_some() {
                    return Ok(());
                }
            }
            (None, Some(next)) => {
                output.add("recommendation", next.source());
                self.changes.push(Change::Moved { from, to });
                return Ok(());
            }
            (Some(own), Some(next)) if json::equal(own, next) => {
                self.changes.push(Change::Repeated { from, at: to });
                return Ok(());
            }
            (Some(_), Some(_)) => return Err(Refused::Taken { from, to }),
        }
        // It is not known whether a second attempt would help, so a person has to decide.
        let value = if failed { "\"escalate\"" } else { "\"proceed\"" };
        output.add("recommendation", value);
        self.changes.push(Change::Added { at: to, value });
        Ok(())
    }
}

fn is_empty(value: Value<'_, '_>) -> bool {
    let has_parts = value.next_index() > value.index() + 1;
    value.is_null() || (matches!(value.kind(), Type::Object | Type::Array) && !has_parts)
}

/// Returns the path of the index file, from the document or else from the caller.
fn index_path<'p>(root: Value<'_, 'p>, options: &Options<'p>) -> Result<Cow<'p, str>, Refused> {
    let text = |value: Option<Value<'_, 'p>>| value.and_then(Value::text);
    let of_paths = text(root.get("paths").and_then(|paths| paths.get("index")));
    let of_document = of_paths.or_else(|| INDEX_MEMBERS.iter().find_map(|name| text(root.get(name))));
    let path = of_document.map(Text::decode).or(options.index.map(Cow::Borrowed));
    let path = path.ok_or(Refused::NoIndex)?;
    match path::misplaced(&path).first() {
        Some(wrong) => Err(Refused::Misplaced { clause: wrong.clause, complaint: wrong.complaint }),
        None => Ok(path),
    }
}

/// Refuses to write a file that another artifact writes.
fn unwritten(index: &str, artifacts: Option<Value<'_, '_>>) -> Result<(), Refused> {
    let is_index = |artifact: Value<'_, '_>| {
        let written = artifact.get("path").and_then(Value::text).map(Text::decode);
        written.is_some_and(|written| path::parts(&written).eq(path::parts(index)))
    };
    match artifacts.and_then(|artifacts| artifacts.items().position(is_index)) {
        Some(at) => Err(Refused::IndexWritten { artifact: pointer(&["artifacts", &at.to_string()]) }),
        None => Ok(()),
    }
}

/// Returns the index file with the updates in a fence. No line of JSON begins with a backquote, so nothing in it ends
/// the fence.
fn index_artifact(path: &str, updates: Value<'_, '_>) -> String {
    let content = format!("# State updates\n\n```json\n{}\n```\n", json::pretty(updates));
    let mut artifact = Object::default();
    artifact.add("path", &json::quoted(path));
    artifact.add("operation", "\"update\"");
    artifact.add("content", &json::quoted(&content));
    artifact.finish()
}
