//! Failures as the codes of the contracts, written and read.

use crosspoint_contracts::failure::{Dispatched, Failure, Repeat};
use crosspoint_contracts::job::{Canonical, State};
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::message::code;
use crosspoint_contracts::translate::write;
use crosspoint_contracts::{Contract, Options, bridge, message, read_jobs, run, task, workflow};

use crate::translation::fresh;

/// The codes of TASK-6, and what each reads as.
pub(crate) const TASK_CODES: [(&str, Failure); 20] = [
    ("INVALID_INPUT", Failure::Invalid),
    ("MISSING_REQUIRED_FIELD", Failure::Invalid),
    ("INVALID_FIELD_TYPE", Failure::Invalid),
    ("INVALID_FIELD_VALUE", Failure::Invalid),
    ("AGENT_NOT_FOUND", Failure::Unsupported),
    ("CAPABILITY_NOT_FOUND", Failure::Unsupported),
    ("AGENT_UNAVAILABLE", Failure::Unavailable),
    ("AGENT_BUSY", Failure::ResourceLimit),
    // Failures between an agent and the services that it uses count as failures of the agent.
    ("MCP_NOT_CONNECTED", Failure::AgentFailed),
    ("MCP_AUTH_FAILED", Failure::AgentFailed),
    ("MCP_RATE_LIMITED", Failure::AgentFailed),
    ("MCP_ERROR", Failure::AgentFailed),
    ("COORDINATION_FAILED", Failure::AgentFailed),
    ("TASK_GRAPH_CYCLE", Failure::Delegation),
    ("DELEGATION_FAILED", Failure::Delegation),
    ("TIMEOUT", Failure::Timeout),
    ("INTERNAL_ERROR", Failure::AgentFailed),
    ("KNOWLEDGE_NOT_FOUND", Failure::AgentFailed),
    ("RATE_LIMITED", Failure::ResourceLimit),
    ("UNAUTHENTICATED", Failure::Unauthenticated),
];

/// Failures that cannot be recovered from a task's code alone, what the code reads as instead, and why.
const TASK_EXCEPTIONS: [(Failure, Failure, &str); 4] = [
    (Failure::Cancelled, Failure::AgentFailed, "it is a status there and has no code"),
    (Failure::Conflict, Failure::Invalid, "INVALID_FIELD_VALUE is an input error first"),
    (Failure::BrokenContract, Failure::Unavailable, "AGENT_UNAVAILABLE is the agent's absence first"),
    (Failure::Internal, Failure::AgentFailed, "INTERNAL_ERROR is the agent's first"),
];

/// The one job of a document.
pub(crate) fn job(document: &str) -> Canonical<'_> {
    let (reading, jobs) = read_jobs(document.as_bytes(), &Options::default());
    assert!(reading.report.is_valid(), "{:#?}\n{document}", reading.report.findings);
    jobs.into_iter().next().unwrap_or_else(|| panic!("no job in {document}"))
}

/// A run that ended with a failure. The run contract has a code for each failure, so any job can begin here.
fn run_response(failure: Failure) -> String {
    let code = run::failure::write(failure).0;
    format!(
        r#"{{"request_id": "r", "status": "error", "ok": false, "outputs": {{}},
            "error": {{"code": "{code}", "message": "m"}}}}"#
    )
}

fn ended_as(failure: Failure) -> State {
    if failure == Failure::Cancelled { State::Cancelled } else { State::Failed }
}

#[test]
fn message_bridge_and_run_have_a_code_for_each() {
    for failure in Failure::ALL {
        assert_eq!(bridge::failure::read(bridge::failure::write(failure).1), failure);
        assert_eq!(run::failure::read(run::failure::write(failure).0), failure);
        match message::failure::write(failure) {
            Some(code) => assert_eq!(message::failure::read(code), failure),
            None => assert_eq!(failure, Failure::AgentFailed, "only that is a work_result"),
        }
    }
}

#[test]
fn task_codes_read_back_but_for_those_that_are_shared() {
    for failure in Failure::ALL {
        let exception = TASK_EXCEPTIONS.iter().find(|(named, ..)| *named == failure);
        let (expected, why) = exception.map_or((failure, ""), |(_, other, why)| (*other, *why));
        assert_eq!(task::failure::read(task::failure::write(failure).0), expected, "{failure}: {why}");
    }
}

#[test]
fn recoverable_tells_failures_with_the_same_code_apart() {
    assert_eq!(task::failure::read_error("INTERNAL_ERROR", true), Failure::Internal);
    assert_eq!(task::failure::read_error("INTERNAL_ERROR", false), Failure::AgentFailed);
    assert_eq!(task::failure::read_error("AGENT_UNAVAILABLE", true), Failure::Unavailable);
    assert_eq!(task::failure::read_error("TIMEOUT", false), Failure::Timeout);
    assert_eq!(task::failure::read_error("MCP_ERROR", true), Failure::AgentFailed);
}

