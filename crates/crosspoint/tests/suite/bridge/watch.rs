//! `crosspoint bridge watch`: one watcher, and everything that can be in its directories.

use std::os::unix::fs::{MetadataExt, symlink};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use serde_json::{Value, json};

use crate::support::bridge_caller::request;
use crate::support::bridge_directory::{Directory, REQUEST, RESPONSE, id};
use crate::support::bridge_watcher::{Watcher, prompt_of};
use crate::support::program::crosspoint;
use crate::support::programs::bash;
use crate::support::server::{Server, until};

#[test]
fn a_hundred_directories_are_answered_at_one_go_each_with_its_own() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inboxes = home.make_many(100);
    // Half of the requests are already there when the watcher starts.
    let (before, after) = inboxes.split_at(50);
    for (number, inbox) in before.iter().enumerate() {
        inbox.leave_request(&id(number), "echo", &format!("prompt {number}"));
    }
    let mut watcher = Watcher::of(&server, &home, &inboxes.iter().collect::<Vec<_>>());
    watcher.says("directories=100 watching");
    for (number, inbox) in after.iter().enumerate() {
        inbox.leave_request(&id(50 + number), "echo", &format!("prompt {}", 50 + number));
    }
    for (number, inbox) in inboxes.iter().enumerate() {
        let response = inbox.response_to(&id(number));
        assert_eq!(prompt_of(&response), format!("prompt {number}"));
        inbox.holds_only(&[RESPONSE]);
        assert_eq!(fs::metadata(inbox.file(RESPONSE)).expect("it is there").mode() & 0o777, 0o600);
    }
    assert_eq!(watcher.stop().code(), Some(0));
    assert_eq!(watcher.count(" answered"), 100, "{}", watcher.log());
    assert_eq!(watcher.log().lines().filter(|line| line.contains(" job=") && line.ends_with(" answered")).count(), 100);
    // The log shows neither prompts nor answers.
    assert!(!watcher.log().contains("prompt 7"), "{}", watcher.log());
}

#[test]
fn nine_phases_are_answered_side_by_side_and_a_slow_one_holds_no_other_up() {
    let (home, number) = (Directory::temporary(), |phase: usize| id(phase));
    let go = home.file("go");
    let wait = format!("read -r line; until [ -e {} ]; do sleep 0.02; done; echo \"$line\"", go.display());
    let server = Server::configured(&(bash("waits", &wait, "") + &bash("quick", "cat", "")));
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    for phase in 1..=9 {
        let agent = if phase == 1 { "waits" } else { "quick" };
        let file = format!(".agent-request-phase{phase}.json");
        inbox.leave(&file, &request(&number(phase), agent, &format!("phase {phase}")));
    }
    for phase in 2..=9 {
        let response = inbox.response_in(&format!(".agent-response-phase{phase}.json"), &number(phase));
        assert_eq!(prompt_of(&response), format!("phase {phase}"));
    }
    // A request that comes while others are under way.
    inbox.leave_request(&number(10), "quick", "plain");
    assert_eq!(prompt_of(&inbox.response_to(&number(10))), "plain");
    assert!(inbox.file(".agent-request-phase1.json").exists());
    assert!(inbox.file(".agent-bridge.json").exists());
    fs::write(go, "").expect("it can be written");
    assert_eq!(prompt_of(&inbox.response_in(".agent-response-phase1.json", &number(1))), "phase 1");
    until("the record is gone", || (!inbox.file(".agent-bridge.json").exists()).then_some(()));
    drop(watcher);
}

#[test]
fn without_a_server_the_work_is_done_by_the_watcher_itself() {
    let home = Directory::temporary();
    home.write("crosspoint.toml", &bash("mine", "cat", ""));
    let inbox = home.make("inbox");
    let mut watcher = Watcher::start(&home, "log", &["--agent", "yours=mine"], &[&inbox, &inbox]);
    watcher.says("directories=1 watching");
    inbox.leave_request(&id(1), "yours", "hello");
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "hello");
    // A failure is an answer too.
    inbox.leave_request(&id(2), "nobody", "hello");
    let response = inbox.response_to(&id(2));
    assert_eq!((&response["status"], &response["error_type"]), (&json!("error"), &json!("unsupported_work")));
    watcher.says("error_type=unsupported_work");
    assert_eq!(watcher.stop().code(), Some(0));
}

#[test]
fn what_is_no_directory_is_named_and_nothing_is_begun() {
    let home = Directory::temporary();
    let (inbox, file) = (home.make("inbox"), home.file("file"));
    fs::write(&file, "").expect("it can be written");
    let missing = home.file("missing");
    let paths = [&missing, &inbox.path().to_owned(), &file].map(|path| path.display().to_string());
    let output = crosspoint(&["bridge", "watch", &paths[0], &paths[1], &paths[2]]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("missing is not there") && said.contains("file is not a directory"), "{said}");
}

