//! Reading the calls of agents that joined. A mistake anywhere refuses the whole body, and the refusal says where it
//! is.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;
use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::json::{Type, Value};
use crosspoint_contracts::outcome::{Text, text_within};
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::{Failed, Given, Progress, Question, Success};
use crosspoint_engine::core::Spec;
use crosspoint_engine::id::{Ids, JobId};
use crosspoint_engine::policy::{OUTPUT_BYTES_DEFAULT, OUTPUT_BYTES_MAX, Policy, Recovery, Repeats, TOTAL_DEFAULT};
use crosspoint_exchange::admission::NAME_BYTES_MAX;
use crosspoint_exchange::refusal::Refusal;
use crosspoint_exchange::reply;
use crosspoint_http::json_body::{object, scan};
use crosspoint_http::query::parameters;
use uuid::Uuid;

use super::doubt::{Doubts, scan_reports};
use crate::pull::{CONCURRENCY_MAX, Holding, Joining, Report, ReportBody};

/// Name of the contract of agents that joined, for people.
const CONTRACT: &str = "pull";

/// Most works that one agent may take. Each is looked up when work is handed out.
const WORKS_MAX: usize = 1_000;

/// Most reports in one body. They are decided and written together, and nothing else is written meanwhile.
const REPORTS_MAX: usize = 1_000;

/// Longest text about a broken rule, in characters. It says which rule was broken, and never quotes content.
const RULE_CHARS_MAX: usize = 200;

/// Largest block of output, in bytes. It is one row of the store, and is held in memory on its way there.
const BLOCK_BYTES_MAX: usize = 1 << 20;

/// Allowed leases, in seconds. Shorter ones would expire during a pause of the machine, longer ones would keep the work
/// of dead workers for too long.
const LEASE_SECONDS: std::ops::RangeInclusive<f64> = 5.0..=300.0;
const LEASE_SECONDS_DEFAULT: f64 = 15.0;

/// Allowed times for a job, and for the silence of its agent, in seconds. Shorter or longer ones are not useful.
const WORK_SECONDS: std::ops::RangeInclusive<f64> = 0.001..=4_294_967_295.0;

const JOIN: &str = r#"send {"session": "a new UUID", "work": ["shout"], "concurrency": 4}"#;
const TAKE: &str =
    r#"send {"session": "your UUID", "room": 4, "holding": [{"id": "a job's id", "attempt": 1, "answers": 0}]}"#;
const REPORT: &str =
    r#"send {"session": "your UUID", "reports": [{"id": "a job's id", "attempt": 1, "result": {"outputs": {}}}]}"#;
const LEAVE: &str = r#"send {"session": "your UUID"}"#;

/// A call for work.
pub(super) struct Taking {
    pub(super) session: Uuid,
    pub(super) room: usize,
    pub(super) holding: Vec<Holding>,
    /// The reports that are taken before work is given.
    pub(super) reports: Vec<Report>,
}

/// The place of a block of output.
pub(super) struct BlockPlace {
    pub(super) session: Uuid,
    pub(super) job: JobId,
    pub(super) attempt: u32,
    pub(super) offset: u64,
}

pub(super) fn joining(name: &str, document: &Bytes) -> Result<Joining, Refusal> {
    let tape = scan(document)?;
    let root = In { value: object(&tape, JOIN)?, at: String::new(), hint: JOIN };
    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
        let message = format!("an agent's name has 1 to {NAME_BYTES_MAX} bytes, and no control characters");
        return Err(Refusal::invalid(message, JOIN));
    }
    let lease = root.seconds("lease_seconds", LEASE_SECONDS)?.unwrap_or(LEASE_SECONDS_DEFAULT);
    let silence = root.seconds("silence_seconds", WORK_SECONDS)?.map(Duration::from_secs_f64);
    let total = root.seconds("total_seconds", WORK_SECONDS)?.map_or(TOTAL_DEFAULT, Duration::from_secs_f64);
    let repeatable = root.boolean("repeatable")?;
    let policy = Policy {
        silence,
        total,
        repeats: if repeatable == Some(true) { Repeats::Always } else { Repeats::BeforeStart },
        // The agent goes on without this server. Work that dies with the agent is begun again unless its operator says
        // otherwise.
        recovery: if repeatable == Some(false) { Recovery::ResumeOnce } else { Recovery::Resume },
        output_bytes_max: root.whole("output_bytes", 0..=OUTPUT_BYTES_MAX)?.unwrap_or(OUTPUT_BYTES_DEFAULT),
        ..Policy::DEFAULT
    };
    let concurrency = root.whole("concurrency", 0..=u64::from(CONCURRENCY_MAX))?.unwrap_or(1);
    Ok(Joining {
        session: root.session()?,
        concurrency: u32::try_from(concurrency).unwrap_or(CONCURRENCY_MAX),
        lease: Duration::from_secs_f64(lease),
        spec: Spec {
            name: name.into(),
            contract: CONTRACT.into(),
            agent_type: None,
            works: works(&root)?,
            awaited: false,
            concurrency: 0,
            waiting_max: u32::MAX,
            policy,
        },
    })
}

