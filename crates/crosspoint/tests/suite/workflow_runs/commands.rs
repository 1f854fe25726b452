//! `crosspoint workflow`: with a server, and by itself.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::support::bridge_run::Ran;
use crate::support::programs::nothing_runs_for;
use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, noted, said, stage, tree, workflow, wrote};

/// The id of a run, from what the command says first.
pub(super) fn id_of(ran: &Ran) -> String {
    let line = ran.stderr.lines().find_map(|line| line.strip_prefix("run "));
    line.unwrap_or_else(|| panic!("{ran:?}")).split(' ').next().expect("a word").to_owned()
}

/// A place with a workflow file of its own programs: a stage that writes, and one that judges.
pub(super) fn own(place: &Place) {
    let agents = [place.own("writer", ""), place.own("judge", "")].concat();
    let stages = [stage("write", "writer", ""), stage("judge", "judge", "retry = { goto = \"write\" }")].concat();
    place.write("own.toml", &format!("name = \"own\"\n{stages}{agents}"));
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n")])]);
    place.replies("judge", &[said("Fine.", "proceed")]);
}

#[test]
fn a_workflow_with_programs_needs_nothing_but_the_file() {
    let place = Place::new();
    own(&place);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, ""), "{ran:?}");
    let lines: Vec<Vec<&str>> = ran.stderr.lines().map(|line| line.split_whitespace().collect()).collect();
    let of =
        |stage: &str| lines.iter().find(|words| words.first() == Some(&stage)).unwrap_or_else(|| panic!("{ran:?}"));
    assert_eq!(of("write")[4..], ["proceed", "(1", "file)", "Wrote", "it."], "{ran:?}");
    assert_eq!(of("judge")[4..], ["proceed", "Fine."], "{ran:?}");
    assert_eq!(place.got("a.md").as_deref(), Some("a\n"));
    assert_eq!(place.tree(), ["a.md"], "nothing else is left in the repository");
    let envelope = json!({
        "context": {"feature_id": null, "workflow": "own", "iteration": 1},
        "paths": {},
        "task": {"action": "do", "params": {}},
    });
    assert_eq!(place.seen("writer"), [envelope], "the envelope is as it is documented");
    let shown = place.crosspoint(&["workflow", "show", &id_of(&ran)]);
    assert!(shown.stdout.contains("+++ b/a.md"), "{shown:?}");
    let listed = place.crosspoint(&["workflow", "list", "--json"]);
    assert_eq!(listed.stdout.lines().count(), 1, "stages are no runs: {listed:?}");
}