#[test]
fn a_response_that_answers_nothing_is_set_aside_and_a_second_one_too() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    fs::write(inbox.file(RESPONSE), "half a resp").expect("it can be written");
    inbox.leave_request(&id(1), "echo", "one");
    inbox.response_to(&id(1));
    watcher.says("set aside as .agent-response.json.stale-1");
    inbox.leave_request(&id(2), "echo", "two");
    assert_eq!(prompt_of(&inbox.response_to(&id(2))), "two");
    inbox.holds_only(&[RESPONSE, ".agent-response.json.stale-1", ".agent-response.json.stale-2"]);
    assert_eq!(inbox.read(".agent-response.json.stale-1"), "half a resp");
}

/// There may be very many files, so only the first visit looks at every name. It shows because only that visit removes
/// abandoned temporary files.
#[test]
fn only_the_first_visit_looks_at_every_name() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let abandoned = |mark: char| {
        let name = format!("{RESPONSE}.tmp-{}", mark.to_string().repeat(32));
        fs::write(inbox.file(&name), "").expect("it can be written");
        let file = fs::File::options().write(true).open(inbox.file(&name)).expect("it is there");
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(3600)).expect("it has a time");
        name
    };
    let others = ".agent-config.tmp-backup";
    fs::write(inbox.file(others), "").expect("it can be written");
    abandoned('a');
    let _watcher = Watcher::of(&server, &home, &[&inbox]);
    inbox.leave_request(&id(1), "echo", "one");
    inbox.response_to(&id(1));
    inbox.holds_only(&[others, RESPONSE]);
    inbox.remove(RESPONSE);
    let later = abandoned('b');
    inbox.leave_request(&id(2), "echo", "two");
    inbox.response_to(&id(2));
    inbox.holds_only(&[others, RESPONSE, &later]);
}

#[test]
fn a_malformed_request_is_said_once_kept_and_answered_when_it_is_mended() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    let broken = json!({"request_id": id(1), "version": "1.0", "prompt": "SECRET"});
    inbox.leave(REQUEST, &broken);
    watcher.says("errors=1 the request is malformed");
    // Other requests are answered meanwhile, and lead to further visits.
    for number in 2..5 {
        inbox.leave(".agent-request-phase4.json", &request(&id(number), "echo", "x"));
        inbox.response_in(".agent-response-phase4.json", &id(number));
    }
    assert_eq!(watcher.count("the request is malformed"), 1, "{}", watcher.log());
    assert_eq!(inbox.read(REQUEST), broken.to_string());
    // Rewritten in place, as scripts do it.
    fs::write(inbox.file(REQUEST), request(&id(1), "echo", "mended").to_string()).expect("it can be written");
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "mended");
    assert!(!watcher.log().contains("SECRET"), "{}", watcher.log());
}

#[test]
fn a_request_that_is_too_large_or_old_is_answered_and_remarked_upon() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    inbox.leave_request(&id(1), "echo", &"x".repeat(1 << 20));
    assert_eq!(inbox.response_to(&id(1))["error_type"], "RequestTooLarge");
    let mut old = request(&id(2), "echo", "old");
    old["created_at"] = json!("2025-01-01T00:00:00Z");
    inbox.leave(REQUEST, &old);
    assert_eq!(prompt_of(&inbox.response_to(&id(2))), "old");
    watcher.says("BRIDGE-8.3");
}

#[test]
fn nothing_that_is_planted_under_the_names_is_followed_or_opened() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let target = home.file("target.json");
    fs::write(&target, request(&id(9), "echo", "elsewhere").to_string()).expect("it can be written");
    symlink(&target, inbox.file(REQUEST)).expect("a link can be made");
    let fifo = |name: &str| Command::new("mkfifo").arg(inbox.file(name)).status().expect("it runs");
    fifo(".agent-request-phase1.json");
    fs::create_dir(inbox.file(".agent-request-phase2.json")).expect("it can be made");
    symlink("/dev/zero", inbox.file(".agent-request-phase3.json")).expect("a link can be made");
    let _socket = std::os::unix::net::UnixListener::bind(inbox.file(".agent-request-phase4.json")).expect("a socket");
    // Under the names of responses.
    symlink(&target, inbox.file(".agent-response-phase5.json")).expect("a link can be made");
    fifo(".agent-response-phase6.json");
    fs::create_dir(inbox.file(".agent-response-phase7.json")).expect("it can be made");
    symlink("/nowhere", inbox.file(".agent-bridge.json")).expect("a link can be made");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    for phase in 5..=7 {
        inbox.leave(&format!(".agent-request-phase{phase}.json"), &request(&id(phase), "echo", "x"));
        let name = format!(".agent-response-phase{phase}.json");
        let response = until("a file in the place", || {
            fs::symlink_metadata(inbox.file(&name)).is_ok_and(|found| found.is_file()).then_some(())?;
            Some(inbox.response_in(&name, &id(phase)))
        });
        assert_eq!(prompt_of(&response), "x");
        assert!(fs::symlink_metadata(inbox.file(&format!("{name}.stale-1"))).is_ok());
    }
    for what in ["a symbolic link", "a named pipe", "a directory", "a socket"] {
        watcher.says(&format!("is {what}, not a file"));
    }
    assert_eq!(watcher.count("not a file"), 5, "{}", watcher.log());
    assert_eq!(fs::read_to_string(&target).expect("it is there"), request(&id(9), "echo", "elsewhere").to_string());
    // A file that replaces the link is a request like any other.
    inbox.leave_request(&id(10), "echo", "mended");
    assert_eq!(prompt_of(&inbox.response_to(&id(10))), "mended");
}

