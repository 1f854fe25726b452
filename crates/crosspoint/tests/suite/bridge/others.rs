//! Files of another command, answers to another document, content that must not be shown, and unreadable files.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::bridge_caller;
use crate::support::bridge_directory::{Directory, PRINTED_ID, REQUEST, RESPONSE, id};
use crate::support::bridge_run::COUNTS;
use crate::support::bridge_watcher::{Watcher, prompt_of, watch};
use crate::support::programs::bash;
use crate::support::server::Server;

fn request(agent: &str, prompt: &str) -> Value {
    bridge_caller::request(PRINTED_ID, agent, prompt)
}

/// The other command was told that everything is kept, and it is.
#[test]
fn what_another_command_has_so_far_is_not_taken_from_it() {
    let directory = Directory::temporary();
    directory.write("crosspoint.toml", COUNTS);
    let script =
        "one=$(crosspoint bridge ask counts --prompt one) || exit; [ -e go ] || kill -9 $$; printf %s \"$one\"";
    let command = ["bridge", "run", "--", "sh", "-c", script];
    assert_eq!(directory.run_crosspoint(&command).code, 137);
    let kept = directory.bridge_files();
    assert_eq!(kept, [".agent-answers", ".agent-bridge.json"]);
    let other = directory.run_crosspoint(&["bridge", "run", "--", "sh", "-c", "touch ran-at-all"]);
    assert_eq!((other.code, directory.has("ran-at-all")), (2, false), "{other:?}");
    assert!(
        other.stderr.contains("another command") && other.stderr.contains("remove .agent-bridge.json"),
        "{other:?}"
    );
    assert_eq!(directory.bridge_files(), kept);
    directory.write("go", "");
    let ended = directory.run_crosspoint(&command);
    assert_eq!((ended.code, ended.stdout.contains("one")), (0, true), "{ended:?}");
    assert_eq!(directory.read("ran").lines().count(), 1, "nothing is done twice");
    // Files of a finished run do not block a new one.
    assert_eq!(directory.run_crosspoint(&["bridge", "run", "--", "true"]).code, 0);
}

/// Standard error is often a log.
#[test]
fn what_is_wrong_with_a_document_is_said_without_its_words() {
    let place = Directory::configured("");
    let mut secret = request("echo", "SECRET");
    for (name, value) in [("version", json!("SECRET")), ("phase", json!("SECRET")), ("context", json!(["SECRET"]))] {
        secret[name] = value;
    }
    let broken =
        ["{\"prompt\": \"SECRET\", SECRET".to_owned(), json!({"prompt": "SECRET"}).to_string(), secret.to_string()];
    for text in &broken {
        place.write(".agent-request.json", text);
        let ran = place.run(&["--resume"], &["true"]);
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.stderr.contains(".agent-request.json:1:") && !ran.stderr.contains("SECRET"), "{ran:?}");
    }
    let directory = Directory::temporary();
    directory.ask(&["agent", "--prompt", "What?"]);
    directory.remove(".agent-request.json");
    for text in &broken {
        directory.write(".agent-response.json", text);
        let ended = directory.ask(&["agent", "--prompt", "What?"]);
        assert_eq!(ended.code, 2, "{ended:?}");
        assert!(ended.stderr.contains(".agent-response.json:1:") && !ended.stderr.contains("SECRET"), "{ended:?}");
    }
}

