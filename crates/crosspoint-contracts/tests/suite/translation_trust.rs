//! Carried data comes from outside: for any of it, nothing panics, nothing vanishes and nothing invalid is written.

use crosspoint_contracts::job::{Event, Outcome, State};
use crosspoint_contracts::translate::{Homeless, Refused, write};
use crosspoint_contracts::{Contract, Extent, Kind, Options, read_jobs};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::corpus;
use crate::documents::{anything, document};
use crate::translation::{fresh, job, to, value};

/// The object in which each kind carries. All other kinds carry at the top level.
const CARRIERS: &[(&[Kind], &str)] = &[
    (&[Kind::BridgeRequest, Kind::TaskRequest], "context"),
    (&[Kind::BridgeResponse, Kind::TaskResponse], "metadata"),
    (&[Kind::WorkRequest, Kind::WorkStatus, Kind::WorkResult, Kind::MessageError], "x_custom_fields"),
];

/// Puts a value under the carrying key, where the contract carries.
fn with_carried(kind: Kind, mut document: Value, carried: Value) -> Value {
    let carrier = CARRIERS.iter().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, carrier)| *carrier);
    let object = match carrier {
        Some(carrier) => &mut document[carrier],
        None => &mut document,
    };
    if object.is_null() {
        *object = json!({});
    }
    object["x_crosspoint"] = carried;
    document
}

/// Names that carried data has, and one that it does not have.
const CARRIED_NAMES: [&str; 28] = [
    "mode",
    "state",
    "failure",
    "code",
    "phase",
    "iteration",
    "paths",
    "notes",
    "artifacts",
    "filled",
    "fields",
    "form",
    "request_id",
    "task_id",
    "text",
    "outputs",
    "prompt_context",
    "question",
    "retry_policy",
    "priority",
    "strange",
    "duration_seconds",
    "created_at",
    "delegation_chain",
    "exit_code",
    "recommendation",
    "message",
    "details",
];

/// Pointers into documents, right and wrong ones.
const POINTERS: [&str; 19] = [
    "/request_id",
    "/id",
    "/status",
    "/grounding",
    "/message_id",
    "/usage",
    "/payload",
    "/context",
    "event",
    "data",
    "/metadata",
    "",
    "/error/code",
    "/x_crosspoint",
    "/inputs",
    "/a/b/c",
    "/payload/status",
    "/success",
    "/outputs",
];

/// Values that look like carried data, with anything in them.
fn carried() -> BoxedStrategy<Value> {
    let names = prop::sample::select(&CARRIED_NAMES[..]);
    let pointers = prop::sample::select(&POINTERS[..]);
    let contracts = prop::sample::select(vec!["bridge", "workflow", "message", "task", "run", "nobody"]);
    let places = prop::collection::vec((contracts, pointers, anything()), 0..4).prop_map(|places| {
        let mut all = json!({});
        for (contract, pointer, value) in places {
            all[contract][pointer] = value;
        }
        all
    });
    let kinds = prop::sample::select(Kind::ALL.to_vec());
    (kinds, prop::collection::vec((names, anything()), 0..5), places.clone(), places)
        .prop_map(|(from, members, fields, filled)| {
            let mut carried = json!({"from": from.name(), "fields": fields, "filled": filled});
            for (name, value) in members {
                carried[name] = value;
            }
            carried
        })
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..Default::default() })]

    /// A valid document is written, or the fault is named. What is written is valid.
    #[test]
    fn whatever_was_carried_nothing_invalid_is_written((kind, document) in document(), carried in carried()) {
        let bytes = with_carried(kind, document, carried).to_string().into_bytes();
        let (reading, jobs) = read_jobs(&bytes, &Options { kind: Some(kind), ..Options::default() });
        prop_assert!(reading.report.is_valid());
        for contract in Contract::ALL {
            match write(&jobs[0], contract, &fresh()) {
                Ok(written) => {
                    let read = crosspoint_contracts::read(written.text().as_bytes(), &Options { kind: Some(written.kind), extent: Extent::Part, ..Options::default() });
                    prop_assert!(read.report.is_valid(), "{}", written.text());
                }
                Err(Refused::NoCounterpart { .. } | Refused::Broken { .. }) => {}
            }
        }
    }

    /// Documents also come back by way of any two other contracts.
    #[test]
    fn documents_come_back_from_two_contracts_away((kind, document) in document(), first in 0..64usize, second in 0..64usize) {
        // Translating to its own contract would give the same document.
        let others: Vec<Contract> = Contract::ALL.into_iter().filter(|other| *other != kind.contract()).collect();
        let (first, second) = (others[first % others.len()], others[second % others.len()]);
        let bytes = document.to_string().into_bytes();
        let there = write(&job(kind, &bytes), first, &fresh()).expect("requests and results go everywhere");
        let further = to(second, there.text().as_bytes()).expect("requests and results go everywhere");
        let back = to(kind.contract(), further.text().as_bytes()).expect("and come back");
        prop_assert_eq!(value(back.text()), document, "{}\n{}", there.text(), further.text());
    }
}