#[test]
fn a_requester_that_goes_on_as_fast_as_it_can_gets_each_answer_to_its_own() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let _watcher = Watcher::of(&server, &home, &[&inbox]);
    for round in 0..200 {
        // As soon as the response is there, which is before the request is removed.
        inbox.leave_request(&id(round), "echo", &format!("round {round}"));
        let response = until(&format!("round {round}"), || {
            let found: Value = serde_json::from_slice(&fs::read(inbox.file(RESPONSE)).ok()?).expect("it is whole");
            (found["request_id"] == id(round)).then_some(found)
        });
        assert_eq!(prompt_of(&response), format!("round {round}"));
        inbox.remove(RESPONSE);
    }
    inbox.holds_only(&[]);
}

#[test]
fn a_reader_in_a_loop_sees_whole_responses_or_none() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let _watcher = Watcher::of(&server, &home, &[&inbox]);
    let (over, long) = (AtomicBool::new(false), "x".repeat(100_000));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut whole, mut absent) = (0, 0);
            while !over.load(Ordering::Relaxed) || whole + absent < 2_000 {
                match fs::read(inbox.file(RESPONSE)) {
                    Ok(bytes) => {
                        assert!(bytes.ends_with(b"\n}\n") && bytes.len() > 100_000, "{} bytes", bytes.len());
                        whole += 1;
                    }
                    Err(_) => absent += 1,
                }
            }
            (whole, absent)
        });
        for round in 0..20 {
            inbox.leave_request(&id(round), "echo", &long);
            inbox.response_to(&id(round));
            inbox.remove(RESPONSE);
        }
        over.store(true, Ordering::Relaxed);
        let (whole, absent) = reader.join().expect("it saw nothing else");
        assert!(whole > 0 && absent > 0, "{whole} whole, {absent} absent");
    });
}

#[test]
fn a_request_that_takes_the_place_of_another_is_answered_in_its_place() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let watcher = Watcher::of(&server, &home, &[&inbox]);
    // This request asks a person, so it takes as long as the test does.
    inbox.leave_request(&id(1), "ask", "one");
    watcher.says("agent=ask handed in");
    inbox.leave_request(&id(2), "echo", "two");
    assert_eq!(prompt_of(&inbox.response_to(&id(2))), "two");
    watcher.says("another request has taken the place");
    // A request that is withdrawn is not answered at all.
    inbox.leave_request(&id(3), "ask", "three");
    until("it is handed in", || (watcher.count("agent=ask handed in") == 2).then_some(()));
    inbox.remove(REQUEST);
    let jobs = until("both ask", || {
        let jobs = server.get("/api/v1/jobs?state=waiting").json()["jobs"].as_array().cloned().expect("a list");
        (jobs.len() == 2).then_some(jobs)
    });
    for job in jobs {
        let path = format!("/api/v1/jobs/{}/answer", job["id"].as_str().expect("an id"));
        assert_eq!(server.post(&path, r#"{"input": "yes"}"#).status, 200);
    }
    watcher.says("the request is gone: no response is written");
    assert_eq!(inbox.response_to(&id(2))["request_id"], id(2));
    inbox.holds_only(&[RESPONSE]);
}

#[test]
fn a_server_that_is_away_is_waited_for() {
    let (mut server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let address = server.url();
    server.stop();
    let watcher = Watcher::start(&home, "log", &["--server", &address], &[&inbox]);
    inbox.leave_request(&id(1), "echo", "one");
    watcher.says("it is tried until it is back");
    server.restart_in_place();
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "one");
    watcher.says("the server is back");
    // The same while a request is under way.
    inbox.leave_request(&id(2), "slow_echo", "two");
    watcher.says("agent=slow_echo handed in");
    server.kill();
    server.restart_in_place();
    assert_eq!(inbox.response_to(&id(2))["status"], "success");
    assert_eq!(watcher.count("it is tried until it is back"), 1, "{}", watcher.log());
}
