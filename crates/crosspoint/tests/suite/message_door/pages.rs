//! What the page of the message contract shows: its commands work, and its messages are messages.

use std::process::Command;

use crosspoint_contracts::Kind;
use serde_json::{Value, json};

use crate::support::documents::faultless;
use crate::support::pages::{blocks, page};
use crate::support::server::Server;

const PAGE: &str = "docs/contracts/message.md";

/// What a command of the page prints, with this server in place of that of the reader.
fn printed(command: &str, server: &Server) -> String {
    let settled = command.replace("localhost:7420", &server.address().to_string());
    assert_ne!(settled, command, "it names the server");
    let output = Command::new("timeout").args(["120", "bash", "-ec", &settled]).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

#[test]
fn the_commands_of_the_page_work() {
    let server = Server::start();
    let text = page(PAGE);
    // The worked example before the door has an agent and a test of its own.
    let (_, text) = text.split_once("\n## The door\n").expect("the page has it");
    let all = blocks(text);
    let commands: Vec<&str> = all
        .iter()
        .filter(|(language, text)| *language == "sh" && text.starts_with("curl "))
        .map(|(_, text)| *text)
        .collect();
    let [asked, registered] = commands[..] else { panic!("{commands:?}") };
    let result: Value = serde_json::from_str(&printed(asked, &server)).expect("it is JSON");
    assert_eq!((&result["type"], &result["payload"]["output"]), (&json!("work_result"), &json!(r#"{"q":"basil"}"#)));
    let shown = all.iter().find(|(language, _)| *language == "text").expect("the page shows the answer").1;
    assert_eq!(printed(registered, &server).trim(), shown.trim());
}

#[test]
fn the_messages_of_the_page_are_messages() {
    let text = page(PAGE);
    let shown: Vec<&str> =
        blocks(&text).into_iter().filter(|(language, _)| *language == "json").map(|(_, text)| text).collect();
    assert!(shown.len() >= 7, "{}", shown.len());
    for message in shown {
        let read: Value = serde_json::from_str(message).unwrap_or_else(|error| panic!("{error}: {message}"));
        let kind = match read["type"].as_str() {
            Some("work_request") => Kind::WorkRequest,
            Some("work_status") => Kind::WorkStatus,
            Some("work_result") => Kind::WorkResult,
            Some(_) | None => Kind::MessageError,
        };
        faultless(message.as_bytes(), kind);
    }
}
