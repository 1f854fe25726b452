//! Stages whose agents speak any contract.

use std::fs;

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::{Value, json};

use crate::functions::serve;
use crate::support::bridge_agent::{human, inbox_of};
use crate::support::server::until;
use crate::support::workers::Worker;
use crate::support::workflow_place::{Place, noted, said, stage, workflow, wrote};

async fn review(input: Value, _: Context) -> Result<Value, Failure> {
    Ok(json!({"reviewed": input["what"]}))
}

async fn refuse(_: Value, _: Context) -> Result<Value, Failure> {
    Err(Failure::new("there is nothing to review"))
}

/// The contracts of a function, and how an agent of each is configured.
const WAYS: [(&str, &str); 4] = [
    ("run", "url = \"http://ADDRESS\""),
    ("task", "url = \"http://ADDRESS\""),
    ("message", "via = \"push:http://ADDRESS\""),
    ("workflow", "url = \"http://ADDRESS/agents/reviewer/envelope\""),
];

/// A stage with this action.
fn doing(id: &str, agent: &str, action: &str) -> String {
    stage(id, agent, "params = { what = \"spec\" }").replace("\"do\"", &format!("\"{action}\""))
}

#[test]
fn an_agent_of_any_contract_does_a_stage() {
    let agent = Agent::new("reviewer").forgetful();
    let agent = WAYS.iter().fold(agent, |agent, (way, _)| agent.on(&format!("{way}_review"), review));
    let (address, _running) = serve(agent);
    let place = Place::new();
    let mut agents: Vec<String> = WAYS
        .iter()
        .map(|(way, keys)| {
            let keys = keys.replace("ADDRESS", &address.to_string());
            let kind = if *way == "message" { "type = \"infra\"\n" } else { "" };
            format!("[[agent]]\nname = \"{way}\"\ncontract = \"{way}\"\nwork = [\"{way}_review\"]\n{kind}{keys}\n")
        })
        .collect();
    agents.push("[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"echo\"]\n".to_owned());
    let shout =
        "[[agent]]\nname = \"shell\"\ncontract = \"exec\"\nwork = [\"shout\"]\nexec = [\"tr\", \"a-z\", \"A-Z\"]\n";
    agents.push(shout.to_owned());
    place.replies("program", &[said("Done.", "proceed")]);
    agents.push(place.configured("program", ""));
    let server = place.server(&agents);
    let stages = WAYS.iter().map(|(way, _)| doing(way, way, &format!("{way}_review")));
    let others = [doing("echo", "echo", "echo"), doing("shell", "shell", "shout"), stage("program", "program", "")];
    let stages: Vec<String> = stages.chain(others).collect();
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    let jobs = server.stages_of(&id);
    assert_eq!(jobs.len(), 7);
    for job in &jobs[..4] {
        assert_eq!(job["outcome"]["outputs"]["reviewed"], "spec", "{job}");
    }
    assert_eq!(jobs[4]["outcome"]["outputs"], json!({"what": "spec"}), "{}", jobs[4]);
    assert_eq!(jobs[5]["outcome"]["outputs"], json!({"WHAT": "SPEC"}), "{}", jobs[5]);
}

