//! `crosspoint validate`

use std::fs;

use serde_json::Value;

use crate::support::program::{crosspoint, transcript};

const GOOD: &str = "testdata/bridge/response-printed_success.json";
const BAD: &str = "testdata/broken/bridge/BRIDGE-2.json";

fn json_lines(arguments: &[&str]) -> (i32, Vec<Value>) {
    let output = crosspoint(&["validate", "--format", "json"]).args(arguments).output().expect("the program starts");
    let lines = String::from_utf8(output.stdout).expect("output is UTF-8");
    let values = lines.lines().map(|line| serde_json::from_str(line).expect("one object a line")).collect();
    (output.status.code().expect("the program exits"), values)
}

/// The mistakes people make with `.agent-response.json`, as the tool explains them.
#[test]
fn the_five_mistakes_are_named() {
    // 1: result for response. 2 and 3, an object or a value that was not encoded, give the same file. 4: fields
    // missing. 5: a number in quotes.
    let told: Vec<String> = ["BRIDGE-2", "BRIDGE-1.2-object", "BRIDGE-1-incomplete", "BRIDGE-6"]
        .iter()
        .map(|case| transcript(&mut crosspoint(&["validate", &format!("testdata/broken/bridge/{case}.json")])))
        .collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// The types that an operator adds may be some of the contract's own.
#[test]
fn every_agent_type_is_listed_once() {
    let arguments =
        ["validate", "--agent-type", "infra", "--agent-type", "audit", "testdata/broken/message/MSG-1.4.json"];
    let said = transcript(&mut crosspoint(&arguments));
    assert!(said.contains("is none of orchestrator, infra, desktop, code, research, audit\n"), "{said}");
}

/// A payload without its envelope is told where its members belong, and a list to take its documents out.
#[test]
fn documents_without_their_envelope_have_a_hint() {
    let validate = |arguments: &[&str], text: &str| {
        transcript(crosspoint(&["validate", "-"]).args(arguments).write_stdin(text.to_owned()))
    };
    let payload = r#"{"task_id": "550e8400-e29b-41d4-a716-446655440004", "work_type": "ping"}"#;
    let said = validate(&["--as", "message.work_request"], payload);
    assert!(said.contains("and put what this type of message says inside"), "{said}");
    for text in [payload, r#"{"messages": []}"#] {
        let said = validate(&[], text);
        assert!(said.starts_with("exit 2") && said.contains("one document at a time, with its envelope"), "{said}");
    }
}

/// Following only the hints mends the file with all five mistakes.
#[test]
fn the_hints_mend_the_five_mistakes() {
    let mended = r#"{
  "request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5",
  "version": "1.0",
  "status": "success",
  "response": "{\"sections\": [\"boundaries\"]}",
  "error_message": null,
  "error_type": null,
  "created_at": "2025-11-24T14:22:45+00:00",
  "duration_seconds": 1.0,
  "metadata": {}
}"#;
    let broken = r#"{"status": "success", "result": {"sections": ["boundaries"]}, "duration_seconds": "1.0"}"#;
    let hints = transcript(crosspoint(&["validate", "--as", "bridge.response"]).write_stdin(broken));
    for hint in [
        "Rename `result` to `response`.",
        "json.dumps(output)",
        "\"version\": \"1.0\"",
        "\"error_message\": null",
        "\"error_type\": null",
        "\"created_at\": \"2025-11-24T14:22:45+00:00\"",
        "without quotes: 1.0",
        "\"metadata\": {}",
        "Copy \"request_id\" from the request file.",
    ] {
        assert!(hints.contains(hint), "{hint}: {hints}");
    }
    let said = transcript(crosspoint(&["validate", "--strict", "--inner", "json"]).write_stdin(mended));
    assert!(said.starts_with("exit 0"), "{said}");
}

#[test]
fn inner_json_is_checked_where_it_is_asked_for() {
    let path = "testdata/broken/bridge/BRIDGE-5.2.json";
    insta::assert_snapshot!(transcript(&mut crosspoint(&["validate", "--inner", "json", path])));
    assert!(transcript(&mut crosspoint(&["validate", path])).starts_with("exit 0"));
}

#[test]
fn a_valid_document_is_said_to_be_valid() {
    insta::assert_snapshot!(transcript(&mut crosspoint(&["validate", GOOD])));
}

#[test]
fn a_stream_is_judged_at_its_lines() {
    insta::assert_snapshot!(transcript(&mut crosspoint(&["validate", "testdata/broken/run/RUN-9.sse"])));
}

