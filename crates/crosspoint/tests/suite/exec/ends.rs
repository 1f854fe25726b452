//! However a program's job ends, nothing of the program is left.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::spares::SPARES_MAX;
use crate::support::programs::{agent, alive_for, bash, children_of, is_zombie, nothing_runs_for, python, violations};
use crate::support::server::{Server, until};

/// A shell that ignores SIGTERM, with a child that does so too, one in a session of its own, and a daemon that has left
/// its parents.
const STUBBORN: &str = r#"
trap '' TERM
sleep 600 &
setsid sleep 601 &
(setsid bash -c 'trap "" TERM HUP; sleep 602' >/dev/null 2>&1 &)
echo ready > ready.$CROSSPOINT_JOB_ID
while true; do sleep 0.1; done
"#;

/// Waits until the stubborn program and its children run.
fn all_there(server: &Server, id: &str) {
    server.said_in(&format!("ready.{id}"));
    until("its family runs", || (alive_for(id).len() >= 4).then_some(()));
}

#[test]
fn cancelling_kills_the_whole_family_whatever_it_ignores() {
    let server = Server::configured(&bash("stubborn", STUBBORN, "grace_seconds = 0.3"));
    let id = server.begin("stubborn");
    all_there(&server, &id);
    server.cancel(&id);
    nothing_runs_for(&id);
    until("no supervisor is left", || children_of(server.pid()).is_empty().then_some(()));
}

#[test]
fn running_out_of_time_kills_the_whole_family_too() {
    // On a slow machine the time may be over before the children run. Then the next try has more of it.
    let times = [2, 10, 45];
    let agents = times.map(|seconds| {
        bash(&format!("in_{seconds}"), STUBBORN, &format!("grace_seconds = 0.3\ntotal_seconds = {seconds}"))
    });
    let server = Server::configured(&agents.concat());
    let shown = times.iter().any(|seconds| {
        let id = server.begin(&format!("in_{seconds}"));
        let ready = server.directory().join(format!("ready.{id}"));
        let was_there = until("its family runs, or is gone", || {
            let is_there = ready.exists() && alive_for(&id).len() >= 4;
            (is_there || server.job(&id)["outcome"].is_object()).then_some(is_there)
        });
        let job = server.ended(&id);
        assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job}");
        nothing_runs_for(&id);
        was_there
    });
    assert!(shown, "the family was never there in time");
}

/// A shell that dies of SIGTERM at once, with a child that cleans up first.
const LEADERLESS: &str = r#"
bash -c 'trap "sleep 0.3; echo cleaned > cleaned; exit" TERM; echo up > up; while true; do sleep 0.05; done' &
wait
"#;

#[test]
fn the_grace_is_the_whole_groups_also_when_the_program_itself_is_gone_at_once() {
    let ignores = "bash -c 'trap \"\" TERM; echo deaf > deaf; while true; do sleep 0.05; done' & wait";
    let configuration =
        [bash("cleans", LEADERLESS, "grace_seconds = 20"), bash("ignores", ignores, "grace_seconds = 0.3")];
    let server = Server::configured(&configuration.concat());
    let (cleans, ignores) = (server.begin("cleans"), server.begin("ignores"));
    for (id, file) in [(&cleans, "up"), (&ignores, "deaf")] {
        server.said_in(file);
        server.cancel(id);
        nothing_runs_for(id);
    }
    assert_eq!(server.said_in("cleaned"), "cleaned\n");
    until("no supervisor is left", || children_of(server.pid()).is_empty().then_some(()));
}

/// Leaves a daemon whose first thread has ended, which the system lists like a zombie, while another thread runs on.
const HEADLESS: &str = r#"
import ctypes, os, threading, time

def stay():
    while ') Z ' not in open('/proc/self/stat').read():
        time.sleep(0.01)
    open('headless', 'w').write('%d\n' % os.getpid())
    time.sleep(600)

if os.fork() == 0:
    os.setsid()
    threading.Thread(target=stay).start()
    ctypes.CDLL(None).pthread_exit(None)
while not (os.path.exists('headless') and open('headless').read().endswith('\n')):
    time.sleep(0.01)
print('{"done": true}')
"#;

#[test]
fn a_daemon_that_looks_like_a_zombie_is_killed_too() {
    let server = Server::configured(&python("headless", HEADLESS, ""));
    let job = server.done("headless", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"done": true}), "{job}");
    let violations = violations(&job);
    assert!(violations.len() == 1 && violations[0].contains("still alive when it ended"), "{job}");
    let place = Path::new("/proc").join(server.said_in("headless").trim());
    until("it is gone", || (!place.exists()).then_some(()));
    until("no supervisor is left", || children_of(server.pid()).is_empty().then_some(()));
}

#[test]
fn a_program_has_its_grace_and_what_it_says_then_is_no_success() {
    let script = "trap 'sleep 0.5; echo cleaned > cleaned; exit 0' TERM; echo up > up; while true; do sleep 0.05; done";
    let server = Server::configured(&bash("polite", script, "grace_seconds = 20"));
    let id = server.begin("polite");
    server.said_in("up");
    server.cancel(&id);
    assert_eq!(server.said_in("cleaned"), "cleaned\n");
    nothing_runs_for(&id);
    let job = server.job(&id);
    assert_eq!(job["state"], "cancelled");
    assert!(violations(&job).is_empty(), "{job}");
}

