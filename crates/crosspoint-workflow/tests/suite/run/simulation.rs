//! Made-up workflows, in which anything may happen.

use std::collections::BTreeMap;
use std::sync::Arc;

use crosspoint_contracts::workflow::Recommendation;
use crosspoint_workflow::definition::{Definition, Target};
use crosspoint_workflow::repository::ClashReason;
use crosspoint_workflow::run::{Way, Why};
use proptest::prelude::*;

use super::envelopes::check;
use super::*;

/// What is done to a run, whatever its state. What does not fit must be refused.
#[derive(Clone, Debug)]
enum Act {
    Say {
        success: bool,
        recommendation: usize,
        notes: Vec<String>,
        paths: Vec<String>,
        clashes: usize,
    },
    Break,
    Answer(String),
    /// Something of another step.
    Stray,
}

fn act() -> impl Strategy<Value = Act> {
    let path =
        prop::sample::select(vec!["specs/f1/a.md", "specs/.git/x", "readme.md", "specs/\u{e9}/spec.md", "x-f2.md"]);
    let paths = prop::collection::vec(path.prop_map(str::to_owned), 0..3);
    let notes = prop::collection::vec("\\PC{0,12}", 0..3);
    let answers = ["null", "\"yes\"", "{\"a\": [1.0, \"\\u00e9\"]}", "7", "{\"a\":1,\"a\":2}", "\"\\ud800\""];
    prop_oneof![
        12 => (any::<bool>(), 0_usize..3, notes, paths, prop_oneof![4 => Just(0), 1 => 0_usize..25])
            .prop_map(|(success, recommendation, notes, paths, clashes)| Act::Say { success, recommendation, notes, paths, clashes }),
        1 => Just(Act::Break),
        5 => prop::sample::select(answers.to_vec()).prop_map(|json| Act::Answer(json.to_owned())),
        1 => Just(Act::Stray),
    ]
}

impl Act {
    fn happens(&self, step: u32) -> Happened {
        match self {
            Act::Say { success, recommendation, notes, paths, clashes } => {
                let clashing: Vec<String> = (0..*clashes).map(|number| format!("c{number}.md")).collect();
                let kinds = [ClashReason::Exists, ClashReason::Missing];
                let clashes: Vec<_> =
                    clashing.iter().zip(kinds.into_iter().cycle()).map(|(path, why)| (path.as_str(), why)).collect();
                let said = output(Recommendation::ALL[*recommendation]).notes(&strs(notes)).wrote(&strs(paths));
                Output { success: *success, ..said.clashed(&clashes) }.at(step)
            }
            Act::Break => {
                let (failure, message) = ("timeout".to_owned(), "took too long".to_owned());
                Happened::Broke { step, job: None, failure, clause: None, message }
            }
            Act::Answer(json) => answer(json, step),
            Act::Stray => proceed().at(step + 1),
        }
    }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// The file of a workflow that can run: stages proceed forwards, and retry and escalate anywhere.
fn file() -> impl Strategy<Value = String> {
    let stage = (
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        0_u32..4,
        any::<bool>(),
    );
    prop::collection::vec(stage, 1..6).prop_map(|stages| {
        let count = stages.len();
        let mut text =
            "name = \"w\"\n[paths]\nroot = \"specs/{feature}/\"\nmore = [\"x-{feature}.md\", \"fixed.md\"]\n"
                .to_owned();
        for (at, (proceed, goto, then, limit, params)) in stages.iter().enumerate() {
            let next = at + 1 + proceed.index(count - at);
            let proceed = if next >= count { "done".to_owned() } else { id(next) };
            let params = if *params { "params = { deep = { a = [1, 2] } }" } else { "" };
            text += &format!(
                "[[stage]]\nid = \"{}\"\nagent = \"ag3nt{at}\"\naction = \"do\"\nproceed = \"{proceed}\"\n\
                 retry = {{ goto = \"{}\", limit = {limit} }}\nescalate = {{ then = \"{}\" }}\n{params}\n",
                id(at),
                id(goto.index(count)),
                id(then.index(count)),
            );
        }
        text
    })
}

fn id(at: usize) -> String {
    format!("st4ge{at}")
}

/// What the state of a run shows.
fn shown(run: &Run) -> String {
    match run.next() {
        Next::Stage(stage) => format!("{} {} {}", stage.step, stage.stage.id, stage.envelope()),
        Next::Ask(asking) => {
            format!("{} {} {} {:?} {:?}", asking.step, asking.stage.id, asking.question, asking.notes, asking.why)
        }
        Next::Done => "done".to_owned(),
    }
}

/// The rule for the iteration, the retries and the steps, kept beside the run.
#[derive(Default)]
struct Watch {
    retries: BTreeMap<String, u32>,
    kept: Vec<String>,
}

impl Watch {
    fn looks(&mut self, before: &Run, happened: &Happened, decided: &Decided, after: &Run) {
        self.kept.push(serde_json::to_string(happened).expect("it can be written"));
        let retried = matches!(decided, Decided::Stage { why: Way::Retry | Way::Conflict, .. });
        assert_eq!(after.iteration(), before.iteration() + u32::from(retried), "only a retry adds to the iteration");
        let entered = matches!(decided, Decided::Stage { .. });
        assert_eq!(after.step(), before.step() + u32::from(entered), "a step is a run of a stage");
        match before.next() {
            Next::Stage(stage) if retried => {
                let count = self.retries.entry(stage.stage.id.clone()).or_default();
                *count += 1;
                assert!(*count <= stage.stage.retry.limit, "{} retried {count} times", stage.stage.id);
            }
            Next::Ask(asking) => drop(self.retries.remove(&asking.stage.id)),
            Next::Stage(_) | Next::Done => {}
        }
        if let Next::Stage(stage) = after.next() {
            let envelope = stage.envelope();
            check(&envelope);
            assert!(!envelope.contains("st4ge") && !envelope.contains("ag3nt"), "{envelope}");
        }
    }

