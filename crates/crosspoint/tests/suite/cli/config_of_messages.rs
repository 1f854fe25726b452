//! `crosspoint config check` about agents of messages, and about the tokens of agents and callers.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::cli::config::Place;
use crate::support::server::Server;

const TOKEN: &str = "a7f3d8c2e1b9f4a6c8e2d1b3f4a6c8e2";

/// The table of an agent of messages.
fn agent(name: &str, keys: &str) -> String {
    format!("[[agent]]\nname = \"{name}\"\ncontract = \"message\"\n{keys}\n")
}

/// Writes the file of a token that only its owner can read.
fn write_token(place: &Place, file: &str, token: &str, mode: u32) {
    let path = place.path().join(file);
    fs::write(&path, token).expect("it can be written");
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("it can be closed");
}

#[test]
fn all_mistakes_of_an_agent_of_messages_are_named_in_one_go() {
    let keys = "work = \"w\"\ncarry = \"no\"\ntoken_file = 5\nstream = true\nurl = \"http://127.0.0.1:8000\"\n\
                concurrency = \"4\"\nsilence_seconds = -1\ntype = [\"infra\"]\nrepeatable = \"yes\"\n";
    insta::assert_snapshot!(Place::new("message-bad", &agent("infra-1", keys)).check());
}

#[test]
fn the_hint_about_an_address_has_the_address_that_was_meant() {
    for (via, meant) in [
        ("push:127.0.0.1:8000", "write via = \"push:http://127.0.0.1:8000\""),
        ("push:http://127.0.0.1:8000/api/agent/message", "write via = \"push:http://127.0.0.1:8000\""),
        ("http://127.0.0.1:8000", "write via = \"push:http://127.0.0.1:8000\""),
        ("push:", "write via = \"pull\" for an agent that asks"),
    ] {
        let said = Place::new("message-via", &agent("infra-1", &format!("via = \"{via}\""))).check();
        assert!(said.contains(meant), "{via}: {said}");
    }
    let callback = |url: &str| format!("[[caller]]\nname = \"a\"\ncallback = \"{url}\"\n");
    let said = Place::new("callback-path", &callback("http://127.0.0.1:9000/api/agent/message")).check();
    assert!(said.contains("write callback = \"http://127.0.0.1:9000\""), "{said}");
    assert!(Place::new("callback-empty", &callback("")).check().contains("callback: it is empty"));
}

#[test]
fn a_type_in_other_letters_is_an_error() {
    let typed = |name: &str, of: &str| agent(name, &format!("via = \"pull\"\ntype = \"{of}\""));
    for (text, meant) in [
        (typed("a", "Infra"), "infra"),
        (typed("a", "billing") + &typed("b", "Billing"), "billing"),
        (format!("[server]\nagent_types = [\"audit\"]\n{}", typed("a", "AUDIT")), "audit"),
    ] {
        let said = Place::new("message-type", &text).check();
        assert!(said.contains("differs only in capital letters") && said.contains("1 error"), "{said}");
        assert!(said.contains(&format!("write type = \"{meant}\"")), "{said}");
    }
    let said = Place::new("message-types", &(typed("a", "infra") + &typed("b", "infra") + &typed("c", "x"))).check();
    assert!(said.contains("exit 0"), "{said}");
}

#[test]
fn no_two_have_the_same_token() {
    let caller = |name: &str| format!("[[caller]]\nname = \"{name}\"\ntoken_file = \"{name}.token\"\n");
    let agent = agent("infra-1", "via = \"pull\"\ntoken_file = \"infra-1.token\"");
    let place = Place::new("token-twice", &(agent + &caller("planner") + &caller("other")));
    write_token(&place, "infra-1.token", TOKEN, 0o600);
    write_token(&place, "planner.token", &format!("{TOKEN}\n"), 0o600);
    write_token(&place, "other.token", &TOKEN.to_uppercase(), 0o600);
    let said = place.check();
    let wrong = "[[caller]] planner: token_file: the same token is that of [[agent]] infra-1";
    assert!(said.contains(wrong) && said.contains("1 error") && !said.contains(TOKEN), "{said}");
    write_token(&place, "planner.token", &TOKEN.replace('a', "b"), 0o600);
    let said = place.check();
    assert!(said.contains("exit 0") && said.contains("; callers: planner, other"), "{said}");
    assert!(!said.contains("warning"), "{said}");
}

#[test]
fn a_token_that_is_no_secret_is_warned_of() {
    let place = Place::new("token-weak", &agent("infra-1", "via = \"pull\"\ntoken_file = \"infra-1.token\""));
    write_token(&place, "infra-1.token", "abc", 0o640);
    let said = place.check();
    for warning in ["the token is shorter than 16 characters", "other users of this machine have access to the file"] {
        assert!(said.contains(&format!("warning: [[agent]] infra-1: token_file: {warning}")), "{said}");
    }
    assert!(said.contains("exit 0") && !said.contains("abc"), "{said}");
}

#[test]
fn a_server_shows_its_callers_and_warns_of_weak_tokens() {
    let callers = "[[caller]]\nname = \"planner\"\ncallback = \"http://127.0.0.1:9\"\ntoken_file = \"planner.token\"\n\
                   [[caller]]\nname = \"other\"\ntoken_file = \"other.token\"\n";
    let server = Server::with_tokens(callers, &[("planner.token", TOKEN), ("other.token", "s3cret")]);
    let log = server.log();
    assert!(log.contains("callers planner      is told at http://127.0.0.1:9/"), "{log}");
    assert!(log.contains("other        pulls"), "{log}");
    assert!(log.contains("[[caller]] other: token_file: the token is shorter than 16 characters"), "{log}");
    assert!(!log.contains(TOKEN) && !log.contains("s3cret"), "{log}");
}

#[test]
fn a_file_of_a_token_that_cannot_be_read_is_named_with_the_reason() {
    let place = Place::new("token-missing", &agent("infra-1", "via = \"pull\"\ntoken_file = \"infra-1.token\""));
    let path = place.path().join("infra-1.token").display().to_string();
    let said = place.check();
    assert!(said.contains(&format!("token_file: there is no file {path}")), "{said}");
    assert!(said.contains(&format!("(umask 077; openssl rand -hex 16 > {path}) makes a new one")), "{said}");
    fs::create_dir(&path).expect("it can be made");
    let said = place.check();
    assert!(said.contains(&format!("token_file: {path} cannot be read: is a directory")), "{said}");
}
