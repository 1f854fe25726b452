//! Limits of a program: memory, processes, output, artifacts.

use serde_json::json;

use crate::support::programs::{alive_for, bash, nothing_runs_for, python};
use crate::support::server::Server;

#[test]
fn a_program_that_takes_too_much_memory_is_killed() {
    // Two processes that are each within the limit: their sum counts.
    let script = "
import os, time
os.fork()
kept = []
for _ in range(10):
    kept.append(bytearray(os.urandom(1024)) * 6144)
    time.sleep(0.02)
time.sleep(60)
";
    let server = Server::configured(&python("greedy", script, "memory_mb = 100"));
    let job = server.done("greedy", &json!({}));
    let failure = &job["outcome"]["failure"];
    assert_eq!(failure["code"], "resource_limit", "{job}");
    assert_eq!(failure["repeat"], "never", "part of it may be done, and again it would need as much: {job}");
    let message = failure["message"].as_str().expect("a text");
    assert!(message.contains("more than the 100 MiB of memory_mb"), "{message}");
    assert!(alive_for(job["id"].as_str().expect("an id")).is_empty());
}

#[test]
fn a_burst_of_memory_between_two_looks_is_refused_by_the_system() {
    let script = "
try:
    kept = bytearray(400 << 20)
    print('{\"had\": true}')
except MemoryError:
    print('{\"had\": false}')
";
    let server = Server::configured(&python("burst", script, "memory_mb = 100"));
    let job = server.done("burst", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"had": false}), "{job}");
}

#[test]
fn a_program_that_stays_within_its_limits_is_left_alone() {
    let script = "for i in 1 2 3 4 5; do sleep 0.4 & done; wait; echo '{\"done\": true}'";
    let server = Server::configured(&bash("modest", script, "memory_mb = 500\nprocesses = 6"));
    assert_eq!(server.done("modest", &json!({}))["outcome"]["outputs"], json!({"done": true}));
}

#[test]
fn a_fork_bomb_is_stopped() {
    // Every process forks as fast as it can, and leaves its parents and its session, so that only descent shows which
    // job it belongs to. A pipe holds one token for each process that may exist, so that a supervisor that fails does
    // not take the machine down.
    let script = "
import os, time
tokens, pipe = os.pipe()
os.write(pipe, b'x' * 1000)
os.close(pipe)
while os.read(tokens, 1):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
time.sleep(600)
";
    let server = Server::configured(&python("bomb", script, "processes = 40"));
    let job = server.done("bomb", &json!({}));
    let failure = &job["outcome"]["failure"];
    assert_eq!(failure["code"], "resource_limit", "{job}");
    assert!(failure["message"].as_str().is_some_and(|message| message.contains("more than the 40 processes")), "{job}");
    assert!(alive_for(job["id"].as_str().expect("an id")).is_empty(), "nobody is left when the outcome is told");
}

#[test]
fn too_much_output_ends_the_job_and_the_program() {
    let server = Server::configured(&bash("yes", "yes", "output_bytes = 1000000"));
    let job = server.done("yes", &json!({}));
    assert_eq!(job["outcome"]["failure"]["code"], "resource_limit", "{job}");
    nothing_runs_for(job["id"].as_str().expect("an id"));
}

#[test]
fn too_many_artifacts_end_the_job_and_the_program() {
    let script = "
import json, time
for n in range(9):
    print('@crosspoint ' + json.dumps({'artifact': {'name': 'a%d' % n, 'content': 'x' * (2 << 20)}}), flush=True)
time.sleep(600)
";
    let server = Server::configured(&python("hoarder", script, ""));
    let job = server.done("hoarder", &json!({}));
    assert_eq!(job["outcome"]["failure"]["code"], "resource_limit", "{job}");
    let message = job["outcome"]["failure"]["message"].as_str().expect("a text");
    assert!(message.contains("artifacts together are longer than 16 MiB"), "{message}");
    nothing_runs_for(job["id"].as_str().expect("an id"));
}
