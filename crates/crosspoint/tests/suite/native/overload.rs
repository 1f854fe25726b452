//! Ten times more of everything than is allowed: every answer is one of five, and memory stays within its bounds.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpStream;
use std::sync::Mutex;
use std::{fs, thread};

use crate::support::persistent_callers::{Dice, send};
use crate::support::server::{Server, head, until};

/// Small limits, so that ten times as much is not much for the machine.
const LIMITS: &str = "\
[limits]
jobs = 200
waiting = 20
waiting_bytes = 1000000
body_bytes = 100000
bodies_bytes = 1000000
connections = 100
";

/// Most memory, in MiB: an idle server with everything that these limits allow, and as much again for what an allocator
/// keeps.
const MEMORY_MAX_MIB: u64 = 96;

/// Peak memory of a process so far, in MiB.
fn memory_peak_mib(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it can be read");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it says so");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") / 1024
}

/// One action of one caller of many.
fn flood(server: &Server, dice: &mut Dice) -> Option<u16> {
    let body = |work: &str, bytes: usize| {
        format!(r#"{{"work":"{work}","input":{{"seconds":600,"text":"{}"}}}}"#, "x".repeat(bytes))
    };
    let body = match dice.below(6) {
        0 => body("echo", 10),
        1 => body("echo", 99_000),
        2 => body("slow_echo", 10),
        3 => body("slow_echo", 99_000),
        // Ten times too much, all of it sent.
        4 => body("echo", 1_000_000),
        _ => body("ask", 50_000),
    };
    let wait = if dice.below(4) == 0 { "?wait=0.05" } else { "" };
    send(server.address(), "POST", &format!("/api/v1/jobs{wait}"), &body).map(|answer| answer.status)
}

/// A connection that announces a long body, sends some of it, and stays open.
fn loiterer(server: &Server) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).ok()?;
    stream.write_all(head("POST", "/api/v1/jobs", &[], 100_000).as_bytes()).ok()?;
    stream.write_all(&[b' '; 20_000]).ok()?;
    Some(stream)
}

#[test]
fn ten_times_too_much_is_refused_in_bounded_memory() {
    let server = Server::with(LIMITS, &["--log", "warn"]);
    let answers: Mutex<BTreeMap<Option<u16>, usize>> = Mutex::default();
    thread::scope(|scope| {
        for name in 0..100 {
            let (server, answers) = (&server, &answers);
            scope.spawn(move || {
                let mut dice = Dice(name);
                let mut loiterers = Vec::new();
                for _ in 0..30 {
                    // Ten connections for each of a hundred callers, and a hundred places.
                    if loiterers.len() < 9 && name % 10 == 0 {
                        loiterers.push(loiterer(server));
                    }
                    let status = flood(server, &mut dice);
                    *answers.lock().expect("no thread panics with it").entry(status).or_default() += 1;
                }
            });
        }
    });
    let answers = answers.into_inner().expect("no thread panics with it");
    let peak = memory_peak_mib(server.pid());
    let expected = [200, 202, 413, 429, 503];
    // No caller is left without an answer, and each expected status was seen.
    assert!(answers.keys().all(|status| status.is_some_and(|status| expected.contains(&status))), "{answers:?}");
    assert!(expected.iter().all(|status| answers.contains_key(&Some(*status))), "{answers:?}");
    assert!(peak <= MEMORY_MAX_MIB, "it took {peak} MiB, and answered {answers:?}");
    // Afterwards the server is as before.
    until("there is room", || {
        let jobs = server.get("/api/v1/jobs?state=running&limit=500");
        let jobs = Some(jobs).filter(|jobs| jobs.status == 200)?.json();
        let jobs = jobs["jobs"].as_array()?.clone();
        for job in &jobs {
            let id = job["id"].as_str()?;
            server.try_request("POST", &format!("/api/v1/jobs/{id}/cancel"), &[], b"")?;
        }
        jobs.is_empty().then_some(())
    });
    assert_eq!(server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).status, 200);
}
