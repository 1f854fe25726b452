//! The files that stages write.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, mode_of, said, stage, tree, workflow, wrote};

fn one_stage(place: &Place) -> (Server, String) {
    (place.server(&[place.configured("writer", "")]), workflow(&[stage("write", "writer", "")]))
}

/// WF-5, WF-5.4: a conflict writes nothing and counts as a retry, with the path in `prior_context`.
#[test]
fn a_conflict_is_a_retry_that_names_the_path() {
    let place = Place::new();
    place.put("there.md", "old\n");
    let (server, definition) = one_stage(&place);
    let clash = wrote(&[("new.md", "create", "n"), ("there.md", "create", "new\n"), ("gone.md", "update", "g")]);
    place.replies("writer", &[clash, wrote(&[("there.md", "update", "new\n")])]);
    let id = server.run_workflow(&definition, &place.repo());
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["outputs"]["iterations"], 2, "{run}");
    assert_eq!(run["outcome"]["outputs"]["files"], json!(["there.md"]));
    assert_eq!(place.tree(), ["there.md"], "the first output wrote nothing");
    assert_eq!(place.got("there.md").as_deref(), Some("new\n"));
    let second = &place.seen("writer")[1];
    assert_eq!(second["context"]["iteration"], 2);
    assert_eq!(
        second["prior_context"],
        json!([
            "Nothing was written: there.md exists already, so use the operation update.",
            "Nothing was written: gone.md does not exist yet, so use the operation create.",
        ])
    );
}

/// WF-5.2: the same content is no change, so it is no conflict either.
#[test]
fn identical_content_is_no_conflict() {
    let place = Place::new();
    place.put("there.md", "same");
    let (server, definition) = one_stage(&place);
    place.replies("writer", &[wrote(&[("there.md", "create", "same")])]);
    let run = server.ended(&server.run_workflow(&definition, &place.repo()));
    assert_eq!(run["outcome"]["outputs"]["iterations"], 1, "{run}");
    assert_eq!(run["outcome"]["outputs"]["files"], json!([]));
}

/// WF-5.3: whatever `success` says.
#[test]
fn files_are_written_whatever_the_agent_says_of_its_success() {
    let place = Place::new();
    let (server, definition) = one_stage(&place);
    let mut failed = wrote(&[("gaps.md", "create", "two gaps\n")]);
    failed["success"] = json!(false);
    failed["recommendation"] = json!("retry");
    place.replies("writer", &[failed, said("Fine.", "proceed")]);
    let run = server.ended(&server.run_workflow(&definition, &place.repo()));
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert_eq!(place.got("gaps.md").as_deref(), Some("two gaps\n"));
}

fn many(count: usize, last: &str) -> Value {
    let path = |number: usize| format!("out/{}/{number}.md", number % 100);
    let file = |number: usize| json!({"path": path(number), "operation": "create", "content": format!("{number}")});
    let mut files: Vec<Value> = (1..count).map(file).collect();
    files.push(json!({"path": last, "operation": "create", "content": "last"}));
    let mut output = said("Wrote many.", "proceed");
    output["artifacts"] = files.into();
    output
}

#[test]
fn ten_thousand_files_are_written_all_or_none() {
    let place = Place::new();
    place.put("there.md", "old");
    let (server, definition) = one_stage(&place);
    // The last one clashes, the next time it is a bad path, and then all is well.
    place.replies("writer", &[many(10_000, "there.md"), many(10_000, "../out"), many(10_000, "last.md")]);
    let id = server.run_workflow(&definition, &place.repo());
    server.in_state(&id, "waiting");
    assert_eq!(place.tree(), ["there.md"]);
    server.answer_run(&id, &json!("go on"));
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{}", run["outcome"]["failure"]);
    assert_eq!(place.tree().len(), 10_001);
    assert_eq!(place.got("out/99/9999.md").as_deref(), Some("9999"));
    assert_eq!(run["outcome"]["outputs"]["files"].as_array().map(Vec::len), Some(10_000));
}

