//! Where one run of a workflow stands.
//!
//! A run is a fold over what happened: [`Run::begin`], then [`Run::apply`] for each [`Happened`] in order. It reads no
//! clock and no file, so what happened is all that has to be stored. After a crash the same history gives the same run,
//! and [`Run::next`] says what to do.
//!
//! Agents recommend and the definition decides (WF-6.3). Three rules decide everything else:
//! - a retry adds 1 to the iteration and is counted for its stage; when the limit is used up, a person is asked (WF-7);
//! - a person is asked before anything goes on after `escalate`, and only a person starts the count anew;
//! - what a stage is told before it runs is what the output before it said. A stage that broke is told the same again.

mod clash;
mod decided;
mod envelope;
mod feature;
mod happened;
mod history;
mod next;
mod notes;
mod question;

use std::fmt;
use std::sync::Arc;

pub use decided::{Decided, Impossible, Way};
pub use feature::{Feature, Misnamed};
pub use happened::Happened;
pub use next::{Asking, Next, StageRun, Why};
pub use notes::kept as kept_notes;

use crosspoint_contracts::workflow::Recommendation;

use crate::definition::{Definition, Entry, Stage, Target};
use crate::repository::{Clash, Written};
pub use history::is_readable;
use history::{Answer, History};
use question::{About, Question};

/// Most stages that run without a person's answer, whatever the limits of the stages add up to. An answer allows as
/// many again.
pub const STEPS_MAX: u32 = 10_000;

/// One run of a workflow.
#[derive(Clone, PartialEq, Eq)]
pub struct Run {
    definition: Arc<Definition>,
    feature: Option<Feature>,
    iteration: u32,
    step: u32,
    /// The last step before a person is asked whether to go on.
    last_step: u32,
    state: State,
    /// What the next stage is told of the one before: notes, clashes, an answer.
    prior: Vec<String>,
    /// What is remembered of each stage.
    histories: Vec<History>,
}

#[derive(Clone, PartialEq, Eq)]
enum State {
    /// The stage of this number runs.
    Running(usize),
    /// A person is asked.
    Asking(Question),
    Done,
}