/// RUN-3: an answer that says it failed but not why is classified by its status.
#[test]
fn answers_of_runs_without_a_code_are_told_by_their_status() {
    let without = |status| run::failure::read_answer(None, status);
    assert_eq!(
        [200, 400, 404, 405, 422, 500, 503].map(without),
        [
            Failure::AgentFailed,
            Failure::Invalid,
            Failure::Unsupported,
            Failure::Unsupported,
            Failure::Invalid,
            Failure::AgentFailed,
            Failure::AgentFailed,
        ]
    );
    assert_eq!(run::failure::read_answer(Some("TIMEOUT"), 400), Failure::Timeout);
    assert_eq!(run::failure::read_answer(Some("OVEN_TOO_HOT"), 400), Failure::AgentFailed);
}

#[test]
fn standard_task_codes_read_as_ruled() {
    for (code, failure) in TASK_CODES {
        assert_eq!(task::failure::read(code), failure, "{code}");
    }
    for failure in Failure::ALL.into_iter().filter(|failure| *failure != Failure::Cancelled) {
        let written = task::failure::write(failure).0;
        assert!(TASK_CODES.iter().any(|(code, _)| *code == written), "{failure} is written as {written}");
    }
}

#[test]
fn any_other_code_is_the_agents() {
    for other in ["", "timeout ", "OUT_OF_CHEESE", "5001", "Timeout"] {
        assert_eq!(bridge::failure::read(other), Failure::AgentFailed, "{other}");
        assert_eq!(task::failure::read(other), Failure::AgentFailed, "{other}");
        assert_eq!(run::failure::read(other), Failure::AgentFailed, "{other}");
    }
    let known: Vec<i64> = (4990..6010).filter(|&code| message::failure::read(code) != Failure::AgentFailed).collect();
    assert_eq!(known, [5001, 5002, 5003, 5004, 5005, 5006, 5900, 5901, 5902, 5903, 5904]);
    for unknown in [5042, 5999, 0, -5001, i64::MIN, i64::MAX] {
        assert_eq!(message::failure::read(unknown), Failure::AgentFailed, "{unknown}");
    }
}

#[test]
fn the_six_codes_of_the_document_are_those_of_the_failures() {
    use Failure::{Invalid, ResourceLimit, Timeout, Unauthenticated, Unavailable, Unsupported};
    let written = [Timeout, Unavailable, Invalid, Unauthenticated, ResourceLimit, Unsupported];
    let codes = [
        code::TIMEOUT,
        code::UNAVAILABLE,
        code::INVALID_MESSAGE,
        code::AUTHENTICATION_FAILED,
        code::RESOURCE_LIMIT,
        code::UNSUPPORTED,
    ];
    assert_eq!(written.map(message::failure::write), codes.map(Some));
}

/// A file over its limit is the driver's refusal, not the agent's failure (ALL-135).
#[test]
fn files_over_their_limit_are_a_resource_limit() {
    for error_type in ["ResponseTooLarge", "RequestTooLarge"] {
        assert_eq!(bridge::failure::read(error_type), Failure::ResourceLimit);
        assert_eq!(job(&bridge_response("error", error_type)).failure(), Some(Failure::ResourceLimit));
    }
    assert_eq!(bridge::failure::read("responsetoolarge"), Failure::AgentFailed, "types are taken as they are spelled");
}

fn bridge_response(status: &str, error_type: &str) -> String {
    format!(
        r#"{{"request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5", "version": "1.0", "status": "{status}",
            "response": null, "error_message": "m", "error_type": "{error_type}",
            "created_at": "2026-01-19T04:21:04+00:00", "duration_seconds": 1.0, "metadata": {{}}}}"#
    )
}

#[test]
fn a_bridge_timeout_is_told_by_status_or_type() {
    for (status, error_type) in [("timeout", "timeout"), ("timeout", "AgentHung"), ("error", "timeout")] {
        let document = bridge_response(status, error_type);
        assert_eq!(job(&document).failure(), Some(Failure::Timeout), "{status} / {error_type}");
    }
}

#[test]
fn every_failure_comes_back_from_every_contract() {
    for failure in Failure::ALL {
        let source = run_response(failure);
        for contract in Contract::ALL {
            let there = write(&job(&source), contract, &fresh()).expect("an ended job goes everywhere");
            let back = job(there.text());
            assert_eq!(back.failure(), Some(failure), "{}: {}", contract.name(), there.text());
            assert_eq!(back.state(), Some(ended_as(failure)), "{}: {}", contract.name(), there.text());
        }
    }
}

/// An agent that refuses unknown members returns only what the codes say.
#[test]
fn without_carrying_shared_codes_read_as_the_first() {
    let plain = WriteContext { carrying: Carrying::Off, ..fresh() };
    for failure in Failure::ALL {
        let source = run_response(failure);
        let back = |contract| {
            let there = write(&job(&source), contract, &plain).expect("an ended job goes everywhere");
            job(there.text()).failure()
        };
        for contract in [Contract::Message, Contract::Bridge, Contract::Run] {
            assert_eq!(back(contract), Some(failure), "{}", contract.name());
        }
        // A cancelled task is recognised by its status. `recoverable` tells two failures that share a code apart.
        let told = [Failure::Cancelled, Failure::Internal].contains(&failure);
        let exception = TASK_EXCEPTIONS.iter().find(|(named, ..)| *named == failure && !told);
        assert_eq!(back(Contract::Task), Some(exception.map_or(failure, |(_, other, _)| *other)));
        assert_eq!(back(Contract::Workflow), Some(Failure::AgentFailed), "success: false says no more");
    }
}

