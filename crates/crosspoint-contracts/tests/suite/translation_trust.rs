//! What was carried comes from outside: whatever it says, nothing panics, nothing vanishes and nothing invalid is written.

use crosspoint_contracts::job::{Event, Outcome, State};
use crosspoint_contracts::translate::{Refused, write};
use crosspoint_contracts::{Contract, Kind, Options, read_jobs};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::corpus;
use crate::documents::{anything, document};
use crate::translation::{fresh, job, to, value};

/// Puts something under the key where a contract carries.
fn with_carried(kind: Kind, mut document: Value, carried: Value) -> Value {
    let object = match kind {
        Kind::BridgeRequest | Kind::TaskRequest => &mut document["context"],
        Kind::BridgeResponse | Kind::TaskResponse => &mut document["metadata"],
        Kind::WorkRequest | Kind::WorkResult | Kind::MessageError | Kind::WorkStatus => {
            &mut document["x_custom_fields"]
        }
        Kind::WorkflowInput | Kind::WorkflowOutput | Kind::RunRequest | Kind::RunResponse | Kind::RunStream => {
            &mut document
        }
    };
    if object.is_null() {
        *object = json!({});
    }
    object["x_crosspoint"] = carried;
    document
}

/// Something that looks like ours, with anything in it.
fn carried() -> BoxedStrategy<Value> {
    let names = prop::sample::select(vec![
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
    ]);
    let pointers = prop::sample::select(vec![
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
    ]);
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

    /// A valid document is written or the fault is named; what is written is valid.
    #[test]
    fn whatever_was_carried_nothing_invalid_is_written((kind, document) in document(), carried in carried()) {
        let bytes = with_carried(kind, document, carried).to_string().into_bytes();
        let (reading, jobs) = read_jobs(&bytes, &Options { kind: Some(kind), ..Options::default() });
        prop_assert!(reading.report.is_valid());
        for contract in Contract::ALL {
            match write(&jobs[0], contract, &fresh()) {
                Ok(written) if written.kind == Kind::RunStream => {}
                Ok(written) => {
                    let read = crosspoint_contracts::read(written.text().as_bytes(), &Options { kind: Some(written.kind), ..Options::default() });
                    prop_assert!(read.report.is_valid(), "{}", written.text());
                }
                Err(Refused::NoCounterpart { .. } | Refused::Broken { .. }) => {}
            }
        }
    }

    /// By way of any two other contracts, too.
    #[test]
    fn documents_come_back_from_two_contracts_away((kind, document) in document(), first in 0..5usize, second in 0..5usize) {
        let bytes = document.to_string().into_bytes();
        let there = write(&job(kind, &bytes), Contract::ALL[first], &fresh()).expect("requests and results go everywhere");
        // By way of its own contract it is the document again, and may be hard to recognise.
        prop_assume!(Contract::ALL[first] != kind.contract() && Contract::ALL[second] != kind.contract());
        let further = to(Contract::ALL[second], there.text().as_bytes()).expect("requests and results go everywhere");
        let back = to(kind.contract(), further.text().as_bytes()).expect("and come back");
        prop_assert_eq!(value(back.text()), document, "{}\n{}", there.text(), further.text());
    }
}

/// A document that carries is a document like any other: it comes back from a third contract as it was.
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

/// What is carried cannot end a job that its document says goes on.
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

/// "A carried failure first": it counts where it is written with the code that is there, and not where that was changed.
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
    let off = crosspoint_contracts::map::Fresh { carrying: crosspoint_contracts::map::Carrying::Off, ..fresh() };
    for case in corpus::golden() {
        let (_, jobs) = read_jobs(&case.bytes, &Options::default());
        for (job, contract) in jobs.iter().flat_map(|job| Contract::ALL.map(|contract| (job, contract))) {
            let (Ok(with), Ok(without)) = (write(job, contract, &fresh()), write(job, contract, &off)) else {
                continue;
            };
            assert!(!without.text().contains("x_crosspoint") || case.stem().contains("unknown"), "{}", without.text());
            assert_eq!(with.homeless, without.homeless, "{}", case.path.display());
        }
    }
    let request = br#"{"request_id": "r", "task_type": "t", "mode": "LIVE", "tenant": 7}"#;
    let lost = write(&job(Kind::RunRequest, request), Contract::Task, &off).expect("it goes everywhere").homeless;
    assert_eq!(lost, ["mode", "run/tenant"]);
}

/// A document may have a million of everything; what takes the square of that would never end.
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
