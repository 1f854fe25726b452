//! What `crosspoint workflow` says: mistakes before a run begins, where it writes, and the whole run afterwards.

use std::os::unix::fs::PermissionsExt;

use super::commands::{id_of, own};
use crate::support::workflow_place::{Place, noted, said, stage, workflow, wrote};

/// The file and the configuration may not both have an agent of one name.
#[test]
fn an_agent_of_the_file_with_a_name_of_the_configuration_is_found_before_the_run() {
    let place = Place::new();
    place.write("crosspoint.toml", &place.configured("clerk", ""));
    place.write("w.toml", &workflow(&[stage("draft", "clerk", ""), place.own("clerk", "")]));
    for action in ["check", "run"] {
        let refused = place.crosspoint(&["workflow", action, "w.toml"]);
        assert_eq!(refused.code, 1, "{refused:?}");
        for word in ["the configuration has an agent \"clerk\" too", "w.toml:8:8", "another name"] {
            assert!(refused.stderr.contains(word), "{word:?} is not in {refused:?}");
        }
    }
    assert_eq!(place.seen("clerk").len(), 0);
}

/// The sample agents are there where none is configured. They take no name away.
#[test]
fn an_agent_of_the_file_may_have_the_name_of_a_sample() {
    let place = Place::new();
    place.replies("ask", &[said("Fine.", "proceed")]);
    place.write("w.toml", &workflow(&[stage("s", "ask", ""), place.own("ask", "")]));
    assert_eq!(place.crosspoint(&["workflow", "check", "w.toml"]).code, 0);
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    assert!(ran.code == 0 && ran.stderr.contains("Fine."), "{ran:?}");
}

/// They are stored with every step, and read again when the run is taken up.
#[test]
fn a_run_keeps_the_last_notes_of_a_stage_that_has_too_many() {
    let place = Place::new();
    let notes: Vec<String> = (0..3_000).map(|number| format!("note {number}")).collect();
    let notes: Vec<&str> = notes.iter().map(String::as_str).collect();
    place.replies("judge", &[noted("Fine.", "proceed", &notes)]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("judge", "judge", "")]), &place.repo());
    let run = server.ended(&id);
    let kept = run["outcome"]["outputs"]["notes"].as_array().expect("a list");
    assert_eq!((kept.len(), &kept[999]), (1_000, &serde_json::json!("note 2999")));
    assert!(kept[0].as_str().is_some_and(|note| note.starts_with("2001 earlier notes were left out")), "{}", kept[0]);
    assert_eq!(server.steps_of(&id)[0]["done"]["happened"]["said"]["notes"].as_array().map(Vec::len), Some(1_000));
}

#[test]
fn a_program_that_cannot_be_started_is_said_before_the_run_begins() {
    let place = Place::new();
    place.write("agents/plain", "#!/bin/sh\n");
    let agent = "[[agent]]\nname = \"a\"\nexec = [\"./agents/plain\"]\n".to_owned();
    place.write("w.toml", &workflow(&[stage("s", "a", ""), agent]));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    let (before, _) = ran.stderr.split_once("\nrun ").unwrap_or_else(|| panic!("{ran:?}"));
    assert!(before.contains("warning") && before.contains("w.toml:9:9") && before.contains("chmod +x"), "{ran:?}");
    let path = place.file("agents/plain");
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    assert!(!ran.stderr.contains("warning"), "{ran:?}");
}

#[test]
fn a_run_says_where_it_writes_and_no_more_of_this_command_than_is_news() {
    let place = Place::new();
    own(&place);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "./repo/."]);
    let root = place.repo();
    assert!(ran.stderr.starts_with(&format!("run {} in {}\n", id_of(&ran), root.display())), "{ran:?}");
    assert!(ran.stderr.ends_with("completed: 2 stage runs, 1 iteration, 1 file written\n"), "{ran:?}");
    let again = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert_eq!((again.code, &again.stderr), (0, &ran.stderr), "nothing is done");
    // Without programs it is news that the command does the work.
    place.write("crosspoint.toml", &place.configured("judge", ""));
    place.write("w.toml", &workflow(&[stage("judge", "judge", "")]));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("no server runs here") && first.len() <= 80, "{ran:?}");
    let again = place.crosspoint(&["workflow", "resume", &id_of(&ran)]);
    assert!(again.code == 0 && !again.stderr.contains("no server"), "{again:?}");
}

