//! What a good file comes to.

use crosspoint_workflow::definition::{Contract, Entry, Retry, Target};

use super::{SPECIFY, mistakes, read, with_stage};

#[test]
fn routes_are_numbers_of_stages() {
    let definition = read(SPECIFY);
    assert_eq!(definition.name(), "specify");
    let [write, validate] = definition.stages() else { panic!("it has two stages") };
    assert_eq!((write.id.as_str(), write.agent.as_str(), write.action.as_str()), ("write", "spec-writer", "create"));
    assert_eq!((write.proceed, write.retry, write.then), (Target::Stage(1), Retry { goto: 0, limit: 3 }, 0));
    assert_eq!((validate.proceed, validate.retry, validate.then), (Target::Done, Retry { goto: 0, limit: 3 }, 0));
    assert!(definition.warnings().is_empty());
}

#[test]
fn a_stage_proceeds_to_the_next_of_the_file_and_the_last_one_ends() {
    let second = "[[stage]]\nid = \"b\"\nagent = \"x\"\naction = \"do\"";
    let definition = read(&with_stage(second));
    assert_eq!(definition.stages()[0].proceed, Target::Stage(1));
    assert_eq!(definition.stages()[1].proceed, Target::Done);
    assert_eq!(definition.stages()[1].retry, Retry { goto: 1, limit: 3 });
    assert_eq!(definition.stages()[1].then, 1);
    assert!(!definition.stages()[0].allow_git);
}

#[test]
fn params_become_json_in_the_order_of_the_file() {
    let definition = read(&with_stage(
        "params = { z = 1, a = [1.50, +2e3, true], when = 2026-01-02T03:04:05Z, \"é\\n\" = { hex = 0xff, no = -0 } }",
    ));
    assert_eq!(
        definition.stages()[0].params,
        "{\"z\":1,\"a\":[1.50,2e3,true],\"when\":\"2026-01-02T03:04:05Z\",\"é\\n\":{\"hex\":255,\"no\":0}}"
    );
    assert_eq!(read(&with_stage("")).stages()[0].params, "{}");
}

#[test]
fn params_may_be_a_table_of_their_own() {
    let definition = read(&with_stage("[stage.params]\nb = 1\na.c = 2\n[stage.params.deep]\nx = \"y\""));
    assert_eq!(definition.stages()[0].params, "{\"b\":1,\"a\":{\"c\":2},\"deep\":{\"x\":\"y\"}}");
}

#[test]
fn an_agent_is_brought_along() {
    let agent = "[[agent]]\nname = \"x\"\nexec = [\"./x\", \"\"]\ncontract = \"exec\"\nenv = { K = \"V\" }\n\
                 total_seconds = 60\nrepeatable = true";
    let definition = read(&with_stage(agent));
    let [agent] = definition.agents() else { panic!("it has one agent") };
    assert_eq!((agent.name.as_str(), agent.contract), ("x", Contract::Exec));
    assert_eq!(agent.exec, ["./x", ""]);
    assert_eq!(agent.env.get("K").map(String::as_str), Some("V"));
    assert_eq!((agent.total_seconds, agent.repeatable), (Some(60), Some(true)));
}

#[test]
fn an_agent_speaks_envelopes_unless_it_says_otherwise() {
    let definition = read(&with_stage("[[agent]]\nname = \"x\"\nexec = [\"./x\"]"));
    assert_eq!(definition.agents()[0].contract, Contract::Workflow);
    assert_eq!((definition.agents()[0].total_seconds, definition.agents()[0].repeatable), (None, None));
}

#[test]
fn paths_keep_the_order_of_the_file_and_may_be_lists_and_directories() {
    let text =
        with_stage("[paths]\nz = \"specs/{feature}/\"\na = [\"a.md\", \"b/{feature}.md\"]\nroot = \"./\"\nnone = []");
    let definition = read(&text);
    let names: Vec<&str> = definition.paths().iter().map(Entry::name).collect();
    assert_eq!(names, ["z", "a", "root", "none"]);
    assert_eq!(definition.paths()[1].templates()[1].as_str(), "b/{feature}.md");
    assert_eq!(mistakes(&text), "");
}

#[test]
fn debug_prints_no_params_and_no_environment() {
    let text = with_stage(
        "params = { a = \"sesame\" }\n[[agent]]\nname = \"x\"\nexec = [\"sesame\"]\nenv = { K = \"sesame\" }",
    );
    assert!(!format!("{:?}", read(&text)).contains("sesame"));
}
