//! What a program that serves callers may use, and how its failures are told.

use serde_json::json;

use super::{MESSAGE, failure};
use crate::support::message_caller::request;
use crate::support::program::crosspoint;
use crate::support::server::until;
use crate::support::service::Service;

#[test]
fn a_program_that_fails_tells_why_and_may_be_tried_again_where_it_says_so() {
    let service = Service::of("echo no such host >&2; exit 3", &[]);
    let failed = service.run("r-1", &json!({})).json();
    assert_eq!(failure(&failed).0, "error", "{failed}");
    assert!(failed.to_string().contains("no such host") && failed.to_string().contains("\"exit_code\":3"), "{failed}");
    let not_now = "[ -e ran ] && echo '{\"ok\": true}' && exit; touch ran; exit 75";
    for (options, is_run_again) in [(&[][..], true), (&["--repeatable", "false"], false)] {
        let service = Service::of(not_now, options);
        let first = service.run("r-1", &json!({})).json();
        assert_eq!(
            (failure(&first).1, &first["error"]["details"]["repeat"]),
            (&json!("RESOURCE_LIMIT"), &json!("unknown"))
        );
        let again = service.run("r-1", &json!({})).json();
        match is_run_again {
            true => assert_eq!(again["outputs"], json!({"ok": true}), "a failure that may be tried again is not kept"),
            false => assert_eq!(again, first, "how far it came is not known, so it is not run again"),
        }
    }
    let fail = r#"[ -e ran ] && echo '{"ok": true}' && exit; touch ran; echo '@crosspoint {"fail": {"retry": true}}'"#;
    let service = Service::of(fail, &[]);
    assert_eq!(service.run("r-1", &json!({})).json()["status"], "error");
    assert_eq!(service.run("r-1", &json!({})).json()["outputs"], json!({"ok": true}), "nothing was done, so it runs");
}

/// SIGXFSZ is a write that fails, like a full disk, and not the end of the agent.
#[test]
fn an_agent_whose_files_may_not_become_longer_goes_on() {
    let mut service = Service::of("head -c 5000 /dev/zero | tr '\\0' x", &[]);
    service.restart_after("ulimit -f 2");
    for _ in 0..2 {
        let answer = service.run("r-1", &json!({})).json();
        assert_eq!(answer["outputs"]["output"].as_str().map(str::len), Some(5_000), "{answer}");
    }
    until("it is said", || service.said().contains("answers cannot be kept").then_some(()));
}

#[test]
fn a_program_that_is_silent_or_takes_too_long_or_prints_too_much_is_ended() {
    let cases = [
        ("sleep 60", ["--silence-seconds", "0.5"], "TIMEOUT"),
        ("while true; do echo x; sleep 0.05; done", ["--total-seconds", "0.5"], "TIMEOUT"),
        ("yes | head -c 100000; sleep 60", ["--output-bytes", "5000"], "RESOURCE_LIMIT"),
        ("echo '{}'; sleep 60 & sleep 60", ["--processes", "1"], "RESOURCE_LIMIT"),
    ];
    for (script, limit, code) in cases {
        let service = Service::of(script, &[&limit[..], &["--grace-seconds", "0.2"]].concat());
        let failed = service.run("r-1", &json!({})).json();
        assert_eq!(failure(&failed).1, code, "{script}: {failed}");
    }
}

#[test]
fn a_caller_may_allow_less_memory_than_the_operator() {
    let script = "python3 -c 'x = bytearray(200 << 20); import time; time.sleep(60)'";
    let service = Service::of(script, &["--memory-mb", "4000"]);
    let mut asking = request(MESSAGE, "help", &json!({}));
    asking["payload"]["hints"]["max_memory_mb"] = json!(64);
    let failed = service.post("/api/agent/message", &asking);
    let text = failed.text();
    // It is killed when it is seen, or the system gives it no more.
    assert!(text.contains("more than the 64 MiB") || text.contains("MemoryError"), "{failed:?}");
}

#[test]
fn what_a_failed_program_printed_is_beside_its_failure() {
    let service = Service::of("echo looked; exit 1", &[]);
    let failed = service.run("r-1", &json!({})).json();
    assert!(failed.to_string().contains("looked\\n"), "{failed}");
}

#[test]
fn a_long_text_is_whole() {
    let service = Service::of("yes äh | head -c 3000000; echo; echo '{\"lines\": 1}'", &[]);
    let done = service.run("r-1", &json!({})).json();
    assert_eq!(done["outputs"]["lines"], 1, "its last line is its object");
    assert!(done.to_string().len() > 3_000_000, "the text beside it is whole: {} bytes", done.to_string().len());
    let service = Service::of("yes äh | head -c 3000000", &[]);
    let text = service.run("r-1", &json!({})).json()["outputs"]["output"].as_str().map(str::len);
    assert_eq!(text, Some(3_000_000));
}

#[test]
fn a_null_character_in_an_id_is_seen_by_the_program() {
    let service = Service::of("printf '{\"id\": \"%s\"}' \"${CROSSPOINT_REQUEST_ID//\\\\/|}\"", &[]);
    let run = service.run("a\u{0}b", &json!({})).json();
    assert_eq!(run["outputs"], json!({"id": "a|u0000b"}), "{run}");
}

#[test]
fn an_agent_has_a_name_of_its_own_and_a_store_that_is_a_file() {
    for name in [".", ".."] {
        let refused = crosspoint(&["agent", name, "--work", "help", "--listen", "127.0.0.1:0", "--", "cat"])
            .output()
            .expect("it runs");
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(said.contains("it means a directory; write a name like report-writer"), "{said}");
    }
    let data = std::env::temp_dir().join(format!("crosspoint-stores-{}", std::process::id()));
    let store = data.join("agents").join("helper.answers");
    std::fs::create_dir_all(&store).expect("it can be made");
    let listen = ["agent", "helper", "--work", "help", "--listen", "127.0.0.1:0", "--data"];
    let refused = crosspoint(&[&listen[..], &[data.to_str().expect("it is text"), "--", "cat"]].concat())
        .output()
        .expect("it runs");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("answers cannot be kept in {}: it is a directory", store.display())), "{said}");
}