#[test]
fn an_escalation_is_exit_3_and_an_answer_lets_it_go_on() {
    let place = Place::new();
    own(&place);
    place.replies("judge", &[noted("Which colour?", "escalate", &["two fit"]), said("Fine.", "proceed")]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    let id = id_of(&ran);
    assert_eq!(ran.code, 3, "{ran:?}");
    for said in ["Which colour?", "- two fit", &format!("jobs answer {id} --text"), &format!("workflow resume {id}")] {
        assert!(ran.stderr.contains(said), "{said:?} is not in {ran:?}");
    }
    // Without an answer it still waits.
    assert_eq!(place.crosspoint(&["workflow", "resume", &id]).code, 3);
    let answered = place.crosspoint(&["jobs", "answer", &id, "--text", "green"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let resumed = place.crosspoint(&["workflow", "resume", &id, "--json"]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let job: Value = serde_json::from_str(&resumed.stdout).expect("one line of JSON");
    assert_eq!((&job["id"], &job["outcome"]["status"]), (&json!(id), &json!("completed")));
    assert_eq!(place.seen("judge")[1]["task"]["params"]["answers"][0]["answer"], "green");
    assert_eq!((place.seen("writer").len(), place.seen("judge").len()), (1, 2), "nothing is repeated");
    // A run that is over can be resumed, and only shows.
    assert_eq!(place.crosspoint(&["workflow", "resume", &id]).code, 0);
    assert_eq!(place.seen("judge").len(), 2);
}

#[test]
fn a_bad_agent_is_exit_3_and_says_what_to_mend() {
    let place = Place::new();
    own(&place);
    place.replies("writer", &[wrote(&[("fine.md", "create", "x"), ("../../etc/passwd", "create", "x")])]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("(WF-4.2)") && ran.stderr.contains("Then answer anything"), "{ran:?}");
    assert!(!ran.stderr.contains("ALL-129"), "what the request could not carry is not the agent's fault: {ran:?}");
    assert_eq!(place.tree(), [""; 0]);
    let id = id_of(&ran);
    place.replies("writer", &[wrote(&[("fine.md", "create", "x")])]);
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "mended"]).code, 0);
    let resumed = place.crosspoint(&["workflow", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!(place.tree(), ["fine.md"]);
}

#[test]
fn a_run_that_is_cancelled_is_exit_1() {
    let place = Place::new();
    own(&place);
    place.replies("judge", &[said("Which colour?", "escalate")]);
    let id = id_of(&place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]));
    let cancelled = place.crosspoint(&["workflow", "cancel", &id]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    assert_eq!(place.crosspoint(&["workflow", "resume", &id]).code, 1);
}

#[test]
fn a_dry_run_prints_a_diff_and_leaves_the_repository_alone() {
    let place = Place::new();
    own(&place);
    place.put("there.md", "there\n");
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--dry-run"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.starts_with("diff --git a/a.md b/a.md\n") && ran.stdout.ends_with("+a\n"), "{ran:?}");
    assert_eq!(place.tree(), ["there.md"]);
    let left = tree(&place.file(".crosspoint/workflows"));
    assert!(!left.iter().any(|path| path.contains("copy/")), "the copy is removed: {left:?}");
}

#[test]
fn what_cannot_be_run_is_said_before_anything_runs() {
    let place = Place::new();
    own(&place);
    assert_eq!(place.crosspoint(&["workflow", "run", "missing.toml"]).code, 2);
    assert_eq!(place.crosspoint(&["workflow", "run", "own.toml", "--root", "missing"]).code, 2);
    let bad = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--feature", "../x"]);
    assert!(bad.code == 1 && !bad.stderr.contains("[invalid]"), "{bad:?}");
    let text = fs::read_to_string(place.file("own.toml")).expect("it is there");
    place.write("bad.toml", &text.replace("goto = \"write\"", "goto = \"wirte\"").replace("name = \"own\"", "nam = 1"));
    let ran = place.crosspoint(&["workflow", "run", "bad.toml", "--root", "repo"]);
    assert_eq!(ran.code, 1, "{ran:?}");
    let checked = place.crosspoint(&["workflow", "check", "bad.toml"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    let said = format!("{}{}", checked.stdout, checked.stderr);
    for word in ["bad.toml:1:1", "wirte", "did you mean \"write\"?", "no key \"nam\""] {
        assert!(said.contains(word), "{word:?} is not in {said}");
    }
    place.write("strange.toml", &workflow(&[stage("a", "nobody", "")]));
    let checked = place.crosspoint(&["workflow", "check", "strange.toml"]);
    assert!(checked.code == 1 && checked.stderr.contains("nobody"), "{checked:?}");
    let ran = place.crosspoint(&["workflow", "run", "strange.toml", "--root", "repo"]);
    assert_eq!((ran.code, &ran.stderr), (1, &checked.stderr), "a run says the same");
    assert_eq!(place.seen("writer").len(), 0);
    let detached = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--detach"]);
    assert!(detached.code == 2 && detached.stderr.contains("without --detach"), "{detached:?}");
    assert_eq!(place.seen("writer").len(), 0);
    let fine = place.crosspoint(&["workflow", "check", "own.toml"]);
    assert_eq!((fine.code, fine.stdout.as_str()), (0, "ok: own.toml is a workflow of 2 stages\n"), "{fine:?}");
}

/// A program may be there when the workflow runs, so that it is not there now is only a warning.
#[test]
fn a_program_that_cannot_be_started_is_a_warning_of_the_check() {
    let place = Place::new();
    place.write("agents/plain", "#!/bin/sh\n");
    for (name, line) in
        [("crlf", "#!/usr/bin/env sh\r"), ("nowhere", "#!/opt/none/sh"), ("unknown", "#! /usr/bin/env no-such-shell")]
    {
        place.write(&format!("agents/{name}"), &format!("{line}\n"));
        let executable = fs::Permissions::from_mode(0o755);
        fs::set_permissions(place.file("agents").join(name), executable).expect("it is ours");
    }
    for (program, why) in [
        ("./agents/gone", "agents/gone"),
        ("./agents/plain", "chmod +x"),
        ("./agents/crlf", "dos2unix"),
        ("./agents/nowhere", "/opt/none/sh: there is no such file"),
        ("./agents/unknown", "no-such-shell, is in no directory of PATH"),
        ("no-such-program", "PATH"),
    ] {
        let agent = format!("[[agent]]\nname = \"a\"\nexec = [\"{program}\"]\n");
        place.write("w.toml", &workflow(&[stage("s", "a", ""), agent]));
        let checked = place.crosspoint(&["workflow", "check", "w.toml"]);
        assert_eq!(checked.code, 0, "{checked:?}");
        assert!(checked.stderr.contains("warning") && checked.stderr.contains("w.toml:9:9"), "{checked:?}");
        assert!(checked.stderr.contains(why), "{why:?} is not in {checked:?}");
        assert_eq!(checked.stdout, "ok: w.toml is a workflow of 1 stage, with 1 warning\n", "{checked:?}");
    }
}

/// The second run is told at once what is wrong, and does not wait for the breaker that the first one opened.
#[test]
fn a_program_that_was_mended_is_tried_at_once() {
    let place = Place::new();
    own(&place);
    let text = fs::read_to_string(place.file("own.toml")).expect("it is there");
    place.write("broken.toml", &text.replace("exec = [\"sh\"", "exec = [\"./agents/gone\""));
    assert_eq!(place.crosspoint(&["workflow", "run", "broken.toml", "--root", "repo"]).code, 3);
    let shown = place.crosspoint(&["agents", "show", "writer", "--json"]);
    assert!(shown.stdout.contains("open") || shown.code != 0, "{shown:?}");
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!ran.stderr.contains("it does not move"), "{ran:?}");
}

#[test]
fn what_is_meant_for_runs_is_refused_for_files_and_other_jobs() {
    let place = Place::new();
    own(&place);
    for flag in ["--json", "--diff"] {
        let refused = place.crosspoint(&["workflow", "show", "own.toml", flag]);
        assert!(refused.code == 2 && refused.stderr.contains(flag) && refused.stdout.is_empty(), "{refused:?}");
    }
    let typo = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--json"]);
    assert_eq!(typo.code, 0, "{typo:?}");
    let typo = place.crosspoint(&["workflow", "show", "onw.toml"]);
    assert!(typo.code == 2 && typo.stderr.contains("no file onw.toml"), "{typo:?}");
    let listed = place.crosspoint(&["jobs", "list", "--json"]);
    let stage = listed.stdout.lines().find(|line| line.contains("child_of")).expect("a stage");
    let stage: Value = serde_json::from_str(stage).expect("it is JSON");
    for verb in ["resume", "show", "cancel"] {
        let refused = place.crosspoint(&["workflow", verb, stage["id"].as_str().expect("an id")]);
        assert!(refused.code == 2 && refused.stderr.contains("is no run of a workflow"), "{refused:?}");
        assert!(refused.stderr.contains("workflow list") && !refused.stderr.contains("missing field"), "{refused:?}");
    }
}

#[test]
fn a_workflow_is_drawn_as_text_and_as_a_flowchart() {
    let place = Place::new();
    own(&place);
    let drawn = place.crosspoint(&["workflow", "show", "own.toml"]);
    assert!(drawn.code == 0 && drawn.stdout.contains("judge"), "{drawn:?}");
    let chart = place.crosspoint(&["workflow", "show", "own.toml", "--mermaid"]);
    assert!(chart.code == 0 && chart.stdout.starts_with("flowchart"), "{chart:?}");
}

/// With a server the command only shows the run, which is the server's.
#[test]
fn with_a_server_the_run_is_the_servers() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    let server = place.server(&[place.configured("judge", "")]);
    place.write("w.toml", &workflow(&[stage("judge", "judge", "")]));
    let url = server.url();
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--server", &url]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let id = id_of(&ran);
    server.in_state(&id, "waiting");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "green", "--server", &url]).code, 0);
    // It goes on by itself.
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    let resumed = place.crosspoint(&["workflow", "resume", &id, "--server", &url]);
    assert!(resumed.code == 0 && resumed.stderr.contains("Fine."), "{resumed:?}");
    let detached = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--detach", "--server", &url]);
    assert_eq!(detached.code, 0, "{detached:?}");
    server.ended(detached.stdout.trim());
}

