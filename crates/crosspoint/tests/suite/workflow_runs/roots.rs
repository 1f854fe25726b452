//! Where a run may work, and what it may not touch there.

use std::fs;

use serde_json::json;

use crate::support::server::Server;
use crate::support::workflow_place::{Place, said, stage, workflow, wrote};

fn refused(server: &Server, order: &serde_json::Value, words: &[&str]) {
    let answer = server.order(order);
    assert_eq!(answer.status, 400, "{answer:?}");
    for word in words {
        assert!(answer.text().contains(word), "{word:?} is not in {answer:?}");
    }
}

#[test]
fn a_root_that_is_not_allowed_is_refused_with_a_way_out() {
    let (place, other) = (Place::new(), Place::new());
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[stage("a", "one", "")]);
    let order = |root: &str| json!({"definition": definition, "root": root});
    let outside = other.repo().display().to_string();
    refused(&server, &order(&outside), &["/root", "--embedded", "[workflow] roots"]);
    refused(&server, &order("/"), &["/root", "--embedded"]);
    refused(&server, &order("repo"), &["relative"]);
    refused(&server, &order(&place.file("missing").display().to_string()), &["no directory"]);
    fs::write(place.file("file"), "").expect("it can be written");
    refused(&server, &order(&place.file("file").display().to_string()), &["no directory"]);
    // A link that leads out of the allowed directory, and a path that climbs out of it.
    std::os::unix::fs::symlink(other.repo(), place.file("link")).expect("a link can be made");
    refused(&server, &order(&place.file("link").display().to_string()), &["--embedded"]);
    refused(&server, &order(&format!("{}/..", place.path().display())), &["--embedded"]);
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "nothing was begun");
}

/// Without `[workflow] roots`, runs may work below the directory of the configuration.
#[test]
fn without_roots_the_directory_of_the_configuration_is_allowed() {
    let place = Place::new();
    place.replies("one", &[wrote(&[("a.md", "create", "a")])]);
    let server = Server::configured(&place.configured("one", ""));
    let definition = workflow(&[stage("a", "one", "")]);
    refused(&server, &json!({"definition": definition, "root": place.repo()}), &["--embedded"]);
    let inside = server.directory().join("repo");
    fs::create_dir(&inside).expect("it can be made");
    let run = server.ended(&server.run_workflow(&definition, &inside));
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert!(inside.join("a.md").exists());
}

/// A server starts no program that a caller brings along.
#[test]
fn a_definition_that_brings_programs_is_refused() {
    let place = Place::new();
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[place.own("mine", ""), stage("a", "mine", "")]);
    refused(&server, &json!({"definition": definition, "root": place.repo()}), &["[[agent]]", "--embedded"]);
    assert_eq!(place.seen("mine").len(), 0);
}

#[test]
fn a_definition_with_mistakes_is_refused_with_all_of_them() {
    let place = Place::new();
    let server = place.server(&[place.configured("one", "")]);
    let stages = [stage("a", "one", "proceed = \"b\"\nspeed = 3"), stage("c", "two", "")];
    let order = json!({"definition": workflow(&stages), "root": place.repo()});
    refused(&server, &order, &["line 6 of the workflow", "speed", "/definition"]);
    // Agents are looked at once the file is right.
    let order = json!({"definition": workflow(&[stage("c", "two", "")]), "root": place.repo()});
    refused(&server, &order, &["there is no agent", "two"]);
    let action = stage("c", "one", "").replace("\"do\"", "\"undo\"");
    refused(&server, &json!({"definition": workflow(&[action]), "root": place.repo()}), &["does not take", "undo"]);
    let bad = json!({"definition": workflow(&[stage("c", "one", "")]), "root": place.repo(), "feature": "../x"});
    refused(&server, &bad, &["/feature"]);
    refused(&server, &json!({"root": place.repo(), "dry_run": "yes"}), &["/dry_run", "/definition"]);
}

/// The runner's own agent and work cannot be configured or taken.
#[test]
fn nobody_else_drives_runs() {
    let place = Place::new();
    let server = place.server(&[place.configured("one", "")]);
    let joined = json!({"name": "workflow-runner", "work": ["workflow-run"]}).to_string();
    let answer = server.exchange("POST", "/api/v1/agents", &[], joined.as_bytes()).expect("it answers");
    assert!(answer.status >= 400, "{answer:?}");
    let other = json!({"name": "other", "work": ["workflow-run"]}).to_string();
    let answer = server.exchange("POST", "/api/v1/agents", &[], other.as_bytes()).expect("it answers");
    assert!(answer.status >= 400, "{answer:?}");
}

