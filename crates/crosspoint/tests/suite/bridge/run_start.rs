//! How `crosspoint bridge run` begins: with what it finds, in one line that says so, and in its directories.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::bridge::run::{asking, request};
use crate::support::bridge_directory::{Directory, PRINTED_ID, REQUEST, id, success};
use crate::support::bridge_run::{COUNTS, Ran, signal};
use crate::support::bridge_watcher::Watcher;
use crate::support::programs::bash;
use crate::support::server::{Server, until};

const OTHER: &str = "00000007-0000-4000-8000-000000000000";

/// The lines of the driver itself, without those about jobs and answers.
fn beginning(ran: &Ran) -> Vec<&str> {
    ran.stderr.lines().filter(|line| !line.contains(": job ") && !line.contains(" answered after ")).collect()
}

/// BRIDGE-4.6
#[test]
fn a_request_that_no_record_knows_is_set_aside_and_the_program_starts_fresh() {
    let place = asking("", &request(PRINTED_ID, "echo").to_string());
    let old = request(OTHER, "echo").to_string();
    place.write(".agent-request.json", &old);
    place.write(".agent-request-phase3.json", "{ not even JSON");
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(place.lines("calls"), ["", "--resume"], "it begins at its beginning");
    assert_eq!(place.json("answer-0")["request_id"], PRINTED_ID, "and is answered what it asks itself");
    assert_eq!(place.bridge_files(), [".agent-request-phase3.json.stale-1", ".agent-request.json.stale-1"]);
    assert_eq!(place.read(".agent-request.json.stale-1"), old, "kept as it was");
    assert_eq!(place.read(".agent-request-phase3.json.stale-1"), "{ not even JSON");
    let said = beginning(&ran);
    assert!(
        said[0].contains(".agent-request.json is kept as .agent-request.json.stale-1")
            && said[0].contains("BRIDGE-4.6")
            && said[0].ends_with("the program is started from the beginning"),
        "{ran:?}"
    );
    // A second one does not replace the first.
    place.write(".agent-request.json", &request(OTHER, "nobody").to_string());
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(place.read(".agent-request.json.stale-1"), old);
    assert!(place.has(".agent-request.json.stale-2"));
}

/// BRIDGE-4.6: the message shows the command, and a shell can run it as it is shown.
#[test]
fn the_command_that_is_shown_has_the_request_answered() {
    let place = Directory::configured(COUNTS);
    let odd = "it's $HOME; \"x\" * \u{fc} \n";
    place.script(
        "takes",
        "#!/bin/bash\nprintf '%s\\0' \"$@\" >> calls\n[ -e .agent-response.json ] && mv .agent-response.json answer-0\nexit 0\n",
    );
    place.write(".agent-request.json", &request(PRINTED_ID, "counts").to_string());
    let ran = place.run(&["--max-iterations", "7"], &["./takes", odd, "--", ""]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!place.has("ran"), "nothing was asked of an agent");
    let shown = ran.stderr.lines().find_map(|line| line.strip_prefix("to have it answered instead: "));
    let shown = shown.expect("a command is shown").to_owned();
    assert!(shown.contains("/crosspoint bridge run --max-iterations 7 --resume -- ./takes "), "{shown}");
    let mut pasted = Command::new("bash");
    pasted.args(["-c", &shown]).current_dir(place.path()).env_remove("CROSSPOINT_SERVER").env_remove("HOME");
    let pasted: Ran = pasted.env("NO_COLOR", "1").output().expect("it starts").into();
    assert_eq!(pasted.code, 0, "{pasted:?}");
    assert!(pasted.stderr.contains(".agent-request.json.stale-1 is .agent-request.json again"), "{pasted:?}");
    assert!(pasted.stderr.contains("it is answered now, and then the program is resumed"), "{pasted:?}");
    assert_eq!((&place.json("answer-0")["request_id"], place.lines("ran").len()), (&json!(PRINTED_ID), 1));
    assert_eq!(place.read("calls"), format!("{odd}\0--\0\0{odd}\0--\0\0--resume\0"), "the very same words");
    assert_eq!(place.bridge_files(), [""; 0]);
    // There is nothing left to answer.
    let again = place.run(&["--resume"], &["./takes"]);
    assert_eq!(
        beginning(&again),
        ["no request is there that could be answered: the program is started from the beginning"]
    );
}

