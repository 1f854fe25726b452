//! A run works in the directory that it began in, and in no other one that stands at its path later.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, said, stage, tree, workflow, wrote};

/// Returns once the run is held, and says this.
fn held(server: &Server, id: &str, why: &str) {
    until("it is held", || {
        let run = server.job(id);
        let step = run["progress"]["step"].as_str().unwrap_or_default().to_owned();
        (step.starts_with("held: ") && step.contains(why)).then_some(())
    });
}

/// A run that asks, and then writes.
fn asking_first(place: &Place) -> (Server, String) {
    place.replies("judge", &[said("Shall I?", "escalate"), said("Fine.", "proceed")]);
    place.replies("writer", &[wrote(&[("new.md", "create", "new")])]);
    let server = place.server(&[place.configured("judge", ""), place.configured("writer", "")]);
    let stages = [stage("judge", "judge", ""), stage("write", "writer", "")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    server.in_state(&id, "waiting");
    (server, id)
}

#[test]
fn a_run_is_held_while_another_directory_is_at_the_path_of_its_root() {
    let place = Place::new();
    let (server, id) = asking_first(&place);
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    fs::create_dir(place.repo()).expect("it can be made");
    server.answer_run(&id, &json!("yes"));
    held(&server, &id, "another directory");
    assert_eq!(place.seen("judge").len(), 1, "no stage is begun meanwhile");
    fs::remove_dir(place.repo()).expect("it is empty");
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    assert_eq!(place.got("new.md").as_deref(), Some("new"));
}

#[test]
fn a_run_is_held_while_its_root_is_away() {
    let place = Place::new();
    let (server, id) = asking_first(&place);
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    server.answer_run(&id, &json!("yes"));
    held(&server, &id, "is not there");
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
}

/// Nothing drove the run when the directories were changed, and nothing was written before.
#[test]
fn another_directory_at_the_path_of_the_root_is_found_after_a_restart_too() {
    let place = Place::new();
    let (mut server, id) = asking_first(&place);
    server.kill();
    fs::rename(place.repo(), place.file("away")).expect("it can be moved");
    fs::create_dir(place.repo()).expect("it can be made");
    server.restart();
    server.answer_run(&id, &json!("yes"));
    held(&server, &id, "another directory");
    fs::remove_dir(place.repo()).expect("it is empty, because no stage is begun meanwhile");
    fs::rename(place.file("away"), place.repo()).expect("it can be moved");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    assert_eq!((place.got("new.md").as_deref(), place.seen("judge").len()), (Some("new"), 2));
}

/// The path of the root may be a link, which leads elsewhere by then.
#[test]
fn a_link_that_leads_elsewhere_after_a_restart_is_another_root() {
    let place = Place::new();
    place.replies("judge", &[said("Shall I?", "escalate"), said("Fine.", "proceed")]);
    let mut server = place.server(&[place.configured("judge", "")]);
    let lead_to = |directory: &str| {
        fs::create_dir_all(place.file(directory)).expect("it can be made");
        let _ = fs::remove_file(place.file("current"));
        std::os::unix::fs::symlink(place.file(directory), place.file("current")).expect("a link can be made");
    };
    lead_to("one");
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.file("current"));
    server.in_state(&id, "waiting");
    server.kill();
    lead_to("two");
    server.restart();
    server.answer_run(&id, &json!("yes"));
    held(&server, &id, "another directory");
    lead_to("one");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
}

/// Its stage is done, and its agent is not asked again for what another program holds up.
#[test]
fn a_run_is_held_while_another_program_has_the_lock_of_its_root() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("new.md", "create", "new")])]);
    let server = place.server(&[place.configured("writer", "")]);
    let lock = fs::File::open(place.repo()).expect("it is there");
    lock.try_lock().expect("nothing else has it");
    let id = server.run_workflow(&workflow(&[stage("write", "writer", "")]), &place.repo());
    held(&server, &id, "another program has held the lock");
    drop(lock);
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed", "{}", server.log());
    assert_eq!((place.got("new.md").as_deref(), place.seen("writer").len()), (Some("new"), 1));
}

/// Why it was held is not why it rests any more.
#[test]
fn a_run_that_was_held_and_asks_then_says_that_it_waits_for_a_person() {
    let place = Place::new();
    let mut asks = wrote(&[("new.md", "create", "new")]);
    asks["recommendation"] = json!("escalate");
    place.replies("writer", &[asks]);
    let server = place.server(&[place.configured("writer", "")]);
    let lock = fs::File::open(place.repo()).expect("it is there");
    lock.try_lock().expect("nothing else has it");
    let id = server.run_workflow(&workflow(&[stage("write", "writer", "")]), &place.repo());
    held(&server, &id, "another program has held the lock");
    drop(lock);
    let waiting = server.in_state(&id, "waiting");
    assert_eq!(waiting["stuck"]["reason"], "waiting for a person's answer", "{waiting}");
}