/// Its root and its definition are checked before a run is accepted, which no other endpoint does.
#[test]
fn a_run_is_begun_at_its_own_endpoint_alone() {
    let place = Place::new();
    place.replies("one", &[wrote(&[("a.md", "create", "a")])]);
    let server = place.server(&[place.configured("one", "")]);
    let input = json!({"definition": workflow(&[stage("a", "one", "")]), "root": place.repo()});
    for (path, body) in [
        ("/api/v1/jobs", json!({"work": "workflow-run", "input": input})),
        ("/tasks", json!({"id": "t-1", "type": "workflow-run", "payload": input})),
        ("/agents/run/sync", json!({"request_id": "r-1", "task_type": "workflow-run", "inputs": input})),
    ] {
        let answer = server.post(path, &body.to_string());
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.text().contains("/api/v1/workflows"), "{answer:?}");
    }
    assert_eq!((place.tree(), place.seen("one").len()), (vec![], 0));
}

/// A caller cannot find out which directories there are elsewhere.
#[test]
fn a_root_elsewhere_is_refused_alike_whether_it_is_there_or_not() {
    let place = Place::new();
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[stage("a", "one", "")]);
    let refused = |root: &str| {
        let answer = server.order(&json!({"definition": definition, "root": root}));
        assert_eq!(answer.status, 400, "{answer:?}");
        answer.json()
    };
    assert_eq!(refused("/etc"), refused("/is/not/there"));
    // A way out of an allowed root leads elsewhere too.
    std::os::unix::fs::symlink("/", place.repo().join("out")).expect("a link can be made");
    let repo = place.repo().display().to_string();
    for way in ["out", &"../".repeat(20)] {
        assert_eq!(refused(&format!("{repo}/{way}/etc")), refused(&format!("{repo}/{way}/is/not/there")), "{way}");
    }
    let missing = refused(&format!("{repo}/missing"));
    assert!(missing["error"]["message"].as_str().is_some_and(|why| why.contains("is no directory")), "{missing}");
}

/// What is under `.git` is run by git.
#[test]
fn a_root_inside_a_git_repository_is_written_to_only_where_that_is_allowed() {
    let place = Place::new();
    let hooks = place.repo().join(".git/hooks");
    fs::create_dir_all(&hooks).expect("it can be made");
    place.replies("one", &[wrote(&[("pre-commit", "create", "x")])]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "one", "")]), &hooks);
    let waiting = server.in_state(&id, "waiting");
    assert!(waiting["question"]["prompt"].to_string().contains("WF-4.8"), "{waiting}");
    assert!(!hooks.join("pre-commit").exists());
    let id = server.run_workflow(&workflow(&[stage("a", "one", "allow_git = true")]), &hooks);
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert!(hooks.join("pre-commit").exists());
}

