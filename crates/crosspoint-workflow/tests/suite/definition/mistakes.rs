//! Files with mistakes: all are named at once, each at its place.

use crosspoint_contracts::clause::Level;
use crosspoint_workflow::definition::Definition;

use super::{SPECIFY, mistakes, with_stage};

#[test]
fn a_file_with_everything_wrong() {
    let text = r#"
nmae = "specify"
colour = "blue"

[paths]
absolute = "/etc/passwd"
above = "../other"
drive = "C:/x"
number = 7
nothing = ""
brace = "specs/{name}/"
hooks = ".git/hooks/"
list = ["fine.md", false]

[[stage]]
id = "write"
agent = ""
acton = "create"
retry = { goto = "wirte", limt = 3, limit = 101 }
escalate = "write"
allow_git = "yes"
params = { answers = [], size = inf, none = nan, large = 99999999999999999999 }

[[stage]]
id = "write"
agent = "x"
action = "create\n"
proceed = "validat"
params = 3

[[stage]]
id = "done"
agent = 5
action = "do"
retry = { goto = "done" }

[[agent]]
name = "x"
exec = []
contract = "worklow"

[[agent]]
name = "y"
exec = ["./y", 1]
env = { "A=B" = "x", C = 1 }
total_seconds = 0
repeatable = 1

[[agent]]
exec = "./z"
"#;
    insta::assert_snapshot!(mistakes(text));
}

#[test]
fn text_that_is_not_toml() {
    insta::assert_snapshot!(mistakes("name = \"w\"\n[[stage]\nid = = 3\n"));
}

#[test]
fn wrong_shapes() {
    insta::assert_snapshot!(mistakes("name = 1\npaths = 2\nstage = 3\nagent = [4]\n"));
}

#[test]
fn a_workflow_needs_a_name_and_a_stage() {
    for text in ["", "stage = []"] {
        let mistakes = mistakes(text);
        assert!(mistakes.contains("the workflow has no name"), "{mistakes}");
        assert!(mistakes.contains("the workflow has no stage"), "{mistakes}");
    }
}

#[test]
fn names_have_a_length_and_no_control_characters() {
    for (name, complaint) in [
        ("x".repeat(129), "is longer than 128 bytes"),
        ("a\\tb".into(), "has a control character"),
        (" ".into(), "is empty"),
    ] {
        let text = with_stage("").replace("\"x\"", &format!("\"{name}\""));
        assert!(mistakes(&text).contains(complaint), "{name}: {}", mistakes(&text));
    }
    assert_eq!(mistakes(&with_stage("").replace("\"x\"", &format!("\"{}\"", "x".repeat(128)))), "");
}

#[test]
fn two_agents_need_two_names() {
    let agent = "[[agent]]\nname = \"x\"\nexec = [\"./x\"]\n";
    assert!(mistakes(&with_stage(&agent.repeat(2))).contains("two agents have the name \"x\""));
}