#[test]
fn a_run_is_shown_whole() {
    let place = Place::new();
    own(&place);
    let long = "n".repeat(1000);
    place.replies("judge", &[noted("Which?", "escalate", &["two\nfit", &long]), said("Fine.", "proceed")]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--dry-run", "--feature", "005-a"]);
    let id = id_of(&ran);
    assert!(ran.stderr.contains(&format!("run {id} in a copy of ")), "{ran:?}");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "the green one"]).code, 0);
    let resumed = place.crosspoint(&["workflow", "resume", &id]);
    assert!(resumed.stderr.ends_with("1 file would be written\n"), "{resumed:?}");
    let shown = place.crosspoint(&["workflow", "show", &id]);
    let root = place.repo().display().to_string();
    for part in ["workflow    own", "feature     005-a", &format!("root        {root}"), "dry run     "] {
        assert!(shown.stdout.contains(part), "{part:?} is not in {shown:?}");
    }
    for part in ["Which?\n    - two fit\n    - nnn", "nnn...\n", "answered\n    the green one\n", "+++ b/a.md"] {
        assert!(shown.stdout.contains(part), "{part:?} is not in {shown:?}");
    }
    assert!(shown.stdout.lines().all(|line| line.len() < 250), "{shown:?}");
}

#[test]
fn runs_are_listed_as_runs() {
    let place = Place::new();
    own(&place);
    let none = place.crosspoint(&["workflow", "list", "--data", "other"]);
    assert!(none.code == 2 && none.stderr.contains("go to the directory in which the run began"), "{none:?}");
    place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    let listed = place.crosspoint(&["workflow", "list"]);
    let head: Vec<&str> = listed.stdout.lines().next().unwrap_or_default().split_whitespace().collect();
    assert_eq!(head, ["ID", "STATE", "WORKFLOW", "FEATURE", "AGE", "NOTE"], "{listed:?}");
}

#[test]
fn an_agent_or_a_feature_that_a_server_does_not_know_is_a_mistake_of_the_file() {
    let place = Place::new();
    let server = place.server(&[place.configured("judge", "")]);
    place.write("w.toml", &workflow(&[stage("s", "jugde", "")]));
    let url = server.url();
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo", "--server", &url]);
    assert!(ran.code == 1 && ran.stderr.contains("w.toml:4:9") && ran.stderr.contains("jugde"), "{ran:?}");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(0));
}

/// An answer is given by an option, and its absence says by which.
#[test]
fn an_answer_without_its_option_gets_a_hint() {
    let place = Place::new();
    let empty = place.crosspoint(&["jobs", "answer", "00000000-0000-7000-8000-000000000000", "--text", " "]);
    assert!(empty.code == 2 && empty.stderr.contains("the answer is empty"), "{empty:?}");
    drop(place);
    let place = Place::new();
    let id = "0199d3a2-8b1e-7000-8000-0004b2c6d8e1";
    for (arguments, hints) in [
        (vec!["jobs", "answer", id], vec!["--text TEXT", "--input JSON"]),
        (vec!["jobs", "answer", id, "the", "green one"], vec!["--text 'the green one'"]),
        (vec!["jobs", "answer", id, "--input", "green"], vec!["not JSON", "--text"]),
    ] {
        let refused = place.crosspoint(&arguments);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(hints.iter().all(|hint| refused.stderr.contains(hint)), "{hints:?} are not in {refused:?}");
    }
}

