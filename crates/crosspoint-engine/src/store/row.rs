//! Converts between rows and values. Which column means what is said here, in
//! `outcome` and in `member`, and nowhere else.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::Failure;
use crosspoint_contracts::reply::{Progress, Question};
use crosspoint_contracts::request::{Backoff, Door, Key, Limits, Priority, Schedule};
use crosspoint_contracts::time::Time;
use rusqlite::{Connection, Row, Statement, Transaction, params};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::breaker::Breaker;
use crate::core::Standing;
use crate::id::{JobId, Seq};
use crate::job::{Answered, Ending, Job, Origin, Phase, Request, Running, State};
use crate::keys::Hashes;

/// The first state that is an end; all later ones are ends too.
pub(super) const FIRST_END: i64 = Phase::Completed as i64;

/// All columns that [`job`] reads, in its order.
pub(super) const JOB_COLUMNS: &str = "id, state, caller, door, request_id, key, work, pinned, parent, priority, limits, \
    accepted_at, input_start, input_end, updated_at, agent, attempts, retries, begun, started_at, waited, until, after, asked, \
    question, percent, step, output_bytes, answers, events, hash IS NULL, trace, skew, cut_short, had, memory, \
    (SELECT at FROM aside WHERE aside.job = job.seq), stays, addressed, echo, notify, stage";

pub(super) fn insert_job(
    transaction: &Transaction<'_>,
    job: &Job,
    hashes: Hashes,
    head: i64,
    epoch: i64,
) -> rusqlite::Result<()> {
    let mut insert = transaction.prepare_cached(
        "INSERT INTO job(seq, state, updated_at, agent, attempts, retries, begun, started_at, waited, until, after, asked,
            question, percent, step, output_bytes, answers, events, head, epoch, skew, cut_short, had, memory, stays,
            id, hash, caller, door, request_id, key, work, pinned, parent, priority, limits, accepted_at, input_start, input_end,
            trace, alias, addressed, echo, notify, stage, owner)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24,
            ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36, ?37, ?38, ?39, ?40, ?41, ?42, ?43, ?44, ?45, 0)",
    )?;
    bind_changing(&mut insert, job, Some(head), epoch)?;
    bind_lasting(&mut insert, &job.request, hashes)?;
    insert.raw_execute()?;
    Ok(())
}

pub(super) fn update_job(
    transaction: &Transaction<'_>,
    job: &Job,
    head: Option<i64>,
    epoch: i64,
) -> rusqlite::Result<()> {
    let mut update = transaction.prepare_cached(
        "UPDATE job SET state = ?2, updated_at = ?3, agent = ?4, attempts = ?5, retries = ?6, begun = ?7, started_at = ?8,
            waited = ?9, until = ?10, after = ?11, asked = ?12, question = ?13, percent = ?14, step = ?15, output_bytes = ?16,
            answers = ?17, events = ?18, head = coalesce(?19, head), epoch = ?20, skew = ?21, cut_short = ?22, had = ?23,
            memory = ?24, stays = ?25
         WHERE seq = ?1",
    )?;
    bind_changing(&mut update, job, head, epoch)?;
    match update.raw_execute()? {
        1 => Ok(()),
        // Something else removed the row, and the accepted job with it. That must not be ignored.
        other => Err(rusqlite::Error::StatementChangedRows(other)),
    }
}

/// Writes since when a job is set aside, or that it no longer is.
pub(super) fn write_aside(transaction: &Transaction<'_>, seq: Seq, at: Option<Time>) -> rusqlite::Result<()> {
    let number = seq.0.cast_signed();
    let sql = match at {
        Some(_) => "INSERT INTO aside(job, at) VALUES (?1, ?2) ON CONFLICT(job) DO NOTHING",
        None => "DELETE FROM aside WHERE job = ?1 AND ?2 IS NULL",
    };
    transaction.prepare_cached(sql)?.execute(params![number, at.map(|at| at.0)])?;
    Ok(())
}

