//! What a caller gets: a job, as it is, in a document of the caller's contract.
//!
//! What an agent of a contract said is kept beside the parts of the outcome; read again, it is the canonical job that the caller's
//! contract is written from, so that every member comes back where it was, or is carried. Only the ids are the caller's
//! own, byte for byte. What is to stand in the document beside that is put into its home before it is written.

mod outcome;
mod read_again;

use std::sync::Arc;

use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::{Known, Place};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::job::{Home, Job as Canonical, State as Told};
use crosspoint_contracts::json::{Levels, Tape, quoted};
use crosspoint_contracts::map::Fresh;
use crosspoint_contracts::outcome::{Outcome, Status};
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::{Contract, Kind, NATIVE_RESPONSE, Options, translate};
use crosspoint_engine::job::{Ending, Job, Running, State};

/// What a caller is told beside the job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Beside {
    /// What the caller calls it, where it came to the job under another id of its own, by the same `Idempotency-Key`.
    pub(crate) known_as: Option<Box<str>>,
    /// What was loose about its request.
    pub(crate) warnings: Vec<String>,
    /// Whether its request was a document of another contract before. That an output is an object is then said beside its text, so that it is one
    /// again where it came from (ALL-8); whoever knows only texts is spared that.
    pub(crate) is_translated: bool,
}

/// A job for a caller.
pub(crate) struct Answer {
    pub(crate) text: String,
    /// Whether it tells what the agent gave, and not that this is no document of anything.
    pub(crate) is_readable: bool,
}

/// Writes a job as it is, for a caller of this contract.
pub(crate) fn document(job: &Job, to: Contract, beside: &Beside) -> String {
    answer(job, to, beside).text
}

/// The same. Where what its agent gave is no document of anything, that is what the caller is told.
pub(crate) fn answer(job: &Job, to: Contract, beside: &Beside) -> Answer {
    let text = Writing { job, to, beside }.told();
    // What came since was judged when it came (ALL-11).
    let is_unjudged = job.outcome().is_some_and(|ending| ending.is_unjudged);
    match text.filter(|text| !is_unjudged || is_valid(text, to)) {
        Some(text) => Answer { text, is_readable: true },
        None => Answer { text: unreadable(job, to, beside), is_readable: false },
    }
}

/// Writes the last progress of a job, whatever has become of it since; `None` where it has made none.
pub(crate) fn progress(job: &Job, to: Contract, beside: &Beside) -> Option<String> {
    job.progress.as_ref()?;
    let running = Running { attempt: job.attempts, heard_at: job.updated_at, asked: 0, taken_up_at: None };
    Some(document(&Job { state: State::Running(running), ..job.clone() }, to, beside))
}

fn is_valid(document: &str, of: Contract) -> bool {
    let options = Options { kind: Some(of.exchange().response), levels: Levels::Wrapped, ..Options::default() };
    crosspoint_contracts::read(document.as_bytes(), &options).report.is_valid()
}

/// Writes that the agent of a job gave what readers disagree on, such as a name twice in an object.
fn unreadable(job: &Job, to: Contract, beside: &Beside) -> String {
    let message = "What the agent gave has names twice in an object, half characters, or too many levels.";
    let failed = Failed::said(Failure::BrokenContract, Dispatched::Yes, message);
    let ending = Ending::new(job.updated_at, Outcome::failed(failed, Repeat::Unknown));
    let job = Job { state: State::Ended(Arc::new(ending)), ..job.clone() };
    let writing = Writing { job: &job, to, beside };
    writing.written(&writing.plain(to.exchange().response)).unwrap_or_default()
}

/// A job on its way to a caller.
struct Writing<'w> {
    job: &'w Job,
    to: Contract,
    beside: &'w Beside,
}

impl<'w> Writing<'w> {
    /// All that can be said of the job; less where what its agent said does not fit into a document that goes to others. `None` where nothing can be
    /// said of its outcome.
    fn told(&self) -> Option<String> {
        let response = self.to.exchange().response;
        let is_bare = |outcome: &Outcome| outcome.document.is_none() && outcome.outputs_are_object();
        let outcome = self.job.outcome();
        let as_object = self.beside.is_translated && outcome.is_some_and(|ending| is_bare(ending));
        // A contract that knows objects, so that this one seems to be on the way.
        let as_object = as_object.then(|| self.plain(NATIVE_RESPONSE)).and_then(|told| self.written(&told));
        let said = || self.said().and_then(|said| self.written(&self.named(said)));
        let understood = || self.written(&self.plain(response));
        let state = || self.written(&self.named(Canonical::made(response, Some(self.state()))));
        let told = as_object.or_else(said).or_else(understood);
        if outcome.is_some() { told } else { Some(told.or_else(state).unwrap_or_default()) }
    }

    fn written(&self, told: &Canonical<'_>) -> Option<String> {
        let now = self.job.updated_at.to_string();
        // What is in it was judged when it came (ALL-11).
        let fresh = Fresh { completing: true, levels: Levels::Wrapped, ..super::fresh(self.job.id(), &now) };
        Some(translate::write_data(told, self.to, &fresh).ok()?.into_text())
    }

