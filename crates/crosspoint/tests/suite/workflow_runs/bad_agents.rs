//! Agents that do it wrong. Each has its stage fail with the clause or the limit named, nothing is written, the run
//! waits, and an answer lets the stage run again.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::support::server::Server;
use crate::support::workflow_place::{Place, stage, workflow, wrote};

/// Begins a run of one stage, and returns it once it waits, with the job of its stage.
fn parked(place: &Place, server: &Server) -> (String, Value, Value) {
    let id = server.run_workflow(&workflow(&[stage("write", "bad", "")]), &place.repo());
    let waiting = server.in_state(&id, "waiting");
    let stages = server.stages_of(&id);
    let [stage] = &stages[..] else { panic!("not one stage: {stages:?}") };
    assert_eq!(stage["state"], "failed", "{stage}");
    (id, waiting, stage.clone())
}

/// Mends the agent, and has the run go on.
fn mended(place: &Place, server: &Server, id: &str) {
    place.replies("bad", &[wrote(&[("mended.md", "create", "mended\n")])]);
    server.answer_run(id, &json!("mended"));
    let run = server.ended(id);
    assert_eq!(run["outcome"]["status"], "completed", "{run}");
    assert_eq!(place.got("mended.md").as_deref(), Some("mended\n"));
}

fn clauses(job: &Value) -> Vec<String> {
    let list = job["violations"].as_array().cloned().unwrap_or_default();
    list.iter().map(|one| one["clause"].as_str().expect("a text").to_owned()).collect()
}

/// Checks that the question names the clause that the stage broke.
fn names_clause(waiting: &Value, stage: &Value) {
    let asked = waiting["question"]["prompt"].as_str().expect("a text");
    let broken = clauses(stage);
    assert!(broken.iter().any(|clause| asked.contains(clause)), "none of {broken:?} is in {asked}");
}

/// Has an agent write to these places, of which one is bad.
fn refused(place: &Place, paths: &[&str], clause: &str) {
    let server = place.server(&[place.configured("bad", "")]);
    let files: Vec<(&str, &str, &str)> = paths.iter().map(|path| (*path, "create", "x")).collect();
    let before = place.tree();
    place.replies("bad", &[wrote(&files)]);
    let (id, waiting, stage) = parked(place, &server);
    let failure = &stage["outcome"]["failure"];
    assert_eq!(failure["code"], "broken_contract", "{paths:?}: {stage}");
    assert!(failure["message"].as_str().is_some_and(|said| said.contains(clause)), "{paths:?}: {failure}");
    assert!(clauses(&stage).contains(&clause.to_owned()), "{paths:?}: {stage}");
    let kept = &stage["outcome"]["said"]["document"]["artifacts"];
    assert_eq!(kept.as_array().map(Vec::len), Some(paths.len()), "what it gave is kept: {stage}");
    let asked = waiting["question"]["prompt"].as_str().expect("a text");
    assert!(asked.contains("broken_contract") && asked.contains(clause), "{paths:?}: {asked}");
    assert!(asked.ends_with("Then answer anything: the stage runs again."), "{asked}");
    assert_eq!(place.tree(), before, "{paths:?}: nothing is written");
    mended(place, &server, &id);
}

#[test]
fn a_path_that_leaves_the_repository_fails_the_stage() {
    for (path, clause) in [
        ("../../etc/passwd", "WF-4.2"),
        ("a/../../b", "WF-4.2"),
        ("/abs", "WF-4"),
        ("C:\\x", "WF-4.3"),
        ("a\\b", "WF-4.5"),
        ("a\0b", "WF-4.4"),
    ] {
        refused(&Place::new(), &["fine.md", path], clause);
    }
}

#[test]
fn a_directorys_name_fails_the_stage() {
    for path in ["specs/", "specs", "."] {
        let place = Place::new();
        place.put("specs/there.md", "there");
        refused(&place, &["fine.md", path], "WF-4.6");
    }
}

