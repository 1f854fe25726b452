//! A program as an agent: its input, its output, and how it ends.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::support::programs::{agent, bash, python, violations};
use crate::support::server::Server;

#[test]
fn a_program_gets_its_environment_and_nothing_else() {
    let keys = "env = { A_SECRET = \"s3cret\" }\nwork = [\"show\"]";
    let server = Server::configured(&(agent("shower", &["env"], keys) + &agent("where", &["pwd"], "")));
    let job = server.post("/api/v1/jobs?wait=60", r#"{"work": "show", "request_id": "mine-1"}"#).json();
    let printed = job["outcome"]["outputs"]["output"].as_str().unwrap_or_else(|| panic!("{job}"));
    let mut env: BTreeMap<&str, &str> = printed.lines().filter_map(|line| line.split_once('=')).collect();
    let id = job["id"].as_str().expect("an id");
    let trace: Vec<&str> = env.remove("TRACEPARENT").expect("it is there").split('-').collect();
    assert_eq!((trace[0], trace[1], trace[2].len(), trace[3]), ("00", id.replace('-', "").as_str(), 16, "01"));
    assert!(trace[2].bytes().all(|byte| byte.is_ascii_hexdigit()) && trace[2] != "0000000000000000");
    let usual: Vec<(&str, String)> =
        ["PATH", "LANG", "TMPDIR"].iter().filter_map(|name| Some((*name, std::env::var(name).ok()?))).collect();
    let mut expected: BTreeMap<&str, &str> = usual.iter().map(|(name, value)| (*name, value.as_str())).collect();
    expected.extend([("CROSSPOINT_JOB_ID", id), ("CROSSPOINT_REQUEST_ID", "mine-1"), ("CROSSPOINT_WORK", "show")]);
    expected.insert("A_SECRET", "s3cret");
    assert_eq!(env, expected);
    let directory = server.directory().canonicalize().expect("it is there");
    let outputs = server.done("where", &json!({}))["outcome"]["outputs"].clone();
    assert_eq!(outputs, json!({"output": format!("{}\n", directory.display())}));
}

#[test]
fn the_input_is_one_line_with_every_value_as_it_was_spelled() {
    let script = "import sys, json; lines = sys.stdin.readlines(); print(json.dumps({'lines': lines}))";
    let server = Server::configured(&python("lines", script, ""));
    let sent =
        "{\"work\": \"lines\", \"input\": {\r\n  \"n\": 1.50,\n  \"t\": \"a\\nb\",\n  \"u\": \"gr\\u00fc\u{df}e\"\n}}";
    let lines = |body: &str| server.post("/api/v1/jobs?wait=60", body).json()["outcome"]["outputs"]["lines"].clone();
    assert_eq!(lines(sent), json!(["{  \"n\": 1.50,  \"t\": \"a\\nb\",  \"u\": \"gr\\u00fc\u{df}e\"}\n"]));
    assert_eq!(lines(r#"{"work": "lines", "input": "just text"}"#), json!(["\"just text\"\n"]));
    assert_eq!(lines(r#"{"work": "lines", "input": [1, 2]}"#), json!(["[1, 2]\n"]));
    assert_eq!(lines(r#"{"work": "lines"}"#), json!(["{}\n"]));
}

#[test]
fn a_program_need_not_read_its_input_and_may_print_before_it_does() {
    let first = "import sys; sys.stdout.write('x' * 1000000 + '\\n'); sys.stdout.flush(); print('{\"read\": %d}' % len(sys.stdin.read()))";
    let configuration = [
        agent("never", &["true"], ""),
        bash("closes", "exec 0<&-; echo '{\"closed\": true}'", ""),
        python("prints_first", first, ""),
        bash("falls_silent", "echo last words; exec >&- 2>&-; sleep 0.3; exit 3", ""),
    ];
    let server = Server::configured(&configuration.concat());
    let input = json!({"long": "y".repeat(2_000_000)});
    assert_eq!(server.done("never", &input)["outcome"]["outputs"], json!({"output": ""}));
    assert_eq!(server.done("closes", &input)["outcome"]["outputs"], json!({"closed": true}));
    let job = server.done("prints_first", &input);
    assert_eq!(job["outcome"]["outputs"], json!({"read": input.to_string().len() + 1}));
    // Closing its stdout does not end a program.
    assert_eq!(server.done("falls_silent", &input)["outcome"]["failure"]["details"]["exit_code"], 3);
}

#[test]
fn outputs_are_what_was_given_else_the_last_object_else_the_text() {
    let given = r#"echo '@crosspoint {"outputs": {"first": 1}}'; echo '{"printed": 1}'; echo '@crosspoint {"outputs": {"n": 1.50}}'"#;
    let configuration = [
        bash("given", given, ""),
        bash("object", r#"echo start; echo '{"a": 1}'; echo ' {"b": 2.0} '; echo '{"c'; echo end"#, ""),
        bash("text", "echo one; printf two", ""),
        bash("nothing", "exit 0", ""),
    ];
    let server = Server::configured(&configuration.concat());
    // The spelling is kept, so the answer is compared as text.
    let answer = server.post("/api/v1/jobs?wait=60", r#"{"work": "given"}"#).text();
    assert!(answer.contains(r#""outputs":{"n": 1.50},"#), "{answer}");
    let outputs = |work: &str| server.done(work, &json!({}))["outcome"]["outputs"].clone();
    assert_eq!(outputs("object"), json!({"b": 2.0}));
    assert_eq!(outputs("text"), json!({"output": "one\ntwo"}));
    assert_eq!(outputs("nothing"), json!({"output": ""}));
}

#[test]
fn progress_and_artifacts_are_told_and_are_no_output() {
    let script = r#"
echo '@crosspoint {"progress": 40, "step": "Configure"}'
echo '@crosspoint {"artifact": {"name": "a.txt", "type": "text/plain", "content": "A"}}'
echo '@crosspoint {"artifact": {"name": "b.json", "content": {"n": 1}}}'
echo line
echo '@crosspoint {"progress": 250}'
"#;
    let server = Server::configured(&bash("works", script, ""));
    let job = server.done("works", &json!({}));
    assert_eq!(job["outcome"]["outputs"], json!({"output": "line\n"}));
    let artifacts =
        json!([{"name": "a.txt", "type": "text/plain", "content": "A"}, {"name": "b.json", "content": {"n": 1}}]);
    assert_eq!(job["outcome"]["artifacts"], artifacts);
    assert_eq!(job["progress"], json!({"percent": 100, "step": "Configure"}));
    assert!(violations(&job).is_empty(), "{job}");
}

#[test]
fn a_line_that_is_malformed_is_output_and_a_violation() {
    let script = r#"
echo '@crosspoint {"progres": 40}'
echo '@crosspoint {"progres": 50}'
echo '@crosspoint {"progress": "40"}'
echo '@crosspoint done'
echo 'see @crosspoint {"progress": 1}'
echo '@crosspointless'
"#;
    let server = Server::configured(&bash("errs", script, ""));
    let job = server.done("errs", &json!({}));
    let printed: String = script
        .lines()
        .filter_map(|line| line.strip_prefix("echo '"))
        .map(|line| line.trim_end_matches('\'').to_owned() + "\n")
        .collect();
    assert_eq!(job["outcome"]["outputs"], json!({"output": printed}));
    assert_eq!(job["state"], "completed");
    let violations = violations(&job);
    assert_eq!(violations.len(), 2, "each rule once: {violations:?}");
    assert!(violations[0].contains("wrong type, or lacked one") && violations[1].contains("no JSON object"));
}

#[test]
fn exit_codes_and_signals_are_failures_with_the_end_of_stderr() {
    let long = "import sys; sys.stderr.write('ü' * 5000 + 'end'); sys.exit(7)";
    let configuration =
        [python("fails", long, ""), bash("killed", "echo dying >&2; kill -SEGV $$", ""), bash("quiet", "exit 1", "")];
    let server = Server::configured(&configuration.concat());
    let failure = |work: &str| server.done(work, &json!({}))["outcome"]["failure"].clone();
    let failed = failure("fails");
    assert_eq!((&failed["code"], &failed["details"]["exit_code"]), (&json!("agent_failed"), &json!(7)));
    let stderr = failed["details"]["stderr"].as_str().expect("a text");
    assert!(stderr.len() <= 4096 && stderr.len() > 4000 && stderr.ends_with("üend") && !stderr.contains('\u{fffd}'));
    let killed = failure("killed");
    assert_eq!(killed["details"], json!({"signal": 11, "stderr": "dying\n"}));
    assert_eq!(killed["repeat"], "never");
    assert_eq!(failure("quiet")["details"], json!({"exit_code": 1, "stderr": ""}));
}

#[test]
fn bytes_that_are_no_text_are_kept_and_the_text_says_that_it_is_not_all() {
    let script = r"printf 'a\xff\x00\xfe\n'; printf 'plain\n'; printf '\xc3'; sleep 0.5; printf '\xbc'";
    let server = Server::configured(&bash("binary", script, ""));
    let job = server.done("binary", &json!({}));
    let outputs = &job["outcome"]["outputs"];
    assert_eq!(outputs["output"], "a\u{fffd}\u{0}\u{fffd}\nplain\nü");
    assert_eq!(outputs["output_encoding"], "lossy");
    let stream = server.get(&format!("/api/v1/jobs/{}/events", job["id"].as_str().expect("an id"))).text();
    let data = stream.lines().filter_map(|line| line.strip_prefix("data:"));
    let events: Vec<Value> = data.map(|data| serde_json::from_str(data).expect("JSON")).collect();
    let blocks: Vec<&Value> = events.iter().filter(|event| event["offset"].is_u64()).collect();
    let printed: Vec<u8> = blocks.iter().flat_map(|block| bytes_of(block)).collect();
    assert_eq!(printed, b"a\xff\x00\xfe\nplain\n\xc3\xbc");
    // Text is not repeated as bytes, and a character that came in two parts is one, wherever the blocks are cut.
    let text_of = |block: &Value| block["text"].as_str().expect("a text").to_owned();
    let has_all = |block: &Value| !text_of(block).contains('\u{fffd}');
    assert!(blocks.iter().all(|block| has_all(block) == block["base64"].is_null()), "{blocks:?}");
    let text: String = blocks.iter().map(|block| text_of(block)).collect();
    assert_eq!(text, "a\u{fffd}\u{0}\u{fffd}\nplain\n\u{fc}");
}

/// The content of a block of output: its bytes if the text is incomplete, else the text.
fn bytes_of(block: &Value) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let Some(base64) = block["base64"].as_str() else { return block["text"].as_str().expect("a text").into() };
    let mut bytes = Vec::new();
    for four in base64.as_bytes().chunks(4) {
        let value = |byte: &u8| ALPHABET.iter().position(|known| known == byte).unwrap_or(0);
        let bits = four.iter().fold(0, |bits, byte| (bits << 6) | value(byte));
        let padding = four.iter().filter(|byte| **byte == b'=').count();
        bytes.extend((0..3 - padding).map(|at| u8::try_from((bits >> (16 - 8 * at)) & 0xff).expect("a byte")));
    }
    bytes
}

#[test]
fn stderr_is_a_sign_of_life() {
    // Each program talks for twice as long as it may be silent. A slow machine may itself cause silence, so the next
    // try has more time.
    let times = [2, 8, 20];
    let talks = times.map(|seconds| {
        let talk =
            format!("end=$((SECONDS + {seconds} * 2)); while [ $SECONDS -lt $end ]; do echo here >&2; sleep 0.1; done");
        let script = talk + "; echo '{\"done\": true}'";
        bash(&format!("talks_{seconds}"), &script, &format!("silence_seconds = {seconds}"))
    });
    let server = Server::configured(&(talks.concat() + &bash("silent", "sleep 600", "silence_seconds = 1")));
    let done = |seconds: &i32| server.done(&format!("talks_{seconds}"), &json!({}))["outcome"]["outputs"].clone();
    assert!(times.iter().any(|seconds| done(seconds) == json!({"done": true})), "stderr counts for nothing");
    let job = server.done("silent", &json!({}));
    assert_eq!(job["outcome"]["failure"]["code"], "timeout", "{job}");
}

#[test]
fn nothing_that_a_program_gets_or_says_is_logged() {
    let script = r#"
read -r input
echo "s3cret output $input"; echo "s3cret stderr" >&2
echo '@crosspoint {"step": "s3cret step"}'
echo '@crosspoint {"s3cret": "member"}'
echo '@crosspoint {"ask": {"prompt": "s3cret prompt"}}'
read -r answer
echo "s3cret $answer" >&2
exit 5
"#;
    let keys = "ask = true\nenv = { TOKEN = \"s3cret variable\" }";
    let server = Server::with(&bash("teller", script, keys), &["--log", "debug"]);
    let body = r#"{"work": "teller", "input": {"text": "s3cret input"}}"#;
    let id = server.submit(body)["id"].as_str().expect("an id").to_owned();
    server.in_state(&id, "waiting");
    server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "s3cret answer"}"#);
    let failure = server.ended(&id)["outcome"]["failure"].clone();
    assert!(
        failure["details"]["stderr"].as_str().is_some_and(|stderr| stderr.ends_with("s3cret answer\"\n")),
        "{failure}"
    );
    let log = server.log();
    assert!(log.contains(&id) && !log.contains("s3cret"), "{log}");
}
