//! Run agents that answer "not found" when they are asked for a stream.

use serde_json::json;

use crate::support::scripted_agent::ScriptedAgent;
use crate::support::server::Server;

/// A "not found" in the words of the contract is the answer. The other endpoint is tried only if nothing there speaks
/// the contract.
#[test]
fn a_refusal_in_the_words_of_the_contract_is_the_answer_and_nothing_is_sent_again() {
    for status in [404, 405, 501] {
        let agent = ScriptedAgent::start(move |asked, connection| {
            let mut response = asked.response(json!({}));
            (response["status"], response["ok"]) = (json!("error"), json!(false));
            response["error"] = json!({"code": "UNSUPPORTED_TASK_TYPE", "message": "Not mine."});
            connection.json(status, &response)
        });
        let server = Server::configured(&agent.far(""));
        let failure = server.done("far", &json!({}))["outcome"]["failure"].clone();
        assert_eq!((&failure["code"], &failure["message"]), (&json!("unsupported"), &json!("Not mine.")), "{status}");
        assert_eq!(agent.paths(), ["/agents/run/stream"], "{status}: it was asked once");
    }
}

#[test]
fn the_same_holds_for_sync() {
    let agent = ScriptedAgent::start(|asked, connection| match asked.path.as_str() {
        "/agents/run/sync" => {
            let mut response = asked.response(json!({}));
            (response["status"], response["ok"]) = (json!("error"), json!(false));
            response["error"] = json!({"code": "NO_SUCH_PAPER", "message": "Not here."});
            connection.json(404, &response)
        }
        _ => connection.json(404, &json!({})),
    });
    let server = Server::configured(&agent.far(""));
    let failure = server.done("far", &json!({}))["outcome"]["failure"].clone();
    assert_eq!((&failure["message"], &failure["details"]["code"]), (&json!("Not here."), &json!("NO_SUCH_PAPER")));
}

#[test]
fn where_nothing_speaks_the_contract_sync_is_asked_for() {
    let pages = [r#"{"detail":"Not Found"}"#, "<html>not here</html>", "", r#"{"status":"error","ok":false}"#];
    for page in pages {
        for status in [404, 405, 501] {
            let agent = ScriptedAgent::start(move |asked, connection| match asked.path.as_str() {
                "/agents/run/sync" => connection.json(200, &asked.response(json!({"by": "sync"}))),
                _ => connection.whole(status, "application/json", page),
            });
            let server = Server::configured(&agent.far(""));
            assert_eq!(server.done("far", &json!({}))["outcome"]["outputs"], json!({"by": "sync"}), "{status} {page}");
            assert_eq!(agent.paths(), ["/agents/run/stream", "/agents/run/sync"], "{status} {page}");
        }
    }
}

#[test]
fn an_agent_that_streams_badly_can_be_asked_for_the_whole_answer_alone() {
    let agent = ScriptedAgent::start(|asked, connection| match asked.path.as_str() {
        "/agents/run/sync" => connection.json(200, &asked.response(json!({"by": "sync"}))),
        _ => connection.json(200, &json!({"rubbish": true})),
    });
    let mut server = Server::configured(&agent.far("stream = false"));
    for _ in 0..2 {
        let job = server.done("far", &json!({}));
        assert_eq!((&job["outcome"]["outputs"], job.get("violations")), (&json!({"by": "sync"}), None), "{job}");
        server.kill();
        server.restart();
    }
    assert_eq!(agent.paths(), ["/agents/run/sync"; 2], "also after a restart");
}