#[test]
fn a_root_that_the_server_does_not_allow_is_refused_with_the_offer_of_embedded() {
    let (place, other) = (Place::new(), Place::new());
    let server = other.server(&[other.configured("judge", "")]);
    place.write("w.toml", &workflow(&[stage("judge", "judge", "")]));
    let url = server.url();
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--server", &url]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("--embedded") && ran.stderr.contains("does not allow"), "{ran:?}");
    assert!(!ran.stderr.contains("/root") && !ran.stderr.contains("[invalid]"), "no place of our own: {ran:?}");
    // Which works, with the agents of the configuration here.
    place.replies("judge", &[said("Fine.", "proceed")]);
    place.write("crosspoint.toml", &place.configured("judge", ""));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--embedded"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]));
}

/// Ctrl-C leaves the run where it is. A run of a command goes on when it is resumed.
#[test]
fn an_interrupted_run_is_kept_and_goes_on() {
    let place = Place::new();
    let script = r#"cat > /dev/null; echo "$CROSSPOINT_JOB_ID" > "$PLACE/began"; [ -e "$PLACE/go" ] || exec sleep 600
        echo '{"success":true,"summary":"Done.","artifacts":[],"recommendation":"proceed"}'"#;
    let definition = workflow(&[stage("slow", "slow", ""), place.own_script("slow", script, "")]);
    place.write("slow.toml", &definition);
    let mut command = place.command(&["workflow", "run", "slow.toml", "--root", "repo"]);
    let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn();
    let child = child.expect("it starts");
    let began = || fs::read_to_string(place.file("agents/began")).ok().filter(|id| id.ends_with('\n'));
    let job = until("the stage runs", began);
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).expect("a process");
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it runs");
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(ran.code, 130, "{ran:?}");
    nothing_runs_for(job.trim());
    place.write("agents/go", "");
    let resumed = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

/// A job of another sort is no run.
#[test]
fn what_is_no_run_is_said() {
    let server = Server::start();
    let job = server.submit(r#"{"work": "echo", "input": {}}"#);
    let place = Place::new();
    let id = job["id"].as_str().expect("an id");
    for action in ["resume", "show", "cancel"] {
        let ran = place.crosspoint(&["workflow", action, id, "--server", &server.url()]);
        assert!(ran.code == 2 && ran.stderr.contains("is no run of a workflow"), "{action}: {ran:?}");
    }
    assert_eq!(place.crosspoint(&["workflow", "show", "nothing", "--server", &server.url()]).code, 2);
}

/// The repository is the working directory, unless another is named. The store of the command is in it.
#[test]
fn the_store_of_a_command_is_no_place_for_artifacts() {
    let place = Place::new();
    own(&place);
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n"), (".crosspoint/server.json", "create", "{}")])]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!place.file("a.md").exists() && !place.file(".crosspoint/server.json").exists(), "{ran:?}");
    // A dry run copies the rest of the directory.
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n")])]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--dry-run"]);
    assert!(ran.code == 0 && ran.stdout.contains("+++ b/a.md") && !place.file("a.md").exists(), "{ran:?}");
}
