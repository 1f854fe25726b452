//! The answer to a caller: a job in its current state, as a document of the caller's contract.
//!
//! The document of an agent is kept beside the parts of the outcome. Read again, it is the canonical job from which the
//! caller's document is written, so that every member returns to its place or is carried. Only the ids are the caller's
//! own, byte for byte. Everything else that belongs in the document is put into its home before the document is
//! written.

mod facts;
mod outcome;
mod pieces;
mod read_again;
mod too_long;

use std::borrow::Cow;
use std::time::Duration;

use crosspoint_contracts::content::Json;
use crosspoint_contracts::exchange::{Known, Place};
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::job::{Canonical, Home, State as JobState};
use crosspoint_contracts::json::{Levels, Tape, quoted};
use crosspoint_contracts::map::WriteContext;
use crosspoint_contracts::outcome::Outcome;
use crosspoint_contracts::reply::Failed;
use crosspoint_contracts::time::Time;
use crosspoint_contracts::{Contract, Kind, NATIVE_RESPONSE, Options, translate};
use uuid::Uuid;

pub use self::pieces::{Pieces, STEP as OUTPUT_STEP, block, pieces};
use crate::echo::Echo;
use crate::snapshot::{Ended, Snapshot, State};

/// What a caller is told beside the job.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// The caller's id for the job, if it reached the job under another id of its own by the same `Idempotency-Key`.
    pub known_as: Option<Box<str>>,
    /// What answers repeat of its request, if that differs from what they repeat of the request that the job came as
    /// (MSG-17).
    pub echo: Option<Box<str>>,
    /// Warnings about its request.
    pub warnings: Vec<String>,
    /// Whether its request was translated from another contract. Then the document says beside the text of an output
    /// that the output is an object, so that it is one again in that other contract (ALL-8). Callers that know only
    /// texts do not get that addition.
    pub is_translated: bool,
    /// Why the job does not move, for people. It is carried.
    pub stuck: Option<String>,
}

/// A job for a caller.
pub struct Answer {
    /// The document.
    pub text: String,
    /// Whether the text shows what the agent gave. It is false if the text says that this cannot be read.
    pub is_readable: bool,
}

/// Writes a job in its current state, for a caller of this contract.
pub fn document(job: &Snapshot<'_>, to: Contract, beside: &Beside) -> String {
    answer(job, to, beside).text
}

/// Like [`document`]. If what the agent gave is no document of any kind, the caller is told that.
pub fn answer(job: &Snapshot<'_>, to: Contract, beside: &Beside) -> Answer {
    let text = Writing::of(job, to, beside).text();
    // Outcomes of newer versions were checked when they arrived (ALL-11).
    let is_unjudged = job.ended().is_some_and(|ended| ended.is_unjudged);
    match text.filter(|text| !is_unjudged || is_valid(text, to)) {
        Some(text) => Answer { text: too_long::checked(text, job, to, beside), is_readable: true },
        None => Answer { text: unreadable(job, to, beside), is_readable: false },
    }
}

/// Returns what answers to this caller repeat of its request.
pub fn echo_of<'a>(job: &Snapshot<'a>, beside: &'a Beside) -> Option<&'a str> {
    beside.echo.as_deref().or(job.echo)
}

/// Writes the last progress of a job, whatever its state is now. `None` if it has made none.
pub fn progress(job: &Snapshot<'_>, to: Contract, beside: &Beside) -> Option<String> {
    job.progress?;
    Some(document(&Snapshot { state: State::Running, ..*job }, to, beside))
}

/// Writes what the agent of a job said when it began, for a caller of the same contract. `None` if it said no more than
/// that, or speaks another contract.
pub fn began(job: &Snapshot<'_>, to: Contract, beside: &Beside) -> Option<String> {
    let own = job.began.filter(|own| own.kind.contract() == to)?;
    let job = Snapshot { state: State::Running, ..*job };
    let writing = Writing { part: "began".into(), ..Writing::of(&job, to, beside) };
    writing.written(&writing.named(own.kind.read_piece(own.document.get())?))
}