/// Corrects the row of a job to say that it has ended, as its outcome says. The number of an ended state is that of the
/// first end plus that of the status.
pub(super) fn repair(transaction: &Transaction<'_>, seq: Seq, epoch: i64) -> rusqlite::Result<()> {
    let mut update = transaction.prepare_cached(
        "UPDATE job SET (state, updated_at, events) = (SELECT ?2 + status, at, n FROM outcome WHERE outcome.job = job.seq), epoch = ?3
         WHERE seq = ?1",
    )?;
    update.execute(params![seq.0.cast_signed(), FIRST_END, epoch])?;
    write_aside(transaction, seq, None)
}

/// Binds parameters 1 to 25: the job's number, and what changes in its life.
fn bind_changing(statement: &mut Statement<'_>, job: &Job, head: Option<i64>, epoch: i64) -> rusqlite::Result<()> {
    let state = StateColumns::of(job);
    statement.raw_bind_parameter(1, job.seq().0.cast_signed())?;
    statement.raw_bind_parameter(2, state.state)?;
    statement.raw_bind_parameter(3, job.updated_at.0)?;
    statement.raw_bind_parameter(4, job.agent.as_deref())?;
    statement.raw_bind_parameter(5, job.attempts)?;
    statement.raw_bind_parameter(6, job.retries)?;
    statement.raw_bind_parameter(7, job.begun)?;
    statement.raw_bind_parameter(8, job.started_at.map(|at| at.0))?;
    statement.raw_bind_parameter(9, state.waited_micros)?;
    statement.raw_bind_parameter(10, state.until)?;
    statement.raw_bind_parameter(11, state.after)?;
    statement.raw_bind_parameter(12, state.asked)?;
    statement.raw_bind_parameter(13, state.question)?;
    statement.raw_bind_parameter(14, state.percent)?;
    statement.raw_bind_parameter(15, state.step)?;
    statement.raw_bind_parameter(16, job.output_bytes.cast_signed())?;
    statement.raw_bind_parameter(17, answers_text(&job.answers))?;
    statement.raw_bind_parameter(18, job.events)?;
    statement.raw_bind_parameter(19, head)?;
    statement.raw_bind_parameter(20, epoch)?;
    statement.raw_bind_parameter(21, job.skew_micros)?;
    statement.raw_bind_parameter(22, job.cut_short)?;
    statement.raw_bind_parameter(23, had_text(&job.had))?;
    statement.raw_bind_parameter(24, job.memory.as_ref().map(|memory| &*memory.0))?;
    statement.raw_bind_parameter(25, job.stays)
}

/// Binds parameters 26 to 45: the request, which is written once.
fn bind_lasting(statement: &mut Statement<'_>, request: &Request, hashes: Hashes) -> rusqlite::Result<()> {
    let key = match &request.key {
        Key::Other(key) => Some(&**key),
        Key::None | Key::RequestId => None,
    };
    statement.raw_bind_parameter(26, request.id.as_bytes())?;
    statement.raw_bind_parameter(27, hashes.key.map(|hash| hash.0.cast_signed()))?;
    statement.raw_bind_parameter(28, &*request.caller)?;
    statement.raw_bind_parameter(29, request.door.name())?;
    statement.raw_bind_parameter(30, &*request.request_id)?;
    statement.raw_bind_parameter(31, key)?;
    statement.raw_bind_parameter(32, &*request.work)?;
    statement.raw_bind_parameter(33, request.pinned.as_deref())?;
    statement.raw_bind_parameter(34, request.origin.as_ref().map(|origin| origin.job().into_bytes()))?;
    statement.raw_bind_parameter(35, request.priority as i64)?;
    statement.raw_bind_parameter(36, limits_text(&request.limits))?;
    statement.raw_bind_parameter(37, request.accepted_at.0)?;
    statement.raw_bind_parameter(38, request.input.start)?;
    statement.raw_bind_parameter(39, request.input.end)?;
    statement.raw_bind_parameter(40, request.trace.as_deref())?;
    statement.raw_bind_parameter(41, hashes.alias.map(|hash| hash.0.cast_signed()))?;
    statement.raw_bind_parameter(42, request.addressed.as_deref())?;
    statement.raw_bind_parameter(43, request.echo.as_deref())?;
    statement.raw_bind_parameter(44, request.notify.as_deref())?;
    statement.raw_bind_parameter(45, request.origin.as_ref().and_then(Origin::stage))
}

