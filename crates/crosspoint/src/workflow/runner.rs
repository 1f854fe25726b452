//! Drives runs: the link of the built-in agent whose jobs are runs of workflows.
//!
//! What happened is stored step by step, and where the run stands follows from it (`crosspoint_workflow::run`). So a
//! run that is taken up after a crash reads its steps and goes on. A stage that was asked for is found by its key, and
//! files that were written are not written again, so neither is done twice.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question, Success};
use crosspoint_engine::core::{INTERNAL, Spec};
use crosspoint_engine::job::Job;
use crosspoint_engine::policy::{self, Policy, Repeats};
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_workflow::run::{Asking, Decided, Happened, Next, Run, StageRun, Why, is_readable};
use serde::Serialize;
use serde_json::value::RawValue;

use super::began;
use super::blocking::blocking;
use super::ending::Last;
use super::held::Hold;
use super::order::{Checked, Order};
use super::places::Places;
use super::recovery;
use super::runs::Runs;
use super::workplace::{self, Workplace};
use super::{AGENT, WORK, stage};
use crate::schemas::Schemas;

/// Most runs that are under way at a time. Each is little more than a waiting task.
const CONCURRENCY: u32 = 100_000;

/// Longest time of a run: ten years. People may think for months, and each stage has its agent's limit.
const TOTAL: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Drives runs.
pub(super) struct Runner {
    pub(super) places: Places,
    runs: Arc<Runs>,
    pub(super) schemas: Arc<Schemas>,
}

/// Why a run is not driven on.
pub(super) enum Parting {
    /// The job goes on without this attempt.
    Over,
    /// The orchestrator ends; the run is taken up at its next start.
    Leaving,
    /// The run cannot go on.
    Failed(Box<Failed>),
}

/// Returns the agent that drives runs.
pub(crate) fn agent(places: Places, runs: &Arc<Runs>, schemas: &Arc<Schemas>) -> (Spec, Arc<dyn Link>) {
    let policy = Policy {
        silence: None,
        total: TOTAL,
        repeats: Repeats::BeforeStart,
        recovery: policy::Recovery::Resume,
        cut_short_max: None,
        ..Policy::DEFAULT
    };
    let spec = Spec {
        name: AGENT.into(),
        contract: INTERNAL.into(),
        agent_type: None,
        works: vec![WORK.into()],
        awaited: false,
        concurrency: CONCURRENCY,
        waiting_max: u32::MAX,
        policy,
    };
    (spec, Arc::new(Runner { places, runs: runs.clone(), schemas: schemas.clone() }))
}

impl Link for Runner {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            // A run is dropped where it is when the orchestrator ends, also while files are written: what is half done
            // then is finished or taken back when the run is taken up.
            let leaving = attempt.leaving();
            let driven = tokio::select! {
                driven = self.drive(&attempt) => driven,
                () = leaving => Err(Parting::Leaving),
            };
            match driven {
                Ok(success) => Ok(success),
                Err(Parting::Over) => Err(gone()),
                Err(Parting::Leaving) => {
                    attempt.abandon();
                    Err(gone())
                }
                Err(Parting::Failed(failed)) => Err(*failed),
            }
        })
    }

    /// Removes the copy of a dry run, now that its outcome is on disk. What the run changed is in its record.
    fn tidy(self: Arc<Self>, job: Arc<Job>, _number: u32) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { workplace::clear_copy(&self.places, job.id().uuid()).await })
    }
}

/// One step of a run, as it is stored and shown: what happened, at which stage, and what was decided.
#[derive(Serialize)]
struct Step<'s> {
    stage: &'s str,
    iteration: u32,
    happened: &'s Happened,
    decided: &'s Decided,
}

/// The part of a step from which a run is taken up.
#[derive(serde::Deserialize)]
struct StoredStep<'s> {
    #[serde(borrow)]
    happened: &'s RawValue,
}

impl Runner {
    async fn drive(&self, attempt: &Attempt) -> Result<Success, Parting> {
        let order = self.order(attempt).await?;
        let recovery = &self.places.neighbours().recovery;
        recovery.all(attempt, self.places.records()).await?;
        let id = attempt.job().id().uuid();
        let record = self.places.record(id);
        if attempt.is_resumed() {
            recovery::own(attempt, &record).await?;
        }
        // A dry run that has its copy already is not concerned; one that has not looks before it copies.
        if !order.dry_run {
            recovery.others(attempt, &order.root, &record).await?;
        }
        let run = Run::begin(order.definition.clone(), order.feature.clone());
        let (run, last) = replayed(attempt, run).await?;
        if last.has_begun() {
            workplace::expect_record(attempt, &record).await?;
        }
        let place = Arc::new(workplace::of_run(&self.places, attempt, &order).await?);
        let _under_way = self.runs.enter(id, place.clone());
        self.go_on(attempt, &place, run, last).await
    }

