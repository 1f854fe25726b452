//! Programs that speak the workflow contract, well and badly.

use serde_json::{Value, json};

use crate::support::envelopes::{envelope, kept, output, program};
use crate::support::programs::nothing_runs_for;
use crate::support::server::Server;

/// A program that prints this, and then ends so.
fn prints(name: &str, printed: &str, then: &str, keys: &str) -> String {
    program(name, &format!("cat > /dev/null; cat <<'END'\n{printed}\nEND\n{then}"), keys)
}

fn clauses(job: &Value) -> Vec<String> {
    let list = job["violations"].as_array().cloned().unwrap_or_default();
    list.iter().map(|one| one["clause"].as_str().expect("a text").to_owned()).collect()
}

#[test]
fn a_program_gets_the_envelope_and_the_end_of_its_input() {
    let script = r#"cat > seen; echo "$MORE$CROSSPOINT_JOB_ID" > variables; echo log >&2
        echo '{"success":true,"summary":"Done.","artifacts":[],"recommendation":"proceed"}'"#;
    let server = Server::configured(&program("plan", script, "env = { MORE = \"x\" }\ncarry = false"));
    let job = server.done("plan", &json!({"a": [1, "ä"]}));
    assert_eq!(job["outcome"]["status"], "completed", "{job}");
    assert_eq!(job["outcome"]["outputs"], "Done.", "{job}");
    let id = job["id"].as_str().expect("an id");
    assert_eq!(server.said_in("variables"), format!("x{id}\n"), "it runs beside the configuration");
    let seen: Value = serde_json::from_str(&server.said_in("seen")).expect("it is JSON");
    assert_eq!(
        seen,
        json!({
            "context": {"feature_id": null, "workflow": "crosspoint", "iteration": 1},
            "paths": {},
            "task": {"action": "plan", "params": {"a": [1, "ä"]}},
        })
    );
}