/// A document that carries is a document like any other: it comes back unchanged from a third contract.
#[test]
fn documents_that_carry_come_back_too() {
    for case in crate::translation::lawful() {
        for first in Contract::ALL {
            for second in Contract::ALL.into_iter().filter(|second| *second != case.kind().contract()) {
                let there = to(first, &case.bytes).expect("requests and results go everywhere");
                let further = to(second, there.text().as_bytes()).expect("requests and results go everywhere");
                let back = to(first, further.text().as_bytes()).expect("and come back");
                assert_eq!(
                    value(back.text()),
                    value(there.text()),
                    "{} by way of {}",
                    case.path.display(),
                    further.text()
                );
            }
        }
    }
}

/// Carried data cannot end a job whose document says that it goes on.
#[test]
fn a_carried_state_ends_nothing() {
    let status = json!({"id": "t", "status": "in_progress",
        "metadata": {"x_crosspoint": {"from": "message.work_result", "state": "completed", "failure": "timeout",
            "filled": {"task": {"/status": "in_progress"}}}}});
    let text = status.to_string();
    let job = job(Kind::TaskResponse, text.as_bytes());
    assert_eq!(job.state(), Some(State::Running));
    assert!(matches!(job.event(), Event::Progress { .. }));
    assert_eq!(job.failure(), None);
}

/// A carried failure has precedence: it counts if the code in the document is the one it would be written with, and not
/// if that code was changed.
#[test]
fn a_carried_failure_counts_before_the_code() {
    let failure = |code: &str| {
        let response = json!({"id": "t", "status": "failed",
            "error": {"code": code, "message": "m", "recoverable": true},
            "metadata": {"x_crosspoint": {"from": "run.response", "failure": "broken_contract"}}});
        let text = response.to_string();
        let job = job(Kind::TaskResponse, text.as_bytes());
        let Event::Ended(Outcome::Failed { failure, .. }) = job.event() else { panic!("it has failed") };
        failure.name()
    };
    assert_eq!(failure("AGENT_UNAVAILABLE"), "broken_contract");
    assert_eq!(failure("TIMEOUT"), "timeout");
}

/// With carrying off nothing is added, and what is lost is listed.
#[test]
fn without_carrying_the_losses_are_listed() {
    let off = crosspoint_contracts::map::WriteContext { carrying: crosspoint_contracts::map::Carrying::Off, ..fresh() };
    for case in corpus::golden() {
        let (_, jobs) = read_jobs(&case.bytes, &Options::default());
        for (job, contract) in jobs.iter().flat_map(|job| Contract::ALL.map(|contract| (job, contract))) {
            let (Ok(with), Ok(without)) = (write(job, contract, &fresh()), write(job, contract, &off)) else {
                continue;
            };
            assert!(!without.text().contains("x_crosspoint") || case.stem().contains("unknown"), "{}", without.text());
            let lost = without.homeless.iter().filter(|one| !one.name().starts_with("form of"));
            assert!(lost.eq(&with.homeless), "{}", case.path.display());
        }
    }
    let request = br#"{"request_id": "r", "task_type": "t", "mode": "LIVE", "tenant": 7}"#;
    let lost = write(&job(Kind::RunRequest, request), Contract::Task, &off).expect("it goes everywhere").homeless;
    assert_eq!(lost, [Homeless::Known("mode"), Homeless::Own("run/tenant".to_owned())]);
}

