//! Stages that wait for a person or an operator, where a run is shown.

use serde_json::{Value, json};

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, said, stage, workflow};

/// A program of no contract that asks, and prints the answer.
const ASKS: &str = r#"read -r _; echo '@crosspoint {"ask": {"prompt": "Which colour?"}}'; read -r answer; echo "{\"answer\": $answer}""#;

fn asking() -> String {
    let argv = json!(["sh", "-c", ASKS]);
    format!("[[agent]]\nname = \"asker\"\ncontract = \"exec\"\nwork = [\"do\"]\nask = true\nexec = {argv}\n")
}

/// Returns the run once it shows that its stage waits.
fn resting(server: &Server, id: &str) -> Value {
    until("it shows what its stage waits for", || Some(server.job(id)).filter(|run| run["stuck"]["job"].is_string()))
}

#[test]
fn what_a_stage_asks_is_shown_and_answered_with_its_run() {
    let place = Place::new();
    let server = place.server(&[asking()]);
    let id = server.run_workflow(&workflow(&[stage("paint", "asker", "")]), &place.repo());
    let run = resting(&server, &id);
    assert_eq!(run["state"], "running", "{run}");
    assert_eq!(run["question"]["prompt"], "Which colour?", "{run}");
    assert_eq!(run["stuck"]["reason"], "stage paint: waiting for a person's answer", "{run}");
    assert_eq!(run["stuck"]["job"], server.stages_of(&id)[0]["id"], "{run}");
    until("its progress says so", || (server.job(&id)["progress"]["step"] == "waits: stage paint").then_some(()));
    server.answer_run(&id, &json!("green"));
    let run = server.ended(&id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert_eq!(server.stages_of(&id)[0]["outcome"]["outputs"]["answer"], "green");
}

/// A caller that did not hear that its answer was taken sends it again, and the run asks something else by then.
#[test]
fn an_answer_that_is_sent_again_answers_no_other_question() {
    let place = Place::new();
    place.replies("judge", &[said("First?", "escalate"), said("Second?", "escalate"), said("Fine.", "proceed")]);
    let server = place.server(&[place.configured("judge", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "judge", "")]), &place.repo());
    let first = server.in_state(&id, "waiting")["question_id"].clone();
    let answer = json!({"input": "one", "question_id": first}).to_string();
    let path = format!("/api/v1/jobs/{id}/answer");
    assert_eq!(server.post(&path, &answer).status, 200);
    let second = until("it asks again", || {
        let job = server.job(&id);
        (job["question"]["prompt"] == "Second?").then_some(job)
    });
    let again = server.post(&path, &answer);
    assert_eq!((again.status, &again.json()["state"]), (200, &json!("waiting")), "{again:?}");
    for (input, to) in [("two", &first), ("one", &json!("no.1.0"))] {
        let late = server.post(&path, &json!({"input": input, "question_id": to}).to_string());
        assert_eq!((late.status, &late.json()["error"]["code"]), (409, &json!("conflict")), "{late:?}");
    }
    let next = json!({"input": "two", "question_id": second["question_id"]}).to_string();
    assert_eq!(server.post(&path, &next).status, 200);
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    let answers = &place.seen("judge")[2]["task"]["params"]["answers"];
    assert_eq!((&answers[0]["answer"], &answers[1]["answer"]), (&json!("one"), &json!("two")));
}

#[test]
fn a_command_rests_with_the_stage_that_asks() {
    let place = Place::new();
    let server = place.server(&[asking()]);
    place.write("paint.toml", &workflow(&[stage("paint", "asker", "")]));
    let run = ["workflow", "run", "paint.toml", "--root", "repo", "--server", &server.url()];
    let ran = place.crosspoint(&run);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("Which colour?") && ran.stderr.contains("crosspoint jobs answer"), "{ran:?}");
    let listed = server.get("/api/v1/jobs?work=workflow-run").json();
    let id = listed["jobs"][0]["id"].as_str().expect("an id");
    let answered = place.crosspoint(&["jobs", "answer", id, "--text", "green", "--server", &server.url()]);
    assert_eq!(answered.code, 0, "{answered:?}");
    let resumed = place.crosspoint(&["workflow", "resume", id, "--server", &server.url()]);
    assert_eq!(resumed.code, 0, "{resumed:?}");
}