/// A link that is put in place of a directory after the output was judged leads nothing out of the repository.
#[test]
fn a_link_that_is_planted_between_the_check_and_the_write_is_not_followed() {
    let place = Place::new();
    place.put("sub/old.md", "old");
    place.replies("writer", &[wrote(&[("sub/new.md", "create", "new"), ("top.md", "create", "top")])]);
    place.write("own.toml", &workflow(&[stage("write", "writer", ""), place.own("writer", "")]));
    let pipe = place.file("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    command.env("CROSSPOINT_WAIT_AT", format!("planned:{}", pipe.display())).stderr(Stdio::piped());
    let child = command.spawn().expect("it starts");
    // This waits until the runner is there.
    let open = fs::OpenOptions::new().write(true).open(&pipe).expect("it can be opened");
    fs::rename(place.repo().join("sub"), place.file("elsewhere")).expect("it can be moved");
    std::os::unix::fs::symlink(place.file("elsewhere"), place.repo().join("sub")).expect("a link can be made");
    drop(open);
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("(WF-4.9)") && said.contains("sub/new.md leads through a symbolic link"), "{said}");
    let elsewhere = tree(&place.file("elsewhere"));
    assert_eq!((elsewhere, place.tree()), (vec!["old.md".to_owned()], vec!["sub".to_owned()]), "nothing was written");
    fs::remove_file(place.repo().join("sub")).expect("it is there");
    fs::rename(place.file("elsewhere"), place.repo().join("sub")).expect("it can be moved");
    let id = said.split_whitespace().skip_while(|word| *word != "run").nth(1).expect("its id").to_owned();
    let listed = place.crosspoint(&["jobs", "list", "--json"]).stdout;
    let mut jobs = listed.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("it is JSON"));
    let stage = jobs.find(|job| job["id"] != *id).expect("a stage");
    let shown = place.crosspoint(&["jobs", "show", stage["id"].as_str().expect("an id"), "--json"]).stdout;
    assert!(shown.contains("\"WF-4.9\""), "it is on record with the stage: {shown}");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "mended"]).code, 0);
    assert_eq!(place.crosspoint(&["workflow", "resume", &id]).code, 0);
    assert_eq!((place.got("sub/new.md").as_deref(), place.got("top.md").as_deref()), (Some("new"), Some("top")));
}

/// A server has thousands of runs that wait for people, and not as many open files.
#[test]
fn runs_that_wait_keep_no_file_open() {
    let place = Place::new();
    place.replies("judge", &[said("Shall I?", "escalate")]);
    let server = place.server(&[place.configured("judge", "")]);
    let begin = || {
        let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
        server.in_state(&id, "waiting");
    };
    let in_root = || {
        let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).expect("it runs");
        open.flatten().filter(|entry| fs::read_link(entry.path()).is_ok_and(|to| to == place.repo())).count()
    };
    for _ in 0..5 {
        begin();
    }
    until("nothing is open there", || (in_root() == 0).then_some(()));
}

/// What is half written is not called unwritten, and nothing goes on over it.
#[test]
fn a_run_whose_half_written_files_cannot_be_settled_is_held() {
    let place = Place::new();
    place.replies("writer", &[wrote(&[("a.md", "create", "a\n"), ("b.md", "create", "b\n")])]);
    place.write("own.toml", &workflow(&[stage("write", "writer", ""), place.own("writer", "")]));
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let killed = command.env("CROSSPOINT_KILL_AT", "placed.0").output().expect("it starts");
    let said = String::from_utf8_lossy(&killed.stderr).into_owned();
    let id = said.split_whitespace().skip_while(|word| *word != "run").nth(1).expect("its id").to_owned();
    let lock = fs::File::open(place.repo()).expect("it is there");
    lock.try_lock().expect("nothing else has it");
    let mut resume = place.command(&["workflow", "resume", &id]);
    let mut child = resume.stderr(Stdio::piped()).spawn().expect("it starts");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
    let held = lines.find(|line| line.contains("held: its files are half written")).expect("it is held");
    drop(lock);
    let ended = child.wait().expect("it ends");
    let said = lines.fold(held, |said, line| said + "\n" + &line);
    assert_eq!(ended.code(), Some(0), "{said}");
    assert!(!said.contains("nothing was written"), "{said}");
    assert_eq!((place.tree(), place.seen("writer").len()), (vec!["a.md".to_owned(), "b.md".to_owned()], 1));
}