fn is_valid(document: &str, of: Contract) -> bool {
    let options = Options { kind: Some(of.exchange().response), levels: Levels::Wrapped, ..Options::default() };
    crosspoint_contracts::read(document.as_bytes(), &options).report.is_valid()
}

/// Writes that the agent of a job gave JSON on which readers disagree, such as an object with a name twice.
fn unreadable(job: &Snapshot<'_>, to: Contract, beside: &Beside) -> String {
    let message = "What the agent gave has names twice in an object, half characters, or too many levels.";
    let failed = Failed::said(Failure::BrokenContract, Dispatched::Yes, message);
    failed_instead(job, to, beside, &Outcome::failed(failed, Repeat::Unknown))
}

/// Writes a job as if it had ended with this failure.
fn failed_instead(job: &Snapshot<'_>, to: Contract, beside: &Beside, outcome: &Outcome) -> String {
    let ended = Ended { at: job.updated_at, outcome, is_unjudged: false, is_kept: true };
    let job = Snapshot { state: State::Ended(ended), ..*job };
    let writing = Writing::of(&job, to, beside);
    writing.written(&writing.plain(to.exchange().response)).unwrap_or_default()
}

/// A job on its way to a caller.
struct Writing<'w> {
    job: &'w Snapshot<'w>,
    to: Contract,
    beside: &'w Beside,
    echo: Echo,
    /// Which document of the job this is, where one event of it has several.
    part: Cow<'static, str>,
}

impl<'w> Writing<'w> {
    fn of(job: &'w Snapshot<'w>, to: Contract, beside: &'w Beside) -> Writing<'w> {
        Writing { job, to, beside, echo: Echo::read(echo_of(job, beside)), part: Cow::Borrowed("") }
    }

    /// Returns the id of the message. It is the same when the same message is written again, after a crash too.
    fn message_id(&self) -> Uuid {
        let state = self.job.state.contract_state().name();
        let message = format!("{} {state} {}", self.job.events, self.part);
        // To another request of the job it is another message.
        let to: Vec<&str> =
            [&self.beside.known_as, &self.beside.echo].into_iter().filter_map(Option::as_deref).collect();
        let message = if to.is_empty() { message } else { format!("{message} {}", to.join(" ")) };
        Uuid::new_v5(&self.job.id, message.as_bytes())
    }

    /// Returns the time of what the document tells.
    fn told_at(&self) -> Time {
        match self.job.state {
            State::Running | State::Between if self.job.progress.is_some() => {
                self.job.updated_at.max(self.job.progress_at)
            }
            State::Ended(ended) => ended.at,
            State::Queued | State::Running | State::Between | State::Waiting { .. } => self.job.updated_at,
        }
    }

    /// Writes everything that is known of the job, or less if the agent's document cannot be written in the caller's
    /// contract. `None` if nothing can be written of its outcome.
    fn text(&self) -> Option<String> {
        let response = self.to.exchange().response;
        let is_bare = |outcome: &Outcome| outcome.document.is_none() && outcome.outputs_are_object();
        let outcome = self.job.ended().map(|ended| ended.outcome);
        let is_translated = self.beside.is_translated || self.echo.is_translated;
        let as_object = is_translated && outcome.is_some_and(is_bare);
        // Written from a contract that knows objects, so that the job appears to come from there.
        let as_object = as_object.then(|| self.plain(NATIVE_RESPONSE)).and_then(|canonical| self.written(&canonical));
        let own = || self.agent_document().and_then(|own| self.written(&self.named(own)));
        let understood = || self.written(&self.plain(response));
        let state = || self.written(&self.named(Canonical::made(response, Some(self.job.state.contract_state()))));
        let text = as_object.or_else(own).or_else(understood);
        if outcome.is_some() { text } else { Some(text.or_else(state).unwrap_or_default()) }
    }

    fn written(&self, canonical: &Canonical<'_>) -> Option<String> {
        // Most contracts have neither in their answers, and both take a while to make.
        let is_stamped = translate::is_stamped(canonical, self.to);
        let now = if is_stamped { self.told_at().to_string() } else { String::new() };
        let types = self.echo.types();
        let types: Vec<&str> = types.iter().map(String::as_str).chain(self.job.agent_type).collect();
        let facts = facts::of(self.job, canonical, self.to);
        let plain = super::write_context(self.job.id, &now);
        let context = WriteContext {
            message_id: if is_stamped { self.message_id() } else { self.job.id },
            agent_types: &types,
            agent_type: self.job.agent_type.or(self.echo.recipient()).unwrap_or(plain.agent_type),
            completing: true,
            // The content was checked when it arrived (ALL-11).
            levels: Levels::Wrapped,
            facts: &facts,
            ..plain
        };
        Some(translate::write_data(canonical, self.to, &context).ok()?.into_text())
    }

    /// Returns the agent's own document.
    fn agent_document(&self) -> Option<Canonical<'w>> {
        match &self.job.state {
            State::Ended(ended) => read_again::at_the_end(ended.outcome, self.to),
            State::Running => {
                let own = self.job.progress?.document.as_ref()?;
                own.kind.read_piece(own.document.get())
            }
            State::Queued | State::Between | State::Waiting { .. } => None,
        }
    }