/// A document may have a million of everything, and quadratic work would never end.
#[test]
fn many_of_everything_are_no_trouble() {
    const MANY: usize = 30_000;
    let members = |value: &dyn Fn(usize) -> Value| -> Value {
        Value::Object((0..MANY).map(|at| (format!("x{at}"), value(at))).collect())
    };
    let places = Value::Object((0..MANY).map(|at| (format!("/x{at}"), json!(at))).collect());
    let artifacts: Vec<Value> =
        (0..MANY).map(|at| json!({"name": format!("a/{at}.md"), "type": "x/y", "content": "", "own": 1})).collect();
    let whole: Vec<Value> = (0..MANY).map(|at| json!({"name": "a", "at": 0, "content": at.to_string()})).collect();
    let mut response = members(&|at| json!(at));
    response["id"] = json!("t");
    response["status"] = json!("completed");
    response["result"] = members(&|_| json!({}));
    response["artifacts"] = json!(artifacts);
    response["metadata"]["x_crosspoint"] = json!({
        "from": "run.response", "artifacts": whole, "fields": {"task": places, "run": places},
        "filled": {"task": {"/result": members(&|_| json!([]))}},
    });
    let text = response.to_string();
    let job = job(Kind::TaskResponse, text.as_bytes());
    for contract in Contract::ALL {
        let there = write(&job, contract, &fresh()).expect("results go everywhere");
        assert!(there.text().len() > MANY);
    }
}

/// Carried data cannot change the kind of a request, nor replace what a document says.
#[test]
fn what_is_carried_does_not_change_what_a_document_is() {
    for state in ["queued", "running", "waiting", "completed", "failed", "cancelled"] {
        for from in ["run.request", "run.stream", "message.work_result"] {
            let request = json!({"id": "a", "type": "t", "payload": {},
                "context": {"x_crosspoint": {"from": from, "state": state, "failure": "timeout"}}});
            let text = request.to_string();
            let written =
                write(&job(Kind::TaskRequest, text.as_bytes()), Contract::Run, &fresh()).expect("it goes there");
            assert_eq!(written.kind, Kind::RunRequest, "{}", written.text());
        }
    }
    for (event, data) in [("final", json!({"evil": 1})), ("started", json!(7)), ("log", json!({}))] {
        for status in [json!({"status": "completed", "result": {"real": 1}}), json!({"status": "in_progress"})] {
            let mut response = status.clone();
            response["id"] = json!("a");
            response["metadata"] = json!({"x_crosspoint": {"from": "run.stream", "work": "w",
                "fields": {"run": {"event": event, "": data}}}});
            let text = response.to_string();
            let written =
                write(&job(Kind::TaskResponse, text.as_bytes()), Contract::Run, &fresh()).expect("it goes there");
            let is_final = written.text().starts_with("event: final") || written.kind == Kind::RunResponse;
            assert_eq!(is_final, status["status"] == "completed", "{}", written.text());
            assert!(
                !written.text().contains("data: {\"evil\"") && !written.text().contains("data: 7"),
                "{}",
                written.text()
            );
        }
    }
}

/// A value under a known name that does not fit it is passed on.
#[test]
fn misfits_are_passed_on() {
    for misfit in ["filled", "user", "artifacts", "fields", "form", "state", "misfits"] {
        let request = json!({"id": "a", "type": "t", "payload": {}, "context": {"user": "u",
            "x_crosspoint": {"from": "run.request", misfit: 7, "strange": 8}}});
        let text = request.to_string();
        let mut homes = vec![text];
        for contract in Contract::ALL {
            let (_, jobs) = read_jobs(homes.last().expect("there is one").as_bytes(), &Options::default());
            let written = write(&jobs[0], contract, &fresh()).unwrap_or_else(|refused| panic!("{misfit}: {refused}"));
            assert!(written.text().contains(&format!("\"{misfit}\":7")), "{misfit}: {}", written.text());
            assert!(written.text().contains("\"strange\":8"), "{}", written.text());
            homes.push(written.into_text());
        }
    }
}