#[test]
fn the_same_path_twice_fails_the_stage() {
    refused(&Place::new(), &["a.md", "b.md", "a.md"], "WF-4.7");
    refused(&Place::new(), &["a.md", "./a.md"], "WF-4.7");
}

#[test]
fn a_path_under_git_fails_the_stage() {
    for path in [".git/hooks/pre-commit", "sub/.GIT/config"] {
        refused(&Place::new(), &["fine.md", path], "WF-4.8");
    }
}

#[test]
fn a_path_through_a_link_fails_the_stage() {
    for path in ["way/file.md", "link.md"] {
        let place = Place::new();
        fs::create_dir(place.file("outside")).expect("it can be made");
        fs::write(place.file("outside/target.md"), "untouched").expect("it can be written");
        symlink(place.file("outside"), place.repo().join("way")).expect("a link can be made");
        symlink(place.file("outside/target.md"), place.repo().join("link.md")).expect("a link can be made");
        refused(&place, &["fine.md", path], "WF-4.9");
        assert_eq!(fs::read_to_string(place.file("outside/target.md")).expect("it is there"), "untouched");
        assert_eq!(fs::read_dir(place.file("outside")).expect("it is there").count(), 1, "nothing is written there");
    }
}

/// The link is planted by the agent itself, after it was given its work.
#[test]
fn a_link_that_the_agent_plants_leads_nowhere() {
    let place = Place::new();
    fs::create_dir(place.file("outside")).expect("it can be made");
    let script = r#"cat > /dev/null; ln -s "$PLACE/../outside" way
        if [ -e "$PLACE/bad.reply" ]; then cat "$PLACE/bad.reply"; fi"#;
    let server = place.server(&[place.configured_script("bad", script, "")]);
    place.replies("bad", &[wrote(&[("fine.md", "create", "x"), ("way/file.md", "create", "x")])]);
    let (id, waiting, stage) = parked(&place, &server);
    assert!(clauses(&stage).contains(&"WF-4.9".to_owned()), "{stage}");
    names_clause(&waiting, &stage);
    assert_eq!(fs::read_dir(place.file("outside")).expect("it is there").count(), 0);
    assert_eq!(place.tree(), ["way"]);
    mended(&place, &server, &id);
}

/// What is no envelope, the clause that it breaks, and what the question says. It names clauses of this contract.
#[test]
fn what_is_no_envelope_fails_the_stage() {
    let cases: [(&[u8], &str, &str); 5] = [
        (b"no envelope at all", "ALL-101", "broken_contract (ALL-101)"),
        (b"", "ALL-101", "Have the agent give the envelope and nothing else: on stdout"),
        (
            b"{\"success\":true,\"summary\":\"\xff\xfe\",\"artifacts\":[],\"recommendation\":\"proceed\"}",
            "ALL-102",
            "broken_contract (ALL-102)",
        ),
        (b"{\"success\": true, \"success\": false, \"summary\": \"Both.\"}", "WF-106", "broken_contract (WF-106)"),
        (
            b"{\"success\": true, \"artifacts\": [], \"recommendation\": \"proceed\"}",
            "WF-106",
            "broken_contract (WF-106)",
        ),
    ];
    for (printed, clause, question) in cases {
        let place = Place::new();
        let server = place.server(&[place.configured("bad", "")]);
        place.prints("bad", printed);
        let (id, waiting, stage) = parked(&place, &server);
        assert_eq!(stage["outcome"]["failure"]["code"], "broken_contract", "{stage}");
        assert!(clauses(&stage).contains(&clause.to_owned()), "{stage}");
        let asked = waiting["question"]["prompt"].as_str().expect("a text");
        assert!(asked.contains(question), "{question:?} is not in {asked}");
        assert_eq!(place.tree(), [""; 0]);
        mended(&place, &server, &id);
    }
}