/// The columns that depend on the state.
struct StateColumns<'j> {
    state: i64,
    waited_micros: i64,
    until: Option<i64>,
    after: Option<&'static str>,
    asked: Option<u32>,
    question: Option<&'j [u8]>,
    percent: Option<f64>,
    step: Option<&'j [u8]>,
}

impl<'j> StateColumns<'j> {
    fn of(job: &'j Job) -> StateColumns<'j> {
        let (until, after) = match &job.state {
            State::Retrying { until, after } => (Some(until.0), Some(after.name())),
            State::Queued | State::Running(_) | State::Waiting { .. } | State::Poisoned | State::Ended(_) => {
                (None, None)
            }
        };
        let question = match &job.state {
            State::Waiting { question, .. } => Some(&**question.json().bytes()),
            State::Queued | State::Running(_) | State::Retrying { .. } | State::Poisoned | State::Ended(_) => None,
        };
        StateColumns {
            state: job.phase() as i64,
            waited_micros: i64::try_from(job.waited.as_micros()).unwrap_or(i64::MAX),
            until,
            after,
            asked: job.running().map(|running| running.asked),
            question,
            percent: job.progress.as_ref().and_then(|progress| progress.percent),
            step: job.progress.as_ref().and_then(|progress| Some(&**progress.step.as_ref()?.bytes())),
        }
    }
}

/// Reads a job from a row of [`JOB_COLUMNS`]. The outcome of a job that has ended is in a row of its own.
pub(super) fn job(row: &Row<'_>, seq: Seq, ended: Option<Arc<Ending>>) -> rusqlite::Result<Job> {
    let request = request(row, seq)?;
    let attempts: u32 = row.get(16)?;
    let updated_at = Time(row.get(14)?);
    let asked = row.get::<_, Option<u32>>(23)?.unwrap_or(0);
    let running = Running { attempt: attempts, heard_at: updated_at, timed_from: updated_at, asked, taken_up_at: None };
    let phase = Phase::ALL.get(usize::from(row.get::<_, u8>(1)?)).copied();
    let state = match (phase, ended) {
        (_, Some(ended)) => State::Ended(ended),
        (Some(Phase::Running), None) => State::Running(running),
        (Some(Phase::Retrying), None) => State::Retrying {
            until: Time(row.get::<_, Option<i64>>(21)?.unwrap_or(0)),
            after: failure(row.get::<_, Option<String>>(22)?.as_deref()),
        },
        // A job that waits without a question waits for an operator.
        (Some(Phase::Waiting), None) => match body(row, 24)? {
            Some(question) => State::Waiting { running, question: Question::read(question) },
            None => State::Poisoned,
        },
        (Some(Phase::Queued), None) => State::Queued,
        // Neither can be committed, so something else has changed the file.
        (Some(Phase::Completed | Phase::Failed | Phase::Cancelled) | None, None) => {
            return Err(rusqlite::Error::IntegralValueOutOfRange(1, row.get(1)?));
        }
    };
    let progress = Progress { percent: row.get(25)?, step: body(row, 26)?, ..Progress::default() };
    let shown = progress.percent.is_some() || progress.step.is_some();
    Ok(Job {
        request: Arc::new(request),
        state,
        updated_at,
        agent: row.get::<_, Option<Arc<str>>>(15)?,
        attempts,
        had: Arc::new(had(row.get::<_, Option<String>>(34)?.as_deref())),
        retries: row.get(17)?,
        begun: row.get(18)?,
        stays: row.get(37)?,
        cut_short: row.get(33)?,
        aside: row.get::<_, Option<i64>>(36)?.map(Time),
        started_at: row.get::<_, Option<i64>>(19)?.map(Time),
        waited: Duration::from_micros(row.get::<_, i64>(20)?.unsigned_abs()),
        skew_micros: row.get(32)?,
        progress: shown.then(|| Arc::new(progress)),
        // What agents said is in the events; see `said`.
        began: None,
        pending: None,
        progress_at: Time::default(),
        output_bytes: row.get::<_, i64>(27)?.unsigned_abs(),
        answers: Arc::new(answers(row.get::<_, Option<Vec<u8>>>(28)?.as_deref())),
        memory: row.get::<_, Option<Vec<u8>>>(35)?.map(|memory| Block(memory.into())),
        events: row.get(29)?,
    })
}

fn request(row: &Row<'_>, seq: Seq) -> rusqlite::Result<Request> {
    let keyless: bool = row.get(30)?;
    let key = match row.get::<_, Option<Box<str>>>(5)? {
        Some(key) => Key::Other(key),
        None if keyless => Key::None,
        None => Key::RequestId,
    };
    Ok(Request {
        id: JobId::of_row(seq, Uuid::from_bytes(row.get(0)?)),
        origin: origin(row)?,
        door: Door::from_name(row.get_ref(3)?.as_str()?).unwrap_or(Door::Native),
        caller: row.get(2)?,
        request_id: row.get(4)?,
        key,
        work: row.get(6)?,
        pinned: row.get(7)?,
        addressed: row.get(38)?,
        priority: Priority::ALL.get(usize::from(row.get::<_, u8>(9)?)).copied().unwrap_or_default(),
        limits: limits(row.get::<_, Option<String>>(10)?.as_deref()),
        trace: row.get(31)?,
        echo: row.get(39)?,
        notify: row.get(40)?,
        accepted_at: Time(row.get(11)?),
        input: Range { start: row.get(12)?, end: row.get(13)? },
    })
}

/// A job that came from another one and is no stage of it repeats it.
fn origin(row: &Row<'_>) -> rusqlite::Result<Option<Origin>> {
    let Some(other) = row.get::<_, Option<[u8; 16]>>(8)?.map(Uuid::from_bytes) else { return Ok(None) };
    Ok(Some(match row.get::<_, Option<Box<str>>>(41)? {
        None => Origin::RetryOf(other),
        Some(stage) => Origin::ChildOf { parent: other, stage },
    }))
}

fn body(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Body>> {
    Ok(row.get::<_, Option<Vec<u8>>>(column)?.map(Body::trusted))
}

pub(super) fn failure(name: Option<&str>) -> Failure {
    name.and_then(Failure::from_name).unwrap_or(Failure::Internal)
}

#[derive(Serialize, Deserialize)]
struct LimitsText {
    total_micros: Option<u64>,
    /// Missing in stores of earlier versions.
    #[serde(default)]
    attempt_micros: Option<u64>,
    silence_micros: Option<u64>,
    output_bytes: Option<u64>,
    memory_bytes: Option<u64>,
    retry: Option<(u32, u8, u64)>,
}

const BACKOFFS: [Backoff; 3] = [Backoff::Exponential, Backoff::Linear, Backoff::Fixed];

fn limits_text(limits: &Limits) -> Option<String> {
    if *limits == Limits::default() {
        return None;
    }
    let micros = |duration: Duration| u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
    let text = LimitsText {
        total_micros: limits.total.map(micros),
        attempt_micros: limits.attempt.map(micros),
        silence_micros: limits.silence.map(micros),
        output_bytes: limits.output_bytes,
        memory_bytes: limits.memory_bytes,
        retry: limits.retry.map(|retry| (retry.attempts_max, retry.backoff as u8, micros(retry.first))),
    };
    serde_json::to_string(&text).ok()
}

fn limits(text: Option<&str>) -> Limits {
    let Some(Ok(text)) = text.map(serde_json::from_str::<LimitsText>) else { return Limits::default() };
    Limits {
        total: text.total_micros.map(Duration::from_micros),
        attempt: text.attempt_micros.map(Duration::from_micros),
        silence: text.silence_micros.map(Duration::from_micros),
        output_bytes: text.output_bytes,
        memory_bytes: text.memory_bytes,
        retry: text.retry.map(|(attempts_max, backoff, first)| Schedule {
            attempts_max,
            backoff: BACKOFFS.get(usize::from(backoff)).copied().unwrap_or(Backoff::Exponential),
            first: Duration::from_micros(first),
        }),
    }
}

fn had_text(had: &[(u32, Arc<str>)]) -> Option<String> {
    let pairs: Vec<(u32, &str)> = had.iter().map(|(last, agent)| (*last, &**agent)).collect();
    if pairs.is_empty() { None } else { serde_json::to_string(&pairs).ok() }
}

fn had(text: Option<&str>) -> Vec<(u32, Arc<str>)> {
    let pairs: Option<Vec<(u32, String)>> = text.and_then(|text| serde_json::from_str(text).ok());
    pairs.unwrap_or_default().into_iter().map(|(last, agent)| (last, Arc::from(agent))).collect()
}

fn answers_text(answers: &[Answered]) -> Option<Vec<u8>> {
    let pairs: Vec<(&Body, &Body)> =
        answers.iter().map(|answered| (answered.question.json(), &answered.answer)).collect();
    (!pairs.is_empty()).then(|| Body::of(&pairs).bytes().to_vec())
}

fn answers(text: Option<&[u8]>) -> Vec<Answered> {
    let body = |raw: &RawValue| Body::trusted(raw.get().to_owned());
    let pairs: Option<Vec<(&RawValue, &RawValue)>> = text.and_then(|text| serde_json::from_slice(text).ok());
    let pairs = pairs.unwrap_or_default().into_iter();
    pairs
        .map(|(question, answer)| Answered { question: Question::read(body(question)), answer: body(answer) })
        .collect()
}

pub(super) fn write_standing(transaction: &Transaction<'_>, name: &str, standing: &Standing) -> rusqlite::Result<()> {
    let (failures, until) = match standing.breaker {
        Breaker::Closed { failures } => (failures, None),
        Breaker::Open { until } => (0, Some(until.0)),
        Breaker::HalfOpen => (0, None),
    };
    let mut write = transaction.prepare_cached(
        "INSERT INTO agent(name, drained, breaker, failures, until) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT(name) DO UPDATE SET drained = ?2, breaker = ?3, failures = ?4, until = ?5",
    )?;
    write.execute(params![name, standing.drained, standing.breaker.name(), failures, until])?;
    Ok(())
}

pub(super) fn standings(connection: &Connection) -> rusqlite::Result<Vec<(Arc<str>, Standing)>> {
    let mut all = connection.prepare("SELECT name, drained, breaker, failures, until FROM agent")?;
    let one = |row: &Row<'_>| {
        let until = row.get::<_, Option<i64>>(4)?.map(Time);
        let breaker = match (row.get_ref(2)?.as_str()?, until) {
            ("open", Some(until)) => Breaker::Open { until },
            ("half_open", _) => Breaker::HalfOpen,
            _ => Breaker::Closed { failures: row.get(3)? },
        };
        Ok((row.get(0)?, Standing { breaker, drained: row.get(1)? }))
    };
    all.query_map((), one)?.collect()
}

/// Reads the number of a job from a column.
pub(super) fn seq(row: &Row<'_>, column: usize) -> rusqlite::Result<Seq> {
    Ok(Seq(row.get::<_, i64>(column)?.unsigned_abs()))
}
