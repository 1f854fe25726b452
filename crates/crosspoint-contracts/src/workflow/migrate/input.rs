//! Rewrites flat input as an input envelope.

use super::change::{Change, Refused};
use super::object::{Object, typed};
use super::{OURS, Options};
use crate::json::{self, Text, Type, Value};
use crate::report::pointer;
use crate::workflow::clause::{WF_1_3, WF_102, WF_104};

/// Members that older agents got flat and the envelope has in `context`.
const OF_CONTEXT: [&str; 3] = ["feature_id", "workflow", "iteration"];

/// How the names of members end that name files. They belong to `paths`.
const OF_PATHS: [&str; 3] = ["_path", "_paths", "_file"];

/// Members that have a place of their own. All other members are parameters of the task, or name files.
const PLACED: [&str; 10] =
    ["context", "paths", "task", "prior_context", "feature_id", "workflow", "iteration", "action", "params", OURS];

struct Rewriting<'t, 's> {
    root: Value<'t, 's>,
    context: Option<Value<'t, 's>>,
    task: Option<Value<'t, 's>>,
    changes: Vec<Change>,
}

pub(super) fn rewrite(root: Value<'_, '_>, options: &Options<'_>) -> Result<(String, Vec<Change>), Refused> {
    let context = typed(Some(root), &["context"], Type::Object, &WF_102)?;
    let task = typed(Some(root), &["task"], Type::Object, &WF_102)?;
    let mut rewriting = Rewriting { root, context, task, changes: Vec::new() };
    rewriting.demand_names(options)?;
    let mut input = Object::default();
    input.add("context", &rewriting.context(options)?);
    rewriting.paths(&mut input)?;
    input.add("task", &rewriting.task(options)?);
    for name in ["prior_context", OURS] {
        root.get(name).map(|value| input.keep(value));
    }
    Ok((input.finish(), rewriting.changes))
}

impl<'t, 's> Rewriting<'t, 's> {
    /// Demands all missing names at once.
    fn demand_names(&self, options: &Options<'_>) -> Result<(), Refused> {
        let lacks = |owner: Option<Value<'_, '_>>, name| {
            owner.and_then(|owner| owner.get(name)).or_else(|| self.root.get(name)).is_none()
        };
        let workflow = options.workflow.is_none() && lacks(self.context, "workflow");
        let action = options.action.is_none() && lacks(self.task, "action") && self.mode().is_none();
        if workflow || action {
            return Err(Refused::Unnamed { workflow, action });
        }
        Ok(())
    }

    /// Returns what an agent of two modes was told to do.
    fn mode(&self) -> Option<Value<'t, 's>> {
        self.root.get("mode").filter(|mode| mode.kind() == Type::String)
    }

    fn context(&mut self, options: &Options<'_>) -> Result<String, Refused> {
        let mut context = Object::default();
        self.context.into_iter().flat_map(Value::members).for_each(|(_, member)| {
            context.keep(member);
        });
        for name in OF_CONTEXT {
            if self.move_member(name, self.context, "context", &mut context)? {
                continue;
            }
            match name {
                "workflow" => self.give("context", name, options.workflow, &mut context),
                "feature_id" => self.make_up(&["context", name], "null", &mut context),
                _ => self.make_up(&["context", name], "1", &mut context),
            }
        }
        Ok(context.finish())
    }

    /// Moves a flat member to its place, unless that is taken. Returns whether the place has a value now.
    fn move_member(
        &mut self,
        name: &'static str,
        owner: Option<Value<'t, 's>>,
        owner_name: &str,
        into: &mut Object<'s>,
    ) -> Result<bool, Refused> {
        let there = owner.and_then(|owner| owner.get(name));
        let Some(flat) = self.root.get(name) else { return Ok(there.is_some()) };
        let (from, to) = (pointer(&[name]), pointer(&[owner_name, name]));
        self.changes.push(match there {
            None => {
                into.keep(flat);
                Change::Moved { from, to }
            }
            Some(there) if json::equal(flat, there) => Change::Repeated { from, at: to },
            Some(_) => return Err(Refused::Taken { from, to }),
        });
        Ok(true)
    }

