//! Workflow files, as authors write them.

mod any_text;
mod checked;
mod graphs;
mod mistakes;
mod paths;
mod pictures;
mod read;

use crosspoint_workflow::definition::{Definition, Mistake};

/// The file of the documentation.
pub(crate) const SPECIFY: &str = r#"
name = "specify"

[paths]
feature_root = "specs/{feature}/"
spec = "specs/{feature}/spec.md"

[[stage]]
id = "write"
agent = "spec-writer"
action = "create"
proceed = "validate"

[[stage]]
id = "validate"
agent = "validator"
action = "validate"
proceed = "done"
retry = { goto = "write", limit = 3 }
escalate = { then = "write" }
"#;

pub(crate) fn read(text: &str) -> Definition {
    Definition::read(text).unwrap_or_else(|mistakes| panic!("it has mistakes:\n{}", shown(text, &mistakes)))
}

/// A file with one stage, and these lines in it.
fn with_stage(lines: &str) -> String {
    format!("name = \"w\"\n[[stage]]\nid = \"a\"\nagent = \"x\"\naction = \"do\"\n{lines}\n")
}

/// The mistakes of a file, one to a line, with the text they are about.
fn mistakes(text: &str) -> String {
    let found = Definition::read(text).map_or_else(|mistakes| mistakes, |read| read.warnings().to_vec());
    shown(text, &found)
}

fn shown(text: &str, mistakes: &[Mistake]) -> String {
    mistakes.iter().map(|mistake| one(text, mistake)).collect()
}

fn one(text: &str, mistake: &Mistake) -> String {
    let at = text[..mistake.span.start].lines().count().max(1);
    let about = text[mistake.span.clone()].lines().next().unwrap_or_default();
    format!("{} near line {at}: {} [{about}]\n  {}\n", mistake.level.name(), mistake.what, mistake.hint)
}
