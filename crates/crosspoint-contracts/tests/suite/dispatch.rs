//! Requests that go to an agent under another id than the caller's (ALL-2), and answers that leave nothing out.

use crosspoint_contracts::job::{Canonical, Home, State};
use crosspoint_contracts::map::{Carrying, WriteContext};
use crosspoint_contracts::translate::write;
use crosspoint_contracts::{Contract, Kind, Options, read, read_jobs};

use crate::translation::{fresh, job, lawful, value};

const JOB: &str = "01987a5d-ac96-774b-bcce-b302099a8057";

const REQUESTS: [Kind; 5] =
    [Kind::BridgeRequest, Kind::WorkflowInput, Kind::WorkRequest, Kind::TaskRequest, Kind::RunRequest];

fn dispatched() -> WriteContext<'static> {
    WriteContext { known_as: Some(JOB.parse().expect("a UUID")), ..fresh() }
}

/// The request id of a document, under the name that its contract uses.
fn request_id(contract: Contract, text: &str) -> String {
    let member = match contract {
        Contract::Task => "/id",
        Contract::Message => "/payload/request_id",
        Contract::Run | Contract::Bridge | Contract::Workflow => "/request_id",
    };
    let document = value(text);
    let found = document.pointer(member).or_else(|| document.pointer("/request_id"));
    found.and_then(|id| id.as_str()).unwrap_or_else(|| panic!("no {member} in {text}")).to_owned()
}

#[test]
fn agents_see_the_jobs_id_and_callers_get_their_own_back() {
    let mut seen = 0;
    for case in lawful().into_iter().filter(|case| REQUESTS.contains(&case.kind())) {
        let original = job(case.kind(), &case.bytes);
        let home = case.kind().contract();
        let strict = write(&original, home, &fresh()).expect("it goes back");
        for contract in [Contract::Run, Contract::Task, Contract::Message, Contract::Bridge] {
            let sent = write(&original, contract, &dispatched()).expect("requests go everywhere");
            if original.get(Home::RequestId).is_some() {
                assert_eq!(request_id(contract, sent.text()), JOB, "{}", case.path.display());
                seen += 1;
            }
            let options = Options { kind: Some(sent.kind), ..Options::default() };
            let (reading, jobs) = read_jobs(sent.text().as_bytes(), &options);
            assert!(reading.report.is_valid(), "{:?}\n{}", reading.report, sent.text());
            let back = write(&jobs[0], home, &fresh()).expect("and come back");
            assert_eq!(value(back.text()), value(strict.text()), "by way of {}", sent.text());
        }
    }
    assert!(seen > 20, "only {seen} requests were looked at");
}

#[test]
fn where_nothing_is_carried_the_callers_id_is_not_either() {
    let request = br#"{"request_id":"mine","task_type":"T"}"#;
    let off = WriteContext { carrying: Carrying::Off, ..dispatched() };
    let sent = write(&job(Kind::RunRequest, request), Contract::Run, &off).expect("it goes");
    assert!(!sent.text().contains("mine") && sent.text().contains(JOB), "{}", sent.text());
}

#[test]
fn a_completed_answer_has_all_that_is_recommended_and_what_the_agent_gave() {
    let answer = br#"{"request_id":"a","ok":true,"outputs":{"n":1},"own":{"x":[]}}"#;
    let loose = job(Kind::RunResponse, answer);
    let complete = write(&loose, Contract::Run, &WriteContext { completing: true, ..fresh() }).expect("it goes");
    let options = Options { kind: Some(Kind::RunResponse), ..Options::default() };
    let report = read(complete.text().as_bytes(), &options).report;
    assert!(report.findings.is_empty(), "{report:?}");
    let complete = value(complete.text());
    assert_eq!((&complete["own"], &complete["outputs"]), (&value(r#"{"x":[]}"#), &value(r#"{"n":1}"#)));
    for (member, filled) in [("artifacts", "[]"), ("provenance", "{}"), ("usage", "{}"), ("warnings", "[]")] {
        assert_eq!(complete[member], value(filled), "{member}");
    }
    assert_eq!(complete.get("x_crosspoint"), None);
}

#[test]
fn a_home_takes_only_what_it_holds() {
    use crosspoint_contracts::content::Json;
    let mut made = Canonical::made(Kind::RunResponse, Some(State::Completed));
    assert!(!made.put(Home::Outputs, Json::new("[1]")) && made.get(Home::Outputs).is_none());
    assert!(!made.put(Home::Outputs, Json::new("{")));
    assert!(made.put(Home::Outputs, Json::new("{\"a\":1}")));
    assert_eq!(made.get(Home::Outputs).map(Json::get), Some("{\"a\":1}"));
}
