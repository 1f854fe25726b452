//! The keys of agents behind an address: errors are named, and tokens are not shown.

use std::fs;

use crate::cli::config::Place;
use crate::support::program::transcript;

const GOOD: &str = r#"
[[agent]]
name = "papers"
contract = "run"
url = "https://papers.example/base"
token_file = "papers.token"
mode = "LIVE"
carry = false
work = ["LIT_RETRIEVAL"]
silence_seconds = 120

[[agent]]
name = "plain"
contract = "run"
url = "http://127.0.0.1:8000/"
"#;

#[test]
fn everything_about_an_agent_behind_an_address_is_shown_but_its_token() {
    let place = Place::new("remote-good", GOOD);
    fs::write(place.path().join("papers.token"), "s3cret\n").expect("it can be written");
    let shown = transcript(&mut place.crosspoint(&["config", "show"]));
    assert!(!shown.contains("s3cret"), "{shown}");
    let agents = shown.split_once("[[agent]]").expect("it has agents").1;
    insta::assert_snapshot!(format!("[[agent]]{agents}"));
}

#[test]
fn every_mistake_about_an_address_is_named_in_one_go() {
    let agents = [
        ("none", ""),
        ("number", "url = 8000"),
        ("words", "url = \"papers\""),
        ("endpoint", "url = \"http://papers.example/agents/run/stream/\""),
        ("file", "url = \"file:///etc/passwd\""),
        ("password", "url = \"http://me:s3cret@papers.example\""),
        ("query", "url = \"http://papers.example/?key=1\""),
        ("missing", "url = \"http://papers.example\"\ntoken_file = \"missing.token\""),
        ("two", "url = \"http://papers.example\"\ntoken_file = \"two.token\""),
        ("empty", "url = \"http://papers.example\"\ntoken_file = \"empty.token\""),
        ("long", "url = \"http://papers.example\"\ntoken_file = \"long.token\""),
        (
            "keys",
            "url = \"http://papers.example\"\ntoken_file = 1\nmode = 2\ncarry = \"no\"\nexec = [\"cat\"]\nmodes = \"x\"\nconcurrency = 0",
        ),
    ];
    let agent = |(name, keys): &(&str, &str)| format!("[[agent]]\nname = \"{name}\"\ncontract = \"run\"\n{keys}\n\n");
    let task = "[[agent]]\nname = \"task\"\ncontract = \"task\"\nurl = \"http://papers.example\"\nmode = \"LIVE\"\n";
    let builtin = "[[agent]]\nname = \"echo\"\ncontract = \"builtin\"\nurl = \"http://papers.example\"\n";
    let place = Place::new("remote-bad", &(agents.iter().map(agent).collect::<String>() + task + builtin));
    for (file, text) in [("two.token", "s3cret one"), ("empty.token", "\n"), ("long.token", &"s3cret".repeat(1_000))] {
        fs::write(place.path().join(file), text).expect("it can be written");
    }
    let said = place.check().replace(&place.path().display().to_string(), "PLACE");
    assert!(!said.contains("s3cret"), "{said}");
    insta::assert_snapshot!(said);
}

#[test]
fn an_agent_that_is_the_server_itself_is_refused() {
    let agent = |url: &str| {
        format!(
            "[server]\nlisten = \"127.0.0.1:7999\"\n[[agent]]\nname = \"me\"\ncontract = \"run\"\nurl = \"{url}\"\n"
        )
    };
    for (url, here) in [
        ("http://127.0.0.1:7999", true),
        ("http://localhost:7999/", true),
        ("http://127.0.0.1:8000", false),
        ("http://papers.example:7999", false),
    ] {
        let said = Place::new("remote-circle", &agent(url)).check();
        assert_eq!(said.contains("go in a circle"), here, "{url}: {said}");
    }
}

#[test]
fn an_agent_that_may_be_a_program_or_behind_an_address_is_one_of_them() {
    let agent = |name: &str, keys: &str| format!("[[agent]]\nname = \"{name}\"\ncontract = \"workflow\"\n{keys}\n\n");
    let url = "url = \"https://plans.example/hooks/plan\"";
    let good =
        agent("program", "exec = [\"./plan\", \"-v\"]\nenv = { KEY = \"s3cret\" }\ncarry = false\nmemory_mb = 64")
            + &agent("address", &format!("{url}\ntoken_file = \"plan.token\"\ncarry = false"));
    let place = Place::new("workflow-good", &good);
    fs::write(place.path().join("plan.token"), "s3cret\n").expect("it can be written");
    let shown = transcript(&mut place.crosspoint(&["config", "show"]));
    assert!(!shown.contains("s3cret"), "{shown}");
    let agents = shown.split_once("[[agent]]").expect("it has agents").1;
    let bad = [
        agent("both", &format!("exec = [\"./plan\"]\n{url}")),
        agent("neither", "work = [\"plan\"]"),
        agent("asks", "exec = [\"./plan\"]\nask = true\ntoken_file = \"plan.token\"\nmode = \"LIVE\""),
        agent("starts", &format!("{url}\ngrace_seconds = 1\nstream = false")),
        agent("typo", "exec = \"./plan\"\nmemory = 7"),
        agent("scheme", "url = \"127.0.0.1:8000/envelope\""),
        agent("query", "url = \"http://127.0.0.1:8000/envelope?key=1\""),
    ];
    let said = Place::new("workflow-bad", &bad.concat()).check();
    insta::assert_snapshot!(format!("[[agent]]{agents}\n{said}"));
}
