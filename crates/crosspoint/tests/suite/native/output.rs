//! `GET /api/v1/jobs/{id}/output`: all that was printed, whole, in ranges, and as it comes.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};

use serde_json::json;

use crate::support::long_texts::{PRINTS, text};
use crate::support::programs::{bash, python};
use crate::support::server::{Answer, Server, chunk, head, until};

/// A script that prints two lines and waits for a file after each.
const SLOW: &str = "wait() { while [ ! -e go$1 ]; do sleep 0.02; done; }; echo first; wait 1; echo second; wait 2";

fn path(id: &str) -> String {
    format!("/api/v1/jobs/{id}/output")
}

fn done(server: &Server, work: &str, input: &serde_json::Value) -> String {
    server.done(work, input)["id"].as_str().expect("an id").to_owned()
}

/// A caller that follows an output.
struct Follower {
    stream: BufReader<std::net::TcpStream>,
    seen: Vec<u8>,
}

impl Follower {
    /// Returns the follower, and the head of the answer.
    fn begin(server: &Server, path: &str, headers: &[(&str, &str)]) -> (Follower, String) {
        let mut stream = server.connect();
        stream.write_all(head("GET", path, headers, 0).as_bytes()).expect("it can be asked");
        let (mut stream, mut head) = (BufReader::new(stream), String::new());
        while !head.ends_with("\r\n\r\n") {
            assert!(stream.read_line(&mut head).expect("it has a head") > 0);
        }
        (Follower { stream, seen: Vec::new() }, head)
    }

    fn sees(&mut self, all: &str) {
        while self.seen.len() < all.len() {
            self.seen.extend(chunk(&mut self.stream).flatten().expect("there is more"));
        }
        assert_eq!(String::from_utf8_lossy(&self.seen), all);
    }

    /// Whether the answer has its proper end; otherwise the connection broke.
    fn ends(mut self) -> bool {
        matches!(chunk(&mut self.stream), Some(None))
    }
}

#[test]
fn ranges_are_parts_of_the_whole() {
    let server = Server::configured(&python("prints", PRINTS, ""));
    let bytes = 300_000;
    let id = done(&server, "prints", &json!({"bytes": bytes}));
    let whole = text(bytes).into_bytes();
    let all = server.get(&path(&id));
    assert!(all.status == 200 && all.body == whole);
    assert_eq!(all.header("accept-ranges"), Some("bytes"));
    assert_eq!(all.header("content-length"), Some("300000"));
    let part = |range: &str| server.request("GET", &path(&id), &[("range", range)], b"");
    for (range, expected, content_range) in [
        ("bytes=0-0", 0..1, "bytes 0-0/300000"),
        ("bytes=5-70000", 5..70_001, "bytes 5-70000/300000"),
        ("bytes=299999-", 299_999..300_000, "bytes 299999-299999/300000"),
        ("bytes=-3", 299_997..300_000, "bytes 299997-299999/300000"),
        ("bytes=100000-999999999999", 100_000..300_000, "bytes 100000-299999/300000"),
    ] {
        let answer = part(range);
        assert_eq!((answer.status, answer.header("content-range")), (206, Some(content_range)), "{range}");
        assert!(answer.body == whole[expected], "{range}");
    }
    for range in ["bytes=300000-", "bytes=-0", "bytes=400000-400001"] {
        let answer = part(range);
        assert_eq!((answer.status, answer.header("content-range")), (416, Some("bytes */300000")), "{range}");
    }
    for range in ["bytes=5-1", "lines=1-2", "bytes=0-1,4-5"] {
        assert!(part(range).status == 200 && part(range).body == whole, "{range} is passed over");
    }
    let rest = server.get(&format!("{}?from=299990", path(&id)));
    assert!(rest.status == 200 && rest.body == whole[299_990..]);
    assert_eq!(server.get(&format!("{}?from=300005", path(&id))).body, b"", "what has come since is nothing");
    let both = server.request("GET", &format!("{}?from=1", path(&id)), &[("range", "bytes=2-")], b"");
    assert_eq!(both.status, 400);
    for wrong in ["?from=x", "?follow=1", "?attempt=-1", "?form=1"] {
        assert_eq!(server.get(&format!("{}{wrong}", path(&id))).status, 400, "{wrong}");
    }
    assert_eq!(server.get(&path("0199d3a2-8b1e-7000-8000-0004b2c6d8e1")).status, 404);
    let head = server.exchange("HEAD", &path(&id), &[], b"");
    assert!(head.is_none_or(|head| head.status == 200), "a caller may ask how long it is");
}