    fn make_up(&mut self, path: &[&'static str], value: &'static str, into: &mut Object<'s>) {
        into.add(path.last().copied().unwrap_or_default(), value);
        self.changes.push(Change::Added { at: pointer(path), value });
    }

    fn give(&mut self, owner: &str, name: &'static str, given: Option<&str>, into: &mut Object<'s>) {
        if let Some(given) = given {
            into.add(name, &json::quoted(given));
            self.changes.push(Change::Given { at: pointer(&[owner, name]) });
        }
    }

    fn paths(&mut self, input: &mut Object<'s>) -> Result<(), Refused> {
        let files: Vec<(Text<'s>, Value<'t, 's>)> =
            self.root.members().filter(|(name, value)| names_files(&name.decode(), *value)).collect();
        if files.is_empty() {
            match self.root.get("paths") {
                Some(paths) => drop(input.keep(paths)),
                None => self.make_up(&["paths"], "{}", input),
            }
            return Ok(());
        }
        let there = typed(Some(self.root), &["paths"], Type::Object, &WF_104)?;
        let mut paths = Object::default();
        for (_, member) in there.into_iter().flat_map(Value::members) {
            paths.keep(member);
        }
        for (name, file) in files {
            let name = name.decode();
            let (from, to) = (pointer(&[&name]), pointer(&["paths", &name]));
            let other = there.and_then(|there| there.get(&name));
            self.changes.push(match other {
                None => {
                    paths.keep(file);
                    Change::Moved { from, to }
                }
                Some(other) if json::equal(file, other) => Change::Repeated { from, at: to },
                Some(_) => return Err(Refused::Taken { from, to }),
            });
        }
        input.add("paths", &paths.finish());
        Ok(())
    }

    fn task(&mut self, options: &Options<'_>) -> Result<String, Refused> {
        let mut task = Object::default();
        let known = self.task.and_then(|old| old.get("action"));
        known.map(|action| task.keep(action));
        let has_action = self.move_member("action", self.task, "task", &mut task)?;
        let mode_is_action = self.mode_as_action(has_action, &mut task);
        if !has_action && !mode_is_action {
            self.give("task", "action", options.action, &mut task);
        }
        let params = self.params(mode_is_action)?;
        task.add("params", &params);
        for (_, member) in self.task.into_iter().flat_map(Value::members) {
            // The action and the parameters are there already.
            task.keep(member);
        }
        Ok(task.finish())
    }

    /// Returns whether the mode is the action, or says the same. A different mode beside an action is a parameter.
    fn mode_as_action(&mut self, has_action: bool, task: &mut Object<'s>) -> bool {
        let Some(mode) = self.mode() else { return false };
        let (from, to) = (pointer(&["mode"]), pointer(&["task", "action"]));
        if !has_action {
            task.add("action", mode.source());
            self.changes.push(Change::Moved { from, to });
            return true;
        }
        let action = self.task.and_then(|task| task.get("action")).or_else(|| self.root.get("action"));
        let repeated = action.is_some_and(|action| json::equal(action, mode));
        if repeated {
            self.changes.push(Change::Repeated { from, at: to });
        }
        repeated
    }

    fn params(&mut self, mode_is_action: bool) -> Result<String, Refused> {
        let there = typed(self.task, &["task", "params"], Type::Object, &WF_1_3)?;
        let flat = typed(Some(self.root), &["params"], Type::Object, &WF_1_3)?;
        let mut params = Object::default();
        for (_, member) in there.into_iter().flat_map(Value::members) {
            params.keep(member);
        }
        if let Some(flat) = flat {
            for (name, member) in flat.members() {
                free(params.keep(member), &["params", &name.decode()], &name.decode())?;
            }
            self.changes.push(Change::Moved { from: pointer(&["params"]), to: pointer(&["task", "params"]) });
        }
        let moved = self.other_members(mode_is_action, &mut params)?;
        if there.is_none() && flat.is_none() && !moved {
            self.changes.push(Change::Added { at: pointer(&["task", "params"]), value: "{}" });
        }
        Ok(params.finish())
    }

    /// Moves the members that have no place of their own. Returns whether there were any.
    fn other_members(&mut self, mode_is_action: bool, params: &mut Object<'s>) -> Result<bool, Refused> {
        let mut moved = false;
        for (name, member) in self.root.members() {
            let name = name.decode();
            if PLACED.contains(&&*name) || (mode_is_action && name == "mode") || names_files(&name, member) {
                continue;
            }
            free(params.keep(member), &[&name], &name)?;
            self.changes.push(Change::Moved { from: pointer(&[&name]), to: pointer(&["task", "params", &name]) });
            moved = true;
        }
        Ok(moved)
    }
}

/// Whether a member names files: by its name, and by a value that `paths` may have. Anything else of such a name is a
/// parameter.
fn names_files(name: &str, value: Value<'_, '_>) -> bool {
    let is_text = |value: Value<'_, '_>| value.kind() == Type::String;
    let is_of_paths = is_text(value) || (value.kind() == Type::Array && value.items().all(is_text));
    let stem = OF_PATHS.iter().find_map(|ending| name.strip_suffix(ending));
    is_of_paths && stem.is_some_and(|stem| !stem.is_empty())
}

/// Refuses to overwrite a parameter.
fn free(was_free: bool, from: &[&str], name: &str) -> Result<(), Refused> {
    if was_free {
        return Ok(());
    }
    Err(Refused::Taken { from: pointer(from), to: pointer(&["task", "params", name]) })
}
