//! What is kept of runs: their stages in the store, their records, and runs of a command beside a server.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::commands::id_of;
use crate::support::program::{crosspoint, stdout};
use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, said, stage, workflow, wrote};

#[test]
fn an_export_says_of_which_run_and_stage_a_job_is() {
    let place = Place::new();
    place.replies("one", &[said("Fine.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("first", "one", ""), stage("second", "one", "")]), &place.repo());
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    let exported = stdout(crosspoint(&["store", "export", "--data"]).arg(server.data()));
    let lines = exported.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let jobs: Vec<Value> = lines.filter(|line| line["kind"] == "job").map(|line| line["job"].clone()).collect();
    let origins: Vec<&Value> = jobs.iter().filter(|job| job["id"] != id).map(|job| &job["origin"]).collect();
    let expected = ["first", "second"].map(|stage| json!({"child_of": id, "stage": stage}));
    assert_eq!(origins, expected.each_ref(), "{exported}");
    let run = jobs.iter().find(|job| job["id"] == id).expect("it is exported");
    assert!(run["origin"].get("child_of").is_none(), "a run is the child of nothing: {run}");
}

fn record(server: &Server, id: &str) -> PathBuf {
    server.data().join("workflows").join(id)
}

/// Records are looked through when a server starts.
#[test]
fn the_record_of_a_run_is_removed_with_its_job_and_not_before() {
    let place = Place::new();
    let agents = ["gone", "asks", "ends"].map(|name| {
        place.replies(name, &[wrote(&[(&format!("{name}.md"), "create", name)])]);
        place.configured(name, "")
    });
    let mut asks = wrote(&[("asks.md", "create", "asks")]);
    asks["recommendation"] = json!("escalate");
    place.replies("asks", &[asks, said("Fine.", "proceed")]);
    let configuration = place.configuration(&agents);
    // This is a second.
    let mut server = Server::configured(&format!("[store]\nretention_days = 0.0000116\n{configuration}"));
    let run =
        |server: &Server, agent: &str| server.run_workflow(&workflow(&[stage("write", agent, "")]), &place.repo());
    let waiting = run(&server, "asks");
    server.in_state(&waiting, "waiting");
    let gone = run(&server, "gone");
    until("it is gone", || (server.get(&format!("/api/v1/jobs/{gone}")).status == 404).then_some(()));
    assert_eq!(place.got("gone.md").as_deref(), Some("gone"));
    assert!(record(&server, &gone).exists(), "there is something to remove");
    server.stop();
    server.configure(&configuration);
    server.restart();
    until("its record is removed", || (!record(&server, &gone).exists()).then_some(()));
    let ended = run(&server, "ends");
    assert_eq!(server.ended(&ended)["outcome"]["status"], "completed");
    server.stop();
    // A record of nothing tells when the records were looked through again. The others are older and are kept.
    std::fs::create_dir(record(&server, &gone)).expect("it can be made");
    server.restart();
    until("it is removed again", || (!record(&server, &gone).exists()).then_some(()));
    server.answer_run(&waiting, &json!("go on"));
    assert_eq!(server.ended(&waiting)["outcome"]["status"], "completed");
    for (id, file) in [(&waiting, "asks.md"), (&ended, "ends.md")] {
        let diff = server.get(&format!("/api/v1/workflows/{id}/diff"));
        assert!(diff.status == 200 && diff.text().contains(&format!("+++ b/{file}")), "{diff:?}");
    }
}

/// A server cannot drive a run whose programs are in the workflow file, so it leaves the run to the command.
#[test]
fn a_parked_run_of_a_command_survives_a_server_on_its_data() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    place.write("own.toml", &workflow(&[stage("judge", "judge", ""), place.own("judge", "")]));
    let mut server = Server::start();
    assert!(server.stop().success());
    let data = server.data().display().to_string();
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--data", &data]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let id = id_of(&ran);
    server.restart();
    // The run was taken up or left before any job that came later is done.
    server.done("echo", &json!({}));
    assert_eq!(server.job(&id)["state"], "waiting", "{}", server.job(&id));
    assert!(server.stop().success());
    let answered = place.crosspoint(&["jobs", "answer", &id, "--text", "green", "--data", &data]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let resumed = place.crosspoint(&["workflow", "resume", &id, "--data", &data]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(place.seen("judge")[1]["task"]["params"]["answers"][0]["answer"], "green");
}