/// A person who answers in a directory, and a program that joined, are agents like any other.
#[test]
fn agents_that_are_asked_by_files_or_that_come_for_work_do_a_stage() {
    let place = Place::new();
    let server = place.server(&[human("inbox", "")]);
    let _worker = Worker::joined(&server, "reader", &[], &["tr", "a-z", "A-Z"]);
    let stages = [doing("ask", "human", "human"), doing("read", "reader", "reader")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    until("the person is asked", || {
        let asked = server.stages_of(&id).first().is_some_and(|stage| stage["state"] == "running");
        asked.then_some(())
    });
    until("the person answers", || (inbox_of(&server).answer(&["--text", "yes"]) == 0).then_some(()));
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    let jobs = server.stages_of(&id);
    assert_eq!(jobs[0]["outcome"]["status"], "completed", "{}", jobs[0]);
    assert_eq!(jobs[1]["outcome"]["outputs"], json!({"WHAT": "SPEC"}), "{}", jobs[1]);
}

/// A worker that joined goes on while its server is away, and is listened to while its run is held (ALL-3).
#[test]
fn a_worker_goes_on_while_the_server_is_away_and_does_nothing_twice() {
    let place = Place::new();
    let mut server = place.server(&[]);
    let (starts, go) = (place.file("starts"), place.file("go"));
    let script = format!(
        "echo x >> {}; cat > /dev/null; while [ ! -e {} ]; do sleep 0.05; done; echo '{{\"done\": 1}}'",
        starts.display(),
        go.display()
    );
    let _worker = Worker::joined(&server, "reader", &[], &["sh", "-c", &script]);
    let id = server.run_workflow(&workflow(&[doing("read", "reader", "reader")]), &place.repo());
    until("it is begun", || fs::metadata(&starts).ok());
    server.kill();
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    server.restart();
    until("the run is held", || {
        server.job(&id)["stuck"]["reason"].as_str().filter(|reason| reason.starts_with("held: ")).map(drop)
    });
    fs::write(go, "").expect("it can be written");
    until("the stage has ended", || {
        let stages = server.stages_of(&id);
        (stages[0]["outcome"]["outputs"]["done"] == 1).then_some(())
    });
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    assert_eq!(fs::read_to_string(starts).expect("it is there"), "x\n");
    assert_eq!(server.stages_of(&id)[0]["attempts"], 1);
}

/// A program without a contract gives files as artifacts, and they are written like any others (ALL-10).
#[test]
fn artifacts_of_any_contract_are_files() {
    let place = Place::new();
    let script = r##"cat > /dev/null
        printf "%s\\n" '@crosspoint {"artifact": {"name": "specs/a.md", "type": "text/markdown", "content": "# A\n"}}'
        echo '@crosspoint {"outputs": {"a": 1}}'"##;
    let argv = json!(["sh", "-c", script]);
    let agent = format!("[[agent]]\nname = \"shell\"\ncontract = \"exec\"\nwork = [\"do\"]\nexec = {argv}\n");
    let server = place.server(&[agent]);
    let run = server.ended(&server.run_workflow(&workflow(&[stage("a", "shell", "")]), &place.repo()));
    assert_eq!(run["outcome"]["outputs"]["files"], json!(["specs/a.md"]), "{run}");
    assert_eq!(place.got("specs/a.md").as_deref(), Some("# A\n"));
}

/// An agent of another contract that fails has no recommendation, so the run waits for a person.
#[test]
fn a_failure_in_another_contract_parks_the_run() {
    let (address, _running) = serve(Agent::new("reviewer").forgetful().on("do", refuse));
    let place = Place::new();
    let agent = format!("[[agent]]\nname = \"far\"\ncontract = \"run\"\nwork = [\"do\"]\nurl = \"http://{address}\"\n");
    let server = place.server(&[agent]);
    let id = server.run_workflow(&workflow(&[stage("a", "far", "")]), &place.repo());
    let waiting = server.in_state(&id, "waiting");
    let asked = waiting["question"]["prompt"].as_str().expect("a text");
    assert!(asked.contains("agent_failed") && asked.contains("there is nothing to review"), "{asked}");
}

/// WF-8: programs of stages run in the repository, of dry runs in its copy.
#[test]
fn a_program_runs_in_the_repository() {
    let place = Place::new();
    place.put("there.md", "old");
    let script = r#"cat > /dev/null; printf '{"success":true,"summary":"%s","artifacts":[],"recommendation":"proceed"}' "$(pwd) $(cat there.md)""#;
    let server = place.server(&[place.configured_script("where", script, ""), place.configured("writer", "")]);
    place.replies("writer", &[wrote(&[("there.md", "update", "new")])]);
    let definition = workflow(&[stage("write", "writer", ""), stage("look", "where", "")]);
    let dry = server.ended(&server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true})));
    let summary = dry["outcome"]["outputs"]["summary"].as_str().expect("a text");
    assert!(!summary.contains("/repo ") && summary.ends_with(" new"), "{summary}");
    let run = server.ended(&server.run_workflow(&definition, &place.repo()));
    assert_eq!(run["outcome"]["outputs"]["summary"], json!(format!("{} new", place.repo().display())));
}

/// A program that is started as any other may say where its run goes by printing an envelope.
#[test]
fn an_envelope_of_a_program_of_no_contract_is_followed() {
    let place = Place::new();
    let envelope = |recommendation: &str, content: &str| {
        json!({"success": true, "summary": "Did it.", "recommendation": recommendation, "notes": ["n"],
            "artifacts": [{"path": format!("{recommendation}.md"), "operation": "create", "content": content}]})
        .to_string()
    };
    let script = format!(
        "cat > /dev/null; echo a log line; if [ -e retry.md ]; then echo '{}'; else echo '{}'; fi",
        envelope("proceed", "2"),
        envelope("retry", "1")
    );
    let argv = json!(["sh", "-c", script]);
    let agent = format!("[[agent]]\nname = \"free\"\ncontract = \"exec\"\nwork = [\"do\"]\nexec = {argv}\n");
    let server = place.server(&[agent]);
    let run = server.ended(&server.run_workflow(&workflow(&[stage("a", "free", "")]), &place.repo()));
    let outputs = &run["outcome"]["outputs"];
    assert_eq!((&outputs["iterations"], &outputs["summary"]), (&json!(2), &json!("Did it.")), "{run}");
    assert_eq!(place.tree(), ["proceed.md", "retry.md"]);
}