/// BRIDGE-4.6: a watcher has no program of its own, and so no request is foreign to it.
#[test]
fn a_watcher_answers_every_request_that_it_finds() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    for (number, file) in [(1, REQUEST), (5, ".agent-request-phase5.json")] {
        inbox.leave(file, &crate::support::bridge_caller::request(&id(number), "echo", "old"));
    }
    let _watcher = Watcher::of(&server, &home, &[&inbox]);
    assert_eq!(inbox.response_to(&id(1))["status"], "success");
    assert_eq!(inbox.response_in(".agent-response-phase5.json", &id(5))["status"], "success");
    inbox.holds_only(&[".agent-response-phase5.json", ".agent-response.json"]);
}

/// What a watcher handed in before it was killed is recorded, and not this program's to throw away.
#[test]
fn what_a_record_of_a_watcher_knows_is_answered_and_the_rest_is_set_aside() {
    let place = asking("", &request(PRINTED_ID, "echo").to_string());
    let noted = json!({"file": ".agent-request.json", "request_id": PRINTED_ID, "digest": null, "store": null});
    place.write(".agent-bridge.json", &json!({"crosspoint": 1, "command": null, "requests": [noted]}).to_string());
    place.write(".agent-request.json", &request(PRINTED_ID, "echo").to_string());
    place.write(".agent-request-phase2.json", &request(OTHER, "echo").to_string());
    let ran = place.run(&[], &["./asks"]);
    assert_eq!((ran.code, place.lines("calls")), (0, vec!["--resume".to_owned()]), "{ran:?}");
    assert_eq!(place.bridge_files(), [".agent-request-phase2.json.stale-1"]);
}

fn response(id: &str) -> Value {
    success(id, "old")
}

/// BRIDGE-4.2 with the names of a phase.
#[test]
fn responses_in_the_way_are_set_aside_under_the_names_of_their_phases() {
    for stale in [response(OTHER).to_string(), "{".to_owned()] {
        let place = Directory::configured("");
        place.write("ask", &request(PRINTED_ID, "echo").to_string());
        place.write(".agent-response-phase4.json", &stale);
        let script =
            "echo \"$0\" >> calls; [ \"$0\" = --resume ] && exit 0; cp ask .agent-request-phase4.json; exit 42";
        let ran = place.run(&[], &["bash", "-c", script]);
        assert_eq!((ran.code, place.lines("calls")), (0, vec!["bash".to_owned(), "--resume".to_owned()]), "{ran:?}");
        assert_eq!(place.bridge_files(), [".agent-response-phase4.json", ".agent-response-phase4.json.stale-1"]);
        assert_eq!(place.read(".agent-response-phase4.json.stale-1"), stale);
        assert_eq!(place.json(".agent-response-phase4.json")["request_id"], PRINTED_ID);
        assert!(ran.stderr.contains(".agent-response-phase4.json.stale-1"), "{ran:?}");
    }
}

/// BRIDGE-4.4: a response that is not the recorded answer stays until a request is to be answered.
#[test]
fn a_response_that_is_not_the_recorded_answer_is_not_resumed_with() {
    for file in [".agent-response.json", ".agent-response-phase6.json"] {
        let request_file = file.replace("response", "request");
        let place = Directory::configured("");
        place.write("ask", &request(PRINTED_ID, "echo").to_string());
        let script = format!(
            "#!/bin/bash\necho \"$*\" >> calls\ncp {file} seen-$(wc -l < calls)\n[ -e twice ] && exit 0\n\
             if [ \"$1\" = --resume ]; then touch twice; kill -9 $$; fi\ncp ask {request_file}; exit 42\n"
        );
        place.script("asks", &script);
        assert_eq!(place.run(&[], &["./asks"]).code, 137);
        let own = place.read(file);
        place.write(file, &response(OTHER).to_string());
        let ran = place.run(&[], &["./asks"]);
        assert_eq!((ran.code, place.lines("calls").last().map(String::as_str)), (0, Some("")), "{ran:?}");
        let said = beginning(&ran);
        assert!(said.len() == 1 && said[0].contains("BRIDGE-4.4") && said[0].contains("from the beginning"), "{ran:?}");
        assert_eq!(place.read("seen-3"), response(OTHER).to_string(), "it waits where it is");
        // The recorded answer is resumed with at once, and no server is needed.
        fs::remove_file(place.file("twice")).expect("it is there");
        fs::remove_file(place.file(file)).expect("it is there");
        assert_eq!(place.run(&[], &["./asks"]).code, 137);
        assert_eq!(place.json(file)["request_id"], serde_json::from_str::<Value>(&own).expect("JSON")["request_id"]);
        let ran = place.run(&["--server", "http://127.0.0.1:1"], &["./asks"]);
        assert_eq!((ran.code, place.lines("calls").last().map(String::as_str)), (0, Some("--resume")), "{ran:?}");
        assert_eq!(
            beginning(&ran),
            ["the last run left an answer that the program has not taken: the program is resumed with it"]
        );
    }
}

