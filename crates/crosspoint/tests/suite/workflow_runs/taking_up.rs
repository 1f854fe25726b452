//! Runs that are taken up by another process than the one that began them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::commands::id_of;
use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, said, stage, workflow, wrote};

/// A workflow file with a program of its own that asks once.
fn asking(place: &Place) {
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    place.write("own.toml", &workflow(&[stage("judge", "judge", ""), place.own("judge", "")]));
}

/// A server on the data directory of the commands.
fn serving(place: &Place) -> Child {
    let mut serve = place.command(&["serve", "--listen", "127.0.0.1:0"]);
    let child = serve.stderr(Stdio::null()).spawn().expect("it starts");
    until("it is ready", || fs::metadata(place.file(".crosspoint/server.json")).ok());
    child
}

fn stopped(place: &Place, mut server: Child) {
    let pid = rustix::process::Pid::from_child(&server);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    server.wait().expect("it ends");
    assert!(!place.file(".crosspoint/server.json").exists());
}

fn shown(place: &Place, id: &str) -> Value {
    let shown = place.crosspoint(&["jobs", "show", id, "--json"]);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|error| panic!("{error}: {shown:?}"))
}

/// A server does not start the programs of a workflow file, and does not end the run for it either.
#[test]
fn a_server_holds_a_run_of_a_command_and_the_command_goes_on_with_it() {
    let place = Place::new();
    asking(&place);
    let id = id_of(&place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]));
    let server = serving(&place);
    assert_eq!(shown(&place, &id)["state"], "waiting");
    let answered = place.crosspoint(&["jobs", "answer", &id, "--text", "green"]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let held = until("it says why it does not go on", || {
        Some(shown(&place, &id))
            .filter(|job| job["progress"]["step"].as_str().is_some_and(|step| step.contains("held")))
    });
    assert!(held["progress"]["step"].as_str().is_some_and(|step| step.contains("workflow resume")), "{held}");
    stopped(&place, server);
    let stuck = shown(&place, &id);
    let reason = stuck["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.contains(&format!("crosspoint workflow resume {id}")), "{stuck}");
    let resumed = place.crosspoint(&["workflow", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(resumed.stderr.contains("completed: 2 stage runs, 1 iteration, 0 files written"), "{resumed:?}");
    assert_eq!(place.seen("judge")[1]["task"]["params"]["answers"][0]["answer"], "green");
    assert_eq!(place.seen("judge").len(), 2, "nothing is repeated");
}

/// The programs of a file are known to the commands that run it. A server in between knows nothing of their work, and
/// decides nothing about it.
#[test]
fn a_server_between_two_commands_does_not_fail_the_stage_of_a_program_of_the_file() {
    let place = Place::new();
    place.replies("slow", &[said("Done.", "proceed")]);
    let waits = "echo x >> \"$PLACE/starts\"; [ -e \"$PLACE/go\" ] || sleep 600; cat \"$PLACE/slow.reply\"";
    place.write("own.toml", &workflow(&[stage("slow", "slow", ""), place.own_script("slow", waits, "")]));
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let mut child = command.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let id = lines.find_map(|line| Some(line.split_once("run ")?.1.split(' ').next()?.to_owned())).expect("its id");
    until("its program is begun", || fs::metadata(place.file("agents/starts")).ok());
    until("that is on disk", || {
        let shown = place.crosspoint(&["jobs", "list", "--json"]);
        (shown.code != 0 || shown.stdout.contains("slow")).then_some(())
    });
    child.kill().and_then(|()| child.wait()).expect("it is killed");
    let server = serving(&place);
    until("the run is held", || {
        shown(&place, &id)["progress"]["step"].as_str().filter(|step| step.contains("held")).map(drop)
    });
    stopped(&place, server);
    fs::write(place.file("agents/go"), "").expect("it can be written");
    let resumed = place.crosspoint(&["workflow", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert!(!resumed.stderr.contains("unavailable"), "{resumed:?}");
    assert_eq!(fs::read_to_string(place.file("agents/starts")).expect("it is there").lines().count(), 2);
}

/// A run without a request id has no key by which it could be found.
#[test]
fn a_run_of_the_api_is_resumed_by_its_id_and_is_no_second_run() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    let mut server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&id, "waiting");
    server.answer_run(&id, &json!("green"));
    server.ended(&id);
    let waiting = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.ended(&waiting);
    place.replies("judge", &[said("Which shape?", "escalate")]);
    let waiting = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&waiting, "waiting");
    server.stop();
    let seen = place.seen("judge").len();
    let run = |arguments: &[&str]| {
        let mut command = place.command(arguments);
        command.current_dir(server.directory()).args(["--data", "data"]).output().expect("it starts")
    };
    let resumed = run(&["workflow", "resume", &waiting]);
    assert_eq!(resumed.status.code(), Some(3), "{}", String::from_utf8_lossy(&resumed.stderr));
    assert_eq!(place.seen("judge").len(), seen, "no stage is repeated");
    let listed = run(&["workflow", "list", "--json"]);
    assert_eq!(String::from_utf8_lossy(&listed.stdout).lines().count(), 3, "there is no other run");
}

#[test]
fn a_root_that_is_away_at_a_restart_holds_the_run_until_it_is_back() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    let mut server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&id, "waiting");
    server.kill();
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    server.restart();
    server.answer_run(&id, &json!("green"));
    until("it says that it is held", || {
        server.job(&id)["progress"]["step"].as_str().filter(|step| step.starts_with("held: ")).map(drop)
    });
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
}

