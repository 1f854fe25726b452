//! A workflow drawn as text, for terminals without colour.

use std::fmt::Write;

use super::{DONE, Definition, Stage, Target};

/// Width of a terminal that everybody has, in columns.
const COLUMNS: usize = 80;

pub(super) fn drawn(definition: &Definition) -> String {
    let widest = definition.stages.iter().map(|stage| stage.id.chars().count()).max().unwrap_or_default();
    let mut text = format!("{}\n\n", definition.name);
    for stage in &definition.stages {
        text.push_str(&heading(stage, widest));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    |- proceed   {}", end_of(definition, stage.proceed));
        let _ = writeln!(text, "    |- retry     {}", retry(definition, stage));
        let _ = writeln!(text, "    `- escalate  a person, then {}", definition.stages[stage.then].id);
    }
    text
}

/// The stage with its agent and action: beside it where they fit, otherwise below.
fn heading(stage: &Stage, widest: usize) -> String {
    let line = format!("  {:widest$}  {}: {}", stage.id, stage.agent, stage.action);
    if line.chars().count() <= COLUMNS {
        return line + "\n";
    }
    format!("  {}\n    |  {}\n    |  {}\n", stage.id, stage.agent, stage.action)
}

fn retry(definition: &Definition, stage: &Stage) -> String {
    let goto = &definition.stages[stage.retry.goto].id;
    match stage.retry.limit {
        0 => "never: a person is asked".to_owned(),
        1 => format!("{goto}, once"),
        limit => format!("{goto}, at most {limit} times"),
    }
}

fn end_of(definition: &Definition, target: Target) -> &str {
    match target {
        Target::Stage(at) => &definition.stages[at].id,
        Target::Done => DONE,
    }
}
