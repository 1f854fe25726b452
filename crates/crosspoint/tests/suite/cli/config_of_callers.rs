//! `crosspoint config` about `[[caller]]`: errors are named, and tokens are not shown.

use std::fs;

use crate::cli::config::Place;
use crate::support::program::transcript;

const GOOD: &str = r#"
[[caller]]
name = "planner"
callback = "https://planner.example/base"
token_file = "planner.token"

[[caller]]
name = "night-shift"
token_file = "night.token"
"#;

#[test]
fn everything_about_a_caller_is_shown_but_its_token() {
    let place = Place::new("caller-good", GOOD);
    for (file, token) in [("planner.token", "s3cret\n"), ("night.token", "s3cret-of-night")] {
        fs::write(place.path().join(file), token).expect("it can be written");
    }
    let shown = transcript(&mut place.crosspoint(&["config", "show"]));
    assert!(!shown.contains("s3cret"), "{shown}");
    let callers = shown.split_once("[[caller]]").expect("it has callers").1;
    insta::assert_snapshot!(format!("[[caller]]{callers}"));
}

#[test]
fn every_mistake_about_a_caller_is_named_in_one_go() {
    let place = Place::new(
        "caller-bad",
        r#"
[[caller]]
callback = 8000

[[caller]]
name = "a b"

[[caller]]
name = "words"
callback = "planner"

[[caller]]
name = "endpoint"
callback = "http://planner.example/api/agent/message/"

[[caller]]
name = "password"
callback = "http://me:s3cret@planner.example"

[[caller]]
name = "files"
callback = "file:///etc/passwd"
token_file = "two.token"

[[caller]]
name = "typo"
calback = "http://planner.example"
token_file = 7

[[caller]]
name = "typo"
token_file = "missing.token"
"#,
    );
    fs::write(place.path().join("two.token"), "s3cret one").expect("it can be written");
    let said = place.check().replace(&place.path().display().to_string(), "PLACE");
    assert!(!said.contains("s3cret"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn callers_are_tables_in_a_list() {
    for (text, hint) in
        [("[caller]\nname = \"a\"\n", "write [[caller]] with two brackets"), ("caller = [7]\n", "with its keys below")]
    {
        let said = Place::new("caller-list", text).check();
        assert!(said.contains("it is a list of tables") && said.contains(hint), "{said}");
    }
    assert!(Place::new("caller-typo", "[[calller]]\nname = \"a\"\n").check().contains("did you mean caller?"));
}

#[test]
fn callers_and_agents_have_different_names() {
    let agent = "[[agent]]\nname = \"planner\"\ncontract = \"builtin\"\nrun = \"echo\"\n";
    let caller = |name: &str| format!("[[caller]]\nname = \"{name}\"\n");
    // The order in the file does not matter, and the sample agents have names too.
    for text in [caller("planner") + agent, format!("{agent}{}", caller("planner")), caller("echo")] {
        let said = Place::new("caller-namesake", &text).check();
        assert!(said.contains("name: an agent is called") && said.contains("different names"), "{said}");
    }
    let said = Place::new("caller-own-name", &(caller("other") + agent)).check();
    assert!(said.contains("exit 0"), "{said}");
}

/// A caller without a token could do nothing once another has one.
#[test]
fn all_callers_have_a_token_or_none_has() {
    let caller = "[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n[[caller]]\nname = \"other\"\n";
    let place = Place::new("caller-tokenless", caller);
    fs::write(place.path().join("planner.token"), "s3cret").expect("it can be written");
    let said = place.check();
    assert!(said.contains("[[caller]] other: token_file: it is missing, and \"planner\" has one"), "{said}");
    assert!(said.contains("add token_file = \"other.token\"") && said.contains("1 error"), "{said}");
}

#[test]
fn contradictions_are_named_beside_other_mistakes() {
    let agent = "[[agent]]\nname = \"planner\"\ncontract = \"builtin\"\nrun = \"echo\"\n";
    let caller = "[[caller]]\nname = \"planner\"\ncalback = \"x\"\n";
    let said = Place::new("caller-both", &format!("{caller}{agent}")).check();
    assert!(said.contains("did you mean callback?") && said.contains("name: an agent is called"), "{said}");
    // The sample agents stand in for agents that cannot be used, and are not compared with.
    let lost = "[[caller]]\nname = \"echo\"\n[[agent]]\nname = \"x\"\ncontract = \"run\"\n";
    let said = Place::new("caller-lost", lost).check();
    assert!(said.contains("1 error") && said.contains("address is not given"), "{said}");
}

#[test]
fn a_callback_to_the_server_itself_is_refused() {
    for (port, here) in [(7998, true), (8000, false)] {
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:7998\"\n[[caller]]\nname = \"me\"\ncallback = \"http://localhost:{port}\"\n"
        );
        let said = Place::new("caller-circle", &text).check();
        assert_eq!(said.contains("[[caller]] me: callback: this server itself listens there"), here, "{said}");
    }
}

#[test]
fn there_are_not_too_many_callers() {
    let callers = |count| (0..count).map(|n| format!("[[caller]]\nname = \"c{n}\"\n")).collect::<String>();
    assert!(Place::new("caller-200", &callers(200)).check().contains("exit 0"));
    let said = Place::new("caller-201", &callers(201)).check();
    assert!(said.contains("[[caller]] c200: there are more than 200 callers"), "{said}");
}