/// A single path may be arbitrarily deep.
#[test]
fn a_deep_path_is_no_trouble() {
    let name = "a/".repeat(40_000) + "b";
    let response = json!({"id": "t", "status": "completed", "result": {}, "artifacts": [
        {"name": name, "type": "text/plain", "content": ""}, {"name": format!("{name}/c"), "type": "text/plain", "content": ""}]});
    let text = response.to_string();
    let there = to(Contract::Workflow, text.as_bytes()).expect("results go everywhere");
    assert_eq!(value(to(Contract::Task, there.text().as_bytes()).expect("and come back").text()), response);
}

/// Numbers that exceed 64 bits are passed on like all others.
#[test]
fn numbers_beyond_64_bits_come_back() {
    for number in ["18446744073709551616", "1e400", "-0", "-0.0", "1E2", "0.10"] {
        let request = format!(r#"{{"request_id":"r","task_type":"t","inputs":{{"n":{number}}}}}"#);
        let response = format!(r#"{{"id":"r","status":"completed","result":{{"n":{number}}}}}"#);
        for (kind, document) in [(Kind::RunRequest, request), (Kind::TaskResponse, response)] {
            for contract in Contract::ALL {
                let there = write(&job(kind, document.as_bytes()), contract, &fresh()).expect("it goes everywhere");
                let back = to(kind.contract(), there.text().as_bytes()).expect("and comes back");
                assert_eq!(back.text(), document, "by way of {}", there.text());
            }
        }
    }
}

/// Whether `other` contains everything that `one` contains; it may contain more.
fn says_all(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            one.iter().all(|(name, value)| other.get(name).is_some_and(|other| says_all(value, other)))
        }
        (one, other) => one == other,
    }
}

/// Without anything carried, what is not listed as lost comes back.
#[test]
fn what_is_not_listed_as_lost_is_not_lost() {
    let off = crosspoint_contracts::map::WriteContext { carrying: crosspoint_contracts::map::Carrying::Off, ..fresh() };
    let mut between_contracts = 0;
    for case in crate::translation::lawful().into_iter().filter(|case| !case.stem().contains("loose")) {
        let document = value(&String::from_utf8_lossy(&case.bytes));
        for contract in Contract::ALL {
            let there = write(&job(case.kind(), &case.bytes), contract, &off).expect("it goes everywhere");
            if !there.homeless.is_empty() {
                continue;
            }
            between_contracts += usize::from(contract != case.kind().contract());
            let again = job(there.kind, there.text().as_bytes());
            let back = write(&again, case.kind().contract(), &off).expect("and comes back");
            assert!(says_all(&document, &value(back.text())), "{} by way of {}", case.path.display(), there.text());
        }
    }
    assert!(between_contracts > 5, "only {between_contracts} were seen");
    let request = br#"{"request_id": "r", "task_type": "t", "inputs": {"a": 1}}"#;
    let lost = write(&job(Kind::RunRequest, request), Contract::Bridge, &off).expect("it goes everywhere").homeless;
    assert_eq!(lost, [Homeless::Known("form of input")]);
}

/// Violations of an agent's contract are recorded, and travel with the job.
#[test]
fn violations_travel() {
    let response = br#"{"id": "t", "status": "completed", "result": {}}"#;
    let mut with = job(Kind::TaskResponse, response);
    with.add_violation(&crosspoint_contracts::run::clause::RUN_9, "the id \"differs\"");
    with.add_violation(&crosspoint_contracts::run::clause::RUN_8, "no JSON");
    for contract in Contract::ALL {
        let there = write(&with, contract, &fresh()).expect("results go everywhere");
        let again = job(there.kind, there.text().as_bytes());
        let held = value(again.get(crosspoint_contracts::job::Home::Violations).expect("they are there").get());
        assert_eq!(
            held,
            json!([{"clause": "RUN-9", "message": "the id \"differs\""}, {"clause": "RUN-8", "message": "no JSON"}])
        );
    }
}
