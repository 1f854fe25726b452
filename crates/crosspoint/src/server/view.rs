//! Jobs, agents and callers as users of the API see them.

mod event;
mod outcome;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Question;
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::{Breaker, FAILURES_MAX};
use crosspoint_engine::grant::{Grant, Role, Unusable};
use crosspoint_engine::job::{Job, Origin, QuestionId, State};
use crosspoint_engine::runtime::{AgentView, Stuck};
use crosspoint_engine::store::Found;
use crosspoint_engine::wall_clock;
use crosspoint_http::json::{Object, push_array, push_text};

pub(crate) use self::event::Event;
use crate::deliver::{Failing, OwedJob, Standing};

/// About the size of a job without its outcome, as JSON, so that an answer is written without growing its buffer.
const JOB_BYTES: usize = 512;

/// How much of a job is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Everything.
    Whole,
    /// Without large outcomes.
    Listed,
    /// Without anything that its caller or its agent said: what is read that way is not on record.
    Bare,
}

/// What is shown with a job but is not in the job itself.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) stuck: Option<Stuck>,
    /// What the stage asks that it waits for.
    pub(crate) question: Option<Question>,
    /// The id of that question.
    pub(crate) question_id: Option<String>,
    /// Of which workflow it is a run, and where.
    pub(crate) workflow: Option<Body>,
    /// Whether it is shown whose job it is.
    pub(crate) has_caller: bool,
    /// Who is owed its outcome.
    pub(crate) owed: Option<OwedJob>,
    pub(crate) violations: Vec<Found>,
}

/// Writes one whole job.
pub(crate) fn job(job: &Job, beside: &Beside) -> Vec<u8> {
    let outcome_bytes = job.outcome().map_or(0, |ending| outcome::bytes(ending));
    let mut out = Vec::with_capacity(JOB_BYTES + outcome_bytes);
    push_job(&mut out, job, beside, Extent::Whole);
    out
}

pub(super) fn push_job(out: &mut Vec<u8>, job: &Job, beside: &Beside, extent: Extent) {
    let request = &job.request;
    let mut object = Object::open(out);
    object.quoted("id", request.id);
    push_origin(&mut object, request.origin.as_ref());
    object.text("request_id", &request.request_id);
    if beside.has_caller && !request.caller.is_empty() {
        object.text("caller", &request.caller);
    }
    object.text("door", request.door.name());
    object.text("work", &request.work);
    if let Some(workflow) = beside.workflow.as_ref().filter(|_| extent != Extent::Bare) {
        object.raw("workflow", workflow.bytes());
    }
    object.text_or_null("agent", job.agent.as_deref().or(request.pinned.as_deref()));
    object.text("state", job.phase().name());
    object.plain("attempts", job.attempts);
    object.text("priority", request.priority.name());
    push_progress(&mut object, job, extent);
    object.quoted("created_at", request.accepted_at);
    object.quoted("updated_at", job.updated_at);
    if let Some(stuck) = &beside.stuck {
        let mut shown = object.object("stuck");
        shown.text("reason", &stuck.reason);
        shown.quoted("since", stuck.since);
        if let Some(stage) = stuck.stage {
            shown.quoted("job", stage);
        }
        shown.close();
    }
    let own = match &job.state {
        State::Waiting { question, .. } => Some(question),
        State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
    };
    if let Some(question) = own.or(beside.question.as_ref()).filter(|_| extent != Extent::Bare) {
        object.raw("question", question.json().bytes());
        let id = job.open_question().map(|open| question_id(job, open)).or(beside.question_id.clone());
        if let Some(id) = id {
            object.text("question_id", &id);
        }
    }
    if let Some(outcome) = job.outcome() {
        outcome::push(&mut object, outcome, extent);
    }
    if let Some(owed) = &beside.owed {
        let mut shown = object.object("owed");
        shown.text("to", &owed.to);
        shown.quoted("since", owed.since);
        push_failing(&mut shown, owed.failing.as_ref());
        shown.close();
    }
    if !beside.violations.is_empty() {
        push_array(object.name("violations"), &beside.violations, push_violation);
    }
    object.close();
}

/// Returns the id of a question, by which an answer can say what it is an answer to.
pub(crate) fn question_id(job: &Job, QuestionId { attempt, number }: QuestionId) -> String {
    format!("{}.{attempt}.{number}", job.id())
}

/// Reads the id of a question of this job. `None` if it is of another one.
pub(crate) fn read_question_id(job: &Job, id: &str) -> Option<QuestionId> {
    let (attempt, number) = id.strip_prefix(&job.id().to_string())?.strip_prefix('.')?.split_once('.')?;
    Some(QuestionId { attempt: attempt.parse().ok()?, number: number.parse().ok()? })
}

fn push_origin(object: &mut Object<'_>, origin: Option<&Origin>) {
    let Some(origin) = origin else { return };
    object.quoted("parent", origin.job());
    let mut shown = object.object("origin");
    match origin {
        Origin::RetryOf(job) => shown.quoted("retry_of", job),
        Origin::ChildOf { parent, stage } => {
            shown.quoted("child_of", parent);
            shown.text("stage", stage);
        }
    }
    shown.close();
}