/// Reads the works, in order and once each, so that the same works are the same terms.
fn works(root: &In<'_, '_>) -> Result<Vec<Arc<str>>, Refusal> {
    let mut works = BTreeSet::new();
    for item in root.items("work", WORKS_MAX)? {
        let work = item.value.text().map(|text| text.decode().into_owned());
        let work = work.filter(|work| (1..=NAME_BYTES_MAX).contains(&work.len()));
        works.insert(work.ok_or_else(|| item.wrong(&format!("a string of 1 to {NAME_BYTES_MAX} bytes")))?);
    }
    if works.is_empty() {
        return Err(Refusal::invalid("`work` names no work", JOIN).at("/work"));
    }
    Ok(works.into_iter().map(Arc::from).collect())
}

pub(super) fn taking(document: &Bytes, ids: &Ids) -> Result<Taking, Refusal> {
    let tape = scan_reports(document)?;
    let mut doubts = Doubts::of(&tape);
    let root = In { value: object(&tape, TAKE)?, at: String::new(), hint: TAKE };
    let room = root.whole("room", 0..=u64::from(CONCURRENCY_MAX))?.unwrap_or(0);
    let one = |item: In<'_, '_>| {
        let (id, attempt) = item.attempt(ids)?;
        let answers = item.whole("answers", 0..=u64::from(u32::MAX))?.unwrap_or(0);
        Ok(Holding { id, attempt, answers: u32::try_from(answers).unwrap_or(u32::MAX) })
    };
    let holding = match root.value.get("holding").filter(|value| !value.is_null()) {
        None => Vec::new(),
        Some(_) => {
            let items = root.items("holding", CONCURRENCY_MAX as usize)?;
            items.into_iter().map(one).collect::<Result<Vec<Holding>, Refusal>>()?
        }
    };
    let reports = match root.given("reports") {
        None => Vec::new(),
        Some(_) => reports_in((document, ids), &root, &mut doubts)?,
    };
    doubts.refuse_others(document)?;
    Ok(Taking { session: root.session()?, room: usize::try_from(room).unwrap_or(0), holding, reports })
}

pub(super) fn leaving(document: &Bytes) -> Result<Uuid, Refusal> {
    let tape = scan(document)?;
    In { value: object(&tape, LEAVE)?, at: String::new(), hint: LEAVE }.session()
}

pub(super) fn reports(document: &Bytes, ids: &Ids) -> Result<(Uuid, Vec<Report>), Refusal> {
    let tape = scan_reports(document)?;
    let mut doubts = Doubts::of(&tape);
    let root = In { value: object(&tape, REPORT)?, at: String::new(), hint: REPORT };
    let reports = reports_in((document, ids), &root, &mut doubts)?;
    doubts.refuse_others(document)?;
    Ok((root.session()?, reports))
}

fn reports_in(of: (&Bytes, &Ids), root: &In<'_, '_>, doubts: &mut Doubts<'_>) -> Result<Vec<Report>, Refusal> {
    let items = root.items("reports", REPORTS_MAX)?.into_iter();
    items.map(|item| report(of, &item, doubts)).collect()
}