/// The server is killed when half of the files are staged, and when half of them are in their places.
#[test]
fn ten_thousand_files_are_all_there_or_none_across_a_kill() {
    for (moment, there) in [("staged.5000", 0..=0), ("placed.5000", 5_000..=5_001)] {
        let place = Place::new();
        let (mut server, definition) = one_stage(&place);
        place.replies("writer", &[many(10_000, "last.md")]);
        server.kill();
        server.start_by(&["env", &format!("CROSSPOINT_KILL_AT={moment}")]);
        server.restart();
        let id = server.run_workflow(&definition, &place.repo());
        assert_eq!(server.wait().signal(), Some(9), "it is killed at {moment}");
        let written = || place.tree().into_iter().filter(|path| !path.starts_with(".crosspoint-")).count();
        assert!(there.contains(&written()), "{moment}: {}", written());
        server.start_by(&["env"]);
        server.restart();
        let run = server.ended(&id);
        assert_eq!(run["outcome"]["status"], "completed", "{run}");
        assert_eq!((place.tree().len(), place.seen("writer").len()), (10_000, 1), "{moment}");
    }
}

#[test]
fn a_file_that_is_updated_keeps_its_mode() {
    let place = Place::new();
    for (name, mode) in [("run.sh", 0o755), ("secret.md", 0o600), ("plain.md", 0o644)] {
        place.put(name, "old");
        fs::set_permissions(place.repo().join(name), fs::Permissions::from_mode(mode)).expect("it can be set");
    }
    let (server, definition) = one_stage(&place);
    let files = ["run.sh", "secret.md", "plain.md"].map(|name| (name, "update", "new"));
    place.replies("writer", &[wrote(&files)]);
    server.ended(&server.run_workflow(&definition, &place.repo()));
    let mode = |name: &str| mode_of(&place.repo().join(name));
    assert_eq!((mode("run.sh"), mode("secret.md"), mode("plain.md")), (0o755, 0o600, 0o644));
    assert_eq!(place.got("run.sh").as_deref(), Some("new"));
}

/// Applies a diff with git, to a copy of what was there before.
fn applied_by_git(place: &Place, diff: &str) {
    let mut git = Command::new("git");
    git.args(["apply", "--whitespace=nowarn", "-"]).current_dir(place.repo()).stdin(Stdio::piped());
    let mut git = git.env("GIT_CEILING_DIRECTORIES", place.path()).spawn().expect("git is there");
    std::io::Write::write_all(&mut git.stdin.take().expect("a pipe"), diff.as_bytes()).expect("it reads");
    assert!(git.wait().expect("it ends").success(), "{diff}");
}

#[test]
fn a_dry_run_writes_nothing_and_its_diff_can_be_applied() {
    let place = Place::new();
    place.put("there.md", "one\ntwo\nthree\n");
    place.put("run.sh", "#!/bin/sh\n");
    let server = place.server(&[place.configured("writer", ""), place.configured("judge", "")]);
    let definition = workflow(&[stage("write", "writer", ""), stage("judge", "judge", "")]);
    let written = wrote(&[("there.md", "update", "one\n2\nthree\n"), ("specs/a b.md", "create", "no line end")]);
    place.replies("writer", &[written]);
    // The second stage sees what the first wrote, although it is not in the repository.
    place.replies("judge", &[wrote(&[("there.md", "update", "one\n2\n3\n")])]);
    let id = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true}));
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["outputs"]["files"], json!(["specs/a b.md", "there.md"]), "{run}");
    assert_eq!(place.tree(), ["run.sh", "there.md"]);
    assert_eq!(place.got("there.md").as_deref(), Some("one\ntwo\nthree\n"));
    let diff = server.get(&format!("/api/v1/workflows/{id}/diff"));
    assert_eq!(diff.header("content-type"), Some("text/x-diff; charset=utf-8"));
    applied_by_git(&place, &diff.text());
    assert_eq!(place.got("there.md").as_deref(), Some("one\n2\n3\n"));
    assert_eq!(place.got("specs/a b.md").as_deref(), Some("no line end"));
    let left = tree(&server.data().join("workflows").join(&id));
    assert!(!left.iter().any(|path| path.starts_with("copy")), "the copy is removed: {left:?}");
}

