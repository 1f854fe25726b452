//! Answers of agents that joined are whole, or say that they are not (ALL-12).

use serde_json::json;

use crate::support::bridge_caller::{self, new_id};
use crate::support::long_texts::{PRINTS, texts_are_whole_at_every_door};
use crate::support::run_caller;
use crate::support::server::Server;
use crate::support::workers::Worker;

#[test]
fn long_texts_of_joined_programs_are_whole_at_every_door_also_after_a_kill() {
    let mut server = Server::start();
    let _worker = Worker::joined(&server, "prints", &["--concurrency", "4"], &["python3", "-c", PRINTS]);
    texts_are_whole_at_every_door(&mut server, "prints");
}

#[test]
fn text_around_an_object_is_carried_by_joined_programs_too() {
    let server = Server::start();
    let script = r#"printf 'Use this:\n{"a": 1}\nand restart.\n'"#;
    let _worker = Worker::joined(&server, "advise", &[], &["bash", "-c", script]);
    let printed = "Use this:\n{\"a\": 1}\nand restart.\n";
    let bridge = server.response_to(&bridge_caller::request(&new_id(), "advise", "Help."));
    assert_eq!(bridge["response"], printed);
    let run = server.run_sync(&run_caller::request("r-1", "advise", &json!({}))).json();
    assert_eq!((&run["outputs"], &run["x_crosspoint"]["text"]), (&json!({"a": 1}), &json!(printed)), "{run}");
}