    /// Goes on with a run from where it stands.
    async fn go_on(
        &self,
        attempt: &Attempt,
        place: &Arc<Workplace>,
        mut run: Run,
        mut last: Last,
    ) -> Result<Success, Parting> {
        let mut unstored = None;
        let mut is_feature_known = false;
        loop {
            if let Some(feature) = run.feature().filter(|_| !is_feature_known) {
                let (record, feature) = (self.places.record(attempt.job().id().uuid()), feature.as_str().to_owned());
                blocking(move || began::note_feature(&record, &feature)).await?;
                is_feature_known = true;
            }
            let (at, iteration, happened) = match run.next() {
                Next::Done => break,
                Next::Stage(next) => {
                    let happened = self.stage(attempt, place, &next, unstored.take()).await?;
                    (next.stage.id.clone(), next.iteration, happened)
                }
                Next::Ask(asking) => {
                    store(attempt, unstored.take()).await?;
                    let prompt = prompt(&asking);
                    let answer = answered(attempt, last.answers, &prompt).await?;
                    let step = asking.step;
                    (asking.stage.id.clone(), run.iteration(), Happened::Answered { step, answer })
                }
            };
            let decided = run.apply(&happened).map_err(|_| broken_record(attempt))?;
            unstored = Some(Body::of(&Step { stage: &at, iteration, happened: &happened, decided: &decided }));
            last.note(happened);
        }
        store(attempt, unstored).await?;
        Ok(Success::of(Body::of(&last.outputs(&run))))
    }

    /// Reads what the run is asked for with. It was checked when it was accepted, if it came in by its own endpoint;
    /// the agents may have changed since, and a stage without its agent is parked when it is come to.
    ///
    /// A run that is taken up is not failed because it cannot go on here: it is held until it can, or until another
    /// process takes it up.
    async fn order(&self, attempt: &Attempt) -> Result<Checked, Parting> {
        let input = attempt.input().await.map_err(failed)?;
        let order = Order::read(input.get().as_bytes())
            .ok_or_else(|| invalid("The input is no order for a run: it needs a definition and a root."))?;
        let mut hold = Hold::default();
        loop {
            let (ordered, places) = (order.clone(), self.places.clone());
            let record = places.record(attempt.job().id().uuid());
            let check = move || ordered.check(&places).and_then(|checked| checked.where_it_began(&record));
            let why = match blocking(check).await? {
                Ok(checked) => return Ok(checked),
                Err(why) => why,
            };
            match why.held().filter(|_| attempt.is_resumed()) {
                Some(why) => hold.wait(attempt, &why).await?,
                None => {
                    let told = why.told(&order.definition);
                    let first = told.first().map(|(what, hint, _)| format!("{what}; {hint}")).unwrap_or_default();
                    return Err(invalid(&format!("The run cannot begin: {first}.")));
                }
            }
        }
    }

    /// Has a stage done. The step before it is stored with it, in the same commit.
    async fn stage(
        &self,
        attempt: &Attempt,
        place: &Arc<Workplace>,
        next: &StageRun<'_>,
        before: Option<Body>,
    ) -> Result<Happened, Parting> {
        let new = match stage::request(attempt, next) {
            Ok(new) => new,
            Err(broken) => {
                store(attempt, before).await?;
                return Ok(broken.happened(next.step));
            }
        };
        // A stage reads where it is started, and its files are written where the run began.
        place.reached(attempt).await?;
        let own = self.places.record(attempt.job().id().uuid());
        self.places.neighbours().recovery.others(attempt, &place.root, &own).await?;
        let mut before = before;
        let submitted = stage::submit(self, attempt, &next.stage.id, new, &mut before).await?;
        store(attempt, before).await?;
        // Only now, so that the stage does not wait for a commit of its own.
        attempt.progress_at_once(&stage::position(next));
        let watch = match submitted {
            Ok(watch) => watch,
            Err(broken) => return Ok(broken.happened(next.step)),
        };
        let job = stage::ended(attempt, next, &watch).await?;
        stage::outcome(attempt, (&self.places, place), next, job).await
    }
}