#[test]
fn an_answer_that_cannot_be_read_breaks_the_contract_and_is_kept() {
    let fine = output(true, "Fine.", "proceed").to_string();
    let agents = [
        prints("garbage", "no envelope at all", "", ""),
        program("nothing", "cat > /dev/null", ""),
        prints("twice", &format!("{fine}\n{fine}"), "", ""),
        program("bytes", r#"cat > /dev/null; printf '{"success":true,"summary":"\xff"}'"#, ""),
        prints("undecided", r#"{"summary": "Who knows.", "artifacts": [], "recommendation": "retry"}"#, "", ""),
        prints("speechless", r#"{"success": true, "artifacts": [], "recommendation": "proceed"}"#, "", ""),
        prints("ambiguous", r#"{"success": true, "success": false, "summary": "Both."}"#, "", ""),
    ];
    let server = Server::configured(&agents.concat());
    for agent in ["garbage", "nothing", "twice", "bytes", "undecided", "speechless", "ambiguous"] {
        let job = server.done(agent, &json!({}));
        let failure = &job["outcome"]["failure"];
        assert_eq!(failure["code"], "broken_contract", "{agent}: {job}");
        assert_eq!(failure["details"]["answer"].is_string(), agent != "nothing", "{agent}: {failure}");
        assert_ne!(clauses(&job), Vec::<String>::new(), "{agent}: {job}");
    }
    let told = server.give("garbage", &envelope("garbage", &json!({}))).json();
    assert_eq!((&told["success"], &told["recommendation"]), (&json!(false), &json!("retry")), "{told}");
}

#[test]
fn what_else_is_wrong_is_a_violation_and_the_outcome_stands() {
    let mut outside = output(true, "Wrote it.", "proceed");
    outside["artifacts"] = json!([
        {"path": "../etc/passwd", "operation": "create", "content": "x"},
        {"path": "a.md", "operation": "create", "content": "x"},
    ]);
    let fine = output(true, "Fine.", "proceed");
    let pretty = format!("loading\n[warn] slow\n{}", serde_json::to_string_pretty(&fine).expect("JSON"));
    let agents = [
        prints("outside", &outside.to_string(), "", ""),
        prints("logs", &pretty, "", ""),
        prints("directive", &format!("@crosspoint {{\"progress\": 40}}\n{fine}"), "", ""),
        prints("short", r#"{"success": true, "summary": "Fine."}"#, "", ""),
        prints(
            "state",
            r#"{"success": true, "summary": "Fine.", "artifacts": [], "recommendation": "proceed", "state_updates": {}}"#,
            "",
            "",
        ),
    ];
    let server = Server::configured(&agents.concat());
    for (agent, clause) in
        [("outside", "WF-4.2"), ("logs", "WF-8"), ("directive", "WF-8"), ("short", "WF-106"), ("state", "WF-114")]
    {
        let job = server.done(agent, &json!({}));
        assert_eq!(job["outcome"]["status"], "completed", "{agent}: {job}");
        assert!(clauses(&job).contains(&clause.to_owned()), "{agent}: {job}");
        // What is written to the caller is right, but for members that only mean nothing.
        if agent != "state" {
            server.give(agent, &envelope(agent, &json!({})));
        }
    }
}

/// An exit code says less than an envelope does.
#[test]
fn an_exit_code_counts_beside_the_envelope() {
    let agents = [
        prints("said", &output(false, "No plan.", "retry").to_string(), "echo noise >&2; exit 3", ""),
        prints("denied", &output(true, "Done.", "proceed").to_string(), "echo 'disk full' >&2; exit 3", ""),
        prints("plain", "half an answer", "echo 'disk full' >&2; exit 3", ""),
        prints("later", &output(false, "Busy.", "retry").to_string(), "exit 75", ""),
        prints("half", "half an answer", "exit 75", ""),
        prints("signal", "", "kill -9 $$", ""),
    ];
    let server = Server::configured(&agents.concat());
    let failure = |agent: &str| {
        let job = server.done(agent, &json!({}));
        let failure = job["outcome"]["failure"].clone();
        (failure["code"].clone(), failure["message"].clone(), failure["details"]["exit_code"].clone(), job)
    };
    let (code, message, exit, job) = failure("said");
    assert_eq!((code, message, exit), (json!("agent_failed"), json!("No plan."), json!(3)), "{job}");
    assert!(clauses(&job).contains(&"WF-8".to_owned()), "{job}");
    assert_eq!(server.give("said", &envelope("said", &json!({}))).json()["recommendation"], "retry");
    let (code, message, exit, job) = failure("denied");
    assert_eq!((code, message, exit), (json!("agent_failed"), json!("disk full"), json!(3)), "{job}");
    assert_eq!(job["outcome"]["outputs"], "Done.", "what it gave is kept: {job}");
    assert!(clauses(&job).contains(&"WF-8".to_owned()), "{job}");
    let (code, message, _, job) = failure("plain");
    assert_eq!((code, message), (json!("agent_failed"), json!("disk full")), "{job}");
    assert_eq!(job["outcome"]["outputs"], "half an answer", "{job}");
    let (code, _, _, job) = failure("later");
    assert_eq!((code, &job["outcome"]["failure"]["repeat"]), (json!("resource_limit"), &json!("unknown")), "{job}");
    assert!(job["outcome"]["outputs"].as_str().is_some_and(|given| given.contains("Busy.")), "{job}");
    let (code, _, _, job) = failure("half");
    assert_eq!((code, &job["outcome"]["outputs"]), (json!("resource_limit"), &json!("half an answer")), "{job}");
    assert_eq!(failure("signal").0, "agent_failed");
}

#[test]
fn a_program_that_prints_without_end_or_hangs_is_ended() {
    let agents = [
        program("floods", "cat > /dev/null; exec yes", "output_bytes = 100000"),
        program("hangs", "cat > /dev/null; exec sleep 600", "total_seconds = 0.5"),
    ];
    let server = Server::configured(&agents.concat());
    let flood = server.done("floods", &json!({}));
    assert_eq!(flood["outcome"]["failure"]["code"], "resource_limit", "{flood}");
    assert!(clauses(&flood).contains(&"ALL-145".to_owned()), "{flood}");
    let hang = server.done("hangs", &json!({}));
    assert_eq!(hang["outcome"]["failure"]["code"], "timeout", "{hang}");
    for job in [&flood, &hang] {
        nothing_runs_for(job["id"].as_str().expect("an id"));
    }
    let held = Server::configured(&program("held", "cat > /dev/null; exec sleep 600", ""));
    let id = held.begin("held");
    held.in_state(&id, "running");
    held.cancel(&id);
    nothing_runs_for(&id);
}

/// ALL-3: a program died with the server, so it runs again.
#[test]
fn a_program_that_the_end_of_the_server_cut_short_runs_again() {
    let script = "cat > /dev/null; if [ -e began ]; then cat answer; else touch began; exec sleep 600; fi";
    let mut server = Server::configured(&program("again", script, ""));
    std::fs::write(server.directory().join("answer"), kept("output-minimal.json")).expect("it can be written");
    let id = server.begin("again");
    crate::support::server::until("it began", || server.directory().join("began").exists().then_some(()));
    server.kill();
    server.restart();
    let job = server.ended(&id);
    assert_eq!((&job["outcome"]["status"], &job["attempts"]), (&json!("completed"), &json!(2)), "{job}");
}
