//! `crosspoint bridge watch`: directories that vanish, are full, may not be written, or are many and at rest.

use std::fs;
use std::process::Command;
use std::time::Instant;

use serde_json::json;

use crate::support::bridge_directory::{Directory, RESPONSE, id};
use crate::support::bridge_watcher::{Watcher, prompt_of, watch};
use crate::support::server::{PATIENCE, Server};

#[test]
fn a_directory_that_vanishes_is_watched_again_when_it_is_back() {
    for arguments in [&[][..], &["--poll"]] {
        let (server, home) = (Server::start(), Directory::temporary());
        let (inbox, other) = (home.make("inbox"), home.make("other"));
        let url = server.url();
        let watcher = Watcher::start(&home, "log", &[&["--server", &url], arguments].concat(), &[&inbox, &other]);
        inbox.leave_request(&id(1), "echo", "one");
        inbox.response_to(&id(1));
        inbox.holds_only(&[RESPONSE]);
        fs::remove_dir_all(inbox.path()).expect("it can be removed");
        watcher.says("the directory is gone");
        other.leave_request(&id(2), "echo", "two");
        other.response_to(&id(2));
        let again = home.make("inbox");
        watcher.says("the directory can be worked in again");
        again.leave_request(&id(3), "echo", "three");
        assert_eq!(prompt_of(&again.response_to(&id(3))), "three");
        // Another directory in its place.
        fs::rename(again.path(), home.file("moved")).expect("it can be renamed");
        let another = home.make("inbox");
        another.leave_request(&id(4), "echo", "four");
        assert_eq!(prompt_of(&another.response_to(&id(4))), "four");
        assert_eq!(watcher.count("looked at every 250 ms"), arguments.len(), "{}", watcher.log());
    }
}

/// A watcher whose inbox is a file system of its own, prepared by a shell command that knows it as `$0`.
fn apart(server: &Server, home: &Directory, inbox: &Directory, prepare: &str) -> (Watcher, Directory) {
    let program = watch(home, "log", &["--server", &server.url()], &[inbox]);
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", &format!("{prepare} && exec \"$@\"")]).arg(inbox.path());
    command.arg(program.get_program()).args(program.get_args()).current_dir(home.path()).env("NO_COLOR", "1");
    let log = fs::File::options().append(true).open(home.file("log")).expect("it is there");
    let watcher = Watcher::started(home, "log", command.stdout(std::process::Stdio::piped()).stderr(log));
    watcher.says("watching");
    let root = format!("/proc/{}/root", watcher.pid());
    let seen = Directory::at([&root, inbox.path().to_str().expect("it is text")].concat());
    (watcher, seen)
}

#[test]
fn a_full_directory_is_said_and_answered_in_when_there_is_room() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    let (mut watcher, seen) = apart(&server, &home, &inbox, r#"mount -t tmpfs -o size=64k tmpfs "$0""#);
    seen.leave_request(&id(1), "echo", "one");
    seen.response_to(&id(1));
    seen.remove(RESPONSE);
    // There is room for the request and the record, but not for the answer.
    let _ = fs::write(seen.file("ballast"), vec![0; 40 << 10]);
    seen.leave_request(&id(2), "echo", &"x".repeat(8 << 10));
    watcher.says("there is no room for");
    seen.remove("ballast");
    assert_eq!(prompt_of(&seen.response_to(&id(2))).len(), 8 << 10);
    watcher.says("the directory can be worked in again");
    seen.holds_only(&[RESPONSE]);
    assert_eq!(watcher.stop().code(), Some(0));
    let jobs = server.get("/api/v1/jobs?limit=500").json();
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(2), "{jobs}");
}

#[test]
fn a_directory_that_may_not_be_written_is_said_and_nothing_is_handed_in_until_it_may() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inbox = home.make("inbox");
    inbox.leave_request(&id(1), "echo", "one");
    let go = home.file("go");
    let prepare = format!(
        r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && {{ (until [ -e {go} ]; do sleep 0.05; done; mount -o remount,bind,rw "$0") & }}"#,
        go = go.display()
    );
    let (watcher, _) = apart(&server, &home, &inbox, &prepare);
    watcher.says("the file system is read-only");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]));
    fs::write(go, "").expect("it can be written");
    assert_eq!(prompt_of(&inbox.response_to(&id(1))), "one");
    watcher.says("the directory can be worked in again");
}

/// Processor time that a process has used, in ticks of a hundredth of a second.
fn ticks(pid: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
    let fields: Vec<&str> = stat.rsplit_once(") ").expect("its name").1.split(' ').collect();
    fields[11].parse::<u64>().expect("a number") + fields[12].parse::<u64>().expect("a number")
}

fn resident_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is said");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_thousand_directories_at_rest_cost_little_memory_and_no_time() {
    let (server, home) = (Server::start(), Directory::temporary());
    let inboxes = home.make_many(1_000);
    let watcher = Watcher::of(&server, &home, &inboxes.iter().collect::<Vec<_>>());
    // The last inbox is visited like the first. Once both are answered, the watcher is idle.
    inboxes[0].leave_request(&id(0), "echo", "first");
    inboxes[999].leave_request(&id(999), "echo", "last");
    inboxes[0].response_to(&id(0));
    inboxes[999].response_to(&id(999));
    let end = Instant::now() + PATIENCE;
    let used = loop {
        // The measurement: the watcher does nothing while nothing happens in its directories. A job of another caller
        // takes the three seconds.
        let before = ticks(watcher.pid());
        server.done("slow_echo", &json!({"seconds": 3}));
        let used = ticks(watcher.pid()) - before;
        if used <= 2 || Instant::now() > end {
            break used;
        }
    };
    let resident = resident_kb(watcher.pid());
    let _ = std::io::Write::write_fmt(
        &mut std::io::stderr().lock(),
        format_args!("1,000 directories at rest: {resident} kB resident, {used} ticks in 3 s\n"),
    );
    assert!(used <= 2, "{used} ticks in 3 s");
    // A release build takes half as much (bench/RESULTS.md). Most of this is the program itself as it is compiled for
    // tests.
    assert!(resident < 60_000, "{resident} kB");
}