/// Returns a run as its steps left it, and what it has said. A disk that cannot be read just now is no reason to end a
/// run, or to leave it alone.
async fn replayed(attempt: &Attempt, begun: Run) -> Result<(Run, Last), Parting> {
    let mut hold = Hold::default();
    loop {
        let (mut run, mut last, mut fits) = (begun.clone(), Last::default(), true);
        let read = attempt.steps(|step| fits = fits && replay(&step, &mut run, &mut last).is_some());
        match read.await {
            Ok(()) if fits => return Ok((run, last)),
            Ok(()) => hold.wait(attempt, UNFIT).await?,
            Err(error) => {
                tracing::error!(job = %attempt.job().id(), %error, "the steps of a run cannot be read");
                hold.wait(attempt, "its steps cannot be read from the store just now").await?;
            }
        }
    }
}

/// The steps were written by this program, so it is another version of it that reads them.
const UNFIT: &str = "this version of crosspoint cannot read its steps; go back to the version that began it, or cancel \
                     the run";

fn replay(step: &Body, run: &mut Run, last: &mut Last) -> Option<()> {
    let happened = stored(step)?;
    run.apply(&happened).ok()?;
    last.note(happened);
    Some(())
}

/// Stores a step, if there is one.
async fn store(attempt: &Attempt, step: Option<Body>) -> Result<(), Parting> {
    match step {
        Some(step) => attempt.step(step).await.map_err(|Gone| Parting::Over),
        None => Ok(()),
    }
}

fn stored(step: &Body) -> Option<Happened> {
    let StoredStep { happened } = serde_json::from_str(step.get()).ok()?;
    serde_json::from_str(happened.get()).ok()
}

/// Asks a person, unless the answer is there already: a run that is taken up finds answers that were given while
/// nothing drove it. `known` is how many answers the run has heard. An answer that cannot be handed on to agents is
/// asked for again.
async fn answered(attempt: &Attempt, known: usize, prompt: &str) -> Result<Box<RawValue>, Parting> {
    let given = attempt.job().answers.iter().map(|answered| answered.answer.clone());
    let read = |answer: &Body| serde_json::from_str(answer.get()).map_err(|_| broken_record(attempt));
    if let Some(answer) = given.filter(|answer| is_readable(answer.get())).nth(known) {
        return read(&answer);
    }
    let mut prompt = prompt.to_owned();
    loop {
        let asked = attempt.ask(Question::of(Body::of(&prompt).get()));
        let answer = asked.await.map_err(|Gone| Parting::Over)?;
        if is_readable(answer.get()) {
            return read(&answer);
        }
        if !prompt.ends_with(UNREADABLE) {
            prompt.push_str(UNREADABLE);
        }
    }
}

/// What a person is told whose answer could not be used.
const UNREADABLE: &str = "\n- The last answer repeats a name in an object, or nests too deep; write it as plain JSON.";

/// What a person is shown: the question, and what the agent noted (WF-7.3); and that the agent did not ask, where it
/// would have gone on by itself (WF-7.2).
fn prompt(asking: &Asking<'_>) -> String {
    let mut prompt = asking.question.to_owned();
    for note in asking.notes {
        prompt.push_str("\n- ");
        prompt.push_str(note);
    }
    if asking.why == Why::LimitReached {
        let (id, limit) = (&asking.stage.id, asking.stage.retry.limit);
        let used_up = format!("\n(The stage {id} has used up its retries, {limit}. An answer starts the count anew.)");
        prompt.push_str(&used_up);
    }
    prompt
}

fn gone() -> Failed {
    Failed::of(Failure::Cancelled, Dispatched::Yes)
}

fn failed(failed: Failed) -> Parting {
    Parting::Failed(Box::new(failed))
}

pub(super) fn invalid(message: &str) -> Parting {
    failed(Failed::said(Failure::Invalid, Dispatched::No, message))
}

/// The steps of a run do not fit together. That is a defect of ours, or of the disk.
fn broken_record(attempt: &Attempt) -> Parting {
    tracing::error!(job = %attempt.job().id(), "the steps of a run do not fit together");
    failed(Failed::said(Failure::Internal, Dispatched::Yes, "The steps of the run do not fit together."))
}