/// It may have wanted a person asked.
#[test]
fn what_is_nearly_an_envelope_is_not_passed_over() {
    let envelope = json!({"success": true, "summary": "May I?", "artifacts": [], "recommendation": "escalate"});
    let long = json!({"success": true, "summary": "May I?", "artifacts": [], "notes": ["n".repeat(2_000_000)], "recommendation": "escalate"});
    for (printed, prompt) in [
        (format!("{envelope:#}"), "May I?"),
        (format!("{envelope}\n{{\"level\": \"info\"}}\n"), "looks like an envelope"),
        (long.to_string(), "looks like an envelope"),
    ] {
        let place = Place::new();
        std::fs::write(place.file("printed"), &printed).expect("it can be written");
        let argv = json!(["cat", place.file("printed")]);
        let agent = format!("[[agent]]\nname = \"free\"\ncontract = \"exec\"\nwork = [\"do\"]\nexec = {argv}\n");
        let server = place.server(&[agent]);
        let id = server.run_workflow(&workflow(&[stage("a", "free", "")]), &place.repo());
        let waiting = server.in_state(&id, "waiting");
        assert!(waiting["question"]["prompt"].to_string().contains(prompt), "{waiting}");
    }
}

/// A program of the file may ask by itself where the file says so.
#[test]
fn a_program_of_the_file_may_ask() {
    let place = Place::new();
    let asks = r#"read -r input; echo '@crosspoint {"ask": {"prompt": "Which colour?"}}'; read -r answer; echo "{\"colour\": $answer}""#;
    let argv = json!(["sh", "-c", asks]);
    let agent = format!("[[agent]]\nname = \"asks\"\ncontract = \"exec\"\nask = true\nexec = {argv}\n");
    place.write("w.toml", &workflow(&[stage("a", "asks", ""), agent]));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    assert!(ran.code == 3 && ran.stderr.contains("Which colour?"), "{ran:?}");
}

/// Notes of an agent that is not asked by envelopes reach the next one all the same, where its contract has them.
#[test]
fn an_agent_of_the_workflow_contract_is_told_the_notes_of_any_other() {
    let place = Place::new();
    place.replies("first", &[noted("Done.", "proceed", &["look at auth"])]);
    place.replies("last", &[said("Done.", "proceed")]);
    let echo = "[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"do\"]\n".to_owned();
    let server = place.server(&[place.configured("first", ""), place.configured("last", ""), echo]);
    let stages = [stage("a", "first", ""), stage("b", "last", ""), stage("c", "echo", ""), stage("d", "last", "")];
    server.ended(&server.run_workflow(&workflow(&stages), &place.repo()));
    let seen = place.seen("last");
    assert_eq!(seen[0]["prior_context"], json!(["look at auth"]));
    assert!(seen[1].get("prior_context").is_none(), "notes are handed on once: {}", seen[1]);
}

/// Agents of contracts without operations do not know whether a file is there.
#[test]
fn a_program_of_no_contract_may_write_a_file_again() {
    let place = Place::new();
    place.put("counter.txt", "1");
    let line = r#"@crosspoint {"artifact": {"name": "counter.txt", "content": "2"}}"#;
    let new = r#"@crosspoint {"artifact": {"name": "new.txt", "content": "1"}}"#;
    let argv = json!(["printf", "%s\\n%s\\n", line, new]);
    let agent = format!("[[agent]]\nname = \"counts\"\ncontract = \"exec\"\nwork = [\"do\"]\nexec = {argv}\n");
    let server = place.server(&[agent]);
    let id = server.run_workflow(&workflow(&[stage("count", "counts", "")]), &place.repo());
    let run = server.ended(&id);
    assert_eq!((&run["outcome"]["status"], &run["outcome"]["outputs"]["stages"]), (&json!("completed"), &json!(1)));
    assert_eq!((place.got("counter.txt").as_deref(), place.got("new.txt").as_deref()), (Some("2"), Some("1")));
}

/// Members that are not known mean nothing.
#[test]
fn an_artifact_may_have_a_member_called_name() {
    let place = Place::new();
    let mut output = wrote(&[("good.txt", "create", "x")]);
    output["artifacts"][0]["name"] = json!("../evil");
    place.replies("one", &[output]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "one", "")]), &place.repo());
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert_eq!(place.tree(), ["good.txt"]);
}
