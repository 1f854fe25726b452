//! One stage of a run: a job for the stage's agent, and its files in the repository.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use crosspoint_contracts::Contract;
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::clause::all::ALL_129;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::request::{Key, NewJob};
use crosspoint_engine::core::Rejected;
use crosspoint_engine::event::Violation;
use crosspoint_engine::job::Job;
use crosspoint_engine::runtime::{Attempt, Unaccepted, Watch};
use crosspoint_engine::store::Found;
use crosspoint_exchange::admission::{self, Caller, Headers};
use crosspoint_workflow::repository::{self, Applied, Fault, NotApplied, Repository};
use crosspoint_workflow::run::{Happened, StageRun};
use tokio::sync::OwnedMutexGuard;

use super::blocking::{blocking, blocking_while};
use super::held::Hold;
use super::output::WORDS_BYTES_MAX;
use super::places::Places;
use super::recovery::LOCK_WAIT_MAX;
use super::runner::{Parting, Runner};
use super::workplace::Workplace;
use super::{artifacts, output, printed, recovery};
use crate::backend::{trace_of, with_text};

/// Pause before a stage is submitted again that the server had no room for; each pause is twice as long as the last.
const PAUSE_FIRST: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What the progress of a run begins with whose stage waits for a person or an operator.
pub(crate) const WAITS: &str = "waits: ";

/// How long a look at a job that has not ended lasts. It is woken by the end, so this is only a precaution.
const LOOK_TIME: Duration = Duration::from_secs(3_600);

/// How many times an output is judged anew at once because a place changed between the look at it and the write.
const CHANGED_MAX: u32 = 3;

/// Most rules that a step names which its output breaks. The stage's own job has all of them.
const BROKEN_RULES_MAX: usize = 8;

/// A stage that could not be done, and why.
pub(super) struct Broken {
    job: Option<String>,
    failure: &'static str,
    clause: Option<String>,
    message: String,
}

impl Broken {
    fn of(failure: Failure, message: impl Into<String>) -> Broken {
        Broken { job: None, failure: failure.name(), clause: None, message: message.into() }
    }

    pub(super) fn happened(self, step: u32) -> Happened {
        let Broken { job, failure, clause, mut message } = self;
        message.truncate(message.floor_char_boundary(WORDS_BYTES_MAX));
        Happened::Broke { step, job, failure: failure.to_owned(), clause, message }
    }
}

/// Returns the job that a stage asks for. Its key is the same whenever the run comes to this step, so a stage that was
/// asked for before a crash is found again.
pub(super) fn request(attempt: &Attempt, stage: &StageRun<'_>) -> Result<NewJob, Broken> {
    let run = &attempt.job().request;
    // No caller can send this character in a header, and so take the key of a stage that is still to come.
    let key = format!("\u{1}{}#{}", run.id, stage.step);
    let headers = Headers {
        caller: Caller::named(run.caller.clone()),
        key: Some(key.clone().into()),
        trace: Some(trace_of(attempt.job(), attempt.number())),
        agent: Some(stage.stage.agent.as_str().into()),
        ..Headers::default()
    };
    let envelope = Bytes::from(stage.envelope());
    let reading = admission::read(Contract::Workflow, &envelope, headers);
    let reading = reading.map_err(|_| Broken::of(Failure::Invalid, "The envelope of the stage is not valid."))?;
    Ok(NewJob { key: Key::Other(key.into()), priority: run.priority, ..reading.into_new() })
}

/// Submits a stage until there is room for it. The same stage submitted again is the same job. The step that led to it
/// is stored with it, and taken.
pub(super) async fn submit(
    runner: &Runner,
    attempt: &Attempt,
    stage: &str,
    new: NewJob,
    step: &mut Option<Body>,
) -> Result<Result<Watch, Broken>, Parting> {
    // A stage that was asked for before is no new work, also where the schema has changed since.
    if let Some(report) = runner.schemas.mistakes_in(&new).await
        && attempt.engine().is_known(new.clone()).await.is_ok_and(|is_known| !is_known)
    {
        let first = report.findings.into_iter().next().map(|finding| finding.message).unwrap_or_default();
        return Ok(Err(Broken::of(Failure::Invalid, first)));
    }
    let (mut pause, mut hold) = (PAUSE_FIRST, Hold::default());
    loop {
        let why = match attempt.stage(stage, new.clone(), step.clone()).await {
            Ok(watch) => {
                *step = None;
                return Ok(Ok(watch));
            }
            Err(why) => why,
        };
        let held = match why {
            Unaccepted::Rejected(Rejected::ParentEnded) => return Err(Parting::Over),
            Unaccepted::Closed | Unaccepted::Lost => return Err(Parting::Leaving),
            Unaccepted::Rejected(Rejected::Full { .. }) | Unaccepted::Overloaded => NO_ROOM,
            Unaccepted::Fault(_) | Unaccepted::NotTried(_) => NOT_STORED,
            Unaccepted::Conflict(_) | Unaccepted::TwoJobs | Unaccepted::Rejected(Rejected::TooManyNames) => {
                return Ok(Err(Broken::of(Failure::Conflict, TAKEN)));
            }
            Unaccepted::Rejected(
                Rejected::UnknownWork | Rejected::UnknownAgent | Rejected::NotItsWork | Rejected::WrongType,
            ) => return Ok(Err(Broken::of(Failure::Unsupported, unknown(&new)))),
        };
        if pause >= PAUSE_MAX {
            hold.wait(attempt, held).await?;
            continue;
        }
        tokio::select! {
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSE_MAX),
            () = attempt.stopped() => return Err(Parting::Over),
        }
    }
}