/// A run that waits for its second question shows all that came before it, and asks that question alone.
#[test]
fn a_run_that_waits_again_is_shown_up_to_its_last_question() {
    let place = Place::new();
    place.replies("first", &[said("First?", "escalate"), said("One.", "proceed")]);
    place.replies("second", &[said("Second?", "escalate"), said("Two.", "proceed")]);
    let stages = [stage("one", "first", ""), stage("two", "second", "")].concat();
    place.write("w.toml", &workflow(&[stages, place.own("first", ""), place.own("second", "")]));
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    let id = id_of(&ran);
    assert!(ran.code == 3 && ran.stderr.contains("at the stage one:\n  First?"), "{ran:?}");
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "a"]).code, 0);
    for _ in 0..2 {
        let resumed = place.crosspoint(&["workflow", "resume", &id]);
        assert!(resumed.code == 3 && resumed.stderr.contains("at the stage two:\n  Second?"), "{resumed:?}");
        let shown: Vec<&str> = resumed.stderr.lines().filter_map(|line| line.split_whitespace().next()).collect();
        assert_eq!(shown.iter().filter(|word| ["one", "two"].contains(word)).count(), 4, "{resumed:?}");
    }
    assert_eq!(place.crosspoint(&["jobs", "answer", &id, "--text", "b"]).code, 0);
    assert_eq!(place.crosspoint(&["workflow", "resume", &id]).code, 0);
}

/// What an agent lost by a rule that it broke is said where its work is.
#[test]
fn a_rule_that_an_output_breaks_is_on_the_line_of_its_stage() {
    let place = Place::new();
    own(&place);
    place.prints("writer", br#"{"success": true, "summary": "Wrote.", "artefacts": [], "recommendation": "proceed"}"#);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    assert!(ran.code == 0 && ran.stderr.contains("proceed   (breaks WF-106) Wrote."), "{ran:?}");
    let shown = place.crosspoint(&["workflow", "show", &id_of(&ran)]);
    assert!(shown.stdout.contains("(breaks WF-106) Wrote."), "{shown:?}");
}

/// WF-10: a feature that was found is shown like one that was named, also while the run waits.
#[test]
fn a_feature_that_a_run_found_is_listed() {
    let place = Place::new();
    own(&place);
    let text = std::fs::read_to_string(place.file("own.toml")).expect("it is there");
    place.write("own.toml", &text.replace("name = \"own\"", "name = \"own\"\npaths = { spec = \"s/{feature}/a.md\" }"));
    place.replies("writer", &[wrote(&[("s/005-auth/a.md", "create", "a\n")])]);
    place.replies("judge", &[said("Which?", "escalate")]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    let listed = place.crosspoint(&["workflow", "list"]);
    assert!(ran.code == 3 && listed.stdout.contains(" 005-auth "), "{ran:?} {listed:?}");
    let feature = place.file(".crosspoint/workflows").join(id_of(&ran)).join("feature");
    assert_eq!(crate::support::workflow_place::mode_of(&feature), 0o600, "it says what the work is about");
}

#[test]
fn a_list_that_ends_early_says_how_it_goes_on() {
    let place = Place::new();
    own(&place);
    place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo"]);
    let first = place.crosspoint(&["workflow", "list", "--limit", "1"]);
    let before = first.stderr.rsplit(' ').next().expect("a word").trim();
    assert!(first.stderr.contains(&format!("--before {before}")), "{first:?}");
    let second = place.crosspoint(&["workflow", "list", "--limit", "1", "--before", before]);
    assert!(second.code == 0 && second.stdout.contains("own"), "{second:?}");
    assert_ne!(second.stdout, first.stdout);
}

/// Programs are started in the root, and only the first part of `exec` is meant from the directory of the file.
#[test]
fn an_argument_that_is_beside_the_file_and_not_in_the_root_is_a_warning() {
    let place = Place::new();
    place.write("clerk.py", "print()\n");
    let agent = "[[agent]]\nname = \"a\"\nexec = [\"python3\", \"clerk.py\"]\n".to_owned();
    place.write("w.toml", &workflow(&[stage("s", "a", ""), agent]));
    let here = place.crosspoint(&["workflow", "check", "w.toml"]);
    assert_eq!((here.code, here.stdout.contains("warning"), here.stderr.as_str()), (0, false, ""), "{here:?}");
    let ran = place.crosspoint(&["workflow", "run", "w.toml", "--root", "repo"]);
    assert!(ran.stderr.contains("warning") && ran.stderr.contains("clerk.py is beside the workflow file"), "{ran:?}");
}
