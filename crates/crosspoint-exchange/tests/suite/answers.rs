//! What callers of the message contract are told of their jobs.

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::outcome::{Outcome, Text};
use crosspoint_contracts::reply::{Failed, Given, Progress, Question, Success};
use crosspoint_contracts::request::NewJob;
use crosspoint_contracts::time::Time;
use crosspoint_contracts::{Contract, Kind};
use crosspoint_exchange::admission::Headers;
use crosspoint_exchange::answer::{self, Beside};
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_exchange::snapshot::{Ended, Snapshot, State};
use serde_json::{Value, json};

use crate::made::{JOB, NOW, REQUEST, TASK, TRACE, came, faultless_among, snapshot, told, work_request};

fn job() -> NewJob {
    came(Contract::Message, &work_request(), Headers::default())
}

fn ended(outcome: &Outcome) -> State<'_> {
    State::Ended(Ended { at: Time(NOW.0 + 2_100_000), outcome, is_unjudged: false, is_kept: true })
}

/// What a message agent says at the end, with the ids that it was given and some of its own.
fn said(kind: Kind, payload: &Value) -> Value {
    json!({
        "protocol_version": "1.0", "message_id": "650e8400-e29b-41d4-a716-446655440001",
        "from_agent": "code", "to_agent": "orchestrator", "timestamp": "2027-01-15T08:00:02Z",
        "trace_id": "650e8400-e29b-41d4-a716-446655440002", "request_id": "650e8400-e29b-41d4-a716-446655440003",
        "type": if kind == Kind::MessageError { "error" } else { "work_result" }, "payload": payload
    })
}

fn outcome(kind: Kind, document: &Value) -> Outcome {
    let reply = reply::read(kind, &Bytes::from(document.to_string())).unwrap_or_else(|lack| panic!("{lack:?}"));
    let Meaning::Ended(result) = reply.meaning else { panic!("it has not ended: {document}") };
    match result {
        Ok(success) => Outcome::completed(success),
        Err(failed) => Outcome::failed(*failed, Repeat::Unknown),
    }
}

/// MSG-17.2, MSG-18.2: the ids are the caller's, byte for byte, and the answer goes the other way.
fn is_the_callers(message: &Value) {
    assert_eq!((&message["request_id"], &message["trace_id"]), (&json!(REQUEST), &json!(TRACE)), "{message}");
    assert_eq!((&message["from_agent"], &message["to_agent"]), (&json!("infra"), &json!("research")), "{message}");
    let payload = &message["payload"];
    let task_id = if message["type"] == "error" { &payload["error_context"]["task_id"] } else { &payload["task_id"] };
    assert_eq!(task_id, TASK, "{message}");
}

#[test]
fn work_that_goes_on_is_a_status() {
    let new = job();
    let queued = told(&snapshot(&new, State::Queued), Kind::WorkStatus);
    is_the_callers(&queued);
    assert_eq!((&queued["payload"]["status"], &queued["payload"]["progress_percent"]), (&json!("running"), &json!(0)));
    assert_eq!(queued["x_custom_fields"]["x_crosspoint"]["state"], "queued");
    assert_eq!(queued["timestamp"], "2027-01-15T08:00:01.000Z");
    let progress = Progress { percent: Some(40.0), step: Some(Body::of(&"sorting")), ..Progress::default() };
    let running =
        Snapshot { progress: Some(&progress), progress_at: Time(NOW.0 + 1_500_000), ..snapshot(&new, State::Running) };
    let running = told(&running, Kind::WorkStatus);
    is_the_callers(&running);
    assert_eq!(
        (&running["payload"]["progress_percent"], &running["payload"]["step"]["name"]),
        (&json!(40), &json!("sorting"))
    );
    assert_eq!(running["timestamp"], "2027-01-15T08:00:01.500Z", "the time of what it tells");
    assert_eq!(running["x_custom_fields"], json!({}), "there is nothing to carry");
}

/// ALL-5: paused, with the question beside it.
#[test]
fn a_question_pauses_the_work() {
    let new = job();
    let question = Question::of("\"Which one?\"");
    let waiting = told(&snapshot(&new, State::Waiting { question: &question, number: (1, 1) }), Kind::WorkStatus);
    is_the_callers(&waiting);
    assert_eq!(waiting["payload"]["status"], "paused");
    assert_eq!(waiting["x_custom_fields"]["x_crosspoint"]["question"], json!({"prompt": "Which one?"}), "{waiting}");
    let reply = reply::read(Kind::WorkStatus, &Bytes::from(waiting.to_string())).unwrap_or_else(|_| panic!("it reads"));
    assert!(matches!(reply.meaning, Meaning::Waiting(Some(asked)) if asked == question), "another server reads it so");
}