/// A carried code stands for the failure as long as the code in the document is not changed.
#[test]
fn a_changed_code_counts_before_what_was_carried() {
    let written = write(&job(&run_response(Failure::Conflict)), Contract::Task, &fresh()).expect("it goes to a task");
    let code = r#""code":"INVALID_FIELD_VALUE""#;
    assert!(written.text().contains(code), "{}", written.text());
    let changed = written.text().replace(code, r#""code":"TIMEOUT""#);
    assert_eq!(job(&changed).failure(), Some(Failure::Timeout));
}

/// The list of names that a carried failure may have is separate from [`Failure::ALL`].
#[test]
fn every_failure_can_be_carried_by_its_name() {
    let output = |name: &str| {
        format!(
            r#"{{"success": false, "summary": "s", "artifacts": [], "recommendation": "escalate",
                "x_crosspoint": {{"from": "run.response", "failure": "{name}"}}}}"#
        )
    };
    for failure in Failure::ALL {
        let document = output(failure.name());
        assert_eq!(job(&document).failure(), Some(failure));
        assert_eq!(job(&document).state(), Some(ended_as(failure)));
    }
    for strange in ["", "Timeout", "out_of_cheese"] {
        assert_eq!(job(&output(strange)).failure(), Some(Failure::AgentFailed), "{strange}");
    }
}

/// The list of names of states is separate, too. States of work that goes on are carried where a contract has no word
/// for them.
#[test]
fn states_are_carried_by_their_names() {
    for state in [State::Queued, State::Running, State::Waiting] {
        let document = format!(
            r#"{{"protocol_version": "1.0", "message_id": "550e8400-e29b-41d4-a716-446655440001",
                "from_agent": "infra", "to_agent": "orchestrator", "timestamp": "2026-01-19T04:21:04Z",
                "trace_id": "550e8400-e29b-41d4-a716-446655440002",
                "request_id": "550e8400-e29b-41d4-a716-446655440003", "type": "work_status",
                "payload": {{"task_id": "550e8400-e29b-41d4-a716-446655440004", "status": "running",
                    "progress_percent": 0, "step": {{"number": 0, "name": "working"}}}},
                "x_custom_fields": {{"x_crosspoint": {{"from": "task.response", "state": "{}",
                    "filled": {{"message": {{"/payload/status": "running"}}}}}}}}}}"#,
            state.name()
        );
        assert_eq!(job(&document).state(), Some(state));
    }
}

#[test]
fn names_are_unique_and_read_back() {
    for (at, failure) in Failure::ALL.into_iter().enumerate() {
        assert_eq!(Failure::from_name(failure.name()), Some(failure));
        assert!(Failure::ALL[at + 1..].iter().all(|other| other.name() != failure.name()));
    }
    assert_eq!(Failure::from_name("Timeout"), None);
}

#[test]
fn repeats_are_as_ruled() {
    for failure in Failure::ALL {
        let (before, after) = match failure {
            Failure::Unavailable => (Repeat::Safe, Repeat::Unknown),
            Failure::ResourceLimit => (Repeat::Safe, Repeat::Unknown),
            Failure::Timeout | Failure::BrokenContract | Failure::Internal => (Repeat::Unknown, Repeat::Unknown),
            Failure::Invalid
            | Failure::Unauthenticated
            | Failure::Unsupported
            | Failure::AgentFailed
            | Failure::Cancelled
            | Failure::Delegation
            | Failure::Conflict => (Repeat::Never, Repeat::Never),
        };
        assert_eq!(failure.repeat(Dispatched::No), before, "{failure}");
        assert_eq!(failure.repeat(Dispatched::Yes), after, "{failure}");
    }
}

/// The engine and the message contract must agree on what is tried again (ALL-3.3, MSG-5.3).
#[test]
fn what_is_retried_is_retried_as_a_message_too() {
    for failure in Failure::ALL {
        let as_message = message::failure::write(failure).is_some_and(code::is_retried);
        assert_eq!(failure.is_retried(), as_message, "{failure}");
        // Retrying what is never safe to repeat would be a contradiction.
        assert!(!failure.is_retried() || failure.repeat(Dispatched::Yes) != Repeat::Never, "{failure}");
    }
}

/// WF-3.2: a failed output that says proceed contradicts itself.
#[test]
fn no_failure_recommends_to_proceed() {
    for failure in Failure::ALL {
        assert_ne!(workflow::failure::write(failure), workflow::Recommendation::Proceed, "{failure}");
    }
}
