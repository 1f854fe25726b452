//! Where the routes of a workflow lead.
//!
//! `proceed` has no limit, so a loop of `proceed` alone would never end; `retry` has a limit, and a person stands in
//! the way of `escalate`.

use super::DONE;
use super::mistake::{Mistakes, quoted};
use super::stage::{Retry, Spans, Stage, Target, Word, Written};

/// Most stages of a loop that are named in its mistake.
const NAMED_MAX: usize = 10;

/// Resolves the routes to the numbers of stages. Returns `None` if there is no stage, or one cannot be used.
pub(super) fn resolved(written: Vec<Written>, mistakes: &mut Mistakes) -> Option<Vec<Stage>> {
    let ids: Vec<Option<String>> = written.iter().map(|stage| stage.id.text.clone()).collect();
    let places: Vec<_> = written.iter().map(|stage| (stage.id.span.clone(), stage.proceed.span.clone())).collect();
    // Every stage is looked at, also after one that cannot be used.
    let stages: Vec<Option<Stage>> =
        written.into_iter().enumerate().map(|(at, stage)| one(at, stage, &ids, mistakes)).collect();
    let stages: Vec<Stage> = stages.into_iter().collect::<Option<_>>()?;
    for looped in loops(&stages) {
        let what = format!("the stages go round without end: {}", named(&stages, &looped));
        mistakes.error(
            places[looped[0]].1.clone(),
            what,
            "let one of them proceed elsewhere, or come back by retry, which has a limit",
        );
    }
    for (at, _) in reached(&stages).iter().enumerate().filter(|(_, reached)| !**reached) {
        let what = format!("no route leads to the stage {}", quoted(&stages[at].id));
        mistakes.warning(places[at].0.clone(), what, "let a stage lead to it, or remove it");
    }
    (!stages.is_empty()).then_some(stages)
}

fn one(at: usize, stage: Written, ids: &[Option<String>], mistakes: &mut Mistakes) -> Option<Stage> {
    let goto = stage_of(&stage.goto, at, ids, mistakes);
    let then = stage_of(&stage.then, at, ids, mistakes);
    let proceed = proceed(&stage.proceed, at, ids, mistakes);
    Some(Stage {
        id: stage.id.text?,
        agent: stage.agent.text?,
        action: stage.action.text?,
        params: stage.params?,
        proceed: proceed?,
        retry: Retry { goto: goto?, limit: stage.limit },
        then: then?,
        allow_git: stage.allow_git,
        spans: Spans { agent: stage.agent.span, action: stage.action.span },
    })
}

/// `proceed` leads to the next stage of the file if it does not say otherwise.
fn proceed(route: &Word, at: usize, ids: &[Option<String>], mistakes: &mut Mistakes) -> Option<Target> {
    match route.get() {
        Some(DONE) => Some(Target::Done),
        Some(id) => find(id, route, ids, true, mistakes).map(Target::Stage),
        None if at + 1 < ids.len() => Some(Target::Stage(at + 1)),
        None => Some(Target::Done),
    }
}

/// `goto` and `then` lead to the same stage if they do not say otherwise.
fn stage_of(route: &Word, at: usize, ids: &[Option<String>], mistakes: &mut Mistakes) -> Option<usize> {
    match route.get() {
        Some(id) => find(id, route, ids, false, mistakes),
        None => Some(at),
    }
}

fn find(id: &str, route: &Word, ids: &[Option<String>], may_end: bool, mistakes: &mut Mistakes) -> Option<usize> {
    let found = ids.iter().position(|known| known.as_deref() == Some(id));
    // A stage without a readable id may be the one that is meant.
    if found.is_none() && ids.iter().all(Option::is_some) {
        let mut known: Vec<&str> = ids.iter().flatten().map(String::as_str).collect();
        if may_end {
            known.push(DONE);
        }
        let hint = mistakes.suggestion(id, &known, || "write the id of a stage of this file".to_owned());
        let only = if id == DONE { ": only proceed can end the workflow" } else { "" };
        mistakes.error(route.span.clone(), format!("there is no stage {}{only}", quoted(id)), hint);
    }
    found
}

/// Returns every loop of `proceed`, from its first stage in the file. Each stage proceeds to one place, so it is on one
/// loop at most.
fn loops(stages: &[Stage]) -> Vec<Vec<usize>> {
    let mut seen = vec![false; stages.len()];
    let mut loops = Vec::new();
    for start in 0..stages.len() {
        let (mut walk, mut at) = (Vec::new(), Some(start));
        while let Some(here) = at.filter(|here| !seen[*here]) {
            seen[here] = true;
            walk.push(here);
            at = after(&stages[here]);
        }
        // A walk that ends in an earlier walk has met no loop of its own.
        let from = walk.iter().position(|here| Some(*here) == at);
        loops.extend(from.map(|from| from_first(&walk[from..])));
    }
    loops
}

fn after(stage: &Stage) -> Option<usize> {
    match stage.proceed {
        Target::Stage(next) => Some(next),
        Target::Done => None,
    }
}

fn from_first(looped: &[usize]) -> Vec<usize> {
    let least = (0..looped.len()).min_by_key(|at| looped[*at]).unwrap_or(0);
    [&looped[least..], &looped[..least]].concat()
}

/// Names the stages of a loop: "write -> validate -> write".
fn named(stages: &[Stage], looped: &[usize]) -> String {
    let mut names: Vec<&str> = looped.iter().take(NAMED_MAX).map(|at| stages[*at].id.as_str()).collect();
    if looped.len() > NAMED_MAX {
        names.push("...");
    }
    names.push(&stages[looped[0]].id);
    names.join(" -> ")
}

/// Returns for each stage whether any route leads to it from the first.
fn reached(stages: &[Stage]) -> Vec<bool> {
    let mut reached = vec![false; stages.len()];
    let mut open: Vec<usize> = stages.first().map(|_| 0).into_iter().collect();
    while let Some(at) = open.pop() {
        if !std::mem::replace(&mut reached[at], true) {
            open.extend(after(&stages[at]));
            open.extend(again(&stages[at]));
            open.push(stages[at].then);
        }
    }
    reached
}

/// Where a retry leads. Without retries a person is asked at once.
fn again(stage: &Stage) -> Option<usize> {
    (stage.retry.limit > 0).then_some(stage.retry.goto)
}