/// Reads a report, which has exactly one of the seven kinds.
fn report(of: (&Bytes, &Ids), item: &In<'_, '_>, doubts: &mut Doubts<'_>) -> Result<Report, Refusal> {
    let (document, ids) = of;
    const KINDS: [&str; 7] = ["heard", "progress", "violation", "ask", "declined", "result", "failure"];
    let (id, attempt) = item.attempt(ids)?;
    let found: Vec<&str> = KINDS.into_iter().filter(|kind| item.value.get(kind).is_some()).collect();
    let [kind] = found[..] else { return Err(item.wrong(&format!("an object with one of {}", KINDS.join(", ")))) };
    let inside = item.member(kind);
    let is_answer = ["ask", "result", "failure"].contains(&kind);
    let body = match kind {
        // The report is taken as a failure: sending it again would not change it.
        _ if is_answer && doubts.are_in(inside.value) => ReportBody::Ended(Err(unreadable(inside.value.source()))),
        "heard" => ReportBody::Heard,
        "progress" => ReportBody::Progress(progress(document, &inside)?),
        "violation" => {
            let rule = inside.value.text().map(|text| text.decode().into_owned().into_boxed_str());
            let is_short = |rule: &str| {
                (1..=RULE_CHARS_MAX).contains(&rule.chars().count()) && !rule.chars().any(char::is_control)
            };
            let rule = rule.filter(|rule| is_short(rule));
            let must_be = format!("a string of 1 to {RULE_CHARS_MAX} characters, without control characters");
            ReportBody::Broken(rule.ok_or_else(|| inside.wrong(&must_be))?)
        }
        "ask" => {
            let prompt = inside.member("prompt");
            prompt.value.text().ok_or_else(|| prompt.wrong("a string"))?;
            let number = item.whole("n", 1..=u64::from(u32::MAX))?;
            let number = number.ok_or_else(|| item.member("n").wrong("the number of the question, from 1"))?;
            ReportBody::Ask {
                number: u32::try_from(number).unwrap_or(u32::MAX),
                question: Question::read(inside.body(document)),
            }
        }
        "declined" if inside.value.boolean() == Some(true) => ReportBody::Declined,
        "declined" => return Err(inside.wrong("true")),
        "result" => ReportBody::Ended(Ok(success(document, &inside, attempt)?)),
        _ => ReportBody::Ended(Err(failed(document, &inside)?)),
    };
    Ok(Report { id, attempt, body })
}

fn unreadable(answer: &str) -> Failed {
    let message = "What the agent gave has a name twice in an object, or half a character.";
    reply::unreadable(message, answer.as_bytes())
}

fn progress(document: &Bytes, inside: &In<'_, '_>) -> Result<Progress, Refusal> {
    inside.is_object()?;
    let percent = inside.given("percent");
    let percent = percent.map(|percent| percent.value.float().ok_or_else(|| percent.wrong("a number")));
    Ok(Progress {
        percent: percent.transpose()?,
        step: inside.body_of("step", Type::String, document)?,
        document: None,
        began: None,
    })
}

/// Reads a result: outputs, a text beside them, or what was sent as output as the text (ALL-12).
fn success(document: &Bytes, inside: &In<'_, '_>, attempt: u32) -> Result<Success, Refusal> {
    inside.is_object()?;
    let printed = inside.given("printed").map(|printed| printed.printed(attempt)).transpose()?;
    let outputs = match inside.value.get("outputs") {
        None if printed.is_none() => return Err(inside.wrong("an object with `outputs` or `printed`")),
        None => None,
        Some(_) => Some(inside.member("outputs").body(document)),
    };
    let artifacts = inside.body_of("artifacts", Type::Array, document)?;
    // An empty list is the same as no artifacts.
    let artifacts = artifacts.filter(|artifacts| artifacts.get() != "[]");
    let beside = inside.body_of("text", Type::String, document)?.map(Text::Beside);
    let text = beside.filter(|_| outputs.is_some()).or(printed.map(Text::Printed));
    let success = outputs.map(Success::of).unwrap_or_default();
    Ok(Success { artifacts, text: text.or(success.text), ..success })
}

