//! Drives runs: the link of the built-in agent whose jobs are runs of workflows.
//!
//! What happened is stored step by step, and where the run stands follows from it (`crosspoint_workflow::run`). So a
//! run that is taken up after a crash reads its steps and goes on. A stage that was asked for is found by its key, and
//! files that were written are not written again, so neither is done twice.

use std::future::Future;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question, Success};
use crosspoint_engine::core::{INTERNAL, Spec};
use crosspoint_engine::policy::{Policy, Recovery, Repeats};
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_workflow::repository::{self, CopyLimits, Repository};
use crosspoint_workflow::run::{Decided, Happened, Next, Run, StageRun, is_readable};
use serde::Serialize;
use serde_json::value::RawValue;

use super::ending::Last;
use super::held::Hold;
use super::order::{Order, Settled};
use super::places::Places;
use super::runs::{Runs, Workplace};
use super::{AGENT, WORK, stage};
use crate::schemas::Schemas;

/// Most runs that are under way at a time. Each is little more than a waiting task.
const CONCURRENCY: u32 = 100_000;

/// Longest time of a run: ten years. People may think for months, and each stage has its agent's limit.
const TOTAL: Duration = Duration::from_secs(10 * 365 * 86_400);

/// How much a dry run copies at most: more is no repository that is copied while a person waits.
const COPY_LIMITS: CopyLimits = CopyLimits { files_max: 500_000, bytes_max: 8 << 30 };

/// The file in a record that says that the copy is whole.
const COPIED: &str = "copied";

