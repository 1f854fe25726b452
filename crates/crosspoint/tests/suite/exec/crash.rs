//! Killing the server again and again while programs run: no program is ever alive beside its own repeat, and every job
//! ends once.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::support::programs::{alive_for, bash, children_of};
use crate::support::server::{Server, until};

/// Number of kills of the server in the suite; `CROSSPOINT_KILLS` sets more.
const KILLS: usize = 5;

/// Number of programs at a time, and of new jobs between two kills.
const AT_ONCE: usize = 24;

/// Checks at its very start whether another process carries its job's id, then leaves a daemon and works for a while. A
/// search by a child process would find that child, so the shell itself lists the processes.
const WARY: &str = r#"
grep -lzxs "CROSSPOINT_JOB_ID=$CROSSPOINT_JOB_ID" /proc/[0-9]*/environ > "found.$$"
while read -r found; do
  [ "$found" = "/proc/$$/environ" ] || echo "$CROSSPOINT_JOB_ID $found" >> ghosts
done < "found.$$"
rm "found.$$"
setsid sleep 60 &
echo "start $CROSSPOINT_JOB_ID $$" >> starts
sleep 0.6
echo '{"done": true}'
"#;

fn kills() -> usize {
    std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS)
}

fn starts(directory: &Path) -> usize {
    fs::read_to_string(directory.join("starts")).map_or(0, |text| text.lines().count())
}

#[test]
fn no_program_is_alive_beside_its_repeat_however_often_the_server_is_killed() {
    let toml = bash("wary", WARY, &format!("concurrency = {AT_ONCE}"));
    let mut server = Server::with(&toml, &["--log", "error"]);
    let mut ids: Vec<String> = Vec::new();
    for round in 0..kills() {
        let before = starts(server.directory());
        // New jobs every time, because jobs that were cut short twice begin one by one, and those cut short three times
        // not at all.
        ids.extend((0..AT_ONCE).map(|_| server.begin("wary")));
        // Some rounds end while programs are just being started, others while all of them run.
        let enough = if round % 2 == 0 { AT_ONCE } else { AT_ONCE / 3 };
        until("programs run", || (starts(server.directory()) >= before + enough).then_some(()));
        server.kill();
        server.restart();
    }
    for id in &ids {
        if server.job(id)["stuck"]["reason"].as_str().is_some_and(|reason| reason.starts_with("poison")) {
            server.post(&format!("/api/v1/jobs/{id}/retry"), "");
        }
        let job = server.ended(id);
        assert_eq!(job["outcome"]["outputs"], json!({"done": true}), "{job}");
        let events = server.get(&format!("/api/v1/jobs/{id}/events")).text();
        let ends = events.lines().filter(|line| line.starts_with("event") && line.ends_with("completed")).count();
        assert_eq!(ends, 1, "{events}");
    }
    let ghosts = fs::read_to_string(server.directory().join("ghosts")).unwrap_or_default();
    assert_eq!(ghosts, "", "these ran beside their repeats");
    assert!(starts(server.directory()) > ids.len(), "no program was cut short: nothing was shown");
    let survivors: Vec<&String> = ids.iter().filter(|id| !alive_for(id).is_empty()).collect();
    assert!(survivors.is_empty(), "{survivors:?}");
}

/// Reports if it finds another program of its job alive. The first time, it runs for ever, with a daemon.
const ENDLESS_ONCE: &str = r#"
grep -lzxs "CROSSPOINT_JOB_ID=$CROSSPOINT_JOB_ID" /proc/[0-9]*/environ > "found.$$"
while read -r found; do
  [ "$found" = "/proc/$$/environ" ] || echo "$found" >> ghosts
done < "found.$$"
[ -e once ] && { echo '{"done": true}'; exit; }
setsid sleep 600 &
echo running > once
while true; do sleep 0.1; done
"#;

#[test]
fn no_program_is_alive_beside_its_repeat_when_its_supervisor_is_killed_along_with_the_server() {
    let mut server = Server::configured(&bash("endless", ENDLESS_ONCE, ""));
    let id = server.begin("endless");
    server.said_in("once");
    until("its family runs", || (alive_for(&id).len() >= 2).then_some(()));
    let supervisors = children_of(server.pid());
    assert_eq!(supervisors.len(), 1);
    // Both are stopped first, so that neither learns of the other's end.
    server.signal("STOP");
    for name in ["STOP", "KILL"] {
        let sent = Command::new("kill").args(["-s", name, &supervisors[0].to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    }
    server.kill();
    assert!(alive_for(&id).len() >= 2, "there is no ghost: nothing is shown");
    server.restart();
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"done": true}), &json!(2)), "{job}");
    let ghosts = fs::read_to_string(server.directory().join("ghosts")).unwrap_or_default();
    assert_eq!(ghosts, "", "these ran beside the repeat");
    assert!(alive_for(&id).is_empty());
}

#[test]
fn work_that_may_not_be_repeated_is_not_when_the_server_is_killed() {
    let script = "echo run >> runs; while [ ! -e go ]; do sleep 0.05; done; echo '{\"done\": true}'";
    let configuration = [bash("once", script, "repeatable = false"), bash("again", script, "")];
    let mut server = Server::configured(&configuration.concat());
    let (once, again) = (server.begin("once"), server.begin("again"));
    until("both run", || (server.said_in("runs").lines().count() == 2).then_some(()));
    server.kill();
    fs::write(server.directory().join("go"), "").expect("it can be written");
    server.restart();
    let (once, again) = (server.ended(&once), server.ended(&again));
    assert_eq!(once["outcome"]["failure"]["code"], "unavailable", "{once}");
    assert_eq!(once["outcome"]["failure"]["repeat"], "unknown", "{once}");
    assert_eq!(again["outcome"]["outputs"], json!({"done": true}), "{again}");
    assert_eq!(server.said_in("runs").lines().count(), 3);
}