#[test]
fn what_is_printed_is_followed_as_it_comes_and_to_its_end() {
    let server = Server::configured(&bash("slow", SLOW, ""));
    let id = server.begin("slow");
    let follow = format!("{}?follow=true", path(&id));
    let (mut all, head) = Follower::begin(&server, &follow, &[]);
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    all.sees("first\n");
    let (mut later, head) = Follower::begin(&server, &follow, &[("range", "bytes=9-")]);
    assert!(head.starts_with("HTTP/1.1 206 ") && head.contains("content-range: bytes 9-9007199254740991/*"), "{head}");
    let (mut tail, _) = Follower::begin(&server, &format!("{follow}&from=6"), &[]);
    let so_far = server.request("GET", &path(&id), &[("range", "bytes=0-")], b"");
    assert_eq!((so_far.text().as_str(), so_far.header("content-range")), ("first\n", Some("bytes 0-5/*")));
    // The program waits, so what was seen was delivered before it went on.
    fs::write(server.directory().join("go1"), "").expect("it can be written");
    all.sees("first\nsecond\n");
    later.sees("ond\n");
    tail.sees("second\n");
    fs::write(server.directory().join("go2"), "").expect("it can be written");
    assert!(all.ends() && later.ends() && tail.ends());
    let ended = server.get(&follow);
    assert_eq!((ended.text().as_str(), ended.header("content-length")), ("first\nsecond\n", Some("13")));
}

#[test]
fn a_follower_of_a_server_that_stops_or_dies_does_not_take_a_part_for_the_whole() {
    for signal in ["TERM", "KILL"] {
        let mut server = Server::configured(&bash("slow", SLOW, ""));
        let id = server.begin("slow");
        let (mut follower, _) = Follower::begin(&server, &format!("{}?follow=true", path(&id)), &[]);
        follower.sees("first\n");
        server.signal(signal);
        assert!(!follower.ends(), "{signal}: it is not the end");
        server.wait();
        fs::write(server.directory().join("go1"), "").expect("it can be written");
        fs::write(server.directory().join("go2"), "").expect("it can be written");
        server.restart();
        server.ended(&id);
        // The program ran again: what the first attempt printed is followed by what the second printed.
        assert_eq!(server.get(&path(&id)).text(), "first\nfirst\nsecond\n", "{signal}");
        assert_eq!(server.get(&format!("{}?follow=true&from=6", path(&id))).text(), "first\nsecond\n");
        assert_eq!(server.get(&format!("{}?attempt=1", path(&id))).text(), "first\n");
        assert_eq!(server.get(&format!("{}?attempt=2", path(&id))).text(), "first\nsecond\n");
        assert_eq!(server.job(&id)["outcome"]["outputs"], json!({"output": "first\nsecond\n"}), "of its last attempt");
    }
}

#[test]
fn the_link_of_a_long_text_names_the_attempt_that_printed_it() {
    let script = "if [ ! -e again ]; then echo once; touch again; sleep 600; fi; yes | head -c 11000000";
    let mut server = Server::configured(&bash("twice", script, ""));
    let id = server.begin("twice");
    until("it has printed", || (server.get(&path(&id)).text() == "once\n").then_some(()));
    until("it waits", || server.directory().join("again").exists().then_some(()));
    server.kill();
    server.restart();
    let outputs = server.ended(&id)["outcome"]["outputs"].clone();
    assert_eq!(outputs["truncated"]["bytes"], 11_000_000);
    let href = outputs["truncated"]["href"].as_str().expect("a path");
    assert_eq!(href, format!("{}?attempt=2", path(&id)));
    assert_eq!((server.get(href).body.len(), server.get(&path(&id)).body.len()), (11_000_000, 11_000_005));
}

#[test]
fn many_small_blocks_are_found_in_order_from_any_byte_on() {
    // Each line is a block of its own, and there are more than are looked for at a time.
    let script = "
import sys, time
for number in range(9000):
    sys.stdout.write('@crosspoint {\"progress\": 1}\\n%05d\\n' % number)
";
    let server = Server::configured(&python("lines", script, ""));
    let id = done(&server, "lines", &json!({}));
    let all: String = (0..9000).map(|number| format!("{number:05}\n")).collect();
    assert!(server.get(&path(&id)).text() == all);
    for from in [0, 1, 24_577, 24_600, 50_000, 53_999] {
        let part = server.request("GET", &path(&id), &[("range", &format!("bytes={from}-{}", from + 9))], b"");
        let end = (from + 10).min(all.len());
        assert_eq!(part.text(), all[from..end], "from {from}");
    }
}

#[test]
fn an_output_of_any_length_costs_the_server_little_memory_however_slow_its_caller() {
    let server =
        Server::configured(&bash("much", "yes 0123456789abcde | head -c 268435456", "output_bytes = 300000000"));
    let id = server.begin("much");
    until("it ends", || server.get("/api/v1/jobs?state=completed").json()["jobs"][0]["id"].as_str().map(drop));
    let mut slow = server.connect();
    slow.write_all(head("GET", &path(&id), &[], 0).as_bytes()).expect("it can be asked");
    let mut stream = server.connect();
    stream.write_all(head("GET", &path(&id), &[], 0).as_bytes()).expect("it can be asked");
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        reader.read_line(&mut line).expect("it has a head");
    }
    let (mut read, mut buffer) = (0, vec![0; 1 << 16]);
    loop {
        let count = reader.read(&mut buffer).expect("it can be read");
        if count == 0 {
            break;
        }
        assert!(buffer[..count].iter().all(u8::is_ascii));
        read += count;
    }
    assert_eq!(read, 268_435_456);
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
    assert!(peak < 100 << 10, "{peak} KiB");
    // The other caller has read nothing all the while, and gets everything now.
    let answer = Answer::read(&mut BufReader::new(slow)).expect("it is whole");
    assert_eq!(answer.body.len(), 268_435_456);
}
