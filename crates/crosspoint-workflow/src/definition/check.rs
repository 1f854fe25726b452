//! Whether there are agents for the stages.

use std::collections::{BTreeMap, BTreeSet};

use super::mistake::{Mistake, Mistakes, quoted};
use super::{Definition, Stage};

pub(super) fn agents(definition: &Definition, works_of: &dyn Fn(&str) -> Option<Vec<String>>) -> Vec<Mistake> {
    let own = |name: &str| definition.agents.iter().any(|agent| agent.name == name);
    let strangers = definition.stages.iter().filter(|stage| !own(&stage.agent));
    // Each agent is asked for once, however many stages it has.
    let names: BTreeSet<&str> = strangers.clone().map(|stage| stage.agent.as_str()).collect();
    let works: BTreeMap<&str, Option<Vec<String>>> = names.into_iter().map(|name| (name, works_of(name))).collect();
    let known = definition.agents.iter().map(|agent| agent.name.as_str());
    let known: Vec<&str> =
        known.chain(works.iter().filter(|(_, works)| works.is_some()).map(|(name, _)| *name)).collect();
    let mut mistakes = Mistakes::default();
    for stage in strangers {
        match works.get(stage.agent.as_str()).and_then(Option::as_ref) {
            Some(works) if works.contains(&stage.action) => {}
            Some(works) => no_action(stage, works, &mut mistakes),
            None => no_agent(stage, &known, &mut mistakes),
        }
    }
    mistakes.sorted()
}

fn no_agent(stage: &Stage, known: &[&str], mistakes: &mut Mistakes) {
    let otherwise = || {
        "configure it in the server's crosspoint.toml (without a server: the one here), or add an [[agent]] to this file".to_owned()
    };
    let hint = mistakes.suggestion(&stage.agent, known, otherwise);
    mistakes.error(stage.spans.agent.clone(), format!("there is no agent {}", quoted(&stage.agent)), hint);
}

fn no_action(stage: &Stage, works: &[String], mistakes: &mut Mistakes) {
    let known: Vec<&str> = works.iter().map(String::as_str).collect();
    let hint = mistakes.suggestion(&stage.action, &known, || match known.is_empty() {
        true => "it takes no work: give it a list `work` in the configuration".to_owned(),
        false => format!("it takes {}", known.join(", ")),
    });
    let what = format!("the agent {} does not take the action {}", quoted(&stage.agent), quoted(&stage.action));
    mistakes.error(stage.spans.action.clone(), what, hint);
}
