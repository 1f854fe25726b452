//! Agents that break rules, one case after the other: the caller always gets one outcome, and the broken rule is
//! recorded.

use std::io::{BufReader, Write};
use std::{fs, thread};

use crosspoint_contracts::{Kind, Options, document};
use serde_json::{Value, json};

use crate::support::scripted_agent::{Connection, Request, Script, ScriptedAgent};
use crate::support::server::{Answer, Server, head, until};

/// One way to misbehave, and the expected result.
pub(crate) struct Case {
    /// Name of the agent and the work.
    pub(crate) name: &'static str,
    pub(crate) keys: &'static str,
    pub(crate) script: Script,
    /// `completed`, or the failure.
    pub(crate) ends: &'static str,
    /// The clause that must be recorded, if a rule is broken.
    pub(crate) clause: Option<&'static str>,
}

/// The result of a case.
pub(crate) struct Ended {
    pub(crate) name: &'static str,
    pub(crate) door: &'static str,
    /// The job, with its violations and the like.
    pub(crate) job: Value,
}

/// A server with an agent for each case, and the scripts of these agents.
pub(crate) struct Setup {
    pub(crate) server: Server,
    pub(crate) scripted: ScriptedAgent,
    cases: &'static [Case],
    contract: &'static str,
}

impl Case {
    /// Limits the total time, so that a job that waits in vain does not wait for an hour.
    fn keys(&self) -> String {
        let total = if self.keys.contains("total_seconds") { "" } else { "total_seconds = 45" };
        format!("{}\n{total}", self.keys)
    }

    /// The end as the caller of the run door sees it: its status, and the code of an error.
    fn in_run(&self) -> (&'static str, Option<&'static str>) {
        match self.ends {
            "completed" => ("ok", None),
            "broken_contract" => ("error", Some("AGENT_BROKE_CONTRACT")),
            "timeout" => ("error", Some("TIMEOUT")),
            "unavailable" => ("error", Some("AGENT_UNAVAILABLE")),
            "resource_limit" => ("error", Some("RESOURCE_LIMIT")),
            "conflict" => ("error", Some("CONFLICT")),
            "unsupported" => ("error", Some("UNSUPPORTED_TASK_TYPE")),
            // The code is the agent's own.
            "agent_failed" => ("error", None),
            other => panic!("no test has a job that ends as {other}"),
        }
    }

    /// Whether repeating is reported as safe.
    fn repeat(&self) -> Option<&'static str> {
        match self.ends {
            "completed" => None,
            "broken_contract" | "timeout" | "unavailable" => Some("unknown"),
            _ => Some("never"),
        }
    }
}

impl Setup {
    /// Starts everything that these cases need.
    pub(crate) fn start(contract: &'static str, cases: &'static [Case]) -> Setup {
        let scripted = ScriptedAgent::start_many(move |asked: &Request, connection: &mut Connection| {
            let case = cases.iter().find(|case| case.name == asked.agent).expect("the path names a case");
            (case.script)(asked, connection)
        });
        let agents: String = cases.iter().map(|case| scripted.agent(contract, case.name, &case.keys())).collect();
        Setup { server: Server::configured(&agents), scripted, cases, contract }
    }