/// Reads whether the caller may send the request again.
fn repeat(given: &In<'_, '_>) -> Result<Repeat, Refusal> {
    let known = [Repeat::Safe, Repeat::Unknown, Repeat::Never];
    let named = given.value.text().and_then(|name| known.into_iter().find(|known| name == *known.name()));
    named.ok_or_else(|| given.wrong("one of safe, unknown, never"))
}

fn failed(document: &Bytes, inside: &In<'_, '_>) -> Result<Failed, Refusal> {
    inside.is_object()?;
    let code = inside.member("code");
    let failure = code.value.text().and_then(|name| Failure::from_name(&name.decode()));
    let failure = failure.ok_or_else(|| {
        let names: Vec<&str> = Failure::ALL.into_iter().map(Failure::name).collect();
        code.wrong(&format!("one of {}", names.join(", ")))
    })?;
    let message = inside.body_of("message", Type::String, document)?;
    let details = inside.body_of("details", Type::Object, document)?;
    let code = inside.given("details").map(|details| details.member("code"));
    let code = code.filter(|code| code.value.text().is_some()).map(|code| code.body(document));
    let never_began = inside.boolean("dispatched")? == Some(false);
    let dispatched = if never_began { Dispatched::No } else { Dispatched::Yes };
    let repeat = inside.given("repeat").map(|given| repeat(&given)).transpose()?;
    // What a worker gives with a failure is kept like what it gives with a success (ALL-11).
    let outputs = inside.given("outputs").map(|outputs| outputs.body(document));
    let artifacts = inside.body_of("artifacts", Type::Array, document)?;
    let artifacts = artifacts.filter(|artifacts| artifacts.get() != "[]");
    let text = outputs.as_ref().and_then(text_within).map(Text::Within);
    let given = Given { outputs, text, artifacts, ..Given::default() }.if_any();
    Ok(Failed { message, code, details, repeat, given, ..Failed::of(failure, dispatched) }.by_agent())
}

pub(super) fn block_place(uri: &Uri, block: &Bytes, ids: &Ids) -> Result<BlockPlace, Refusal> {
    const HINT: &str = "give session, job, attempt and offset, and the bytes as the body";
    if block.len() > BLOCK_BYTES_MAX {
        return Err(Refusal::too_large(BLOCK_BYTES_MAX));
    }
    let (mut session, mut job, mut attempt, mut offset) = (None, None, None, None);
    for (name, value) in parameters(uri)? {
        match name.as_str() {
            "session" => session = value.parse().ok(),
            "job" => job = ids.parse(&value),
            "attempt" => attempt = value.parse().ok(),
            "offset" => offset = value.parse().ok().filter(|offset| *offset <= OUTPUT_BYTES_MAX),
            _ => return Err(Refusal::invalid("the query has a parameter that is not known here", HINT)),
        }
    }
    let missing = |what: &str| Refusal::invalid(format!("the query's `{what}` is missing or cannot be read"), HINT);
    Ok(BlockPlace {
        session: session.ok_or_else(|| missing("session"))?,
        job: job.ok_or_else(|| missing("job"))?,
        attempt: attempt.ok_or_else(|| missing("attempt"))?,
        offset: offset.ok_or_else(|| missing("offset"))?,
    })
}

/// A value, its place, and the hint for a mistake in it.
struct In<'t, 's> {
    value: Value<'t, 's>,
    at: String,
    hint: &'static str,
}

impl<'t, 's> In<'t, 's> {
    /// Returns a member. If it is missing, returns the object itself with the member's place, so that a mistake has a
    /// place.
    fn member(&self, name: &str) -> In<'t, 's> {
        let value = self.value.get(name).unwrap_or(self.value);
        In { value, at: format!("{}/{name}", self.at), hint: self.hint }
    }

    /// Returns a member that is present and not null.
    fn given(&self, name: &str) -> Option<In<'t, 's>> {
        self.value.get(name).filter(|value| !value.is_null())?;
        Some(self.member(name))
    }