/// The diff of a run that wrote is what it changed, from the first state to the last.
#[test]
fn the_diff_of_a_run_is_what_it_changed() {
    let place = Place::new();
    let (server, definition) = one_stage(&place);
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n")])]);
    let id = server.run_workflow(&definition, &place.repo());
    server.ended(&id);
    let diff = server.get(&format!("/api/v1/workflows/{id}/diff")).text();
    assert!(diff.contains("+++ b/a.md") && diff.contains("\n+a\n"), "{diff}");
    fs::remove_file(place.repo().join("a.md")).expect("it is there");
    applied_by_git(&place, &diff);
    assert_eq!(place.got("a.md").as_deref(), Some("a\n"));
    let other = server.submit(r#"{"work": "do", "agent": "writer", "input": {}}"#);
    let refused = server.get(&format!("/api/v1/workflows/{}/diff", other["id"].as_str().expect("an id")));
    assert_eq!(refused.status, 400, "{refused:?}");
}

/// Only a stage that is allowed to writes under `.git`.
#[test]
fn a_stage_may_be_allowed_to_write_under_git() {
    let place = Place::new();
    let server = place.server(&[place.configured("writer", "")]);
    let definition = workflow(&[stage("write", "writer", "allow_git = true")]);
    place.replies("writer", &[wrote(&[(".git/hooks/pre-commit", "create", "#!/bin/sh\n")])]);
    let run = server.ended(&server.run_workflow(&definition, &place.repo()));
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert_eq!(place.tree(), [".git/hooks/pre-commit"]);
}

/// Two runs in one root at once: each output is whole, and a conflict between them is a retry like any other.
#[test]
fn two_runs_may_work_in_one_root_at_once() {
    let place = Place::new();
    let server = place.server(&[place.configured("left", ""), place.configured("right", "")]);
    for agent in ["left", "right"] {
        let files = |common| {
            let files = (0..200).map(|number| (format!("{agent}/{number}.md"), agent));
            files.chain([(common, agent)]).collect::<Vec<_>>()
        };
        let output = |files: Vec<(String, &str)>| {
            wrote(&files.iter().map(|(path, text)| (path.as_str(), "create", *text)).collect::<Vec<_>>())
        };
        // Both want to make the first file, and one of them comes too late.
        place.replies(agent, &[output(files("common.md".into())), output(files(format!("{agent}.md")))]);
    }
    let again = "retry = { goto = \"write\" }";
    let begin = |agent: &str| server.run_workflow(&workflow(&[stage("write", agent, again)]), &place.repo());
    let runs = [begin("left"), begin("right")];
    let mut iterations: Vec<u64> = Vec::new();
    for id in &runs {
        let run = server.ended(id);
        assert_eq!(run["outcome"]["outputs"]["files"].as_array().map(Vec::len), Some(201), "{run}");
        iterations.extend(run["outcome"]["outputs"]["iterations"].as_u64());
    }
    iterations.sort_unstable();
    assert_eq!((iterations, place.tree().len()), (vec![1, 2], 402));
}

/// The copy is of use until the outcome is on disk, and of none after it.
#[test]
fn a_dry_run_goes_on_after_a_kill_and_leaves_no_copy() {
    let place = Place::new();
    place.put("there.md", "old\n");
    place.replies("writer", &[wrote(&[("there.md", "update", "new\n")])]);
    place.replies("judge", &[said("Shall I?", "escalate"), said("Fine.", "proceed")]);
    let mut server = place.server(&[place.configured("writer", ""), place.configured("judge", "")]);
    let definition = workflow(&[stage("write", "writer", ""), stage("judge", "judge", "")]);
    let begin = |server: &Server| {
        let id = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true}));
        server.in_state(&id, "waiting");
        id
    };
    let id = begin(&server);
    server.kill();
    server.restart();
    server.answer_run(&id, &json!("yes"));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    let gone = |server: &Server, id: &str| {
        let record = server.data().join("workflows").join(id);
        until("the copy is removed", || {
            (!record.join("copy").exists() && !record.join("copied").exists()).then_some(())
        });
    };
    gone(&server, &id);
    assert!(server.get(&format!("/api/v1/workflows/{id}/diff")).text().contains("+new"), "what it did is known");
    place.replies("judge", &[said("Shall I?", "escalate")]);
    let id = begin(&server);
    assert!(server.data().join("workflows").join(&id).join("copy").exists());
    server.post(&format!("/api/v1/jobs/{id}/cancel"), "");
    gone(&server, &id);
    assert_eq!(place.got("there.md").as_deref(), Some("old\n"));
}