/// What agents and people said is left out.
impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Running(at) => format!("running {}", self.stage(*at).id),
            State::Asking(question) => format!("asking about {}", self.stage(question.stage).id),
            State::Done => "done".to_owned(),
        };
        f.debug_struct("Run")
            .field("workflow", &self.definition.name())
            .field("iteration", &self.iteration)
            .field("step", &self.step)
            .field("state", &format_args!("{state}"))
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Begins a run at the first stage. Without a feature, it is taken from what the stages write (WF-10).
    pub fn begin(definition: Arc<Definition>, feature: Option<Feature>) -> Run {
        let histories = vec![History::default(); definition.stages().len()];
        Run {
            definition,
            feature,
            iteration: 1,
            step: 1,
            last_step: STEPS_MAX,
            state: State::Running(0),
            prior: Vec::new(),
            histories,
        }
    }

    /// Returns what has to be done next.
    pub fn next(&self) -> Next<'_> {
        match &self.state {
            State::Running(at) => Next::Stage(StageRun::new(self, *at)),
            State::Asking(question) => Next::Ask(Asking::new(self, question)),
            State::Done => Next::Done,
        }
    }

    /// Takes note of what happened, and returns what was decided. What does not fit is refused, and changes nothing.
    pub fn apply(&mut self, happened: &Happened) -> Result<Decided, Impossible> {
        self.expects(happened.step())?;
        match happened {
            Happened::Said { success, summary, notes, recommendation, artifacts, conflicts, .. } => {
                let stage = self.running()?;
                self.prior = notes::kept(notes);
                if conflicts.is_empty() {
                    self.find_feature(artifacts);
                }
                let clashes = clash::sentences(conflicts);
                // What a person has to know first is why nothing was written, whatever the agent says of its work.
                let said = clashes.first().unwrap_or(summary).clone();
                self.prior.extend(clashes);
                Ok(self.follow(stage, verdict(*success, *recommendation, conflicts), &said))
            }
            Happened::Broke { failure, clause, message, .. } => {
                let stage = self.running()?;
                let text = question::of_failure(self.stage(stage), failure, clause.as_deref(), message);
                Ok(self.ask(Question { stage, about: About::Failure, text, notes: Vec::new() }))
            }
            Happened::Answered { answer, .. } => {
                let question = self.asked()?.clone();
                let answer = Answer::read(&question.text, answer.get()).ok_or(Impossible::Unreadable)?;
                Ok(self.answered(&question, answer))
            }
        }
    }

    /// Returns how many times the workflow has gone round, from 1.
    pub fn iteration(&self) -> u32 {
        self.iteration
    }

    /// Returns the feature that is worked on, once it is known.
    pub fn feature(&self) -> Option<&Feature> {
        self.feature.as_ref()
    }

    /// Returns the number of the present run of a stage, from 1. A question has the number of the run it is about.
    pub fn step(&self) -> u32 {
        self.step
    }

    /// Returns the definition that the run follows.
    pub fn definition(&self) -> &Arc<Definition> {
        &self.definition
    }

    fn stage(&self, at: usize) -> &Stage {
        &self.definition.stages()[at]
    }

    fn expects(&self, given: u32) -> Result<(), Impossible> {
        match self.state {
            State::Done => Err(Impossible::Over),
            State::Running(_) | State::Asking(_) if given != self.step => {
                Err(Impossible::OtherStep { expected: self.step, given })
            }
            State::Running(_) | State::Asking(_) => Ok(()),
        }
    }

    fn running(&self) -> Result<usize, Impossible> {
        match self.state {
            State::Running(at) => Ok(at),
            State::Asking(_) => Err(Impossible::Asked),
            State::Done => Err(Impossible::Over),
        }
    }

    fn asked(&self) -> Result<&Question, Impossible> {
        match &self.state {
            State::Running(_) => Err(Impossible::NotAsked),
            State::Asking(question) => Ok(question),
            State::Done => Err(Impossible::Over),
        }
    }

    /// Takes the feature from the first artifact at one of the workflow's paths (WF-10).
    fn find_feature(&mut self, artifacts: &[Written]) {
        if self.feature.is_none() {
            let templates = || self.definition.paths().iter().flat_map(Entry::templates);
            let of_path = |artifact: &Written| templates().find_map(|template| template.feature_of(&artifact.path));
            self.feature = artifacts.iter().find_map(of_path);
        }
    }

    fn follow(&mut self, at: usize, verdict: Verdict, summary: &str) -> Decided {
        match verdict {
            Verdict::Proceed => match self.stage(at).proceed {
                Target::Stage(next) => self.enter(next, Way::Proceed),
                Target::Done => self.end(),
            },
            Verdict::Retry => self.retry(at, Way::Retry, summary),
            Verdict::Conflict => self.retry(at, Way::Conflict, summary),
            Verdict::Escalate => self.escalate(at, About::Escalation, summary),
        }
    }

    fn end(&mut self) -> Decided {
        self.state = State::Done;
        Decided::Done
    }

    fn retry(&mut self, at: usize, way: Way, summary: &str) -> Decided {
        let retry = self.stage(at).retry;
        if self.histories[at].retries >= retry.limit {
            return self.escalate(at, About::Limit, summary);
        }
        self.histories[at].retries += 1;
        self.iteration = self.iteration.saturating_add(1);
        self.enter(retry.goto, way)
    }

    fn escalate(&mut self, at: usize, about: About, summary: &str) -> Decided {
        let text = question::cut(summary);
        let notes = self.prior.iter().filter(|note| **note != text).cloned().collect();
        self.ask(Question { stage: at, about, text, notes })
    }

    fn ask(&mut self, question: Question) -> Decided {
        let decided = Decided::Ask { question: question.text.clone(), why: question.about.why() };
        self.state = State::Asking(question);
        decided
    }

    fn answered(&mut self, question: &Question, answer: Answer) -> Decided {
        self.last_step = self.step.saturating_add(STEPS_MAX);
        match question.about {
            About::Escalation | About::Limit => {
                let then = self.stage(question.stage).then;
                self.histories[question.stage].retries = 0;
                self.prior.push(answer.sentence());
                self.histories[then].answers.push(answer);
                self.enter(then, Way::Escalated)
            }
            // The answer is a person's word that something was mended. It is not for the agent.
            About::Failure => {
                self.histories[question.stage].retries = 0;
                self.enter(question.stage, Way::Resumed)
            }
            About::Steps { way } => self.enter(question.stage, way),
        }
    }

    fn enter(&mut self, at: usize, way: Way) -> Decided {
        if self.step >= self.last_step {
            let text = question::of_steps(self.stage(at), self.step);
            return self.ask(Question { stage: at, about: About::Steps { way }, text, notes: Vec::new() });
        }
        self.step += 1;
        self.state = State::Running(at);
        Decided::Stage { id: self.stage(at).id.clone(), step: self.step, iteration: self.iteration, why: way }
    }
}

/// What an output comes to.
#[derive(Clone, Copy)]
enum Verdict {
    Proceed,
    Retry,
    /// A retry, because nothing was written.
    Conflict,
    Escalate,
}

/// A conflict counts as a retry, whatever was recommended (WF-5.4). A failure that recommends to proceed contradicts
/// itself, and reads as escalate (WF-3).
fn verdict(success: bool, recommendation: Recommendation, conflicts: &[Clash]) -> Verdict {
    if !conflicts.is_empty() {
        return Verdict::Conflict;
    }
    match recommendation {
        Recommendation::Proceed if success => Verdict::Proceed,
        Recommendation::Retry => Verdict::Retry,
        Recommendation::Proceed | Recommendation::Escalate => Verdict::Escalate,
    }
}