#[test]
fn a_success_of_any_agent_is_a_result() {
    let new = job();
    let payload = json!({"task_id": JOB, "status": "success", "exit_code": 0, "output": "done",
        "resources_used": {"duration_seconds": 7, "gpu_vram_mb": 1, "cpu_time_ms": 2}});
    let later = json!({"status": "completed", "output": "done", "duration_ms": 7_000, "agent_id": "x"});
    let run = json!({"request_id": JOB, "status": "ok", "ok": true, "outputs": {"output": "done"}, "artifacts": []});
    let task = json!({"id": JOB, "status": "completed", "result": {"output": "done"}});
    let bridge = json!({"request_id": JOB, "version": "1.0", "status": "success", "response": "done",
        "error_message": null, "error_type": null, "created_at": "2027-01-15T08:00:02Z", "duration_seconds": 2.0,
        "metadata": {}});
    for (outcome, text, seconds) in [
        (outcome(Kind::WorkResult, &said(Kind::WorkResult, &payload)), "done", 7.0),
        (outcome(Kind::WorkResult, &said(Kind::WorkResult, &later)), "done", 7.0),
        (outcome(Kind::RunResponse, &run), r#"{"output":"done"}"#, 2.0),
        (outcome(Kind::TaskResponse, &task), r#"{"output":"done"}"#, 2.0),
        (outcome(Kind::BridgeResponse, &bridge), "done", 2.0),
        (Outcome::completed(Success::printed("done")), "done", 2.0),
    ] {
        let result = told(&snapshot(&new, ended(&outcome)), Kind::WorkResult);
        is_the_callers(&result);
        let payload = &result["payload"];
        assert_eq!((&payload["status"], &payload["exit_code"]), (&json!("success"), &json!(0)), "{result}");
        assert_eq!(payload["output"], text, "{result}");
        assert_eq!(payload["resources_used"]["duration_seconds"].as_f64(), Some(seconds), "{result}");
    }
}

#[test]
fn an_agents_failure_is_a_failed_result_with_its_own_exit_code() {
    let new = job();
    let payload = json!({"task_id": JOB, "status": "failed", "exit_code": 3, "output": "no disk",
        "resources_used": {"duration_seconds": 1}});
    let outcome = outcome(Kind::WorkResult, &said(Kind::WorkResult, &payload));
    let result = told(&snapshot(&new, ended(&outcome)), Kind::WorkResult);
    is_the_callers(&result);
    assert_eq!((&result["payload"]["exit_code"], &result["payload"]["output"]), (&json!(3), &json!("no disk")));
    assert!(result["payload"]["resources_used"].is_object());
}

/// MSG-4.2: what the row of each code demands is there and true.
#[test]
fn a_failure_is_an_error_with_the_context_of_its_row() {
    let new = job();
    let of = |failed: Failed| {
        let outcome = Outcome::failed(failed, Repeat::Unknown);
        let error = told(&snapshot(&new, ended(&outcome)), Kind::MessageError);
        is_the_callers(&error);
        assert_eq!(error["payload"]["error_context"]["repeat"], "unknown");
        (error["payload"]["error_code"].clone(), error["payload"]["error_context"].clone())
    };
    let plain = |failure| of(Failed::of(failure, Dispatched::Yes));
    let (code, context) = plain(Failure::Timeout);
    assert_eq!((code, &context["attempted_retries"]), (json!(5001), &json!(1)));
    assert_eq!(context["last_attempt"], "2027-01-15T08:00:02.100Z");
    let (code, context) = plain(Failure::Unavailable);
    assert_eq!(
        (code, &context["agent_id"], &context["last_heartbeat"]),
        (json!(5002), &json!("infra-1"), &Value::Null)
    );
    let (code, context) = of(Failed::said(Failure::Invalid, Dispatched::Yes, "No such playbook."));
    assert_eq!((code, &context["validation_error"]), (json!(5003), &json!("No such playbook.")));
    let (code, context) = of(Failed::said(Failure::ResourceLimit, Dispatched::No, "Full.").coded("gpu_vram_mb"));
    assert_eq!((code, &context["limit_name"]), (json!(5005), &json!("gpu_vram_mb")));
    let (code, context) = plain(Failure::Unsupported);
    assert_eq!(
        (code, &context["work_type_requested"], &context["supported_types"]),
        (json!(5006), &json!("deploy"), &json!([]))
    );
    for (failure, code) in [
        (Failure::Cancelled, 5901),
        (Failure::Delegation, 5902),
        (Failure::BrokenContract, 5904),
        (Failure::Internal, 5900),
    ] {
        assert_eq!(plain(failure).0, code, "{failure}");
    }
}

/// What the agent itself says of its failure counts more than what we know.
#[test]
fn an_agents_error_keeps_its_own_context() {
    let new = job();
    let context = json!({"limit_name": "gpu_vram_mb", "available": 128, "required": 512, "own": [1]});
    let payload = json!({"error_code": 5005, "error_message": "Resource limit exceeded", "error_context": context});
    let told_of = outcome(Kind::MessageError, &said(Kind::MessageError, &payload));
    let error = told(&snapshot(&new, ended(&told_of)), Kind::MessageError);
    is_the_callers(&error);
    for (name, value) in context.as_object().expect("an object") {
        assert_eq!(&error["payload"]["error_context"][name], value, "{error}");
    }
    // Details of a run that are no object stand beside the context, and the context is made of what is known.
    let run = json!({"request_id": JOB, "status": "error", "ok": false, "outputs": {},
        "error": {"code": "TIMEOUT", "message": "late", "details": "a text"}});
    let told_of = outcome(Kind::RunResponse, &run);
    let error = told(&snapshot(&new, ended(&told_of)), Kind::MessageError);
    assert_eq!(error["payload"]["error_context"]["attempted_retries"], 1, "{error}");
    assert_eq!(error["x_custom_fields"]["x_crosspoint"]["details"], "a text", "{error}");
}

#[test]
fn no_two_messages_share_an_id_and_each_keeps_its_own() {
    let new = job();
    let printed = Outcome::completed(Success::printed("done"));
    let question = Question::of("\"?\"");
    let progress = Progress::default();
    let at = |events, state| Snapshot { events, progress: Some(&progress), ..snapshot(&new, state) };
    let all = [
        at(1, State::Queued),
        at(2, State::Running),
        at(3, State::Running),
        at(4, State::Waiting { question: &question, number: (1, 1) }),
        at(5, ended(&printed)),
    ];
    let id = |text: &str| serde_json::from_str::<Value>(text).expect("JSON")["message_id"].to_string();
    let ids = || {
        let mut ids: Vec<String> = Vec::new();
        for job in &all {
            ids.push(id(&answer::document(job, Contract::Message, &Beside::default())));
        }
        ids.push(id(&answer::progress(&all[4], Contract::Message, &Beside::default()).expect("there is progress")));
        ids
    };
    let mut first = ids();
    assert_eq!(first, ids(), "the same message has the same id when it is written again");
    first.sort();
    first.dedup();
    assert_eq!(first.len(), 6);
}

/// MSG-18.2: the agent's type, else the type that was addressed.
#[test]
fn an_answer_to_whom_anyone_would_do_comes_from_the_agents_type() {
    let mut request = work_request();
    request["to_agent"] = json!("orchestrator");
    let new = came(Contract::Message, &request, Headers::default());
    let payload = json!({"task_id": JOB, "status": "success", "exit_code": 0, "output": "",
        "resources_used": {"duration_seconds": 7}});
    let own = outcome(Kind::WorkResult, &said(Kind::WorkResult, &payload));
    let printed = Outcome::completed(Success::printed(""));
    for (outcome, agent_type, from) in [
        (&own, None, "code"),
        (&own, Some("desktop"), "desktop"),
        (&own, Some("gpu"), "gpu"),
        (&printed, Some("desktop"), "desktop"),
        (&printed, None, "orchestrator"),
    ] {
        let job = Snapshot { agent_type, ..snapshot(&new, ended(outcome)) };
        let text = answer::document(&job, Contract::Message, &Beside::default());
        let result = faultless_among(&text, Kind::WorkResult, &["gpu"]);
        assert_eq!((&result["from_agent"], &result["to_agent"]), (&json!(from), &json!("research")), "{result}");
    }
}

#[test]
fn an_answer_repeats_types_that_the_operator_added() {
    let mut request = work_request();
    (request["from_agent"], request["to_agent"]) = (json!("lab"), json!("gpu"));
    let headers = Headers { agent_types: ["lab".into(), "gpu".into()].into(), ..Headers::default() };
    let new = came(Contract::Message, &request, headers);
    let text = answer::document(&snapshot(&new, State::Running), Contract::Message, &Beside::default());
    let status = faultless_among(&text, Kind::WorkStatus, &["lab", "gpu"]);
    assert_eq!((&status["from_agent"], &status["to_agent"]), (&json!("gpu"), &json!("lab")));
}

/// Jobs of a store that an earlier version wrote have nothing to repeat.
#[test]
fn without_an_echo_the_answer_is_whole_all_the_same() {
    let new = NewJob { echo: None, ..job() };
    let printed = Outcome::completed(Success::printed("done"));
    for (state, kind) in [(State::Running, Kind::WorkStatus), (ended(&printed), Kind::WorkResult)] {
        let message = told(&snapshot(&new, state), kind);
        assert_eq!(message["request_id"], REQUEST);
    }
}

/// What an agent said on the way reaches the caller, also where it broke the contract with it (ALL-11).
#[test]
fn a_status_of_the_agent_is_handed_on_under_the_callers_ids() {
    let new = job();
    let step = json!({"number": 2, "name": "sorting", "output": "half done"});
    let payload = json!({"task_id": JOB, "status": "step_completed", "progress_percent": 40, "step": step});
    let mut status = said(Kind::WorkStatus, &payload);
    status["type"] = json!("work_status");
    for from in ["infra", "a type that nobody knows"] {
        status["from_agent"] = json!(from);
        let reply =
            reply::read(Kind::WorkStatus, &Bytes::from(status.to_string())).unwrap_or_else(|_| panic!("it reads"));
        let Meaning::Running(progress) = reply.meaning else { panic!("it runs") };
        let told = told(&Snapshot { progress: Some(&progress), ..snapshot(&new, State::Running) }, Kind::WorkStatus);
        is_the_callers(&told);
        assert_eq!((&told["payload"]["step"], &told["payload"]["status"]), (&step, &json!("step_completed")), "{told}");
        assert_ne!(told["message_id"], status["message_id"]);
    }
}

/// MSG-2.3: what we write is in UTC, and the agent's own time is carried.
#[test]
fn an_answer_has_a_time_in_utc() {
    let new = job();
    let payload = json!({"task_id": JOB, "status": "success", "exit_code": 0, "output": "",
        "resources_used": {"duration_seconds": 7}});
    let mut result = said(Kind::WorkResult, &payload);
    for (given, written, carried) in [
        ("2027-01-15T08:00:02.25Z", "2027-01-15T08:00:02.25Z", Value::Null),
        ("2027-01-15T08:00:02", "2027-01-15T08:00:02Z", Value::Null),
        ("2027-01-15T10:00:02+02:00", "2027-01-15T08:00:02.100Z", json!("2027-01-15T10:00:02+02:00")),
    ] {
        result["timestamp"] = json!(given);
        let outcome = outcome(Kind::WorkResult, &result);
        let told = told(&snapshot(&new, ended(&outcome)), Kind::WorkResult);
        assert_eq!(told["timestamp"], written, "{told}");
        assert_eq!(told["x_custom_fields"]["x_crosspoint"]["reported_at"], carried, "{told}");
    }
}

/// What failed work printed stands beside the words of its failure, and takes nothing away from them.
#[test]
fn a_failure_after_output_keeps_its_words_in_every_contract() {
    let new = job();
    let given = Given { text: Some(Text::Beside(Body::of(&"looked\n"))), ..Given::default() };
    let failed = Failed::said(Failure::AgentFailed, Dispatched::Yes, "There is no place left.").coded("NO_PLACE");
    let told_of = Outcome::failed(Failed { given: given.if_any(), ..failed }, Repeat::Never);
    let own = told(&snapshot(&new, ended(&told_of)), Kind::WorkResult);
    let carried = &own["x_custom_fields"]["x_crosspoint"];
    assert_eq!((&own["payload"]["output"], &carried["text"]), (&json!("There is no place left."), &json!("looked\n")));
    assert_eq!(carried["outputs"], Value::Null, "nothing was given: {own}");
    // Agents of an earlier version say this of nothing.
    let mut earlier = own.clone();
    earlier["x_custom_fields"]["x_crosspoint"]["outputs"] = json!({"output": null});
    for document in [own, earlier] {
        let heard = outcome(Kind::WorkResult, &document);
        let result = told(&snapshot(&new, ended(&heard)), Kind::WorkResult);
        assert_eq!(result["payload"]["output"], "There is no place left.", "{result}");
        assert_eq!(result["x_custom_fields"]["x_crosspoint"]["text"], "looked\n", "{result}");
        for (to, at) in [
            (Contract::Run, "/error/message"),
            (Contract::Task, "/error/message"),
            (Contract::Workflow, "/summary"),
            (Contract::Bridge, "/error_message"),
        ] {
            let text = answer::document(&snapshot(&new, ended(&heard)), to, &Beside::default());
            let answer: Value = serde_json::from_str(&text).expect("JSON");
            let words = answer.pointer(at).and_then(Value::as_str).unwrap_or_default();
            assert_eq!(words, "There is no place left.", "{answer}");
            assert!(text.contains("looked"), "{answer}");
        }
    }
}