/// A run whose copy is gone must have its outcome: it could not go on.
#[test]
fn the_copy_of_a_dry_run_goes_after_the_outcome_is_on_disk() {
    let place = Place::new();
    let (mut server, definition) = one_stage(&place);
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n")])]);
    server.kill();
    server.start_by(&["env", "CROSSPOINT_KILL_AT=removed"]);
    server.restart();
    let id = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true}));
    assert_eq!(server.wait().signal(), Some(9), "it is killed when the copy is gone");
    let mut show = Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"));
    show.args(["jobs", "show", &id, "--json", "--data"]).arg(server.data()).current_dir(place.path());
    let shown = show.env_remove("CROSSPOINT_SERVER").env_remove("HOME").output().expect("it starts");
    let shown: Value = serde_json::from_slice(&shown.stdout).expect("it is JSON");
    assert_eq!(shown["outcome"]["status"], "completed", "{shown}");
    server.start_by(&["env"]);
    server.restart();
    assert!(server.get(&format!("/api/v1/workflows/{id}/diff")).text().contains("+++ b/a.md"));
}

/// No server runs that would see to it.
#[test]
fn the_copy_of_a_dry_run_goes_with_a_command_that_cancels_it() {
    let place = Place::new();
    place.replies("judge", &[said("Shall I?", "escalate")]);
    place.write("w.toml", &workflow(&[stage("judge", "judge", ""), place.own("judge", "")]));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--dry-run"]);
    let id = super::commands::id_of(&ran);
    let record = place.file(".crosspoint/workflows").join(&id);
    assert!(ran.code == 3 && record.join("copy").exists(), "{ran:?}");
    assert_eq!(place.crosspoint(&["workflow", "cancel", &id]).code, 0);
    assert!(!record.join("copy").exists());
}

/// The root is another directory for a moment while it is copied: the run is held, and its copy is made again.
#[test]
fn a_dry_run_whose_root_changes_while_it_is_copied_goes_on_later() {
    let place = Place::new();
    let (mut server, definition) = one_stage(&place);
    place.put("there.md", "old\n");
    place.replies("writer", &[wrote(&[("there.md", "update", "new\n")])]);
    server.kill();
    let pipe = place.file("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
    server.start_by(&["env", &format!("CROSSPOINT_WAIT_AT=copy_opened.0:{}", pipe.display())]);
    server.restart();
    let id = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true}));
    // This waits until the root is being copied.
    let open = fs::OpenOptions::new().write(true).open(&pipe).expect("it can be opened");
    fs::remove_file(&pipe).expect("it is there");
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    fs::create_dir(place.repo()).expect("it can be made");
    drop(open);
    until("it is held", || {
        let reason = server.job(&id)["stuck"]["reason"].as_str().map(str::to_owned);
        reason.filter(|why| why.starts_with("held: ") && why.contains("changed by another program")).map(drop)
    });
    fs::remove_dir(place.repo()).expect("it is empty");
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert!(server.get(&format!("/api/v1/workflows/{id}/diff")).text().contains("-old"));
}