/// Programs that misbehave as processes: how each fails.
#[test]
fn a_program_that_fails_hangs_or_floods_fails_the_stage() {
    let answer = r#"if [ -e "$PLACE/bad.reply" ]; then cat "$PLACE/bad.reply"; exit; fi"#;
    let wrote = wrote(&[("fine.md", "create", "x")]).to_string();
    for (script, keys, failure) in [
        ("echo 'disk full' >&2; exit 3".to_owned(), "", "agent_failed"),
        (format!("cat <<'END'\n{wrote}\nEND\nexit 3"), "", "agent_failed"),
        ("kill -9 $$".to_owned(), "", "agent_failed"),
        ("exec sleep 600".to_owned(), "total_seconds = 8", "timeout"),
        ("exec yes".to_owned(), "output_bytes = 100000", "resource_limit"),
    ] {
        let place = Place::new();
        let script = format!("cat > /dev/null; {answer}; {script}");
        let server = place.server(&[place.configured_script("bad", &script, keys)]);
        let (id, waiting, stage) = parked(&place, &server);
        assert_eq!(stage["outcome"]["failure"]["code"], failure, "{script}: {stage}");
        let asked = waiting["question"]["prompt"].as_str().expect("a text");
        assert!(asked.contains(failure), "{script}: {asked}");
        assert_eq!(place.tree(), [""; 0], "{script}");
        mended(&place, &server, &id);
    }
}

/// Half an output is not written either: the others wait for the one that is no file.
#[test]
fn an_artifact_that_is_no_file_fails_the_stage() {
    for artifact in [
        json!({"path": "a.md", "operation": "delete", "content": "x"}),
        json!({"path": "a.md", "operation": "create", "content": 7}),
        json!({"operation": "create", "content": "x"}),
        json!({"path": "a.md", "operation": "create"}),
        json!({"path": 7, "operation": "create", "content": "x"}),
        json!("a.md"),
        json!(["n", "a.md", "create", "x"]),
    ] {
        let place = Place::new();
        let server = place.server(&[place.configured("bad", "")]);
        let mut output = wrote(&[("fine.md", "create", "x")]);
        output["artifacts"].as_array_mut().expect("a list").push(artifact.clone());
        place.replies("bad", &[output]);
        let (id, waiting, stage) = parked(&place, &server);
        assert_eq!(stage["outcome"]["failure"]["code"], "broken_contract", "{artifact}: {stage}");
        names_clause(&waiting, &stage);
        assert_eq!(place.tree(), [""; 0], "{artifact}");
        mended(&place, &server, &id);
    }
}

/// An agent that is not there any more parks the run; it does not fail it.
#[test]
fn a_stage_without_its_agent_waits_until_it_is_back() {
    let place = Place::new();
    place.replies("one", &[crate::support::workflow_place::said("Ask.", "escalate")]);
    place.replies("bad", &[wrote(&[("fine.md", "create", "x")])]);
    let both = [place.configured("one", ""), place.configured("bad", "")];
    let mut server = place.server(&both);
    let stages = [stage("ask", "one", "escalate = { then = \"write\" }"), stage("write", "bad", "")];
    let id = server.run_workflow(&workflow(&stages), &place.repo());
    server.in_state(&id, "waiting");
    server.stop();
    server.configure(&place.configuration(&both[..1]));
    server.restart();
    server.answer_run(&id, &json!("go"));
    let waiting = crate::support::server::until("it waits again", || {
        let job = server.job(&id);
        job["question"]["prompt"].as_str().is_some_and(|asked| asked.contains("unsupported")).then_some(job)
    });
    assert!(waiting["question"]["prompt"].as_str().is_some_and(|asked| asked.contains("bad")), "{waiting}");
    server.stop();
    server.configure(&place.configuration(&both));
    server.restart();
    server.answer_run(&id, &json!("it is back"));
    assert_eq!(server.ended(&id)["outcome"]["status"], "completed");
    assert_eq!(place.got("fine.md").as_deref(), Some("x"));
}

/// The most memory that a process took so far, or takes now.
fn memory_kib(server: &Server, which: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix(which)).expect("it says so");
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().expect("a number")
}

