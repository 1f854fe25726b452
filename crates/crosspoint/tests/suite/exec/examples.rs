//! The examples of programs do what they say.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::support::program::root;
use crate::support::server::Server;

#[test]
fn the_example_agents_count_ask_greet_and_shout() {
    let example = root().join("examples/exec");
    let toml = fs::read_to_string(example.join("crosspoint.toml")).expect("it is there");
    let server = Server::configured(&toml);
    let agents = server.directory().join("agents");
    fs::create_dir(&agents).expect("it can be made");
    for name in ["count.sh", "greet.py"] {
        fs::copy(example.join("agents").join(name), agents.join(name)).expect("it can be copied");
    }
    let mode = fs::metadata(agents.join("count.sh")).expect("it is there").permissions().mode();
    assert!(mode & 0o111 != 0, "it is executable as it is");
    let counted = server.done("count_words", &json!({"text": "one two three"}));
    assert_eq!(counted["outcome"]["outputs"], json!({"words": 3}), "{counted}");
    // Formatted as people write it, with a space.
    let spaced = server.submit(r#"{"work": "count_words", "input": {"text": "one two three"}}"#);
    let counted = server.ended(spaced["id"].as_str().expect("it has an id"));
    assert_eq!(counted["outcome"]["outputs"], json!({"words": 3}), "{counted}");
    let shouted = server.done("shout", &json!({"message": "hello"}));
    assert_eq!(shouted["outcome"]["outputs"], json!({"MESSAGE": "HELLO"}), "{shouted}");

    let id = server.begin("greet");
    let waiting = server.in_state(&id, "waiting");
    assert_eq!(waiting["question"]["prompt"], "Whom shall I greet?");
    server.post(&format!("/api/v1/jobs/{id}/answer"), r#"{"input": "Ada"}"#);
    let outcome = &server.ended(&id)["outcome"];
    assert_eq!(outcome["outputs"], json!({"greeting": "Hello, Ada!"}));
    assert_eq!(outcome["artifacts"][0]["content"], "Hello, Ada!\n");
    let failed = server.done("greet", &json!({"name": 7}));
    assert_eq!(failed["outcome"]["failure"]["details"], json!({"exit_code": 1, "stderr": "a name is a text\n"}));
}
