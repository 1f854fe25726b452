//! A workflow as a flowchart in the language of Mermaid.
//!
//! Names of the file stand in labels only, and every character of them that could mean something to Mermaid or to a
//! browser is written as its number.

use std::fmt::Write;

use super::{Definition, Stage, Target};

pub(super) fn flowchart(definition: &Definition) -> String {
    let mut chart =
        format!("flowchart TD\n    start([\"{}\"]) --> s0\n    done([\"done\"])\n", label(&definition.name));
    for (at, stage) in definition.stages.iter().enumerate() {
        node(&mut chart, at, stage);
        routes(&mut chart, at, stage);
    }
    chart
}

// Writing to a String cannot fail.
fn node(chart: &mut String, at: usize, stage: &Stage) {
    let [id, agent, action] = [&stage.id, &stage.agent, &stage.action].map(|name| label(name));
    let _ = writeln!(chart, "    s{at}[\"{id}<br/>{agent}: {action}\"]");
    let _ = writeln!(chart, "    p{at}{{{{\"a person\"}}}}");
}

fn routes(chart: &mut String, at: usize, stage: &Stage) {
    let _ = match stage.proceed {
        Target::Stage(next) => writeln!(chart, "    s{at} -->|proceed| s{next}"),
        Target::Done => writeln!(chart, "    s{at} -->|proceed| done"),
    };
    if stage.retry.limit > 0 {
        let _ = writeln!(chart, "    s{at} -.->|\"retry, at most {}\"| s{}", stage.retry.limit, stage.retry.goto);
    }
    let _ = writeln!(chart, "    s{at} -->|escalate| p{at}");
    let _ = writeln!(chart, "    p{at} -->|answer| s{}", stage.then);
}

fn label(name: &str) -> String {
    let mut label = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_alphanumeric() || matches!(character, ' ' | '-' | '_' | '.') {
            label.push(character);
        } else {
            let _ = write!(label, "#{};", u32::from(character));
        }
    }
    label
}