    /// Returns what the engine knows by itself, as if a document of this kind had said it.
    fn plain(&self, kind: Kind) -> Canonical<'w> {
        let mut canonical = Canonical::made(kind, Some(self.job.state.contract_state()));
        match &self.job.state {
            State::Ended(ended) => outcome::put(&mut canonical, ended.outcome, self.to),
            State::Waiting { question, .. } => {
                canonical.place(self.to, self.to.exchange().question, Json::new(question.for_callers()));
            }
            State::Queued | State::Running | State::Between => {}
        }
        if let Some(progress) = self.job.progress.filter(|_| self.job.ended().is_none()) {
            if let Some(percent) = progress.percent {
                canonical.put(Home::Percent, Json::new(percent.to_string()));
            }
            if let Some(step) = &progress.step {
                canonical.put(Home::Step, Json::new(step.get()));
            }
        }
        self.named(canonical)
    }

    /// Adds the ids of the caller, the facts that the engine knows best, and what the caller is told beside the job.
    fn named(&self, mut canonical: Canonical<'w>) -> Canonical<'w> {
        let request_id = self.beside.known_as.as_deref().unwrap_or(self.job.request_id);
        // A contract without ids has no use for one.
        if !self.to.exchange().id.is_empty() {
            canonical.put(Home::RequestId, Json::string(request_id));
        }
        self.echo.put(&mut canonical, self.to);
        if let Some(agent_type) = self.job.agent_type.filter(|_| self.echo.recipient().is_some()) {
            canonical.put(Home::Source, Json::string(agent_type));
        }
        if let Some(ended) = self.job.ended()
            && let Some((_, repeat)) = ended.outcome.why()
        {
            let hint = again(repeat, self.to).filter(|_| ended.is_kept);
            put_repeat(&mut canonical, repeat, hint.as_deref(), self.to);
        }
        for known in self.to.exchange().response_has {
            self.put_known(&mut canonical, *known);
        }
        self.put_warnings(&mut canonical);
        if let Some(stuck) = &self.beside.stuck {
            canonical.carry("stuck", Json::string(stuck));
        }
        canonical
    }

    /// Adds a fact that is known without the agent. The agent's own value has priority, except for the name of the
    /// work, which is the caller's.
    fn put_known(&self, canonical: &mut Canonical<'w>, known: Known) {
        if known != Known::Work && canonical.get(known.home()).is_some() {
            return;
        }
        // An error need not say how long the work took.
        if known.home() == Home::Duration && !translate::has_member(canonical, self.to, Home::Duration) {
            return;
        }
        let (job, ended) = (self.job, self.job.ended());
        let value = match known {
            Known::Work => Some(Json::string(job.work)),
            Known::StartedAt => job.started_at.map(|at| Json::string(&at.to_string())),
            Known::ReportedAt => ended.map(|ending| Json::string(&ending.at.to_string())),
            // In whole milliseconds, as the shortest number that says so. A number that reads back unchanged need not
            // be carried.
            Known::Duration => took(job).map(|took| Json::new((took.as_millis() as f64 / 1_000.0).to_string())),
            Known::Seconds => took(job).map(|took| Json::new(took.as_secs_f64().round().to_string())),
            Known::Agent => job.agent.map(Json::string),
            Known::Retries => (job.attempts > 0).then(|| Json::new(job.retries.to_string())),
        };
        if let Some(value) = value {
            canonical.put(known.home(), value);
        }
    }

    /// Adds warnings to those of the agent if they are a list. A value of the agent among the carried members is left
    /// alone.
    fn put_warnings(&self, canonical: &mut Canonical<'w>) {
        let place = self.to.exchange().warnings;
        let ours: Vec<String> = self.beside.warnings.iter().map(|warning| quoted(warning)).collect();
        if ours.is_empty() {
            return;
        }
        let listed = canonical.placed(self.to, place).map(|held| items(held.get()));
        let all = match listed {
            None => ours,
            Some(Some(listed)) if !matches!(place, Place::Carried(_)) => listed.into_iter().chain(ours).collect(),
            Some(_) => return,
        };
        canonical.place(self.to, place, Json::new(format!("[{}]", all.join(","))));
    }
}

