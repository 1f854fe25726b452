//! A program that fails is heard in its own words, and only by the caller of its job.

use serde_json::{Value, json};

use crate::support::bridge_caller::{new_id, request};
use crate::support::programs::{bash, violations};
use crate::support::server::Server;
use crate::support::workers::Worker;

/// The failure of a job that is tried once.
fn failure(server: &Server, work: &str) -> Value {
    server.done(work, &json!({}))["outcome"]["failure"].clone()
}

/// Hands in a job that the agent's own policy decides about.
fn settled(server: &Server, work: &str) -> Value {
    let id = server.begin(work);
    server.ended(&id);
    server.job(&id)
}

fn says(fail: &str, then: &str) -> String {
    format!("echo '@crosspoint {{\"fail\": {fail}}}'; {then}")
}

/// The directive's message, else the end of stderr, else the exit code.
#[test]
fn a_requester_is_told_why_in_the_programs_words() {
    let own = says(r#"{"code": "NO_PLAN", "message": "There is no plan to review."}"#, "echo noise >&2; exit 3");
    let agents = [
        bash("says", &own, ""),
        bash("prints", "echo early >&2; echo >&2; echo 'plan.md: no such file' >&2; echo >&2; exit 3", ""),
        bash("silent", "exit 3", ""),
        bash("dies", "echo 'about to die' >&2; kill -9 $$", ""),
    ];
    let server = Server::configured(&agents.concat());
    let cases = [
        ("says", "NO_PLAN", "There is no plan to review."),
        ("prints", "agent_failed", "early\nplan.md: no such file"),
        ("silent", "agent_failed", "The program ended with exit code 3."),
        ("dies", "agent_failed", "about to die"),
    ];
    for (agent, kind, message) in cases {
        let response = server.response_to(&request(&new_id(), agent, "Review it."));
        assert_eq!(response["status"], "error", "{response}");
        assert_eq!(
            (&response["error_type"], &response["error_message"]),
            (&json!(kind), &json!(message)),
            "{response}"
        );
    }
    let said = failure(&server, "says");
    assert_eq!((&said["code"], &said["repeat"]), (&json!("agent_failed"), &json!("never")), "{said}");
    assert_eq!(said["details"], json!({"code": "NO_PLAN", "exit_code": 3, "stderr": "noise\n"}));
}

#[test]
fn a_fail_counts_whatever_the_exit_code_is_and_the_last_one_counts() {
    let twice = [says(r#"{"message": "first"}"#, ""), says(r#"{"message": "second"}"#, "echo '{\"a\": 1}'; exit 0")];
    let agents = [
        bash("fine", &twice.concat(), ""),
        bash("text", &says(r#""just a text""#, "exit 0"), ""),
        bash("bare", &says("{}", "exit 0"), ""),
        bash("loose", &says(r#"{"code": 7, "message": "m", "at": "line 3"}"#, "exit 1"), ""),
    ];
    let server = Server::configured(&agents.concat());
    assert_eq!(failure(&server, "fine")["message"], "second");
    assert_eq!(failure(&server, "text")["message"], "just a text");
    assert_eq!(failure(&server, "bare")["message"], "The program reported that the work failed.");
    // What cannot be used is kept, and said to be wrong.
    let loose = server.done("loose", &json!({}));
    let failed = &loose["outcome"]["failure"];
    assert_eq!((&failed["code"], &failed["message"]), (&json!("agent_failed"), &json!("m")), "{failed}");
    assert_eq!(failed["details"]["fail"], json!({"code": 7, "message": "m", "at": "line 3"}), "{failed}");
    assert!(violations(&loose).iter().any(|rule| rule.contains("fail line")), "{loose}");
}

/// The failure list: safe, and repeated without `repeatable`.
#[test]
fn a_fail_that_may_be_retried_is_retried_without_being_asked_for() {
    let once =
        format!("[ -e tried ] && {{ echo done; exit 0; }}; touch tried; {}", says(r#"{"retry": true}"#, "exit 1"));
    let always = says(r#"{"code": "BUSY", "message": "The scanner is in use.", "retry": true}"#, "exit 0");
    let server = Server::configured(&[bash("once", &once, ""), bash("always", &always, "")].concat());
    let job = settled(&server, "once");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{job}");
    let failed = failure(&server, "always");
    assert_eq!((&failed["code"], &failed["repeat"]), (&json!("resource_limit"), &json!("safe")), "{failed}");
    assert_eq!(failed["message"], "The scanner is in use.");
    assert_eq!(failed["details"]["code"], "BUSY");
}

/// The failure list: unknown, and repeated only where the operator says that it does no harm.
#[test]
fn exit_code_75_and_those_of_the_configuration_mean_not_now() {
    let not_now = |name: &str, code: u8, keys: &str| {
        bash(name, &format!("[ -e {name} ] && exit 0; touch {name}; echo 'no room' >&2; exit {code}"), keys)
    };
    let agents = [
        not_now("usual", 75, ""),
        not_now("named", 69, "retry_exit_codes = [69, 111]"),
        not_now("other", 68, "retry_exit_codes = [69]"),
        not_now("repeated", 75, "repeatable = true"),
    ];
    let server = Server::configured(&agents.concat());
    for work in ["usual", "named"] {
        let job = settled(&server, work);
        let failed = &job["outcome"]["failure"];
        assert_eq!(job["attempts"], 1, "it may have begun: {job}");
        assert_eq!((&failed["code"], &failed["repeat"]), (&json!("resource_limit"), &json!("unknown")), "{failed}");
        assert_eq!(failed["message"], "no room", "{failed}");
    }
    assert_eq!(settled(&server, "other")["outcome"]["failure"]["code"], "agent_failed");
    let job = settled(&server, "repeated");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{job}");
}

#[test]
fn programs_of_joined_agents_are_heard_the_same_way() {
    let server = Server::start();
    let own = says(r#"{"code": "NO_PLAN", "message": "There is no plan."}"#, "exit 3");
    let once = format!("[ -e tried ] && exit 0; touch tried; {}", says(r#"{"retry": true}"#, "exit 1"));
    let _says = Worker::joined(&server, "says", &[], &["bash", "-c", &own]);
    let _once = Worker::joined(&server, "once", &[], &["bash", "-c", &once]);
    let _busy =
        Worker::joined(&server, "busy", &["--retry-exit-codes", "69,70"], &["bash", "-c", "echo full >&2; exit 70"]);
    let response = server.response_to(&request(&new_id(), "says", "Review it."));
    let told = (&response["error_type"], &response["error_message"]);
    assert_eq!(told, (&json!("NO_PLAN"), &json!("There is no plan.")), "{response}");
    let job = settled(&server, "once");
    assert_eq!((&job["state"], &job["attempts"]), (&json!("completed"), &json!(2)), "{job}");
    let job = settled(&server, "busy");
    let failed = &job["outcome"]["failure"];
    assert_eq!((&failed["code"], &failed["repeat"]), (&json!("resource_limit"), &json!("unknown")), "{failed}");
    assert_eq!((&failed["message"], &job["attempts"]), (&json!("full"), &json!(1)), "{job}");
}

/// ALL-11: what a program gives with a failure is kept like what it gives with a success, also of a joined agent.
#[test]
fn what_a_program_gives_before_it_fails_is_kept() {
    let given = r#"echo '@crosspoint {"outputs": {"half": 1}}'; echo '@crosspoint {"artifact": {"name": "a.txt", "content": "c"}}'; echo no >&2; exit 3"#;
    let server = Server::configured(&bash("own", given, ""));
    let _joined = Worker::joined(&server, "joined", &[], &["bash", "-c", given]);
    for work in ["own", "joined"] {
        let job = settled(&server, work);
        let outcome = &job["outcome"];
        assert_eq!((&outcome["status"], &outcome["outputs"]), (&json!("failed"), &json!({"half": 1})), "{work}: {job}");
        assert_eq!(outcome["artifacts"][0]["name"], "a.txt", "{work}: {job}");
        let body = json!({"request_id": work, "task_type": work, "inputs": {}}).to_string();
        let answer = server.post("/agents/run/sync", &body).json();
        assert_eq!((&answer["status"], &answer["outputs"]), (&json!("error"), &json!({"half": 1})), "{answer}");
    }
}

/// RUN-11: the words are content.
#[test]
fn no_word_of_a_failure_is_logged() {
    let own = says(r#"{"code": "x7secret", "message": "x7secret", "retry": true, "more": "x7secret"}"#, "exit 1");
    let agents = [bash("says", &own, ""), bash("prints", "echo x7secret >&2; exit 3", "")];
    let mut server = Server::with(&agents.concat(), &["--log", "debug"]);
    for work in ["says", "prints"] {
        let said = failure(&server, work);
        assert_eq!(said["message"], "x7secret", "its caller is told: {said}");
    }
    let worker = Worker::joined(&server, "joined", &[], &["bash", "-c", &own]);
    assert_eq!(failure(&server, "joined")["message"], "x7secret");
    worker.says("failed");
    assert!(!worker.said().contains("x7secret"), "{}", worker.said());
    assert!(server.stop().success());
    let log = server.log();
    assert!(log.contains("agent_failed") && !log.contains("x7secret"), "{log}");
}