    /// The same history, read from what was stored, makes the same run.
    fn again(&self, definition: &Arc<Definition>) -> Run {
        let mut run = Run::begin(definition.clone(), None);
        for text in &self.kept {
            let happened: Happened = serde_json::from_str(text).expect("it can be read");
            run.apply(&happened).expect("it happened before");
        }
        run
    }
}

/// Most steps without a person: each retry may begin a walk through all stages.
fn steps_max(definition: &Definition) -> u32 {
    let retries: u32 = definition.stages().iter().map(|stage| stage.retry.limit).sum();
    let stages = u32::try_from(definition.stages().len()).expect("they are few");
    stages * (retries + 1)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_a_function_of_its_history(file in file(), acts in prop::collection::vec(act(), 0..60)) {
        let definition = Arc::new(read(&file));
        let mut run = Run::begin(definition.clone(), None);
        let mut watch = Watch::default();
        for act in &acts {
            let (before, happened) = (run.clone(), act.happens(run.step()));
            match run.apply(&happened) {
                Ok(decided) => watch.looks(&before, &happened, &decided, &run),
                Err(_) => prop_assert!(run == before, "what is refused changes nothing"),
            }
        }
        let again = watch.again(&definition);
        prop_assert!(again == run);
        prop_assert_eq!(shown(&again), shown(&run));
    }

    #[test]
    fn without_a_person_a_run_comes_to_an_end_or_a_question(file in file(), says in prop::collection::vec((any::<bool>(), 0_usize..2), 1..40)) {
        let definition = Arc::new(read(&file));
        let mut run = Run::begin(definition.clone(), None);
        let mut says = says.iter().cycle();
        while let (Next::Stage(stage), Some((success, recommendation))) = (run.next(), says.next()) {
            let step = stage.step;
            prop_assert!(step <= steps_max(&definition));
            let success = *success || *recommendation == 0;
            let happened = Output { success, ..output(Recommendation::ALL[*recommendation]) }.at(step);
            prop_assert!(run.apply(&happened).is_ok());
        }
    }

    #[test]
    fn a_run_in_which_all_goes_well_passes_each_stage_once(file in file()) {
        let definition = Arc::new(read(&file));
        let (mut run, mut expected) = (Run::begin(definition.clone(), None), Target::Stage(0));
        while let Target::Stage(at) = expected {
            prop_assert_eq!(stage(&run), &definition.stages()[at].id);
            expected = definition.stages()[at].proceed;
            said(&mut run, proceed());
        }
        prop_assert!(is_done(&run));
        prop_assert_eq!(run.iteration(), 1);
    }
}

#[test]
fn whys_are_told_apart() {
    let all = [Why::Escalated, Why::LimitReached, Why::Broke, Why::StepsUsedUp];
    let words = all.map(|why| serde_json::to_string(&why).expect("it can be written"));
    assert_eq!(words, ["\"escalated\"", "\"limit_reached\"", "\"broke\"", "\"steps_used_up\""]);
}