/// Drives runs.
pub(super) struct Runner {
    places: Places,
    runs: Arc<Runs>,
    pub(super) schemas: Arc<Schemas>,
    /// Set when nothing is half written any more that a crash left.
    recovered: tokio::sync::OnceCell<()>,
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
        recovery: Recovery::Resume,
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
    let recovered = tokio::sync::OnceCell::new();
    (spec, Arc::new(Runner { places, runs: runs.clone(), schemas: schemas.clone(), recovered }))
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
        let settled = self.settle(attempt).await?;
        self.recovered.get_or_init(|| recover_all(&self.places)).await;
        let id = attempt.job().id().uuid();
        let record = self.places.record(id);
        let place = Arc::new(self.workplace(attempt, &settled).await?);
        let _under_way = self.runs.enter(id, place.clone());
        let mut run = Run::begin(settled.definition.clone(), settled.feature.clone());
        self.recover(attempt, &record).await?;
        let mut last = Last::default();
        for step in steps(attempt).await? {
            let happened = stored(&step).ok_or_else(|| broken_record(attempt))?;
            run.apply(&happened).map_err(|_| broken_record(attempt))?;
            last.note(happened);
        }
        let mut unstored = None;
        loop {
            let (at, iteration, happened) = match run.next() {
                Next::Done => break,
                Next::Stage(next) => {
                    let happened = self.stage(attempt, (&place, &record), &next, unstored.take()).await?;
                    (next.stage.id.clone(), next.iteration, happened)
                }
                Next::Ask(asking) => {
                    store(attempt, unstored.take()).await?;
                    let prompt = prompt(asking.question, asking.notes);
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
        self.clear_copy(attempt, &settled).await;
        Ok(Success::of(Body::of(&last.outputs(&run))))
    }

    /// Reads what the run is asked for with. It was checked when it was accepted, if it came in by its own endpoint;
    /// the agents may have changed since, and a stage without its agent is parked when it is come to.
    ///
    /// A run that is taken up is not failed because it cannot go on here: it is held until it can, or until another
    /// process takes it up.
    async fn settle(&self, attempt: &Attempt) -> Result<Settled, Parting> {
        let input = attempt.input().await.map_err(failed)?;
        let order: Order = serde_json::from_str(input.get())
            .map_err(|_| invalid("The input is no order for a run: it needs a definition and a root."))?;
        let mut hold = Hold::default();
        loop {
            let (ordered, places) = (order.clone(), self.places.clone());
            let settling = tokio::task::spawn_blocking(move || ordered.settle(&places));
            let why = match settling.await {
                Ok(Ok(settled)) => return Ok(settled),
                Ok(Err(why)) => why,
                Err(_) => return Err(Parting::Leaving),
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

    /// Returns where the run works. A dry run works in a copy, which is made once.
    async fn workplace(&self, attempt: &Attempt, settled: &Settled) -> Result<Workplace, Parting> {
        let allowed = settled.definition.stages().iter().filter(|stage| stage.allow_git);
        let git_stages = allowed.map(|stage| stage.id.clone()).collect();
        if !settled.dry_run {
            let protected = self.places.protected().to_vec();
            let root = settled.root.clone();
            return Ok(Workplace { repository: opened(attempt, &root).await?, root, protected, git_stages });
        }
        let id = attempt.job().id().uuid();
        let (root, copy, record) = (settled.root.clone(), self.places.copy(id), self.places.record(id));
        let skip = self.places.protected().to_vec();
        let work = copy.clone();
        let made = tokio::task::spawn_blocking(move || copied(&root, &copy, &record, &skip)).await;
        let made = made.unwrap_or_else(|_| Err("it broke off".to_owned()));
        made.map_err(|why| invalid(&format!("The repository cannot be copied for a dry run: {why}.")))?;
        // What the run may not touch, it may not touch in the copy either: the diff would not be that of a real run.
        let inside = self.places.protected().iter().filter_map(|path| path.strip_prefix(&settled.root).ok());
        let protected = inside.map(|path| work.join(path)).collect();
        Ok(Workplace { repository: opened(attempt, &work).await?, root: work, protected, git_stages })
    }

    /// Finishes or takes back files that a crash left half written, before anything else is done in the repository.
    async fn recover(&self, attempt: &Attempt, record: &std::path::Path) -> Result<(), Parting> {
        if !attempt.is_resumed() {
            return Ok(());
        }
        let record = record.to_owned();
        match tokio::task::spawn_blocking(move || repository::recover(&record)).await {
            Ok(Ok(_)) => Ok(()),
            // The next output of the run is judged again, and the person who is then asked is told of it.
            Ok(Err(fault)) => {
                tracing::error!(job = %attempt.job().id(), fault = fault.kind(), "files of a run are half written");
                Ok(())
            }
            Err(_) => Err(Parting::Leaving),
        }
    }

    /// Removes the copy of a dry run that is over. What the run changed is in its record.
    async fn clear_copy(&self, attempt: &Attempt, settled: &Settled) {
        if settled.dry_run {
            let copy = self.places.copy(attempt.job().id().uuid());
            let _ = tokio::task::spawn_blocking(move || repository::remove(&copy)).await;
        }
    }

    /// Has a stage done. The step before it is stored with it, in the same commit.
    async fn stage(
        &self,
        attempt: &Attempt,
        (place, record): (&Arc<Workplace>, &PathBuf),
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
        let mut before = before;
        let submitted = stage::submit(self, attempt, &next.stage.id, new, &mut before).await?;
        store(attempt, before).await?;
        // Only now, so that the stage does not wait for a commit of its own.
        attempt.progress_at_once(&format!("{}, iteration {}", next.stage.id, next.iteration));
        let watch = match submitted {
            Ok(watch) => watch,
            Err(broken) => return Ok(broken.happened(next.step)),
        };
        let job = stage::ended(attempt, &watch).await?;
        stage::outcome(attempt, place, record, next, job).await
    }
}

/// Opens the repository of a run, as soon as that is possible.
async fn opened(attempt: &Attempt, root: &std::path::Path) -> Result<Repository, Parting> {
    let mut hold = Hold::default();
    loop {
        let root = root.to_owned();
        match tokio::task::spawn_blocking(move || Repository::open(&root)).await {
            Ok(Ok(repository)) => return Ok(repository),
            Ok(Err(fault)) => hold.wait(attempt, &format!("{fault}. {}", fault.hint())).await?,
            Err(_) => return Err(Parting::Leaving),
        }
    }
}

/// Finishes or takes back all files that a crash left half written, before any run works in a repository: several runs
/// may work in the same one, and do not know of each other.
async fn recover_all(places: &Places) {
    let records = places.records().to_owned();
    let recover = move || {
        for entry in std::fs::read_dir(records).into_iter().flatten().flatten() {
            if let Err(fault) = repository::recover(&entry.path()) {
                let run = entry.file_name();
                tracing::error!(run = %run.display(), fault = fault.kind(), "files of a run are half written");
            }
        }
    };
    // What broke off is tried again by the run that it belongs to.
    let _ = tokio::task::spawn_blocking(recover).await;
}

/// Returns the steps of a run. A disk that cannot be read just now is no reason to end a run, or to leave it alone.
async fn steps(attempt: &Attempt) -> Result<Vec<Body>, Parting> {
    let mut hold = Hold::default();
    loop {
        match attempt.steps().await {
            Ok(steps) => return Ok(steps),
            Err(error) => {
                tracing::error!(job = %attempt.job().id(), %error, "the steps of a run cannot be read");
                hold.wait(attempt, "its steps cannot be read from the store just now").await?;
            }
        }
    }
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
    let mut answer = given.filter(|answer| is_readable(answer.get())).nth(known);
    let mut prompt = prompt.to_owned();
    loop {
        if let Some(answer) = answer.filter(|answer| is_readable(answer.get())) {
            return serde_json::from_str(answer.get()).map_err(|_| broken_record(attempt));
        }
        let asked = attempt.ask(Question::of(Body::of(&prompt).get()));
        answer = Some(asked.await.map_err(|Gone| Parting::Over)?);
        if !prompt.ends_with(UNREADABLE) {
            prompt.push_str(UNREADABLE);
        }
    }
}

/// What a person is told whose answer could not be used.
const UNREADABLE: &str = "\n- The last answer repeats a name in an object, or nests too deep; write it as plain JSON.";

/// What a person is shown: the question, and what the agent noted (WF-7.3).
fn prompt(question: &str, notes: &[String]) -> String {
    let mut prompt = question.to_owned();
    for note in notes {
        prompt.push_str("\n- ");
        prompt.push_str(note);
    }
    prompt
}

/// Copies the repository, unless that was done before a restart.
fn copied(
    root: &std::path::Path,
    copy: &std::path::Path,
    record: &std::path::Path,
    skip: &[PathBuf],
) -> Result<(), String> {
    let done = record.join(COPIED);
    if done.exists() {
        return Ok(());
    }
    repository::remove(copy).map_err(|fault| fault.to_string())?;
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700).create(record).map_err(|error| format!("{}: {error}", record.display()))?;
    repository::copy(root, copy, skip, COPY_LIMITS).map_err(|fault| fault.to_string())?;
    std::fs::write(&done, b"").map_err(|error| format!("{}: {error}", done.display()))
}

fn gone() -> Failed {
    Failed::of(Failure::Cancelled, Dispatched::Yes)
}

fn failed(failed: Failed) -> Parting {
    Parting::Failed(Box::new(failed))
}

fn invalid(message: &str) -> Parting {
    failed(Failed::said(Failure::Invalid, Dispatched::No, message))
}

/// The steps of a run do not fit together. That is a defect of ours, or of the disk.
fn broken_record(attempt: &Attempt) -> Parting {
    tracing::error!(job = %attempt.job().id(), "the steps of a run do not fit together");
    failed(Failed::said(Failure::Internal, Dispatched::Yes, "The steps of the run do not fit together."))
}