/// Waits at its start while there is a file `stop-start`, and is then the program that asks.
const WAITS: &str = r#"#!/bin/bash
if [ -e stop-start ]; then
    echo $$ > at-start
    until [ -e go-start ]; do sleep 0.01; done
fi
exec ./asks "$@"
"#;

/// SIGKILL of the driver in the first run, before anything is asked.
#[test]
fn after_a_kill_before_the_first_question_it_starts_afresh_and_says_so() {
    for victim in ["driver", "program"] {
        let place = Directory::configured(COUNTS);
        place.script("waits", WAITS);
        place.write("stop-start", "");
        let command = ["./waits", "1", "counts"];
        let driver = place.begin(&[], &command);
        let program = until("it runs", || place.lines("at-start").first().and_then(|pid| pid.parse::<u32>().ok()));
        signal(if victim == "driver" { driver.id() } else { program }, "KILL");
        let ran: Ran = driver.wait_with_output().expect("it ends").into();
        assert!([-9, 137].contains(&ran.code), "{ran:?}");
        fs::remove_file(place.file("stop-start")).expect("it is there");
        let ran = place.run(&[], &command);
        assert_eq!(
            beginning(&ran),
            ["the last run ended before the program had asked anything: the program is started from the beginning"],
            "{victim}"
        );
        assert_eq!((ran.code, place.lines("calls")), (0, vec!["1 counts".to_owned(), "1 counts --resume".to_owned()]));
        place.is_answered(1);
        assert_eq!(place.bridge_files(), [""; 0]);
        // A run that was not cut short says nothing.
        assert_eq!(beginning(&place.run(&[], &["true"])), [""; 0]);
    }
}

/// SIGKILL of the driver while an agent works, and of the program while it goes on.
#[test]
fn after_a_kill_in_between_it_goes_on_and_says_how() {
    let place = Directory::configured(&bash("waits", "echo >> ran; until [ -e go ]; do sleep 0.01; done; cat", ""));
    place.script("waits", WAITS);
    let command = ["./waits", "1", "waits"];
    let mut driver = place.begin(&[], &command);
    place.until_there("ran");
    driver.kill().expect("it can be killed");
    driver.wait().expect("it ends");
    place.write("go", "");
    place.write("stop-start", "");
    let driver = place.begin(&[], &command);
    let program = until("it is resumed", || place.lines("at-start").first().and_then(|pid| pid.parse::<u32>().ok()));
    assert_eq!(place.lines("calls"), ["1 waits"], "the request was answered before it ran again");
    signal(program, "KILL");
    let ran: Ran = driver.wait_with_output().expect("it ends").into();
    assert_eq!(ran.code, 137, "{ran:?}");
    assert_eq!(
        beginning(&ran)[0],
        ".agent-request.json was left unanswered: it is answered now, and then the program is resumed"
    );
    fs::remove_file(place.file("stop-start")).expect("it is there");
    let ran = place.run(&[], &command);
    assert_eq!(
        (ran.code, beginning(&ran)),
        (0, vec!["the last run left an answer that the program has not taken: the program is resumed with it"])
    );
    assert_eq!(place.lines("calls"), ["1 waits", "1 waits --resume"]);
    place.is_answered(1);
    assert_eq!(place.bridge_files(), [""; 0]);
}

/// The program has taken its answer, and is killed after that.
#[test]
fn after_a_kill_of_a_program_that_took_its_answer_it_is_resumed() {
    let place = asking(COUNTS, &request(PRINTED_ID, "counts").to_string());
    let script = "#!/bin/bash\necho \"$*\" >> calls\n[ \"$1\" = --resume ] || { cp ask .agent-request.json; exit 42; }\n\
                  [ -e answer-0 ] && exit 0\nmv .agent-response.json answer-0; kill -9 $$\n";
    place.script("asks", script);
    assert_eq!(place.run(&[], &["./asks"]).code, 137);
    let ran = place.run(&[], &["./asks"]);
    let said = "the last run was cut short after the program had taken its answer: the program is resumed";
    assert_eq!((ran.code, beginning(&ran)), (0, vec![said]));
    assert_eq!(
        (place.lines("calls"), place.lines("ran").len()),
        (vec![String::new(), "--resume".to_owned(), "--resume".to_owned()], 1)
    );
}

