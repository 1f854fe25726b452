//! A run at a terminal: a real one, made by a program for that.

use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::server::until;
use crate::support::workflow_place::{Place, noted, said, stage, workflow};

/// Starts the run of `w.toml` at a terminal.
fn at_terminal(place: &Place) -> Child {
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    // The shell is replaced, so that the exit code and the signals are those of the program.
    let line = format!("stty cols 120; exec '{}' workflow run w.toml --root repo", program.display());
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]).current_dir(place.path()).env("TERM", "xterm");
    script.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_RUNTIME_DIR");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
}

/// Reads what the terminal shows up to these words.
fn shown_up_to(screen: &mut ChildStdout, words: &str) -> String {
    let (mut shown, mut bytes) = (String::new(), [0; 4096]);
    while !shown.contains(words) {
        let count = screen.read(&mut bytes).expect("it can be read");
        assert!(count > 0, "it ended: {shown}");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    shown
}

/// Writes a workflow of one stage that asks.
fn asking(place: &Place) {
    place.replies("judge", &[noted("Which colour?", "escalate", &["two fit"]), said("Fine.", "proceed")]);
    place.write("w.toml", &workflow(&[stage("judge", "judge", ""), place.own("judge", "")]));
}

/// What a question ends with.
const PROMPT: &str = "ends the run\r\n> ";

/// Runs a workflow of one stage at a terminal at which this is typed when the question is there. Returns the exit code
/// and what the terminal got.
fn typed(place: &Place, typed: &str) -> (i32, String) {
    asking(place);
    let mut script = at_terminal(place);
    let mut keys = script.stdin.take().expect("a pipe");
    let mut screen = script.stdout.take().expect("a pipe");
    let mut shown = shown_up_to(&mut screen, PROMPT);
    keys.write_all(typed.as_bytes()).expect("it reads");
    drop(keys);
    screen.read_to_string(&mut shown).expect("it can be read");
    (script.wait().expect("it ends").code().expect("it exits"), shown)
}

#[test]
fn a_person_is_asked_at_the_terminal_and_the_run_goes_on() {
    let place = Place::new();
    let (code, said) = typed(&place, "green\n");
    assert_eq!(code, 0, "{said}");
    for shown in ["? Which colour?", "- two fit", ":cancel ends the run", "Fine."] {
        assert!(said.contains(shown), "{shown:?} is not in {said}");
    }
    assert_eq!(place.seen("judge")[1]["task"]["params"]["answers"][0]["answer"], json!("green"));
}

/// The question is no longer one at once, and not only when the run asks again.
#[test]
fn a_question_that_is_answered_elsewhere_is_no_longer_asked() {
    let place = Place::new();
    asking(&place);
    let mut script = at_terminal(&place);
    let keys = script.stdin.take().expect("a pipe");
    let mut screen = script.stdout.take().expect("a pipe");
    let mut shown = shown_up_to(&mut screen, PROMPT);
    let listed = place.crosspoint(&["workflow", "list", "--json"]).stdout;
    let run: Value = serde_json::from_str(listed.lines().next().expect("a run")).expect("it is JSON");
    let id = run["id"].as_str().expect("an id");
    assert_eq!(place.crosspoint(&["jobs", "answer", id, "--text", "green"]).code, 0);
    screen.read_to_string(&mut shown).expect("it can be read");
    drop(keys);
    assert_eq!(script.wait().expect("it ends").code(), Some(0), "{shown}");
    let after = shown.split(PROMPT).nth(1).expect("what follows the question");
    assert!(after.trim_start().starts_with("answered elsewhere"), "{after:?}");
}

#[test]
fn an_empty_line_leaves_the_question_for_later() {
    let place = Place::new();
    let (code, said) = typed(&place, "\n");
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("crosspoint jobs answer"), "{said}");
    assert_eq!(said.matches("? Which colour?").count() + said.matches("  Which colour?").count(), 1, "{said}");
    assert_eq!(place.seen("judge").len(), 1);
}

#[test]
fn a_run_can_be_cancelled_at_the_terminal() {
    let place = Place::new();
    let (code, said) = typed(&place, ":cancel\n");
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("was cancelled") && !said.contains("error"), "the person wanted it so: {said}");
    assert_eq!(place.seen("judge").len(), 1);
}