/// Its run would ask a person because of it.
#[test]
fn a_caller_cannot_take_the_key_of_a_stage() {
    let place = Place::new();
    place.replies("one", &[said("Ask.", "escalate"), said("Done.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "one", "")]), &place.repo());
    server.in_state(&id, "waiting");
    for step in 2..4 {
        let key = format!("{id}#{step}");
        let taken = server.request("POST", "/api/v1/jobs", &[("Idempotency-Key", &key)], br#"{"work": "one"}"#);
        assert!(taken.status < 500, "{taken:?}");
    }
    server.answer_run(&id, &json!("go on"));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
}

/// The data directory and the configuration are in the root, and no artifact touches them. Nor does one touch what the
/// server starts or presents.
#[test]
fn the_data_directory_and_the_configuration_are_protected() {
    const MORE: &str = "[[agent]]\nname = \"tool\"\ncontract = \"exec\"\nwork = [\"tool\"]\nexec = [\"./bin/tool.sh\"]\n\
        [[agent]]\nname = \"far\"\ncontract = \"run\"\nwork = [\"far\"]\nurl = \"http://127.0.0.1:9\"\n\
        token_file = \"far-token\"\n";
    let place = Place::new();
    let mut server = Server::configured(&place.configured("one", ""));
    fs::write(server.directory().join("far-token"), "0123456789abcdef0123456789abcdef").expect("it can be written");
    server.kill();
    server.configure(&(place.configured("one", "") + MORE));
    server.restart();
    let definition = workflow(&[stage("a", "one", "")]);
    let configuration = fs::read_to_string(server.directory().join("crosspoint.toml")).expect("it is there");
    for (path, operation) in [
        ("crosspoint.toml", "update"),
        ("data/server.json", "update"),
        ("data/jobs.db", "update"),
        ("data/new.md", "create"),
        ("data/workflows/x/step-1.done.json", "create"),
        ("./data/../crosspoint.toml", "update"),
        ("bin/tool.sh", "create"),
        ("bin", "create"),
        ("far-token", "update"),
    ] {
        place.replies("one", &[wrote(&[("fine.md", "create", "x"), (path, operation, "x")])]);
        let id = server.run_workflow(&definition, server.directory());
        let waiting = server.in_state(&id, "waiting");
        assert!(waiting["question"]["prompt"].to_string().contains("broken_contract"), "{path}: {waiting}");
        server.cancel(&id);
        assert!(!server.directory().join("fine.md").exists(), "{path}");
    }
    assert_eq!(fs::read_to_string(server.directory().join("crosspoint.toml")).expect("it is there"), configuration);
    assert!(!server.data().join("new.md").exists());
}

/// The record of a run is for its owner's eyes.
#[test]
fn records_are_private() {
    let place = Place::new();
    place.replies("one", &[wrote(&[("a.md", "create", "secret")]), said("Done.", "proceed")]);
    let server = place.server(&[place.configured("one", "")]);
    let id = server.run_workflow(&workflow(&[stage("a", "one", "")]), &place.repo());
    server.ended(&id);
    let record = server.data().join("workflows").join(&id);
    assert_eq!(crate::support::workflow_place::mode_of(&record), 0o700);
    for entry in fs::read_dir(&record).expect("it is there") {
        let path = entry.expect("it can be read").path();
        assert_eq!(crate::support::workflow_place::mode_of(&path), 0o600, "{}", path.display());
    }
}

/// ALL-11: null reads as absent, and what only commands say means nothing elsewhere.
#[test]
fn an_order_is_read_as_tolerantly_when_the_run_begins_as_when_it_is_accepted() {
    let place = Place::new();
    place.replies("one", &[wrote(&[("a.md", "create", "x")])]);
    let server = place.server(&[place.configured("one", "")]);
    let order = json!({
        "definition": workflow(&[stage("a", "one", "")]), "root": place.repo(),
        "feature": null, "dry_run": null, "request_id": null, "file": "/", "home": {}, "more": [1],
    });
    let answer = server.order(&json!(order));
    assert_eq!(answer.status, 202, "{answer:?}");
    let id = answer.json()["id"].as_str().expect("an id").to_owned();
    let run = server.ended(&id);
    assert_eq!((&run["outcome"]["status"], &run["workflow"]["dry_run"]), (&json!("completed"), &json!(false)), "{run}");
    let marked = server.post("/api/v1/workflows", &format!("\u{feff}{order}"));
    assert_eq!(marked.status, 202, "{marked:?}");
    let run = server.ended(marked.json()["id"].as_str().expect("an id"));
    assert_eq!(
        (&run["outcome"]["status"], &run["workflow"]["name"]),
        (&json!("completed"), &json!("specify")),
        "{run}"
    );
}

/// Such a run would write where nothing was to be written.
#[test]
fn a_member_that_is_ours_but_for_its_spelling_is_refused() {
    let place = Place::new();
    let server = place.server(&[place.configured("one", "")]);
    let definition = workflow(&[stage("a", "one", "")]);
    for name in ["dryRun", "dry-run", "DryRun"] {
        let mut order = json!({"definition": definition, "root": place.repo()});
        order[name] = json!(true);
        refused(&server, &order, &["nearly `dry_run`"]);
    }
}

/// The next run starts the programs that the file names.
#[test]
fn the_workflow_file_is_protected() {
    let place = Place::new();
    let path = place.repo().join("own.toml");
    let text = workflow(&[stage("a", "one", ""), place.own("one", "")]);
    fs::write(&path, &text).expect("it can be written");
    place.replies("one", &[wrote(&[("own.toml", "update", "exec")])]);
    for dry in [&[][..], &["--dry-run"]] {
        let ran = place.crosspoint(&[&["workflow", "run", "repo/own.toml", "--root", "repo"], dry].concat());
        assert!(ran.code == 3 && ran.stderr.contains("WF-4"), "{ran:?}");
    }
    assert_eq!(fs::read_to_string(path).expect("it is there"), text);
}
