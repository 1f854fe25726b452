//! A run works in the directory that it began in, and in no other one that stands at its path later.

use std::fs;

use serde_json::json;

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, said, stage, workflow, wrote};

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
    let child = resume.stderr(std::process::Stdio::piped()).spawn().expect("it starts");
    until("it is held", || {
        let shown = place.crosspoint(&["jobs", "show", &id, "--json", "--data", ".crosspoint"]);
        let is_in_use = shown.stderr.contains("in use") || shown.stdout.contains("half written");
        is_in_use.then_some(())
    });
    drop(lock);
    let ended = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(0), "{said}");
    assert!(!said.contains("nothing was written"), "{said}");
    assert_eq!((place.tree(), place.seen("writer").len()), (vec!["a.md".to_owned(), "b.md".to_owned()], 1));
}