/// Another run in the same repository never sees half of what a killed run wrote.
#[test]
fn files_that_a_killed_run_left_half_written_are_finished_before_another_run_begins() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n"), ("b.md", "create", "b\n")])]);
    place.write("own.toml", &workflow(&[stage("write", "writer", ""), place.own("writer", "")]));
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let killed = command.env("CROSSPOINT_KILL_AT", "placed.0").output().expect("it starts");
    assert_eq!(killed.status.code(), None, "{}", String::from_utf8_lossy(&killed.stderr));
    assert_eq!(place.tree().iter().filter(|path| path.ends_with(".md") && !path.contains('/')).count(), 1);
    place.replies("reader", &[said("Read.", "proceed")]);
    let look = "cat > /dev/null; ls *.md > \"$PLACE/listed\"; cat \"$PLACE/reader.reply\"";
    place.write("other.toml", &workflow(&[stage("read", "reader", ""), place.own_script("reader", look, "")]));
    let ran = place.crosspoint(&["workflow", "run", "other.toml", "--root", "repo"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(fs::read_to_string(place.file("agents/listed")).expect("it looked"), "a.md\nb.md\n");
}

/// Files that can be neither finished nor taken back are not said to be unwritten, and no stage runs meanwhile.
#[test]
fn a_run_whose_files_are_half_written_is_held_until_they_are_whole() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n"), ("b.md", "create", "b\n")])]);
    place.write("own.toml", &workflow(&[stage("write", "writer", ""), place.own("writer", "")]));
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let mut child = command.env("CROSSPOINT_FAIL_AT", "cleaned").stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut said = Vec::new();
    while !said.iter().any(|line: &String| line.contains("held: its files are half written")) {
        said.push(lines.next().unwrap_or_else(|| panic!("it ended: {said:?}")));
    }
    child.kill().and_then(|()| child.wait()).expect("it is killed");
    let begun = said.iter().find_map(|line| line.strip_prefix("run ")).expect("its id");
    let id = begun.split(' ').next().expect("a word").to_owned();
    let resumed = place.crosspoint(&["workflow", "resume", &id]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    assert_eq!((place.tree(), place.seen("writer").len()), (vec!["a.md".to_owned(), "b.md".to_owned()], 1));
}

/// Answers go into envelopes, which every reader of JSON must read.
#[test]
fn an_answer_that_nests_too_deep_is_refused_and_the_run_still_waits() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
    let server: Server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&id, "waiting");
    let deep = format!("{}1{}", "[".repeat(110), "]".repeat(110));
    let refused = server.post(&format!("/api/v1/jobs/{id}/answer"), &format!("{{\"input\":{deep}}}"));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("nests too deep"), "{refused:?}");
    assert_eq!(server.job(&id)["state"], "waiting");
    server.answer_run(&id, &json!("green"));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
}

/// The root is opened once: what is put in its place while the run waits is another directory.
#[test]
fn a_root_that_becomes_a_link_is_not_followed() {
    let place = Place::new();
    place.replies("judge", &[said("Which colour?", "escalate"), wrote(&[("a.md", "create", "a\n")])]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    server.in_state(&id, "waiting");
    fs::create_dir(place.file("elsewhere")).expect("it can be made");
    fs::rename(place.repo(), place.file("real")).expect("it can be moved");
    std::os::unix::fs::symlink(place.file("elsewhere"), place.repo()).expect("it can be linked");
    server.answer_run(&id, &json!("green"));
    until("it is held", || {
        server.job(&id)["progress"]["step"].as_str().filter(|step| step.contains("another directory")).map(drop)
    });
    fs::remove_file(place.repo()).expect("it is a link");
    fs::rename(place.file("real"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    assert_eq!(fs::read_dir(place.file("elsewhere")).expect("it is there").count(), 0);
    assert_eq!(place.got("a.md").as_deref(), Some("a\n"));
}

/// A run that is cancelled after its command was killed in the middle of writing leaves no half of an output.
#[test]
fn cancelling_settles_what_a_killed_run_left() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n"), ("b.md", "create", "b\n")])]);
    place.write("own.toml", &workflow(&[stage("write", "writer", ""), place.own("writer", "")]));
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let killed: crate::support::bridge_run::Ran =
        command.env("CROSSPOINT_KILL_AT", "placed.0").output().expect("it starts").into();
    let cancelled = place.crosspoint(&["workflow", "cancel", &id_of(&killed)]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    assert_eq!(place.tree(), ["a.md", "b.md"], "the output is whole when the command returns");
}

/// The agents of such a run would be started beside the database.
#[test]
fn the_data_directory_is_no_root() {
    let place = Place::new();
    let server = place.server(&[place.configured("judge", "")]);
    let root = server.data().canonicalize().expect("it is there");
    let refused = server.order(&json!({"definition": workflow(&[stage("judge", "judge", "")]), "root": root}));
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text().contains("data directory"), "{refused:?}");
}

/// What a run remembers of its root is JSON, in which some characters of a path are escaped.
#[test]
fn a_root_with_any_name_is_found_again() {
    let place = Place::new();
    asking(&place);
    let root = "a \"b\" \\c \u{e9}\t";
    fs::create_dir(place.file(root)).expect("it can be made");
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", root]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id_of(&ran), "--text", "green"]).code, 0);
    let resumed = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

/// A run follows the file as it was. Who mends the file learns that at once.
#[test]
fn a_workflow_file_that_has_changed_is_said_when_its_run_goes_on() {
    let place = Place::new();
    asking(&place);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    let unchanged = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert!(unchanged.code == 3 && !unchanged.stderr.contains("has changed"), "{unchanged:?}");
    place.write("own.toml", "name = \"another\"\n");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id_of(&ran), "--text", "green"]).code, 0);
    let resumed = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
    let file = place.file("own.toml").display().to_string();
    assert!(resumed.stderr.contains(&format!("{file} has changed since; the run follows it as it was")), "{resumed:?}");
}