#[test]
fn the_names_of_the_servers_own_runner_are_reserved() {
    let text = with_stage("[[agent]]\nname = \"workflow-runner\"\nexec = [\"./x\"]")
        .replace("\"x\"", "\"workflow-runner\"")
        .replace("\"do\"", "\"workflow-run\"");
    insta::assert_snapshot!(mistakes(&text), @r#"
    error near line 5: no stage can have the action "workflow-run" ["workflow-run"]
      a workflow cannot start a workflow: name what its agent is to do
    error near line 7: no agent of a workflow can have the name "workflow-runner" ["workflow-runner"]
      the server runs workflows under this name: rename the agent
    "#);
}

#[test]
fn an_agent_that_no_stage_uses_is_a_warning() {
    let text = with_stage("[[agent]]\nname = \"y\"\nexec = [\"./y\"]");
    insta::assert_snapshot!(mistakes(&text));
}

#[test]
fn an_agent_is_not_called_unused_while_a_stage_has_none_that_can_be_read() {
    let text = with_stage("[[agent]]\nname = \"y\"\nexec = [\"./y\"]").replace("\"x\"", "7");
    assert!(!mistakes(&text).contains("no stage uses"), "{}", mistakes(&text));
}

#[test]
fn a_path_under_git_is_a_warning_until_a_stage_allows_it() {
    assert!(mistakes(&with_stage("[paths]\nhead = \".git/HEAD\"")).starts_with("warning"));
    assert_eq!(mistakes(&with_stage("allow_git = true\n[paths]\nhead = \".git/HEAD\"")), "");
}

#[test]
fn a_file_has_a_size() {
    let long = format!("{SPECIFY}\n# {}", "x".repeat(1024 * 1024));
    assert!(mistakes(&long).contains("the file has"));
}

#[test]
fn a_workflow_has_a_thousand_stages_at_most() {
    let stages = |count: usize| -> String {
        let stage = |at| format!("[[stage]]\nid = \"s{at}\"\nagent = \"x\"\naction = \"do\"\n");
        std::iter::once("name = \"w\"\n".to_owned()).chain((0..count).map(stage)).collect()
    };
    assert_eq!(mistakes(&stages(1_000)), "");
    assert!(mistakes(&stages(1_001)).contains("has 1001 stages, and may have 1000"));
}

#[test]
fn params_that_nest_too_deep_for_json_are_a_mistake() {
    let dotted = vec!["a"; 120].join(".");
    assert!(mistakes(&with_stage(&format!("[stage.params]\n{dotted} = 1"))).contains("error"));
    let arrays = format!("params = {{ a = {}{} }}", "[".repeat(500), "]".repeat(500));
    assert!(mistakes(&with_stage(&arrays)).contains("error"));
}

#[test]
fn a_file_of_long_wrong_names_is_read_in_time() {
    let id = |at: usize| format!("{at:0>128}");
    let stage = |at| {
        format!("[[stage]]\nid = \"{}\"\nagent = \"x\"\naction = \"do\"\nproceed = \"{}\"\n", id(at), id(at + 5_000))
    };
    let text: String = std::iter::once("name = \"w\"\n".to_owned()).chain((0..1_000).map(stage)).collect();
    let found = mistakes(&text);
    assert_eq!(found.matches("there is no stage").count(), 100);
    assert!(found.contains("900 more are not named"), "{found}");
}

/// A caller may send a megabyte of them.
#[test]
fn a_hundred_mistakes_are_named_and_the_others_counted() {
    let keys: String = (0..90_000).map(|number| format!("k{number} = 1\n")).collect();
    let Err(found) = Definition::read(&keys) else { panic!("it is no workflow") };
    assert_eq!(found.len(), 101);
    assert!(found[100].what.ends_with("more are not named") && found[100].level == Level::Error);
    // Warnings keep no file from running, however many there are.
    let agent = |number| format!("[[agent]]\nname = \"a{number}\"\nexec = [\"true\"]\n");
    let agents: String = (0..300).map(agent).collect();
    let text = format!("name = \"w\"\n[[stage]]\nid = \"s\"\nagent = \"a0\"\naction = \"go\"\n{agents}");
    let definition = Definition::read(&text).expect("it can run");
    assert!(definition.warnings().len() == 101 && definition.warnings()[100].level == Level::Warning);
}

#[test]
fn hints_say_what_was_meant() {
    let of =
        |line: &str| mistakes(&format!("name = \"w\"\n[[stage]]\nid = \"s\"\nagent = \"a\"\naction = \"b\"\n{line}\n"));
    for (line, hint) in [
        ("retry = 3", "write retry = { limit = 3 }"),
        ("retry = \"draft\"", "write retry = { goto = \"draft\" }"),
        ("escalate = \"draft\"", "write escalate = { then = \"draft\" }"),
        ("[[agent]]\nname = \"a\"\nexec = \"./clerk.py --fast\"", "write exec = [\"./clerk.py\", \"--fast\"]"),
        ("[[agent]]\nname = \"a\"\nexec = [\"./c\"]\nask = true", "have it recommend \"escalate\""),
    ] {
        assert!(of(line).contains(hint), "{line}: {}", of(line));
    }
}
