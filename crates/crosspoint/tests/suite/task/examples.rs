//! The caller of the task door in the examples gets what its lines say.

use serde_json::{Value, json};

use crate::run::examples::{parts, pasted, script, valid};
use crate::support::server::Server;

/// The task responses of a part: the lines that are documents, and the data of events.
fn tasks(part: &str) -> Vec<Value> {
    let documents = part.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    let documents: Vec<&str> = documents.filter(|line| line.starts_with('{')).collect();
    documents.iter().for_each(|document| valid("task.response", document.as_bytes()));
    documents.iter().map(|document| serde_json::from_str(document).expect("it is JSON")).collect()
}

fn last(tasks: &[Value]) -> &Value {
    tasks.last().expect("there are some")
}

#[test]
fn the_caller_of_the_examples_has_tasks_done() {
    let server = Server::start();
    let said = script("examples/task/call.sh", &server);
    let parts = parts(&said);
    let [simple, polled, asked, cancelled, followed] = parts[..] else { panic!("{said}") };

    let task = &tasks(simple.1)[0];
    assert_eq!((&task["status"], &task["result"]), (&json!("completed"), &json!({"message": "hello"})), "{said}");

    let seen = tasks(polled.1);
    assert_eq!((&last(&seen)["status"], &last(&seen)["id"]), (&json!("completed"), &seen[0]["id"]), "{said}");
    assert!(polled.1.contains("\ncompleted\n"), "each state has a line of its own: {said}");

    let seen = tasks(asked.1);
    let question = seen.iter().find(|task| task["status"] == "input_required").expect("it asks");
    assert_eq!(question["inputRequest"]["prompt"], "Ship it?", "{said}");
    assert_eq!(last(&seen)["result"], json!({"answer": "yes"}), "{said}");

    assert_eq!(last(&tasks(cancelled.1))["status"], "cancelled", "{said}");

    // How many steps are seen depends on when curl connects. How it ends does not.
    let seen = tasks(followed.1);
    let (end, way) = seen.split_last().expect("there are events");
    assert!(way.iter().all(|task| task["status"] == "in_progress" && task["id"] == end["id"]), "{said}");
    assert!(followed.1.contains("\nevent: completed\n"), "{said}");
    assert_eq!(end["result"], json!({"message": "hello"}), "{said}");

    let listed = server.get("/api/v1/jobs?door=task").json();
    let mut states: Vec<&str> =
        listed["jobs"].as_array().expect("there are jobs").iter().filter_map(|job| job["state"].as_str()).collect();
    states.sort_unstable();
    assert_eq!(states, ["cancelled", "completed", "completed", "completed", "completed"], "{listed}");
}

#[test]
fn the_commands_of_the_page_about_tasks_work() {
    let server = Server::start();
    let said = pasted("examples/task/README.md", &server);
    // Each document ends where the next begins: nothing is printed between them.
    let documents = serde_json::Deserializer::from_str(&said).into_iter::<Value>();
    let seen: Vec<Value> = documents.collect::<Result<_, _>>().unwrap_or_else(|error| panic!("{error}: {said}"));
    seen.iter().for_each(|task| valid("task.response", task.to_string().as_bytes()));
    assert_eq!((seen.len(), &seen[0]["status"]), (3, &json!("input_required")), "{said}");
    assert_eq!(last(&seen)["result"], json!({"answer": "yes"}), "{said}");
}