#[test]
fn exit_codes() {
    let code =
        |arguments: &[&str]| crosspoint(&["validate"]).args(arguments).output().expect("it starts").status.code();
    let warned = "testdata/run/response-loose.json";
    assert_eq!(code(&[GOOD]), Some(0));
    assert_eq!(code(&[warned]), Some(0));
    assert_eq!(code(&["--strict", warned]), Some(1));
    assert_eq!(code(&["--strict", GOOD]), Some(0));
    assert_eq!(code(&[BAD]), Some(1));
    assert_eq!(code(&[GOOD, BAD, "testdata/nowhere.json"]), Some(2));
    assert_eq!(code(&["Cargo.toml"]), Some(1), "not JSON: that is an answer");
    assert_eq!(code(&["schemas/run.request.json"]), Some(2), "of no kind");
    assert_eq!(code(&["--as", "task.request", BAD]), Some(1));
}

#[test]
fn json_output_has_the_promised_members() {
    let (code, lines) = json_lines(&[GOOD, BAD, "testdata/nowhere.json"]);
    assert_eq!(code, 2);
    let [good, bad, nowhere] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&good["file"], &good["kind"], &good["valid"]), (&GOOD.into(), &"bridge.response".into(), &true.into()));
    assert_eq!(good["findings"], serde_json::json!([]));
    assert_eq!(bad["valid"], false);
    let finding = &bad["findings"][0];
    assert_eq!((&finding["clause"], &finding["level"]), (&"BRIDGE-2".into(), &"error".into()));
    assert_eq!((&finding["pointer"], &finding["line"], &finding["column"]), (&"/result".into(), &5.into(), &3.into()));
    assert!(finding["message"].is_string() && finding["hint"].is_string());
    assert_eq!((&nowhere["kind"], &nowhere["valid"]), (&Value::Null, &false.into()));
    assert!(nowhere["error"].is_string());
}

#[test]
fn strict_is_what_json_calls_valid_too() {
    let (code, lines) = json_lines(&["--strict", "testdata/run/response-loose.json"]);
    assert_eq!((code, &lines[0]["valid"]), (1, &false.into()));
}

#[test]
fn standard_input_is_read() {
    let document = fs::read(crate::support::program::root().join(BAD)).expect("the document is there");
    for arguments in [&["validate", "--format", "json"][..], &["validate", "--format", "json", "-"]] {
        let output = crosspoint(arguments).write_stdin(document.clone()).output().expect("it starts");
        let line: Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!((&line["file"], &line["findings"][0]["clause"]), (&"-".into(), &"BRIDGE-2".into()));
    }
}

#[test]
fn directories_are_searched_in_order() {
    let (code, lines) = json_lines(&["testdata/run", "testdata/broken/run"]);
    let files: Vec<&str> = lines.iter().filter_map(|line| line["file"].as_str()).collect();
    assert_eq!(code, 1);
    assert!(files.contains(&"testdata/run/stream-full.sse") && files.contains(&"testdata/broken/run/RUN-2.json"));
    let (golden, broken) =
        files.split_at(files.iter().position(|file| file.contains("broken")).expect("both are there"));
    assert!(golden.is_sorted() && broken.is_sorted());
}