/// ALL-13: the stage is not begun a fourth time by itself, and the run says how it is begun again.
#[test]
fn a_poisoned_stage_is_begun_again_where_its_run_is_shown() {
    let place = Place::new();
    let waits = "echo x >> \"$PLACE/starts\"; [ -e \"$PLACE/go\" ] || sleep 600; cat \"$PLACE/slow.reply\"";
    place.replies("slow", &[said("Done.", "proceed")]);
    let mut server = place.server(&[place.configured_script("slow", waits, "")]);
    let id = server.run_workflow(&workflow(&[stage("slow", "slow", "")]), &place.repo());
    let starts = || std::fs::read_to_string(place.file("agents/starts")).map_or(0, |text| text.lines().count());
    for start in 1..=3 {
        until("it is begun", || (starts() == start).then_some(()));
        until("that is on disk", || (server.stages_of(&id)[0]["attempts"] == start).then_some(()));
        server.kill();
        server.restart();
    }
    let run = resting(&server, &id);
    let reason = run["stuck"]["reason"].as_str().expect("a reason");
    assert!(reason.starts_with("stage slow: poison") && reason.contains("jobs retry"), "{run}");
    std::fs::write(place.file("agents/go"), "").expect("it can be written");
    let retried = server.post(&format!("/api/v1/jobs/{id}/retry"), "");
    assert_eq!(retried.status, 202, "{retried:?}");
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert_eq!((starts(), server.stages_of(&id).len()), (4, 1), "it is the same stage");
}

/// Without its run, a stage would be done elsewhere, and its files would be written nowhere.
#[test]
fn a_stage_that_has_ended_is_not_retried_alone() {
    let place = Place::new();
    place.replies("one", &[said("Done.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "one", "")]), &place.repo());
    server.ended(&id);
    let stage = server.stages_of(&id)[0]["id"].as_str().expect("an id").to_owned();
    let retried = server.post(&format!("/api/v1/jobs/{stage}/retry"), "");
    assert_eq!(retried.status, 409, "{retried:?}");
    assert!(retried.text().contains(&id), "{retried:?}");
    assert_eq!(place.seen("one").len(), 1);
}

#[test]
fn jobs_of_runs_say_which_workflow_and_where() {
    let place = Place::new();
    place.replies("one", &[said("Done.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[stage("a", "one", "")]);
    let id = server.ordered(&json!({"definition": definition, "root": place.repo(), "feature": "005-auth"}));
    let expected = json!({"name": "specify", "feature": "005-auth", "root": place.repo(), "dry_run": false});
    assert_eq!(server.ended(&id)["workflow"], expected);
    let listed = server.get("/api/v1/jobs").json()["jobs"].as_array().cloned().expect("a list");
    let of = |id: &str| listed.iter().find(|job| job["id"] == id).cloned().expect("it is listed");
    assert_eq!(of(&id)["workflow"], expected);
    let stage = server.stages_of(&id)[0]["id"].as_str().expect("an id").to_owned();
    assert!(of(&stage)["workflow"].is_null(), "a stage is no run");
}

/// Without a server too: the list says which runs wait for a person, and which only for a command.
#[test]
fn a_run_of_a_command_whose_stage_asks_is_listed_as_one_that_waits() {
    let place = Place::new();
    place.write("crosspoint.toml", &asking());
    place.write("paint.toml", &workflow(&[stage("paint", "asker", "")]));
    let ran = place.crosspoint(&["workflow", "run", "paint.toml", "--root", "repo"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let listed = place.crosspoint(&["workflow", "list"]);
    assert!(listed.stdout.contains("stage paint: waiting for a person"), "{listed:?}");
}