/// The limit is that of an agent for which none is configured. The agent has a limit of time only to end the test.
#[test]
fn a_gigabyte_is_cut_off_at_the_default_limit_and_not_kept_in_memory() {
    const MORE_KIB_MAX: u64 = 300 << 10;
    let place = Place::new();
    let script = r#"cat > /dev/null; if [ -e "$PLACE/bad.reply" ]; then cat "$PLACE/bad.reply"; exit; fi
        head -c 1073741824 /dev/zero | tr '\0' x"#;
    let server = place.server(&[place.configured_script("bad", script, "total_seconds = 500")]);
    let before = memory_kib(&server, "VmRSS");
    let (id, waiting, stage) = parked(&place, &server);
    let most = memory_kib(&server, "VmHWM");
    assert_eq!(stage["outcome"]["failure"]["code"], "resource_limit", "{}", stage["outcome"]["failure"]);
    let asked = waiting["question"]["prompt"].as_str().expect("a text");
    assert!(asked.contains("resource_limit"), "{asked}");
    assert_eq!(place.tree(), [""; 0]);
    assert!(most < before + MORE_KIB_MAX, "{before} KiB became {most} KiB");
    mended(&place, &server, &id);
}

/// The exit code says that the program failed, whatever it has printed: the retry that it asks for is not followed.
#[test]
fn a_failed_program_with_a_whole_envelope_that_asks_for_a_retry_fails_the_stage() {
    let place = Place::new();
    let mut output = wrote(&[("fine.md", "create", "x")]);
    output["success"] = json!(false);
    output["recommendation"] = json!("retry");
    let script = format!(
        r#"cat > /dev/null; if [ -e "$PLACE/bad.reply" ]; then cat "$PLACE/bad.reply"; exit; fi
cat <<'END'
{output}
END
exit 3"#
    );
    let server = place.server(&[place.configured_script("bad", &script, "")]);
    let (id, _, stage) = parked(&place, &server);
    assert_eq!(stage["outcome"]["failure"]["code"], "agent_failed", "{stage}");
    assert_eq!(place.tree(), [""; 0], "nothing is written");
    mended(&place, &server, &id);
}

/// An agent that wants a person asked must not be passed over because it misspelt that.
#[test]
fn an_output_that_does_not_say_where_to_go_fails_the_stage() {
    for (recommendation, clause) in [(json!("Escalate"), "WF-3"), (json!(null), "WF-106"), (json!(7), "WF-106")] {
        let place = Place::new();
        let server = place.server(&[place.configured("bad", "")]);
        let mut output = wrote(&[("a.md", "create", "a")]);
        output["recommendation"] = recommendation;
        place.prints("bad", output.to_string().as_bytes());
        let (id, waiting, stage) = parked(&place, &server);
        assert_eq!(stage["outcome"]["failure"]["code"], "broken_contract", "{stage}");
        let asked = waiting["question"]["prompt"].as_str().expect("a text");
        assert!(asked.contains(clause), "{asked}");
        assert!(place.tree().is_empty(), "nothing is written");
        mended(&place, &server, &id);
    }
}

/// More than is applied at once is a limit, and no fault of the repository.
#[test]
fn too_many_files_fail_the_stage_with_the_limit() {
    let place = Place::new();
    let many: Vec<Value> =
        (0..100_001).map(|n| json!({"path": format!("{n}"), "operation": "create", "content": ""})).collect();
    let output = json!({"success": true, "summary": "Many.", "artifacts": many, "recommendation": "proceed"});
    place.prints("bad", output.to_string().as_bytes());
    let server = place.server(&[place.configured("bad", "")]);
    let (id, waiting, stage) = parked(&place, &server);
    assert_eq!(stage["outcome"]["failure"]["code"], "resource_limit", "{stage}");
    assert!(waiting["question"]["prompt"].as_str().is_some_and(|asked| asked.contains("100000")), "{waiting}");
    mended(&place, &server, &id);
}
