//! Whether there are agents for the stages.

use super::{SPECIFY, read, shown, with_stage};

fn server(name: &str) -> Option<Vec<String>> {
    let works: &[&str] = match name {
        "spec-writer" => &["create", "update"],
        "validator" => &["validate"],
        _ => return None,
    };
    Some(works.iter().map(|work| (*work).to_owned()).collect())
}

#[test]
fn agents_that_the_server_has_are_fine() {
    assert_eq!(read(SPECIFY).check(&server), []);
}

#[test]
fn agents_and_actions_that_nobody_knows_are_mistakes() {
    let text =
        SPECIFY.replace("\"spec-writer\"", "\"validatr\"").replace("\"validate\"\nproceed", "\"validat\"\nproceed");
    insta::assert_snapshot!(shown(&text, &read(&text).check(&server)));
}

#[test]
fn agents_of_the_file_come_first_and_take_any_action() {
    let text = with_stage("[[agent]]\nname = \"x\"\nexec = [\"./x\"]");
    assert_eq!(read(&text).check(&|_| None), []);
    assert_eq!(read(&text).check(&|_| Some(Vec::new())), []);
}

#[test]
fn each_agent_is_asked_for_once() {
    let asked = std::cell::Cell::new(0);
    let text = with_stage("[[stage]]\nid = \"b\"\nagent = \"x\"\naction = \"do\"");
    let _ = read(&text).check(&|_| {
        asked.set(asked.get() + 1);
        None
    });
    assert_eq!(asked.get(), 1);
}