#[test]
fn a_daemon_is_killed_with_its_program_which_has_done_its_work() {
    // The daemon also holds stdout open, and the job does not wait for it.
    let script = r#"(setsid sleep 600 &); sleep 0.2; echo '{"done": true}'"#;
    let server = Server::configured(&bash("daemon", script, ""));
    let job = server.done("daemon", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"done": true}));
    assert!(alive_for(job["id"].as_str().expect("an id")).is_empty(), "it is gone before the outcome is told");
    let violations = violations(&job);
    assert!(violations.len() == 1 && violations[0].contains("still alive when it ended"), "{job}");
}

#[test]
fn a_daemon_whose_name_is_no_text_is_killed_too() {
    let script = r#"
import ctypes, os, time
if os.fork() == 0:
    os.setsid()
    PR_SET_NAME = 15
    ctypes.CDLL(None).prctl(PR_SET_NAME, b'\xff', 0, 0, 0)
    open('renamed', 'w').write('renamed\n')
    time.sleep(600)
while not os.path.exists('renamed'):
    time.sleep(0.01)
"#;
    let server = Server::configured(&python("renamed", script, ""));
    let job = server.done("renamed", &json!({}));
    assert_eq!(job["state"], "completed", "{job}");
    assert!(alive_for(job["id"].as_str().expect("an id")).is_empty(), "it is gone before the outcome is told");
}

#[test]
fn a_job_whose_supervisor_is_killed_fails_and_nothing_of_it_goes_on() {
    let server = Server::configured(&bash("works", STUBBORN, ""));
    let id = server.begin("works");
    all_there(&server, &id);
    let supervisors = children_of(server.pid());
    assert_eq!(supervisors.len(), 1);
    let killed = Command::new("kill").args(["-KILL", &supervisors[0].to_string()]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    let job = server.ended(&id);
    assert_eq!(job["outcome"]["failure"]["code"], "unavailable", "{job}");
    assert_eq!(job["outcome"]["failure"]["repeat"], "unknown", "{job}");
    assert!(alive_for(&id).is_empty(), "all are gone before the outcome is told");
}

#[test]
fn no_zombie_is_left_of_a_hundred_jobs() {
    let configuration = [agent("quick", &["true"], "concurrency = 8"), bash("forks", "true & sleep 0 & exit 1", "")];
    let server = Server::configured(&configuration.concat());
    let ids: Vec<String> = (0..100).map(|at| server.begin(if at % 4 == 0 { "forks" } else { "quick" })).collect();
    for id in &ids {
        server.ended(id);
    }
    until("the server has no children but a few spare supervisors", || {
        let children = children_of(server.pid());
        let is_spare = |pid: &u32| !is_zombie(*pid) && children_of(*pid).is_empty();
        (children.len() <= SPARES_MAX && children.iter().all(is_spare)).then_some(())
    });
}

#[test]
fn a_server_that_stops_takes_its_programs_along() {
    let mut server = Server::configured(
        &("[server]\ndrain_seconds = 0.2\n".to_owned() + &bash("stubborn", STUBBORN, "grace_seconds = 0.1")),
    );
    let id = server.begin("stubborn");
    all_there(&server, &id);
    assert!(server.stop().success());
    nothing_runs_for(&id);
}

#[test]
fn ctrl_c_at_the_servers_terminal_is_not_for_programs() {
    let script = "import os; print('{\"alone\": %s}' % str(os.getsid(0) != int(open('session').read())).lower())";
    let server = Server::configured(&python("where", script, ""));
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid())).expect("it runs");
    let session = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(3)).expect("it has a session");
    fs::write(server.directory().join("session"), session).expect("it can be written");
    assert_eq!(server.done("where", &json!({}))["outcome"]["outputs"], json!({"alone": true}));
}

/// Reports if it finds another program of its job alive. The first time, it then stays silent.
const SILENT_ONCE: &str = r#"
grep -lzxs "CROSSPOINT_JOB_ID=$CROSSPOINT_JOB_ID" /proc/[0-9]*/environ > "found.$$"
while read -r found; do
  [ "$found" = "/proc/$$/environ" ] || echo "$found" >> ghosts
done < "found.$$"
[ -e once ] && { echo '{"done": true}'; exit; }
trap 'echo asked to end > asked' TERM
echo > once
while true; do sleep 0.1; done
"#;

#[test]
fn an_attempt_waits_for_the_end_of_the_one_before() {
    let server =
        Server::configured(&bash("silent", SILENT_ONCE, "silence_seconds = 1\ngrace_seconds = 4\nrepeatable = true"));
    let id = server.begin("silent");
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!({"done": true}), &json!(2)), "{job}");
    assert_eq!(server.said_in("asked"), "asked to end\n", "the first ignored that it was to end");
    assert!(!server.directory().join("ghosts").exists(), "the second ran beside it");
}

#[test]
fn a_program_that_has_stopped_itself_is_ended_all_the_same() {
    let server = Server::configured(&bash(
        "stopped",
        "trap 'echo went on > went_on; exit' TERM; echo up > up; kill -STOP $$",
        "",
    ));
    let id = server.begin("stopped");
    server.said_in("up");
    server.cancel(&id);
    nothing_runs_for(&id);
}

#[test]
fn programs_are_started_by_a_server_whose_file_was_replaced() {
    let mut server = Server::configured(&agent("echo", &["cat"], ""));
    assert!(server.stop().success());
    server.start_by(&["sh", "-c", r#"cp "$0" copy && exec ./copy "$@""#]);
    server.restart();
    fs::remove_file(server.directory().join("copy")).expect("it can be removed");
    assert_eq!(server.done("echo", &json!({"a": 1}))["outcome"]["outputs"], json!({"a": 1}));
}