const NO_ROOM: &str = "the server has no room for its next stage just now; it goes on when other jobs have ended";
const NOT_STORED: &str = "its next stage cannot be written to the store just now; see the log";
const TAKEN: &str = "Another job has the key of this stage.";

fn unknown(new: &NewJob) -> String {
    let agent = new.agent.as_deref().unwrap_or_default();
    format!("Agent {agent} is not known here, or does not take the action {}.", new.work)
}

/// Where a run is, as its progress shows it.
pub(super) fn position(stage: &StageRun<'_>) -> String {
    format!("{}, iteration {}", stage.stage.id, stage.iteration)
}

/// Waits until the stage has ended, and shows when it waits for a person. All waits end when the orchestrator is about
/// to stop: the stage has some time left then, but its run is taken up at the next start.
pub(super) async fn ended(attempt: &Attempt, stage: &StageRun<'_>, watch: &Watch) -> Result<Arc<Job>, Parting> {
    let mut rests = false;
    loop {
        let (job, until) = (watch.job(), Instant::now() + LOOK_TIME);
        if job.outcome().is_some() {
            return Ok(job);
        }
        if job.needs_a_person() != rests {
            rests = !rests;
            let shown = if rests { format!("{WAITS}stage {}", stage.stage.id) } else { position(stage) };
            attempt.progress_at_once(&shown);
        }
        let now = tokio::select! {
            now = watch.moved(job.events, until) => now,
            () = attempt.stopped() => return Err(Parting::Over),
        };
        if now.events == job.events && now.outcome().is_none() && Instant::now() < until {
            return Err(Parting::Leaving);
        }
    }
}

/// Returns what a stage that has ended means for its run. Its files are written first: when this returns, they are in
/// the repository, or none of them is.
pub(super) async fn outcome(
    attempt: &Attempt,
    (places, place): (&Places, &Arc<Workplace>),
    stage: &StageRun<'_>,
    job: Arc<Job>,
) -> Result<Happened, Parting> {
    let id = job.id().to_string();
    let broken = |broken: Broken| Broken { job: Some(id.clone()), ..broken }.happened(stage.step);
    // The text is shown as far as there is room for it. It is whole in the stage's own job.
    let (whole, _room) = with_text(attempt.engine(), job.clone()).await.unwrap_or((job.clone(), None));
    // An output may be long.
    let reading = job.clone();
    let (said, changes) = blocking(move || {
        let ending = reading.outcome();
        let (given, document) =
            (ending.and_then(|it| it.artifacts.as_ref()), ending.and_then(|it| it.document.as_ref()));
        (output::of(&whole), artifacts::read(given, document))
    })
    .await?;
    let said = match said {
        Ok(said) => said,
        Err(none) if none.failure == Failure::BrokenContract => {
            return Ok(broken(broke_rule(attempt, &job, none.message).await));
        }
        Err(none) => return Ok(broken(Broken::of(none.failure, none.message))),
    };
    let changes = match changes {
        Ok(changes) => changes,
        Err(no_file) => {
            let clause = Some(no_file.clause.id.to_owned());
            return Ok(broken(Broken { clause, ..Broken::of(Failure::BrokenContract, no_file.what) }));
        }
    };
    let output::Output { success, summary, notes, recommendation, is_nearly_envelope } = said;
    if is_nearly_envelope && job.outcome().is_some_and(|ending| ending.document.is_none()) {
        return Ok(broken(Broken::of(Failure::BrokenContract, printed::NOT_FOLLOWED)));
    }
    let writing = Writing { attempt, places, place, stage };
    let (artifacts, conflicts) = match writing.applied(changes).await? {
        Ok(Applied::Written(written)) => (written, Vec::new()),
        Ok(Applied::Conflict(clashes)) => (Vec::new(), clashes),
        Err(why) => return Ok(broken(not_applied(attempt, &job, why).await)),
    };
    let (step, broken) = (stage.step, broken_rules(attempt, &job).await);
    Ok(Happened::Said { step, job: id, success, summary, notes, recommendation, artifacts, conflicts, broken })
}

/// The rules that an agent broke, each once. What its request could not carry is on record before, and is not the
/// agent's fault.
async fn broken_rules(attempt: &Attempt, job: &Job) -> Vec<String> {
    let mut broken: Vec<String> = Vec::new();
    for Found { clause, .. } in faults(attempt, job).await {
        if broken.len() < BROKEN_RULES_MAX && !broken.contains(&clause) {
            broken.push(clause);
        }
    }
    broken
}

