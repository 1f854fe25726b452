//! From a caller to an agent and back, without a network in between.

mod bridge;
mod law;
mod message;
mod tolerance;

use std::sync::Arc;

use bytes::Bytes;
use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Question, Success};
use crosspoint_contracts::request::NewJob;
use crosspoint_contracts::run::StreamEvent;
use crosspoint_contracts::time::Time;
use crosspoint_contracts::{Contract, Kind, Options, read};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::{Job, Request};
use crosspoint_engine::machine::{self, Event};
use crosspoint_engine::policy::Policy;
use crosspoint_engine::runtime;
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::outgoing::{self, AgentOptions, Outgoing};
use crosspoint_exchange::{incoming, reply};
use serde_json::{Value, json};

use super::{assignment, snapshot, unaccepted};

const CALLER: &str = "Łódź \u{1F600}/1";

fn options(contract: Contract) -> AgentOptions {
    AgentOptions {
        contract,
        agent: "a".into(),
        server: "crosspoint".into(),
        mode: None,
        carry: true,
        agent_type: None,
        agent_types: Arc::default(),
    }
}

fn job_of(new: NewJob) -> (Job, Block) {
    let request = Request {
        id: JobId::new(Seq(7), Time(1_800_000_000_000_000), 9),
        origin: None,
        door: new.door,
        caller: new.caller,
        request_id: new.request_id.unwrap_or_default(),
        key: new.key,
        work: new.work,
        pinned: new.agent,
        addressed: new.addressed,
        priority: new.priority,
        limits: new.limits,
        trace: new.trace,
        echo: new.echo,
        notify: new.notify,
        accepted_at: Time(1_800_000_000_000_000),
        input: u32::try_from(new.input.start).expect("short")..u32::try_from(new.input.end).expect("short"),
    };
    let job = Job::accepted(Arc::new(request));
    let event = Event::Start { agent: "a".into() };
    let step = machine::step(&job, event, Time(1_800_000_000_100_000), &Policy::DEFAULT).expect("it starts");
    (step.job, new.document)
}

fn came(kind: Kind, document: &Value) -> (Job, Block) {
    let bytes = Bytes::from(document.to_string());
    let incoming = incoming::read(kind.contract(), &bytes, Headers::default());
    job_of(incoming.unwrap_or_else(|report| panic!("{report:?}")).new)
}

fn finished(job: &Job, kind: Kind, document: &str) -> Job {
    let reply = reply::read(kind, &Bytes::from(document.to_owned())).unwrap_or_else(|report| panic!("{report:?}"));
    let reply::Meaning::Ended(result) = reply.meaning else { panic!("it has not ended") };
    let event = Event::Finish { attempt: 1, result: result.map_err(|failed| *failed) };
    machine::step(job, event, Time(1_800_000_002_100_000), &Policy::DEFAULT).expect("it ends").job
}

fn told(job: &Job, contract: Contract) -> String {
    answer::document(&snapshot(job), contract, &Beside::default())
}

/// Returns the outcome of a job as our own API shows it.
fn shown(job: &Job) -> Value {
    let shown = crate::server::view::job(job, &crate::server::view::Beside::default());
    serde_json::from_slice::<Value>(&shown).expect("JSON")["outcome"].clone()
}

fn faultless(text: &str, kind: Kind) {
    let options = Options { kind: Some(kind), ..Options::default() };
    let report = read(text.as_bytes(), &options).report;
    assert!(report.findings.is_empty(), "{report:?} in {text}");
}

fn parsed(text: &str, kind: Kind) -> Value {
    faultless(text, kind);
    serde_json::from_str(text).expect("JSON")
}

/// Writes the request of the first attempt.
fn requested(job: &Job, document: &Block, options: &AgentOptions) -> Result<Outgoing, Failed> {
    outgoing::request(&assignment(job, 1, document, None), options)
}

fn sent(job: &Job, document: &Block, contract: Contract) -> Value {
    let outgoing = requested(job, document, &options(contract)).expect("it can be written");
    serde_json::from_slice(&outgoing.text).expect("JSON")
}