/// ALL-1: the same id with other words is another request. The answer to the first is not given to the second.
#[test]
fn other_words_under_the_same_id_are_not_given_the_first_answer() {
    let place = Directory::configured(COUNTS);
    place.write("first", &request("counts", "first").to_string());
    place.write("second", &request("counts", "second").to_string());
    // The first answer is not taken.
    let script = "#!/bin/bash\n\
        if [ ! -e asked-1 ]; then touch asked-1; cp first .agent-request.json; exit 42; fi\n\
        if [ ! -e asked-2 ]; then touch asked-2; cp second .agent-request.json; exit 42; fi\n\
        mv .agent-response.json answer-0\n";
    place.script("asks", script);
    let ran = place.run(&[], &["./asks"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let (answer, first) = (place.json("answer-0"), place.json(".agent-response.json.stale-1"));
    assert_eq!((&answer["request_id"], &answer["error_type"]), (&json!(PRINTED_ID), &json!("request_conflict")));
    assert_eq!(prompt_of(&first), "first");
    assert!(ran.stderr.contains("kept as .agent-response.json.stale-1"), "{ran:?}");
    assert_eq!(place.bridge_files(), [".agent-response.json.stale-1"]);
    assert_eq!(place.lines("ran").len(), 1);
}

/// Only other words make it another request.
#[test]
fn the_same_words_under_the_same_id_are_answered_by_what_is_there() {
    let place = Directory::configured(COUNTS);
    place.write("first", &request("counts", "first").to_string());
    let mut second = request("counts", "first");
    second["created_at"] = json!(jiff::Timestamp::now().to_string());
    second["timeout_seconds"] = json!(90);
    place.write("second", &format!("{second:#}"));
    let script = "#!/bin/bash\n\
        if [ ! -e asked-1 ]; then touch asked-1; cp first .agent-request.json; exit 42; fi\n\
        if [ ! -e asked-2 ]; then touch asked-2; cp second .agent-request.json; exit 42; fi\n\
        mv .agent-response.json answer-0\n";
    place.script("asks", script);
    assert_eq!(place.run(&[], &["./asks"]).code, 0);
    assert_eq!(prompt_of(&place.json("answer-0")), "first");
    assert_eq!((place.bridge_files(), place.lines("ran").len()), (vec![], 1));
}

/// The driver dies between two steps of noting the second request: the next driver does not take the first answer for
/// the second's either.
#[test]
fn a_driver_that_is_killed_while_it_notes_other_words_leaves_no_wrong_answer() {
    for step in ["record.renamed", "driver.claimed"] {
        let place = Directory::configured(COUNTS);
        place.write(".agent-request.json", &request("counts", "first").to_string());
        // The driver that answers is killed before the request is removed.
        let killed = |step: &str| {
            place.driver(&["--resume"], &["true"]).env("CROSSPOINT_FAILPOINT", step).status().expect("it starts")
        };
        assert!(!killed("driver.responded").success());
        place.write(".agent-request.json", &request("counts", "second").to_string());
        assert!(!killed(step).success(), "{step}");
        let ran = place.run(&["--resume"], &["true"]);
        assert_eq!(prompt_of(&place.json(".agent-response.json.stale-1")), "first", "{step}: {ran:?}");
        assert_eq!(place.json(".agent-response.json")["error_type"], "request_conflict", "{step}: {ran:?}");
    }
}

#[test]
fn a_request_that_is_rewritten_while_it_is_under_way_is_not_given_the_first_answer() {
    let home = Directory::temporary();
    let go = home.file("go");
    let wait = format!("read -r line; until [ -e {} ]; do sleep 0.02; done; echo \"$line\"", go.display());
    let server = Server::configured(&bash("waits", &wait, ""));
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    inbox.leave(REQUEST, &request("waits", "first"));
    watcher.says("agent=waits handed in");
    inbox.leave(REQUEST, &request("waits", "second"));
    assert_eq!(inbox.response_to(PRINTED_ID)["error_type"], "request_conflict");
    fs::write(go, "").expect("it can be written");
    inbox.holds_only(&[RESPONSE]);
    assert_eq!(inbox.response_to(PRINTED_ID)["error_type"], "request_conflict", "the first answer is nobody's");
}

#[test]
fn a_response_that_was_not_taken_is_not_given_to_other_words_that_come_later() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    inbox.leave(REQUEST, &request("echo", "first"));
    assert_eq!(prompt_of(&inbox.response_to(PRINTED_ID)), "first");
    inbox.holds_only(&[RESPONSE]);
    // The same request once more gets the response that is already there.
    inbox.leave(REQUEST, &request("echo", "first"));
    watcher.says("its response is there already");
    inbox.holds_only(&[RESPONSE]);
    inbox.leave(REQUEST, &request("echo", "second"));
    watcher.says("set aside as .agent-response.json.stale-1");
    inbox.holds_only(&[RESPONSE, ".agent-response.json.stale-1"]);
    assert_eq!(inbox.response_to(PRINTED_ID)["error_type"], "request_conflict");
}

/// BRIDGE-8: the server may accept less than other programs, and it does not read the id of a request that is too
/// large.
#[test]
fn a_request_that_is_too_large_for_the_server_is_answered_so() {
    let server = Server::configured("[limits]\nbody_bytes = 2000\n");
    let large = request("echo", &"x".repeat(3_000));
    let place = Directory::configured("");
    place.write(".agent-request.json", &large.to_string());
    let ran = place.run(&["--resume", "--server", &server.url()], &["true"]);
    assert_eq!(place.json(".agent-response.json")["error_type"], "RequestTooLarge", "{ran:?}");
    assert_eq!(place.json(".agent-response.json")["request_id"], PRINTED_ID);
    let home = Directory::temporary();
    let inbox = home.make("inbox");
    let _watcher = Watcher::of(&server, &home, &[&inbox]);
    inbox.leave(REQUEST, &large);
    assert_eq!(inbox.response_to(PRINTED_ID)["error_type"], "RequestTooLarge");
}

/// A file of another user that cannot be read is moved out of the way, like anything else that is not an answer.
#[test]
fn a_file_that_may_not_be_read_holds_no_other_request_up() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    fs::set_permissions(inbox.path(), fs::Permissions::from_mode(0o777)).expect("it is ours");
    let theirs = |name: &str, text: &str| {
        fs::write(inbox.file(name), text).expect("it can be written");
        fs::set_permissions(inbox.file(name), fs::Permissions::from_mode(0o000)).expect("it is ours");
    };
    let open = |file: &str, number: usize, prompt: &str| {
        inbox.leave(file, &bridge_caller::request(&id(number), "echo", prompt));
        fs::set_permissions(inbox.file(file), fs::Permissions::from_mode(0o644)).expect("it is ours");
    };
    theirs(RESPONSE, "closed");
    theirs(".agent-request-phase2.json", &request("echo", "closed").to_string());
    open(REQUEST, 1, "plain");
    let url = server.url();
    let mut command = watch(&home, "log", &["--server", &url], &[&inbox]);
    if fs::metadata("/proc/self").expect("it is there").uid() == 0 {
        // Root can read everything, so the test runs as another user.
        let mut apart = Command::new("setpriv");
        apart.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]);
        apart.arg(command.get_program()).args(command.get_args()).current_dir("/").env("NO_COLOR", "1");
        let log = fs::File::create(home.file("log")).expect("it can be made");
        apart.stderr(log).stdout(Stdio::piped()).env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command = apart;
    }
    let watcher = Watcher::started(&home, "log", &mut command);
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "plain", "{}", watcher.log());
    let aside = inbox.file(".agent-response.json.stale-1");
    fs::set_permissions(&aside, fs::Permissions::from_mode(0o600)).expect("it is ours");
    assert_eq!(fs::read_to_string(aside).expect("it is kept"), "closed");
    watcher.says("it is left as it is");
    // While one file is closed, other requests are answered.
    open(".agent-request-phase3.json", 3, "three");
    assert_eq!(prompt_of(&inbox.response_in(".agent-response-phase3.json", &id(3))), "three");
    assert!(inbox.file(".agent-request-phase2.json").exists());
}
