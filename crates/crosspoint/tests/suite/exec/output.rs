//! Output of any size flows to its followers as it is printed, through little memory.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use serde_json::{Value, json};

use crate::support::programs::{bash, python};
use crate::support::server::{Server, chunk, head, until};

/// Amount that a program prints in the suite, in MiB; `CROSSPOINT_OUTPUT_MIB` sets more.
const OUTPUT_MIB: u64 = 512;

/// Most memory that the server may have used at its peak, in KiB.
const PEAK_KIB_MAX: u64 = 100 << 10;

/// Peak memory of a process, in KiB.
fn peak_kib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

#[test]
fn a_long_output_costs_the_server_little_memory_and_its_end_is_in_the_outcome() {
    let mib = std::env::var("CROSSPOINT_OUTPUT_MIB").ok().and_then(|mib| mib.parse().ok()).unwrap_or(OUTPUT_MIB);
    let script = "
import sys, json
block = (b'x' * 1023 + b'\\n') * 1024
for _ in range(json.loads(sys.stdin.readline())['mib']):
    sys.stdout.buffer.write(block)
";
    let server = Server::configured(&python("prints", script, "output_bytes = 4294967296"));
    let body = json!({"work": "prints", "input": {"mib": mib}});
    let id = server.submit(&body.to_string())["id"].as_str().expect("an id").to_owned();
    let job = until_ended(&server, &id);
    let outputs = &job["outcome"]["outputs"];
    assert_eq!(outputs["truncated"]["bytes"], mib << 20, "{}", job["outcome"]["failure"]);
    let line = "x".repeat(1023) + "\n";
    assert_eq!(outputs["output"].as_str(), Some(line.repeat(1024).as_str()));
    let peak = peak_kib(server.pid());
    let _ = writeln!(std::io::stderr().lock(), "{mib} MiB printed, {} MiB at the most", peak >> 10);
    assert!(peak < PEAK_KIB_MAX, "{peak} KiB");
}

/// Waits for the end for as long as the job goes on.
fn until_ended(server: &Server, id: &str) -> Value {
    loop {
        let job = server.get(&format!("/api/v1/jobs/{id}?wait=20")).json();
        if job["outcome"].is_object() {
            return job;
        }
    }
}

#[test]
fn followers_see_what_is_printed_while_the_program_waits() {
    let wait = "while [ ! -e go$N ]; do sleep 0.05; done";
    let script = format!("echo first line; N=1; {wait}; printf 'Password: '; N=2; {wait}; echo; echo last line");
    let server = Server::configured(&bash("slow", &script, ""));
    let id = server.begin("slow");
    let mut stream = server.connect();
    stream.write_all(head("GET", &format!("/api/v1/jobs/{id}/events"), &[], 0).as_bytes()).expect("it can be asked");
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).expect("it has a head");
    }
    let mut seen = String::new();
    let mut see = |text: &str| {
        while !seen.contains(text) {
            let next = chunk(&mut stream).flatten().unwrap_or_else(|| panic!("no {text} in {seen}"));
            seen += &String::from_utf8(next).expect("UTF-8");
        }
    };
    see(r"first line\n");
    // The program waits, so what is seen now was delivered before it went on.
    fs::write(server.directory().join("go1"), "").expect("it can be written");
    see("Password: ");
    fs::write(server.directory().join("go2"), "").expect("it can be written");
    see(r"last line\n");
    see("event: completed");
    assert!(!seen.contains("@crosspoint"));
}

#[test]
fn output_is_whole_whatever_its_lines_are() {
    let script = "
import sys, time
out = sys.stdout.buffer
out.write(b'y' * 200000 + b'\\n')
out.write('\u{fc}'.encode() * 70000 + b'\\n')
out.write(b'@crosspoin')
out.flush()
time.sleep(0.4)
out.write(b'tless\\n@')
";
    let server = Server::configured(&python("prints", script, ""));
    let job = server.done("prints", &json!({}));
    let expected = "y".repeat(200_000) + "\n" + &"ü".repeat(70_000) + "\n@crosspointless\n@";
    assert_eq!(job["outcome"]["outputs"]["output"].as_str(), Some(expected.as_str()));
    let events = server.get(&format!("/api/v1/jobs/{}/events", job["id"].as_str().expect("an id"))).text();
    let data = events.lines().filter_map(|line| line.strip_prefix("data:"));
    let blocks: Vec<Value> = data
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .filter(|event: &Value| event["text"].is_string())
        .collect();
    let printed: String = blocks.iter().map(|block| block["text"].as_str().expect("a text")).collect();
    assert_eq!(printed, expected, "no character was cut in two");
    assert!(blocks.iter().all(|block| block["base64"].is_null()));
}

#[test]
fn a_server_whose_follower_is_slow_does_not_hold_up_the_program() {
    let server = Server::configured(&bash("prints", "yes | head -c 3000000; echo; echo '{\"done\": true}'", ""));
    let id = server.begin("prints");
    let mut stream = server.connect();
    stream.write_all(head("GET", &format!("/api/v1/jobs/{id}/events"), &[], 0).as_bytes()).expect("it can be asked");
    // Nothing of the stream is read, and the job ends all the same.
    let job = until("it ends", || Some(server.job(&id)).filter(|job| job["outcome"].is_object()));
    assert_eq!(job["outcome"]["outputs"], json!({"done": true}));
    drop(stream);
}
