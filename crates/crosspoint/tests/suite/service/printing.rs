//! What a program prints, told to an orchestrator while it works (MSG-9).

use crate::support::scripted_agent::unused_address;
use crate::support::server::{Server, until};
use crate::support::service::Service;

/// Starts a program as an agent that a server pushes messages to, and that tells the server how its work goes.
fn pushed(script: &str) -> (Server, Service) {
    let free = unused_address();
    let agent = format!("[[agent]]\nname = \"helper\"\ncontract = \"message\"\nvia = \"push:http://{free}\"\n");
    let server = Server::configured(&format!("{agent}work = [\"help\"]\n"));
    let service = Service::at(&free.to_string(), script, &["--report-to", &server.url()]);
    (server, service)
}

fn printed(server: &Server, id: &str) -> String {
    server.get(&format!("/api/v1/jobs/{id}/output")).text()
}

#[test]
fn a_server_has_what_a_program_prints_while_it_works() {
    let script = r#"echo first ü; until [ -e one ]; do sleep 0.02; done
        echo '@crosspoint {"progress": 50, "step": "Half"}'; echo second
        until [ -e two ]; do sleep 0.02; done; echo third; sleep 0.5; echo last"#;
    let (server, service) = pushed(script);
    let id = server.begin("help");
    until("the first line is there", || (printed(&server, &id) == "first ü\n").then_some(()));
    std::fs::write(service.directory().join("one"), "").expect("it can be written");
    until("the second line is there", || (printed(&server, &id) == "first ü\nsecond\n").then_some(()));
    until("the step is told", || (server.job(&id)["progress"]["step"] == "Half").then_some(()));
    std::fs::write(service.directory().join("two"), "").expect("it can be written");
    let job = server.ended(&id);
    assert_eq!(job["state"], "completed", "{job:#}");
    assert_eq!(job["outcome"]["outputs"], "first ü\nsecond\nthird\nlast\n", "{job:#}");
    assert_eq!(job["violations"], serde_json::Value::Null, "{job:#}");
}

#[test]
fn a_long_text_that_was_told_in_parts_is_whole_and_told_once() {
    let script = r#"yes äh | head -c 1500000; echo '@crosspoint {"progress": 50, "step": "Half"}'
        until [ -e go ]; do sleep 0.02; done; yes öh | head -c 1500000"#;
    let (server, service) = pushed(script);
    let id = server.begin("help");
    until("the first part is there", || (printed(&server, &id).len() == 1_500_000).then_some(()));
    std::fs::write(service.directory().join("go"), "").expect("it can be written");
    let job = server.ended(&id);
    assert_eq!(job["state"], "completed", "{}", job["state"]);
    let text = printed(&server, &id);
    assert_eq!(text.len(), 3_000_000, "nothing is told twice");
    let outputs = &job["outcome"]["outputs"];
    let whole = outputs.as_str().or_else(|| outputs["output"].as_str()).map(str::len);
    assert_eq!(whole, Some(3_000_000), "{:.300}", outputs.to_string());
    assert_eq!(job["violations"], serde_json::Value::Null);
}