fn push_progress(object: &mut Object<'_>, job: &Job, extent: Extent) {
    let mut shown = object.object("progress");
    let progress = job.progress.as_ref();
    match progress.and_then(|progress| progress.percent) {
        Some(percent) => shown.plain("percent", percent),
        None => shown.raw("percent", b"null"),
    }
    match progress.and_then(|progress| progress.step.as_ref()).filter(|_| extent != Extent::Bare) {
        Some(step) => shown.raw("step", step.bytes()),
        None => shown.raw("step", b"null"),
    }
    shown.close();
}

fn push_violation(out: &mut Vec<u8>, found: &Found) {
    let mut object = Object::open(out);
    object.quoted("at", found.at);
    object.text("clause", &found.clause);
    object.text("level", &found.level);
    object.text("what", &found.what);
    object.close();
}

/// What an agent has said of itself, beside its work.
#[derive(Default)]
pub(super) struct OfItself {
    /// The version of its contract that is spoken with it.
    pub(super) protocol_version: Option<String>,
    pub(super) heartbeat: Option<Heartbeat>,
}

/// The last sign of life of an agent.
pub(super) struct Heartbeat {
    pub(super) at: Time,
    pub(super) status: &'static str,
    /// What the agent has left, as a JSON object.
    pub(super) resources: Option<Body>,
}

pub(super) fn push_agent(out: &mut Vec<u8>, agent: &AgentView, of_itself: &OfItself) {
    let mut object = Object::open(out);
    object.text("name", &agent.spec.name);
    object.text("contract", &agent.spec.contract);
    if let Some(agent_type) = &agent.spec.agent_type {
        object.text("type", agent_type);
    }
    if let Some(version) = &of_itself.protocol_version {
        object.text("protocol_version", version);
    }
    push_array(object.name("work"), &agent.spec.works, |out, work| push_text(out, work));
    object.plain("concurrency", agent.capacity());
    object.plain("running", agent.running);
    let mut breaker = object.object("breaker");
    breaker.text("state", agent.standing.breaker.name());
    breaker.plain("failures", failures(agent.standing.breaker));
    match agent.open_until().filter(|until| *until != Time::NEVER) {
        Some(until) => breaker.quoted("until", until),
        None => breaker.raw("until", b"null"),
    }
    breaker.close();
    object.plain("drained", agent.standing.drained);
    object.plain("configured", agent.joined.is_none());
    if agent.joined.is_some() || agent.seen.is_some() {
        match agent.away_since() {
            Some(since) => object.quoted("away_since", since),
            None => object.raw("away_since", b"null"),
        }
    }
    if let Some(Heartbeat { at, status, resources }) = &of_itself.heartbeat {
        let mut shown = object.object("heartbeat");
        shown.quoted("at", at);
        shown.text("status", status);
        shown.raw("resources", resources.as_ref().map_or(&b"null"[..], |resources| resources.bytes()));
        shown.close();
    }
    if let Some(since) = agent.token_refused_since {
        object.quoted("token_refused_since", since);
    }
    if let Some(reached) = &agent.reached {
        object.text("address", &reached.address);
        if let Some(trouble) = &reached.trouble {
            object.text("cannot_connect", trouble);
        }
    }
    object.close();
}

/// Writes what is known of a token; the token itself only where it was just made. Without a grant it is one of the
/// configuration.
/// Writes a token as it is now; `grant` is missing for one of the configuration. `token` is the secret itself, which is
/// shown once.
pub(super) fn push_token(out: &mut Vec<u8>, name: &str, role: &Role, grant: Option<&Grant>, token: Option<&str>) {
    let now = wall_clock::now();
    let mut object = Object::open(out);
    object.text("name", name);
    object.text("for", role.word());
    match role.agent() {
        Some(agent) => object.text("agent", agent),
        None => object.raw("agent", b"null"),
    }
    let state = grant.map_or(Ok(()), |grant| grant.check(now)).err().map_or("good", Unusable::word);
    object.text("state", state);
    for (member, at) in [
        ("created_at", grant.map(|grant| grant.created_at)),
        ("expires_at", grant.and_then(|grant| grant.expires_at)),
        ("revoked_at", grant.and_then(|grant| grant.revoked_at)),
        ("former_until", grant.and_then(|grant| grant.overlap_until(now))),
    ] {
        match at {
            Some(at) => object.quoted(member, at),
            None => object.raw(member, b"null"),
        }
    }
    object.plain("configured", grant.is_none());
    if let Some(token) = token {
        object.text("token", token);
    }
    object.close();
}

pub(super) fn push_caller(out: &mut Vec<u8>, caller: &Standing) {
    let mut object = Object::open(out);
    object.text("name", &caller.name);
    if let Some(callback) = &caller.callback {
        object.text("callback", callback.as_str());
    }
    object.plain("configured", caller.is_known);
    object.plain("owed", caller.owed);
    if let Some(since) = caller.since {
        object.quoted("since", since);
    }
    push_failing(&mut object, caller.failing.as_ref());
    object.close();
}

fn push_failing(object: &mut Object<'_>, failing: Option<&Failing>) {
    let Some(failing) = failing else { return };
    let mut shown = object.object("failing");
    shown.quoted("since", failing.since);
    shown.plain("tries", failing.tries);
    shown.text("last", &failing.last);
    shown.quoted("next_at", failing.next_at);
    shown.close();
}

fn failures(breaker: Breaker) -> u32 {
    match breaker {
        Breaker::Closed { failures } => failures,
        // The operator opened it, so the agent's failures do not count.
        Breaker::Open { until: Time::NEVER } => 0,
        Breaker::Open { .. } | Breaker::HalfOpen => FAILURES_MAX,
    }
}