    fn items(&self, name: &str, most: usize) -> Result<Vec<In<'t, 's>>, Refusal> {
        let list = self.given(name).filter(|list| list.value.kind() == Type::Array);
        let list = list.ok_or_else(|| self.member(name).wrong("an array"))?;
        let item = |(at, value)| In { value, at: format!("{}/{at}", list.at), hint: self.hint };
        let items: Vec<In<'t, 's>> = list.value.items().take(most + 1).enumerate().map(item).collect();
        if items.len() > most {
            return Err(Refusal::invalid(format!("`{name}` has more than {most} items"), self.hint).at(list.at));
        }
        Ok(items)
    }

    fn seconds(&self, name: &str, range: std::ops::RangeInclusive<f64>) -> Result<Option<f64>, Refusal> {
        let Some(inside) = self.given(name) else { return Ok(None) };
        let seconds = inside.value.float().filter(|seconds| range.contains(seconds));
        let must_be = format!("a number of seconds from {} to {}", range.start(), range.end());
        seconds.map(Some).ok_or_else(|| inside.wrong(&must_be))
    }

    fn whole(&self, name: &str, range: std::ops::RangeInclusive<u64>) -> Result<Option<u64>, Refusal> {
        let Some(inside) = self.given(name) else { return Ok(None) };
        let number = inside.value.integer().and_then(|number| u64::try_from(number).ok());
        let must_be = format!("a whole number from {} to {}", range.start(), range.end());
        number.filter(|number| range.contains(number)).map(Some).ok_or_else(|| inside.wrong(&must_be))
    }

    fn boolean(&self, name: &str) -> Result<Option<bool>, Refusal> {
        let Some(inside) = self.given(name) else { return Ok(None) };
        inside.value.boolean().map(Some).ok_or_else(|| inside.wrong("true or false"))
    }

    fn session(&self) -> Result<Uuid, Refusal> {
        let inside = self.member("session");
        let id = inside.value.text().and_then(|text| text.decode().parse().ok());
        id.ok_or_else(|| inside.wrong("a UUID of your own choosing, the same in all your calls"))
    }

    fn attempt(&self, ids: &Ids) -> Result<(JobId, u32), Refusal> {
        self.is_object()?;
        let id = self.member("id");
        let job = id.value.text().and_then(|text| ids.parse(&text.decode()));
        let job = job.ok_or_else(|| id.wrong("a job's id"))?;
        let attempt = self.whole("attempt", 1..=u64::from(u32::MAX))?;
        let attempt = attempt.ok_or_else(|| self.member("attempt").wrong("the attempt's number, from 1"))?;
        Ok((job, u32::try_from(attempt).unwrap_or(u32::MAX)))
    }

    /// Reads which part of its output is the text of this attempt.
    fn printed(&self, attempt: u32) -> Result<Printed, Refusal> {
        self.is_object()?;
        let start = self.whole("from", 0..=OUTPUT_BYTES_MAX)?.unwrap_or(0);
        let bytes = self.whole("bytes", 0..=OUTPUT_BYTES_MAX)?;
        let bytes = bytes.ok_or_else(|| self.member("bytes").wrong("the number of bytes that are the text"))?;
        Ok(Printed { attempt, start, end: start.saturating_add(bytes) })
    }

    fn is_object(&self) -> Result<(), Refusal> {
        if self.value.kind() == Type::Object { Ok(()) } else { Err(self.wrong("an object")) }
    }

    /// Returns a member of this type, as it was written.
    fn body_of(&self, name: &str, kind: Type, document: &Bytes) -> Result<Option<Body>, Refusal> {
        let Some(inside) = self.given(name) else { return Ok(None) };
        if inside.value.kind() == kind { Ok(Some(inside.body(document))) } else { Err(inside.wrong(kind.described())) }
    }

    fn body(&self, document: &Bytes) -> Body {
        let (start, end) = self.value.span();
        Body::trusted(document.slice(start..end))
    }

    fn wrong(&self, must_be: &str) -> Refusal {
        let name = self.at.get(1..).unwrap_or_default().replace('/', ".");
        let name = if name.is_empty() { "the body".to_owned() } else { format!("`{name}`") };
        Refusal::invalid(format!("{name} must be {must_be}; nothing of the body was taken"), self.hint).at(&*self.at)
    }
}
