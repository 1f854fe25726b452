//! The page of each contract has an example from both sides. A reader who does what it says gets what it shows.

use std::process::Command;

use crate::support::pages::{blocks, page, section};
use crate::support::reader::Reader;
use crate::support::server::Server;

fn works(contract: &str, answers: usize) {
    let mut reader = Reader::new(contract);
    reader.follow(&format!("docs/contracts/{contract}.md"), "## A worked example, from both sides");
    assert_eq!(reader.answers, answers, "{contract}: the page shows other answers");
    reader.jobs_went_well();
}

#[test]
fn the_example_of_run_is_what_a_reader_gets() {
    works("run", 2);
}

#[test]
fn the_example_of_task_is_what_a_reader_gets() {
    works("task", 1);
}

#[test]
fn the_example_of_message_is_what_a_reader_gets() {
    works("message", 1);
}

#[test]
fn the_example_of_workflow_is_what_a_reader_gets() {
    works("workflow", 1);
}

#[test]
fn the_example_of_bridge_is_what_a_reader_gets() {
    works("bridge", 1);
}

/// What a command prints, with this server in place of the reader's.
fn printed(command: &str, server: &Server) -> String {
    let settled = command.replace("localhost:7420", &server.address().to_string());
    assert_ne!(settled, command, "it names the server");
    let output = Command::new("timeout").args(["120", "bash", "-ec", &settled]).output().expect("it starts");
    assert!(output.status.success(), "{command}: {output:?}");
    String::from_utf8(output.stdout).expect("it is UTF-8")
}

/// Progress is left out of the page: its lines are there, in their order, among others.
#[test]
fn the_commands_at_the_door_of_run_print_what_the_page_shows() {
    let (server, text) = (Server::start(), page("docs/contracts/run.md"));
    let mut commands = 0;
    for (_, block) in blocks(section(&text, "## The door")).into_iter().filter(|(language, _)| *language == "console") {
        for shown in block.split("$ ").filter(|shown| !shown.is_empty()) {
            let (command, shown) = shown.split_once('\n').expect("a command line ends");
            let said = printed(command, &server);
            let mut lines = said.lines();
            for line in shown.lines() {
                assert!(lines.any(|said| said == line), "{line:?} is not in its place in {said}");
            }
            commands += 1;
        }
    }
    assert_eq!(commands, 3);
}

#[test]
fn the_commands_at_the_door_of_task_do_what_the_page_says() {
    let (server, text) = (Server::start(), page("docs/contracts/task.md"));
    let (_, commands) = blocks(section(&text, "## The door"))[0];
    let said: Vec<String> = commands.lines().map(|command| printed(command, &server)).collect();
    let [echoed, accepted, polled, followed, asked, answered, begun, cancelled] = &said[..] else { panic!("{said:?}") };
    for (part, of) in [
        (r#""result":{"message": "hello"}"#, echoed),
        ("location: /tasks/order%2F7\r\n", accepted),
        (r#""id":"order/7""#, polled),
        ("event: completed\n", followed),
        (r#""prompt":"Ship it?""#, asked),
        (r#""result":{"answer":"yes"}"#, answered),
        (r#""id":"slow-1""#, begun),
        (r#""status":"cancelled""#, cancelled),
    ] {
        assert!(of.contains(part), "{part} is not in {of}");
    }
}