async fn faults(attempt: &Attempt, job: &Job) -> impl Iterator<Item = Found> {
    let found = attempt.engine().violations(job.id()).await.unwrap_or_default();
    found.into_iter().filter(|found| found.level == Level::Error.name() && found.clause != ALL_129.id)
}

/// A stage whose agent broke the contract, with the first rule that it broke.
async fn broke_rule(attempt: &Attempt, job: &Job, message: String) -> Broken {
    let more = format!("crosspoint jobs show {} --json has what it gave", job.id());
    match faults(attempt, job).await.next() {
        Some(Found { clause, what, .. }) => {
            let message = message.trim_end_matches('.');
            // What was said already need not be said again in other words.
            let is_said = message.contains(&format!("({clause})"));
            let message = if is_said { format!("{message}; {more}") } else { format!("{message}: {what}; {more}") };
            Broken { clause: Some(clause), ..Broken::of(Failure::BrokenContract, message) }
        }
        None => Broken::of(Failure::BrokenContract, format!("{}; {more}", message.trim_end_matches('.'))),
    }
}

/// The files of a stage on their way into the repository.
struct Writing<'w> {
    attempt: &'w Attempt,
    places: &'w Places,
    place: &'w Arc<Workplace>,
    stage: &'w StageRun<'w>,
}

impl Writing<'_> {
    /// Applies the files. What is half written, and can be neither finished nor taken back just now, is tried again:
    /// nothing else may be done in the repository before it is. So is what passes, as a full disk does: the stage has
    /// done its work, and would do it again if it were asked for again.
    async fn applied(&self, changes: Vec<repository::Change>) -> Result<Result<Applied, NotApplied>, Parting> {
        if changes.is_empty() {
            return Ok(Ok(Applied::Written(Vec::new())));
        }
        let changes = Arc::new(changes);
        let (mut hold, mut changed) = (Hold::default(), 0);
        loop {
            self.place.reached(self.attempt).await?;
            let turn = self.places.neighbours().turn(self.attempt, &self.place.root, &self.record()).await?;
            let once = self.once(changes.clone(), turn);
            match hold.beside(self.attempt, "its files are written", once).await? {
                Err(NotApplied::Fault(fault)) if recovery::may_pass(&fault) => {
                    hold.wait(self.attempt, &recovery::why(&fault)).await?;
                }
                // A link that was planted, say. The next look says which rule it breaks. Where another program goes on
                // to change the place, the run waits until that has passed.
                Err(NotApplied::Fault(Fault::Changed(_))) if changed < CHANGED_MAX => changed += 1,
                Err(NotApplied::Fault(fault @ Fault::Changed(_))) => {
                    hold.wait(self.attempt, &recovery::why(&fault)).await?;
                    changed = 0;
                }
                applied => return Ok(applied),
            }
        }
    }

    /// Applies the files once. If the run is cancelled before they count, nothing is written.
    async fn once(
        &self,
        changes: Arc<Vec<repository::Change>>,
        turn: OwnedMutexGuard<()>,
    ) -> Result<Result<Applied, NotApplied>, Parting> {
        let (places, place, record) = (self.places.clone(), self.place.clone(), self.record());
        let (step, rules) = (self.stage.step, place.rules(&self.stage.stage.id));
        let apply = move |is_wanted: &dyn Fn() -> bool| {
            let open = || Ok(place.open()?.with_lock_wait(LOCK_WAIT_MAX));
            let apply = |repository: Repository| repository.apply_while(&record, step, &changes, &rules, is_wanted);
            let applied = open().map_err(NotApplied::Fault).and_then(apply);
            // Noted before it is the turn of another run.
            match &applied {
                Err(NotApplied::Fault(fault)) if fault.is_half_done() => {
                    places.neighbours().recovery.note(&record, fault);
                }
                Ok(_) => places.neighbours().recovery.forget(&record),
                Err(_) => {}
            }
            drop(turn);
            applied
        };
        blocking_while(self.attempt, apply).await
    }

    fn record(&self) -> PathBuf {
        self.places.record(self.attempt.job().id().uuid())
    }
}

/// What could not be written. A path that became bad only after the stage had ended is on record beside the stage.
async fn not_applied(attempt: &Attempt, job: &Job, why: NotApplied) -> Broken {
    match &why {
        NotApplied::Refused(paths) => {
            let Some(first) = paths.first() else { return Broken::of(Failure::BrokenContract, why.to_string()) };
            let what = "a path of an artifact may not be written, so nothing was".into();
            let violation = Violation { clause: first.clause.id, level: first.clause.level, what };
            attempt.engine().record(job.id(), violation).await;
            let clause = Some(first.clause.id.to_owned());
            Broken { clause, ..Broken::of(Failure::BrokenContract, format!("{why}; nothing was written")) }
        }
        NotApplied::Fault(fault) => Broken::of(Failure::Internal, recovery::explained(fault)),
    }
}