    /// Runs every case through the native door and through the run door, all at once, and prints the results.
    pub(crate) fn run_all(&self) -> Vec<Ended> {
        let ended: Vec<Ended> = thread::scope(|scope| {
            let running = self.cases.iter().flat_map(|case| {
                [
                    scope.spawn(move || self.through_the_native_door(case)),
                    scope.spawn(move || self.through_the_run_door(case)),
                ]
            });
            let running: Vec<_> = running.collect();
            running.into_iter().map(|one| one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        });
        print_table(self.contract, &ended);
        ended
    }

    /// One job from the native door: one outcome, as the last event, and the broken rule recorded.
    pub(crate) fn through_the_native_door(&self, case: &Case) -> Ended {
        let body = json!({"work": case.name, "input": {"case": case.name}, "limits": {"attempts": 1}});
        let id = self.server.submit(&body.to_string())["id"].as_str().expect("an id").to_owned();
        self.judged(case, "native", &id)
    }

    /// One stream from the run door: it keeps to its contract, even if the agent's stream did not.
    fn through_the_run_door(&self, case: &Case) -> Ended {
        let request_id = format!("{} \u{1f980} of the caller", case.name);
        let body = json!({"request_id": request_id, "task_type": case.name, "inputs": {"case": case.name}});
        let stream = stream(&self.server, &body);
        let last = terminal(&stream);
        let (status, code) = case.in_run();
        assert_eq!(
            (&last["request_id"], &last["status"]),
            (&json!(request_id), &json!(status)),
            "{}: {last}",
            case.name
        );
        if let Some(code) = code {
            assert_eq!(last["error"]["code"], code, "{}: {last}", case.name);
        }
        if let Some(repeat) = case.repeat() {
            assert_eq!(last["error"]["details"]["repeat"], repeat, "{}: {last}", case.name);
        }
        let jobs = self.server.get(&format!("/api/v1/jobs?work={}&door=run", case.name)).json();
        let id = jobs["jobs"][0]["id"].as_str().expect("there is a job").to_owned();
        self.judged(case, "run", &id)
    }

    fn judged(&self, case: &Case, door: &'static str, id: &str) -> Ended {
        let ended = self.server.ended(id);
        let (status, failure) = (&ended["outcome"]["status"], &ended["outcome"]["failure"]);
        let name = case.name;
        if case.ends == "completed" {
            assert_eq!(status, "completed", "{name}: {ended}");
            assert_eq!(ended["outcome"]["outputs"], json!({"by": name}), "{name}");
        } else {
            let expected = (&json!("failed"), &json!(case.ends), &json!(case.repeat()));
            assert_eq!((status, &failure["code"], &failure["repeat"]), expected, "{name}: {ended}");
        }
        one_outcome(&self.server, id, name);
        // Violations after the end of the work are recorded later.
        let job = until(&format!("{name} is on record"), || {
            let job = self.server.job(id);
            case.clause.is_none_or(|clause| clauses(&job).iter().any(|found| found == clause)).then_some(job)
        });
        assert_eq!(job["outcome"], ended["outcome"], "{name}: an outcome never changes");
        Ended { name, door, job }
    }
}

/// The clauses that are recorded for a job.
pub(crate) fn clauses(job: &Value) -> Vec<String> {
    let found = job["violations"].as_array().cloned().unwrap_or_default();
    found.iter().map(|one| one["clause"].as_str().expect("a clause has an id").to_owned()).collect()
}

/// Checks the events of a job that has ended: one outcome, and nothing after it.
pub(crate) fn one_outcome(server: &Server, id: &str, about: &str) {
    let events = server.fetch(&format!("/api/v1/jobs/{id}/events")).text();
    let names: Vec<&str> = events.lines().filter_map(|line| line.strip_prefix("event:")).map(str::trim).collect();
    let ends = |name: &&&str| ["completed", "failed", "cancelled"].contains(name);
    assert_eq!(names.iter().filter(ends).count(), 1, "{about}: {names:?}");
    assert!(names.last().as_ref().is_some_and(ends), "{about}: {names:?}");
}

/// The run door's stream for a request, to its end.
pub(crate) fn stream(server: &Server, body: &Value) -> String {
    let body = body.to_string();
    let mut connection = server.connect();
    let headers = [("content-type", "application/json")];
    let head = head("POST", "/agents/run/stream", &headers, body.len());
    connection.write_all((head + &body).as_bytes()).expect("it can be asked");
    let answer = Answer::read(&mut BufReader::new(connection)).expect("it is answered to the end");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.text()
}

/// The data of the one terminal event of a stream, which must have no findings.
pub(crate) fn terminal(stream: &str) -> Value {
    let options = Options { kind: Some(Kind::RunStream), ..Options::default() };
    let reading = document::read(stream.as_bytes(), &options);
    assert!(reading.report.findings.is_empty(), "{:?}\n{stream}", reading.report);
    let last = stream.trim_end().rsplit("\n\n").next().unwrap_or_default();
    assert!(last.starts_with("event: final\n"), "{stream}");
    let data: Vec<&str> = last.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    serde_json::from_str(&data.join("\n")).expect("it is JSON")
}

/// Peak memory of a server so far, in MiB.
pub(crate) fn peak_mib(server: &Server) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("it is there");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") >> 10
}

fn print_table(contract: &str, ended: &[Ended]) {
    let mut out =
        format!("\n{:<32} {:<7} {:<16} {:<8} on record\n", format!("a {contract} agent"), "door", "ended as", "repeat");
    for Ended { name, door, job } in ended {
        let failure = &job["outcome"]["failure"];
        let ended = failure["code"].as_str().or(job["outcome"]["status"].as_str()).unwrap_or_default();
        let mut found = clauses(job);
        found.dedup();
        let repeat = failure["repeat"].as_str().unwrap_or_default();
        out += &format!("{name:<32} {door:<7} {ended:<16} {repeat:<8} {}\n", found.join(" "));
    }
    let _ = std::io::stdout().lock().write_all(out.as_bytes());
}