/// SIGKILL of the server: the driver cannot go on for long, and the next one takes the same job up.
#[test]
fn after_a_kill_of_the_server_the_request_that_was_left_is_answered() {
    let mut server = Server::configured(&bash("works", "echo >> ran; until [ -e go ]; do sleep 0.01; done; cat", ""));
    let place = Directory::configured("");
    let command = ["./asks", "1", "works"];
    let mut driver = place.begin(&["--server", &server.url()], &command);
    until("the agent works", || server.directory().join("ran").exists().then_some(()));
    server.kill();
    driver.kill().expect("it can be killed");
    driver.wait().expect("it ends");
    fs::write(server.directory().join("go"), "").expect("it can be written");
    server.restart();
    let ran = place.run(&["--server", &server.url()], &command);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(
        beginning(&ran),
        [".agent-request.json was left unanswered: it is answered now, and then the program is resumed"]
    );
    place.is_answered(1);
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1), "it is the same job");
}

/// The program runs in one directory, and its files of the bridge are in another.
#[test]
fn a_program_may_run_elsewhere_than_where_its_files_are() {
    let place = Directory::configured("");
    for name in ["files", "work", "other"] {
        fs::create_dir(place.file(name)).expect("it can be made");
    }
    place.write("files/ask", &request(PRINTED_ID, "echo").to_string());
    let script = "#!/bin/bash\npwd -P >> called-in\n\
        if [ \"$1\" = --resume ]; then mv \"$CROSSPOINT_BRIDGE_DIR/.agent-response.json\" answer; exit 0; fi\n\
        cp ../files/ask ../files/.agent-request.json; exit 42\n";
    place.script("work/only-there", script);
    let ran = place.run(&["--dir", "files", "--cwd", "work"], &["./only-there"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let work = place.file("work").canonicalize().expect("it is there").display().to_string();
    assert_eq!(place.lines("work/called-in"), [work.clone(), work]);
    assert_eq!(place.json("work/answer")["request_id"], PRINTED_ID);
    // A program that is meant from where the command was typed is found there.
    place.script("here", "#!/bin/bash\ntouch ran-here\n");
    assert_eq!(place.run(&["--dir", "files", "--cwd", "work"], &["./here"]).code, 0);
    assert!(place.has("work/ran-here"));
    // By default it runs where its files are.
    assert_eq!(place.run(&["--dir", "other"], &["./here"]).code, 0);
    assert!(place.has("other/ran-here"));
    // With --cwd alone, the files are here.
    place.script(
        "asks-here",
        "#!/bin/bash\n[ \"$1\" = --resume ] && exit 0\ncp ../files/ask ../.agent-request.json; exit 42\n",
    );
    assert_eq!(place.run(&["--cwd", "work"], &["./asks-here"]).code, 0);
    assert_eq!(place.bridge_files(), [".agent-response.json"]);
}

#[test]
fn a_directory_to_run_in_that_is_not_there_is_said_before_anything_is_done() {
    let place = Directory::configured("");
    place.write("a-file", "");
    for (cwd, why) in [("nowhere", "nowhere is not there"), ("a-file", "a-file is not a directory")] {
        let ran = place.run(&["--cwd", cwd], &["./asks", "1", "echo"]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.stderr.contains(&format!("error: --cwd: {why}")) && ran.stderr.contains("hint: "), "{ran:?}");
    }
    assert!(!place.has("calls") && place.bridge_files().is_empty());
    fs::create_dir(place.file("work")).expect("it can be made");
    let ran = place.run(&["--cwd", "work"], &["bash", "-c", "exit 42"]);
    assert!(ran.code == 1 && ran.stderr.contains("the directory of --dir"), "{ran:?}");
}

/// `crosspoint bridge ask` finds the driver's directory by itself.
#[test]
fn questions_of_a_program_that_runs_elsewhere_reach_its_driver() {
    let place = Directory::configured("");
    fs::create_dir(place.file("files")).expect("it can be made");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint").display().to_string();
    let script = format!("#!/bin/bash\n'{program}' bridge ask echo --prompt one > said || exit\nls -A > there\n");
    place.script("asks", &script);
    let ran = place.run(&["--dir", "files", "--cwd", "."], &["./asks"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(place.read("said").contains("one"), "{ran:?}");
    assert_eq!(place.bridge_files(), [""; 0], "nothing of the bridge was where it ran");
    // The same words elsewhere are another command.
    assert_eq!(
        place
            .run(
                &["--dir", "files", "--cwd", "."],
                &["bash", "-c", "cp no-such 2> here; touch files/.agent-request.json; exit 42"]
            )
            .code,
        1
    );
    fs::create_dir(place.file("elsewhere")).expect("it can be made");
    let other = place.run(
        &["--dir", "files", "--cwd", "elsewhere"],
        &["bash", "-c", "cp no-such 2> here; touch files/.agent-request.json; exit 42"],
    );
    assert!(other.code == 2 && other.stderr.contains("another command"), "{other:?}");
}