    /// What its agent said, in its own words.
    fn said(&self) -> Option<Canonical<'w>> {
        match &self.job.state {
            State::Ended(ending) => read_again::at_the_end(ending),
            State::Running(_) => {
                let said = self.job.progress.as_ref()?.document.as_ref()?;
                said.kind.read_piece(said.document.get())
            }
            State::Queued | State::Retrying { .. } | State::Waiting { .. } | State::Poisoned => None,
        }
    }

    /// What the engine knows by itself, as if a document of this kind had said it.
    fn plain(&self, kind: Kind) -> Canonical<'w> {
        let mut told = Canonical::made(kind, Some(self.state()));
        match &self.job.state {
            State::Ended(ending) => outcome::put(&mut told, ending, self.to),
            State::Waiting { question, .. } => {
                told.place(self.to, self.to.exchange().question, Json::new(question.told()));
            }
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned => {}
        }
        if let Some(progress) = self.job.progress.as_ref().filter(|_| self.job.outcome().is_none()) {
            if let Some(percent) = progress.percent {
                told.put(Home::Percent, Json::new(percent.to_string()));
            }
            if let Some(step) = &progress.step {
                told.put(Home::Step, Json::new(step.get()));
            }
        }
        self.named(told)
    }

    fn state(&self) -> Told {
        match &self.job.state {
            State::Queued => Told::Queued,
            // ALL-13: for its caller it goes on.
            State::Running(_) | State::Retrying { .. } | State::Poisoned => Told::Running,
            State::Waiting { .. } => Told::Waiting,
            State::Ended(ending) => match ending.status {
                Status::Completed => Told::Completed,
                Status::Failed => Told::Failed,
                Status::Cancelled => Told::Cancelled,
            },
        }
    }

    /// The ids of the caller, what the engine knows better than anybody, and what the caller is told beside.
    fn named(&self, mut told: Canonical<'w>) -> Canonical<'w> {
        let request_id = self.beside.known_as.as_deref().unwrap_or(&self.job.request.request_id);
        told.put(Home::RequestId, Json::string(request_id));
        if let Some((_, repeat)) = self.job.outcome().and_then(|ending| ending.why()) {
            put_repeat(&mut told, repeat, self.to);
        }
        for known in self.to.exchange().response_has {
            self.put_known(&mut told, *known);
        }
        self.put_warnings(&mut told);
        told
    }

    /// What is known of a job without its agent. What the agent said of it counts, but for the name of the work, which is the caller's.
    fn put_known(&self, told: &mut Canonical<'w>, known: Known) {
        if known != Known::Work && told.get(known.home()).is_some() {
            return;
        }
        let (job, ended) = (self.job, self.job.outcome());
        let value = match known {
            Known::Work => Some(Json::string(&job.request.work)),
            Known::StartedAt => job.started_at.map(|at| Json::string(&at.to_string())),
            Known::ReportedAt => ended.map(|ending| Json::string(&ending.at.to_string())),
            Known::Duration => ended.zip(job.started_at).map(|(ending, started_at)| {
                // In whole milliseconds, as the shortest number that says so: what can be read back unchanged need not be carried.
                let millis = ending.at.since(started_at).as_millis();
                Json::new((millis as f64 / 1_000.0).to_string())
            }),
            Known::Agent => job.agent.as_ref().map(|agent| Json::string(agent)),
            Known::Retries => (job.attempts > 0).then(|| Json::new(job.retries.to_string())),
        };
        if let Some(value) = value {
            told.put(known.home(), value);
        }
    }

    /// Beside those of the agent, where they stand in a list; an agent's own word among what is carried is left alone.
    fn put_warnings(&self, told: &mut Canonical<'w>) {
        let place = self.to.exchange().warnings;
        let ours: Vec<String> = self.beside.warnings.iter().map(|warning| quoted(warning)).collect();
        if ours.is_empty() {
            return;
        }
        let listed = told.placed(self.to, place).map(|held| items(held.get()));
        let all = match listed {
            None => ours,
            Some(Some(listed)) if !matches!(place, Place::Carried(_)) => listed.into_iter().chain(ours).collect(),
            Some(_) => return,
        };
        told.place(self.to, place, Json::new(format!("[{}]", all.join(","))));
    }
}

/// The items of a JSON array, as they are spelled.
fn items(array: &str) -> Option<Vec<String>> {
    let tape = Tape::scan_within(array.as_bytes(), Levels::Wrapped).ok()?;
    Some(tape.root()?.items().map(|item| item.source().to_owned()).collect())
}

/// Whether sending it again is safe, in the open field of an error.
fn put_repeat(told: &mut Canonical<'_>, repeat: Repeat, to: Contract) {
    let is_error = match told.state() {
        Some(Told::Failed) => true,
        Some(Told::Cancelled) => to.exchange().cancelled_is_error,
        Some(Told::Queued | Told::Running | Told::Waiting | Told::Completed) | None => false,
    };
    if !is_error {
        return;
    }
    let repeat = repeat.name();
    let details = told.get(Home::Details).map(|details| details.get().trim().to_owned());
    let details = match details.as_deref() {
        None | Some("{}" | "null") => format!("{{\"repeat\":\"{repeat}\"}}"),
        Some(object) if object.starts_with('{') && !has(object, "repeat") => {
            format!("{{\"repeat\":\"{repeat}\",{}", &object[1..])
        }
        // The agent has its own word for it, or no object: its details stay, and ours stands among what is carried.
        Some(_) => return told.carry("repeat", Json::string(repeat)),
    };
    told.put(Home::Details, Json::new(details));
}

fn has(object: &str, name: &str) -> bool {
    Tape::scan(object.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| root.get(name).is_some()))
}