/// A request of the bridge contract with an id that is a UUID.
fn bridged() -> Value {
    json!({"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "agent_name": "T", "prompt": "Größe?"})
}

fn stepped(job: &Job, event: Event) -> Job {
    machine::step(job, event, Time(1_800_000_002_100_000), &Policy::DEFAULT).expect("it goes").job
}

#[test]
fn a_run_for_a_run_agent_is_handed_through_and_the_ids_are_exchanged() {
    let request = json!({"request_id": CALLER, "task_type": "T", "inputs": {"q": [1, 2.50]}, "budgets": {"max_tokens": 5}, "tenant": 7});
    let (job, document) = came(Kind::RunRequest, &request);
    let sent = sent(&job, &document, Contract::Run);
    assert_eq!(sent["request_id"], job.id().to_string());
    assert_eq!(sent["x_crosspoint"]["request_id"], CALLER);
    assert_eq!(
        (&sent["inputs"], &sent["budgets"], &sent["tenant"]),
        (&request["inputs"], &request["budgets"], &request["tenant"])
    );
    assert_eq!(sent["mode"], Value::Null, "an absent mode is not filled in");
    let id = job.id();
    let said = format!(
        r#"{{"request_id":"{id}","status":"ok","outputs":{{"a":1}},"artifacts":["x"],"provenance":{{"p":1}},"usage":{{}},"warnings":["w"],"own":true}}"#
    );
    let done = finished(&job, Kind::RunResponse, &said);
    let got = parsed(&told(&done, Contract::Run), Kind::RunResponse);
    assert_eq!(got["request_id"], CALLER);
    assert_eq!(
        (&got["outputs"], &got["own"], &got["provenance"], &got["warnings"]),
        (&json!({"a": 1}), &json!(true), &json!({"p": 1}), &json!(["w"]))
    );
    assert_eq!((&got["status"], &got["ok"], &got["artifacts"]), (&json!("ok"), &json!(true), &json!(["x"])));
    assert_eq!(got.get("x_crosspoint"), None, "nothing had to be carried: {got}");
}

#[test]
fn a_task_for_a_run_agent_comes_back_as_a_task() {
    let trace = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let request = json!({"id": CALLER, "type": "T", "payload": {"url": "u"}, "context": {"priority": "high", "tenant": 7},
        "routing": {"source": "s", "delegationChain": ["s"]}, "observability": {"traceId": trace.0, "spanId": trace.1, "baggage": {"k": "v"}}});
    let (job, document) = came(Kind::TaskRequest, &request);
    assert_eq!(job.request.trace.as_deref(), Some(&*format!("00-{}-{}-01", trace.0, trace.1)));
    let sent = sent(&job, &document, Contract::Run);
    assert_eq!((&sent["task_type"], &sent["inputs"]), (&json!("T"), &json!({"url": "u"})));
    let carried = &sent["x_crosspoint"];
    assert_eq!((&carried["trace"], &carried["baggage"]), (&json!(trace.0), &json!({"k": "v"})));
    assert_ne!(carried["span"], trace.1, "every hop is a span of its own");
    assert_eq!(carried["delegation_chain"], json!(["s", "crosspoint"]));
    let said = format!(r#"{{"request_id":"{}","ok":true,"outputs":{{"a":1}},"grounding":{{"chunks":[]}}}}"#, job.id());
    let got = parsed(&told(&finished(&job, Kind::RunResponse, &said), Contract::Task), Kind::TaskResponse);
    assert_eq!((&got["id"], &got["status"], &got["result"]), (&json!(CALLER), &json!("completed"), &json!({"a": 1})));
    assert_eq!(got["metadata"]["agent"], "a");
    assert_eq!(got["metadata"]["duration_ms"], 2000);
    assert_eq!(got["metadata"]["x_crosspoint"].get("duration_seconds"), None, "it has a field: {got}");
    assert_eq!(got["metadata"]["x_crosspoint"]["fields"]["run"]["/grounding"], json!({"chunks": []}));
}

#[test]
fn a_task_for_a_task_agent_keeps_every_member() {
    let request = json!({"id": CALLER, "type": "T", "payload": {}, "more": {"x": 1}});
    let (job, document) = came(Kind::TaskRequest, &request);
    let sent = sent(&job, &document, Contract::Task);
    assert_eq!((&sent["id"], &sent["more"]), (&json!(job.id().to_string()), &json!({"x": 1})));
    assert_eq!(sent["routing"], json!({"delegationChain": ["crosspoint"]}));
    let said = format!(
        r#"{{"id":"{}","status":"completed","result":{{"a":1}},"artifacts":[{{"name":"n.md","type":"text/markdown","content":"c","lang":"en"}}],"own":1}}"#,
        job.id()
    );
    let done = finished(&job, Kind::TaskResponse, &said);
    let body = shown(&done);
    assert_eq!(body["artifacts"][0]["lang"], "en");
    assert_eq!(body["said"]["document"]["artifacts"], json!([]), "long parts are stored once");
    let got = parsed(&told(&done, Contract::Task), Kind::TaskResponse);
    assert_eq!((&got["id"], &got["result"], &got["own"]), (&json!(CALLER), &json!({"a": 1}), &json!(1)));
    assert_eq!(got["artifacts"], json!([{"name": "n.md", "type": "text/markdown", "content": "c", "lang": "en"}]));
}

#[test]
fn what_no_agent_of_its_type_takes_is_refused_as_unsupported() {
    let why = runtime::Unaccepted::Rejected(crosspoint_engine::core::Rejected::WrongType);
    let body: Value = serde_json::from_slice(&unaccepted(why).refusal(&[]).body()).expect("it is JSON");
    assert_eq!((&body["error"]["code"], &body["error"]["clause"]), (&json!("unsupported"), &json!("ALL-6")), "{body}");
}

#[test]
fn a_name_that_is_cut_off_is_no_name() {
    let cut = br#"{"request_id": "r-1", "task_type": "LIT_RET"#;
    assert_eq!(incoming::names_in(cut, ["request_id", "task_type"]), [Some("r-1".to_owned()), None]);
    let report = incoming::read(Contract::Run, &Bytes::from_static(cut), Headers::default()).err();
    let hints = report.map(|report| report.findings.into_iter().map(|finding| finding.hint.to_string()).collect());
    let hints: Vec<String> = hints.expect("it cannot be read");
    assert!(hints.len() == 1 && !hints[0].contains("file"), "{hints:?}");
}

#[test]
fn a_failure_says_whether_to_repeat_in_every_contract() {
    let (job, _) = came(Kind::TaskRequest, &json!({"id": "1", "type": "T", "payload": {}}));
    let said = format!(
        r#"{{"id":"{}","status":"failed","error":{{"code":"MCP_ERROR","message":"m","details":{{"mcp":"n"}},"recoverable":true}}}}"#,
        job.id()
    );
    let done = finished(&job, Kind::TaskResponse, &said);
    let task = parsed(&told(&done, Contract::Task), Kind::TaskResponse);
    assert_eq!(
        task["error"],
        json!({"code": "MCP_ERROR", "message": "m", "details": {"repeat": "never", "mcp": "n"}, "recoverable": true})
    );
    let run = parsed(&told(&done, Contract::Run), Kind::RunResponse);
    assert_eq!((&run["status"], &run["ok"], &run["outputs"]), (&json!("error"), &json!(false), &json!({})));
    assert_eq!((&run["error"]["code"], &run["error"]["details"]["repeat"]), (&json!("MCP_ERROR"), &json!("never")));
}

#[test]
fn whatever_state_a_job_is_in_there_is_a_document_of_it_without_a_finding() {
    let (job, _) = came(Kind::RunRequest, &json!({"request_id": "1", "task_type": "T"}));
    let step = |job: &Job, event| {
        machine::step(job, event, Time(1_800_000_001_000_000), &Policy::DEFAULT).expect("it goes").job
    };
    let asks = |question: String| {
        step(&job, Event::Ask { attempt: 1, question: Question::read(Body::trusted(question)), answered: None })
    };
    let waiting = asks(r#"{"prompt":"?"}"#.to_owned());
    let loosely = ["true", "false", "null", "7"].map(|schema| asks(format!(r#"{{"schema":{schema},"prompt":"?"}}"#)));
    let cancelled = step(&job, Event::Cancel);
    let outputs = |text: &'static str| {
        let outcome = Success::of(Body::trusted(text));
        step(&job, Event::Finish { attempt: 1, result: Ok(outcome) })
    };
    for job in loosely.iter().chain([
        &job,
        &waiting,
        &cancelled,
        &outputs("{}"),
        &outputs("\"text\""),
        &outputs("[1]"),
        &outputs("null"),
    ]) {
        parsed(&told(job, Contract::Task), Kind::TaskResponse);
        let run = told(job, Contract::Run);
        if job.outcome().is_some() {
            faultless(&run, Kind::RunResponse);
            continue;
        }
        let end = told(&cancelled, Contract::Run);
        let started = r#"{"request_id":"1","task_type":"T"}"#;
        let events = [("started", started), ("progress", &run), ("final", &end)];
        let stream: String = events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect();
        faultless(&stream, Kind::RunStream);
    }
}

#[test]
fn work_that_goes_in_a_circle_or_through_too_many_hands_is_not_sent() {
    let refused = |chain: Vec<String>| {
        let request = json!({"id": "1", "type": "T", "payload": {}, "routing": {"delegationChain": chain}});
        let (job, document) = came(Kind::TaskRequest, &request);
        let failed = requested(&job, &document, &options(Contract::Task)).err()?;
        let details: Value = serde_json::from_str(failed.details?.get()).expect("JSON");
        Some((failed.failure, failed.dispatched, details["code"].as_str().expect("a code").to_owned()))
    };
    let hands = |count: usize| (0..count).map(|n| format!("agent{n}")).collect::<Vec<String>>();
    let not_sent = |code: &str| Some((Failure::Delegation, Dispatched::No, code.to_owned()));
    assert_eq!(refused(vec!["b".to_owned(), "a".to_owned()]), not_sent("TASK_GRAPH_CYCLE"));
    assert_eq!(refused(hands(16)), not_sent("DELEGATION_FAILED"));
    assert_eq!(refused(hands(15)), None, "with us there are sixteen");
}

#[test]
fn what_was_loose_about_a_request_is_said_after_what_the_agent_warns_of() {
    let beside = Beside { warnings: vec!["ALL-105: \"n\"".to_owned()], ..Beside::default() };
    let (job, _) = came(Kind::RunRequest, &json!({"request_id": "1", "task_type": "T"}));
    let answered = |more: &str| {
        let said = format!(r#"{{"request_id":"{}","status":"ok","outputs":{{"warnings":[]}}{more}}}"#, job.id());
        finished(&job, Kind::RunResponse, &said)
    };
    let warnings = |done: &Job, beside: &Beside| {
        let told = answer::document(&snapshot(done), Contract::Run, beside);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        (told["outputs"] == json!({"warnings": []})).then(|| told["warnings"].clone())
    };
    assert_eq!(warnings(&answered(""), &beside), Some(json!(["ALL-105: \"n\""])));
    let warning = answered(r#","warnings":["é", {"x": 1e9}]"#);
    assert_eq!(warnings(&warning, &beside), Some(json!(["é", {"x": 1e9}, "ALL-105: \"n\""])));
    assert_eq!(warnings(&warning, &Beside::default()), Some(json!(["é", {"x": 1e9}])));
    // A contract without a field for warnings carries them, unless the agent has a value of its own there.
    let (task, _) = came(Kind::TaskRequest, &json!({"id": "1", "type": "T", "payload": {}}));
    for (there, expected) in [
        (json!({"own": 1}), json!({"own": 1, "warnings": ["ALL-105: \"n\""]})),
        (json!({}), json!({"warnings": ["ALL-105: \"n\""]})),
        (json!({"warnings": "mine"}), json!({"warnings": "mine"})),
        (json!([1]), json!([1])),
        (json!("a word"), json!("a word")),
    ] {
        let said = json!({"id": task.id().to_string(), "status": "completed", "result": {}, "metadata": {"x_crosspoint": there}});
        let done = finished(&task, Kind::TaskResponse, &said.to_string());
        let told: Value =
            serde_json::from_str(&answer::document(&snapshot(&done), Contract::Task, &beside)).expect("JSON");
        assert_eq!(told["metadata"]["x_crosspoint"], expected);
    }
    for (contract, metadata) in [(Contract::Task, "metadata"), (Contract::Bridge, "metadata")] {
        let told = answer::document(&snapshot(&answered("")), contract, &beside);
        let told: Value = serde_json::from_str(&told).expect("JSON");
        assert_eq!(told[metadata]["x_crosspoint"]["warnings"], json!(["ALL-105: \"n\""]), "{told}");
    }
}

#[test]
fn a_request_is_known_by_the_id_that_was_written_whatever_was_carried() {
    let request = json!({"request_id": CALLER, "task_type": "T", "inputs": {}});
    let (job, document) = came(Kind::RunRequest, &request);
    for contract in [Contract::Run, Contract::Task] {
        let kind = if contract == Contract::Run { Kind::RunRequest } else { Kind::TaskRequest };
        let (behind, _) = came(kind, &sent(&job, &document, contract));
        assert_eq!(*behind.request.request_id, job.id().to_string(), "two callers' ids never meet");
    }
}

#[test]
fn whether_to_repeat_is_our_word_whatever_the_agent_says() {
    for details in [r#"{"repeat":"safe","x":1}"#, r#""words""#, "[1]"] {
        let (job, _) = came(Kind::RunRequest, &json!({"request_id": "1", "task_type": "T"}));
        let said = format!(
            r#"{{"request_id":"{}","status":"error","ok":false,"outputs":{{}},"error":{{"code":"X","message":"m","details":{details}}}}}"#,
            job.id()
        );
        let done = finished(&job, Kind::RunResponse, &said);
        let run: Value = serde_json::from_str(&told(&done, Contract::Run)).expect("JSON");
        assert_eq!(run["x_crosspoint"]["repeat"], "never", "{run}");
        assert_eq!(run["error"]["details"], serde_json::from_str::<Value>(details).expect("JSON"));
        let task: Value = serde_json::from_str(&told(&done, Contract::Task)).expect("JSON");
        assert_eq!(task["metadata"]["x_crosspoint"]["repeat"], "never", "{task}");
    }
}

#[test]
fn a_step_is_as_long_as_can_be_read_in_passing() {
    let event = |step: &str| {
        let data = json!({"step": step, "percent": 1}).to_string();
        let event = StreamEvent { name: "progress".to_owned(), data };
        let canonical = event.job().expect("it is progress");
        let progress = reply::progress(&canonical, Kind::RunStream, &event.data.into());
        let step: String = serde_json::from_str(progress.step.expect("it has a step").get()).expect("a string");
        (step, progress.document.is_some())
    };
    assert_eq!(event("Größe \u{0}"), ("Größe \u{0}".to_owned(), true));
    let (long, said) = event(&"ß".repeat(1 << 20));
    assert!(long.len() <= 1_030 && long.ends_with('…') && !said, "{} bytes", long.len());
}

#[test]
fn what_is_not_carried_is_told_in_our_words_alone() {
    let request = json!({
        "request_id": "1", "task_type": "T", "mode": "LIVE", "tenant": 7,
        "x_crosspoint": {"from": "task.request", "priority": "high", "a patient's name": 1},
    });
    let (job, document) = came(Kind::RunRequest, &request);
    let options = AgentOptions { carry: false, ..options(Contract::Task) };
    let outgoing = requested(&job, &document, &options).expect("it can be written");
    let lost = outgoing.lost.expect("something is lost");
    assert!(lost.contains("mode") && lost.ends_with("2 members that are not known"), "{lost}");
}