#[test]
fn hidden_response_files_are_found_and_known_by_name() {
    let directory = std::env::temp_dir().join(format!("crosspoint-validate-{}", std::process::id()));
    fs::create_dir_all(directory.join(".git")).expect("the directory can be made");
    fs::write(directory.join(".agent-response.json"), r#"{"result": {"sections": []}}"#).expect("it can be written");
    fs::write(directory.join(".git/ignored.json"), "{").expect("it can be written");
    fs::write(directory.join("notes.txt"), "not a document").expect("it can be written");
    let (code, lines) = json_lines(&[directory.to_str().expect("the path is UTF-8")]);
    fs::remove_dir_all(&directory).expect("it can be removed");
    assert_eq!((code, lines.len()), (1, 1));
    assert_eq!(lines[0]["kind"], "bridge.response");
}

#[test]
fn ambiguous_and_unknown_kinds_say_what_was_tried() {
    let ambiguous = transcript(crosspoint(&["validate"]).write_stdin(r#"{"result": {}}"#));
    let unknown = transcript(crosspoint(&["validate"]).write_stdin(r#"{"name": "x"}"#));
    insta::assert_snapshot!(format!("{ambiguous}\n{unknown}"));
}

#[test]
fn malformed_documents_show_the_place() {
    let python = "{\"request_id\": \"1\",\n  \"prompt\": None}";
    let cut = "{\"request_id\": \"1\",\n  \"prompt\": \"abc";
    let told: Vec<String> =
        [python, cut, ""].iter().map(|source| transcript(crosspoint(&["validate"]).write_stdin(*source))).collect();
    insta::assert_snapshot!(told.join("\n"));
}

/// A document cannot colour the terminal, move its cursor or flood it.
#[test]
fn output_is_safe_and_short_whatever_the_document() {
    let escape = "{\"request_id\": \"\u{1b}[31m\u{202e}\u{7f}\", \"task_type\": 7}";
    let told = transcript(crosspoint(&["validate", "--as", "run.request"]).write_stdin(escape));
    assert!(!told.contains('\u{1b}') && !told.contains('\u{202e}'), "{told:?}");
    let long = format!("{{\"request_id\": \"{}\", \"task_type\": 7}}", "長".repeat(100_000));
    let told = transcript(crosspoint(&["validate", "--as", "run.request"]).write_stdin(long));
    assert!(told.len() < 2_000 && told.contains("..."), "{}", told.len());
}

/// A reader that reads only the first line still gets the verdict on everything.
#[test]
fn a_reader_that_leaves_early_does_not_change_the_verdict() {
    for format in ["text", "json"] {
        let mut program = std::process::Command::new(assert_cmd::cargo::cargo_bin!("crosspoint"))
            .current_dir(crate::support::program::root())
            .args(["validate", "--format", format, "testdata/run", "testdata/broken/run"])
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .expect("the program starts");
        drop(program.stdout.take());
        assert_eq!(program.wait().expect("the program ends").code(), Some(1), "{format}");
    }
}

#[test]
fn quiet_says_nothing_about_valid_documents() {
    let said = transcript(&mut crosspoint(&["validate", "-q", "testdata/run"]));
    assert!(said.starts_with("exit 0\n--- stdout\n--- stderr\n"), "{said}");
    let said = transcript(&mut crosspoint(&["validate", "-q", GOOD, BAD]));
    assert!(said.contains("BRIDGE-2") && !said.contains(GOOD), "{said}");
}

/// A search does not block on any file, and one bad place does not spoil the rest.
#[cfg(unix)]
#[test]
fn a_search_goes_on_past_what_it_cannot_read() {
    let directory = std::env::temp_dir().join(format!("crosspoint-search-{}", std::process::id()));
    fs::create_dir_all(directory.join("inside")).expect("the directory can be made");
    fs::copy(crate::support::program::root().join(GOOD), directory.join("inside/good.JSON")).expect("it can be copied");
    std::os::unix::fs::symlink(&directory, directory.join("loop.json")).expect("it can be linked");
    let made = std::process::Command::new("mkfifo").arg(directory.join("pipe.json")).status().expect("mkfifo starts");
    assert!(made.success());
    let mut deep = directory.clone();
    (0..70).for_each(|_| deep.push("d"));
    fs::create_dir_all(&deep).expect("the directory can be made");
    let (code, lines) = json_lines(&[directory.to_str().expect("the path is UTF-8")]);
    fs::remove_dir_all(&directory).expect("it can be removed");
    assert_eq!(code, 2);
    let [too_deep, good] = lines.as_slice() else { panic!("{lines:?}") };
    assert!(too_deep["error"].as_str().is_some_and(|error| error.contains("64 directories")), "{too_deep}");
    assert_eq!(good["valid"], true);
}

#[test]
fn members_are_printed_in_the_promised_order() {
    let output = crosspoint(&["validate", "--format", "json", BAD]).output().expect("it starts").stdout;
    let line = String::from_utf8(output).expect("output is UTF-8");
    let start = concat!(
        r#"{"file":"testdata/broken/bridge/BRIDGE-2.json","kind":"bridge.response","valid":false,"findings":"#,
        r#"[{"clause":"BRIDGE-2","level":"error","pointer":"/result","line":5,"column":3,"message":"#
    );
    assert!(line.starts_with(start), "{line}");
}

#[test]
fn agent_types_can_be_added() {
    let message =
        fs::read_to_string(crate::support::program::root().join("testdata/message/work_request-printed.json"))
            .expect("it is there");
    let message = message.replace("\"to_agent\": \"infra\"", "\"to_agent\": \"billing\"");
    let code = |arguments: &[&str]| {
        let output = crosspoint(arguments).write_stdin(message.clone()).output().expect("it starts");
        output.status.code()
    };
    assert_eq!(code(&["validate"]), Some(1));
    assert_eq!(code(&["validate", "--agent-type", "billing"]), Some(0));
}

/// Peak memory of validating a 50 MB response stays under twice the file.
#[cfg(target_os = "linux")]
#[test]
fn a_50_mb_response_is_validated_in_less_than_twice_its_size() {
    const BYTES: usize = 50_000_000;
    let path = std::env::temp_dir().join(format!("crosspoint-large-{}.json", std::process::id()));
    let good = fs::read_to_string(crate::support::program::root().join(GOOD)).expect("it is there");
    let start = good.find("\"{").expect("the inner text is there") + 1;
    let end = good.find("}\",").expect("the inner text is there") + 1;
    let document =
        format!("{}{}{}", &good[..start], r#"{\"k\": \"some inner text\"} "#.repeat(BYTES / 27), &good[end..]);
    fs::write(&path, &document).expect("it can be written");
    // The shell's limit on data makes the program fail if it needs more. The program's own text does not count.
    let limit_kb = 2 * document.len() / 1024;
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let script = format!("ulimit -d {limit_kb}; exec {} validate {}", program.display(), path.display());
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("the shell starts");
    fs::remove_file(&path).expect("it can be removed");
    assert!(output.status.success(), "{output:?}");
}