/// A word that was meant as a command is no answer.
#[test]
fn an_unknown_command_is_said_and_the_question_stays() {
    let place = Place::new();
    let (code, said) = typed(&place, ":cancle\ngreen\n");
    assert_eq!(code, 0, "{said}");
    assert!(said.contains(":cancle is no command"), "{said}");
    assert_eq!(place.seen("judge")[1]["task"]["params"]["answers"][0]["answer"], json!("green"));
}

/// What is typed while a stage runs cannot be meant as the answer to a question that was not shown.
#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let place = Place::new();
    let held = "cat > /dev/null; until [ -e \"$PLACE/go\" ]; do sleep 0.02; done; cat \"$PLACE/judge.reply\"";
    place.replies("judge", &[said("Which colour?", "escalate")]);
    place.write("w.toml", &workflow(&[stage("judge", "judge", ""), place.own_script("judge", held, "")]));
    let mut script = at_terminal(&place);
    let mut keys = script.stdin.take().expect("a pipe");
    let mut screen = script.stdout.take().expect("a pipe");
    shown_up_to(&mut screen, "runs");
    keys.write_all(b"yes\nno\n").expect("it reads");
    // The terminal shows what is typed, so that it has it by now.
    shown_up_to(&mut screen, "no\r\n");
    place.write("agents/go", "");
    shown_up_to(&mut screen, PROMPT);
    // Two lines at once: the first is the answer, and the second none to the next question.
    keys.write_all(b"green\nblue\n").expect("it reads");
    shown_up_to(&mut screen, PROMPT);
    drop(keys);
    let mut rest = String::new();
    screen.read_to_string(&mut rest).expect("it can be read");
    assert_eq!(script.wait().expect("it ends").code(), Some(3), "{rest}");
    let listed = place.crosspoint(&["workflow", "list", "--json"]);
    let run: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"));
    let shown = place.crosspoint(&["workflow", "show", run["id"].as_str().expect("an id")]);
    assert_eq!(shown.stdout.matches("answered").count(), 1, "{shown:?}");
    assert!(shown.stdout.contains("answered\n    green\n"), "{shown:?}");
}

/// The second stage ends when the terminal has shown it, so that nothing depends on how fast it is drawn.
#[test]
fn the_stages_are_a_tree_that_moves_with_the_run() {
    let place = Place::new();
    place.replies("first", &[noted("Good.", "proceed", &["one", "two"])]);
    let held = "cat > /dev/null; until [ -e \"$PLACE/go\" ]; do sleep 0.02; done; cat \"$PLACE/second.reply\"";
    place.replies("second", &[said("Held.", "proceed")]);
    let stages = [stage("begin", "first", ""), stage("hold", "second", ""), stage("finish", "first", "")];
    place.write("w.toml", &workflow(&[stages.concat(), place.own("first", ""), place.own_script("second", held, "")]));
    let mut script = at_terminal(&place);
    let mut screen = script.stdout.take().expect("a pipe");
    let mut shown = shown_up_to(&mut screen, "|- hold    #1");
    for drawn in ["specify, iteration 1", "|- begin   #1 ", "proceed   2 notes", "runs", "`- finish"] {
        assert!(shown.contains(drawn), "{drawn:?} is not in {shown}");
    }
    place.write("agents/go", "");
    screen.read_to_string(&mut shown).expect("it can be read");
    assert!(script.wait().expect("it ends").success(), "{shown}");
    // The tree is taken back at the end: its four lines are cleared, and nothing is drawn any more. The steps stay.
    let after = shown.rsplit_once("`- finish").expect("it was drawn").1;
    assert_eq!(after.matches("\u{1b}[2K").count(), 4, "{after:?}");
}

/// The command ends although nobody ends the line that it reads. The run is kept.
#[test]
fn an_interrupt_at_the_question_ends_the_command_without_a_line() {
    let place = Place::new();
    asking(&place);
    let mut script = at_terminal(&place);
    // Open until the end: the terminal would take its end for the end of the line.
    let mut keys = script.stdin.take().expect("a pipe");
    let mut screen = script.stdout.take().expect("a pipe");
    shown_up_to(&mut screen, PROMPT);
    // Ctrl-C.
    keys.write_all(b"\x03").expect("it reads");
    let status = until("the command ends", || script.try_wait().expect("it can be asked"));
    drop(keys);
    let mut said = String::new();
    screen.read_to_string(&mut said).expect("it can be read");
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(said.contains("\r\nthe run is kept; it goes on with crosspoint workflow resume"), "{said}");
    let listed = place.crosspoint(&["workflow", "list", "--json"]);
    let run: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"));
    assert_eq!(run["state"], "waiting", "{run}");
}