/// Returns how long the work of a job took, once it has ended.
fn took(job: &Snapshot<'_>) -> Option<Duration> {
    Some(job.ended()?.at.since(job.started_at?))
}

/// Returns the items of a JSON array, as they are spelled.
fn items(array: &str) -> Option<Vec<String>> {
    let tape = Tape::scan_within(array.as_bytes(), Levels::Wrapped).ok()?;
    Some(tape.root()?.items().map(|item| item.source().to_owned()).collect())
}

/// Writes into the details of an error whether sending the request again is safe.
fn put_repeat(canonical: &mut Canonical<'_>, repeat: Repeat, hint: Option<&str>, to: Contract) {
    let is_error = match canonical.state() {
        Some(JobState::Failed) => true,
        Some(JobState::Cancelled) => to.exchange().cancelled_is_error,
        Some(JobState::Queued | JobState::Running | JobState::Waiting | JobState::Completed) | None => false,
    };
    if !is_error {
        return;
    }
    let name = repeat.name();
    let details = canonical.get(Home::Details).map(|details| details.get().trim().to_owned());
    let ours = |details: &str| match hint.filter(|_| !has(details, "hint")) {
        Some(hint) => format!("\"repeat\":\"{name}\",\"hint\":{}", quoted(hint)),
        None => format!("\"repeat\":\"{name}\""),
    };
    let details = match details.as_deref() {
        None | Some("{}" | "null") => format!("{{{}}}", ours("")),
        Some(object) if object.starts_with('{') && !has(object, "repeat") => {
            format!("{{{},{}", ours(object), &object[1..])
        }
        // The agent has a `repeat` of its own, or details that are no object: they stay, and ours is carried.
        Some(_) => return canonical.carry("repeat", Json::string(name)),
    };
    canonical.put(Home::Details, Json::new(details));
}

/// Returns how to have work tried again that surely was not done: the same request only gets the same answer (ALL-1).
fn again(repeat: Repeat, to: Contract) -> Option<String> {
    let id = to.exchange().id;
    let has_key = repeat == Repeat::Safe && !to.key_homes().is_empty();
    has_key.then(|| format!("send it again with a new `{id}` or Idempotency-Key: the old one has this answer"))
}

fn has(object: &str, name: &str) -> bool {
    Tape::scan(object.as_bytes()).is_ok_and(|tape| tape.root().is_some_and(|root| root.get(name).is_some()))
}
