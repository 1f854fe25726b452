//! `docs/configuration.md`, written from the keys themselves: a key without its line on the page cannot be.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use super::key::{AGENT, Key, SECTIONS};
use super::{
    Agent, Bridge, Config, Contract, Exec, Flags, Message, Remote, agent, bridge, caller, exec, message, remote, work,
};

const PAGE: &str = "docs/configuration.md";

/// The keys of `[[agent]]` that are read together, with the agents that have them.
const BY_HAND: [(&str, &str, &str); 11] = [
    ("name", "all", "What the agent is called."),
    ("contract", "all", "How it is spoken to: `builtin`, `exec`, `bridge`, `run`, `task`, `message` or `workflow`."),
    ("work", "all", "The works that it takes."),
    ("run", "builtin", "The sample agent: `echo`, `slow_echo`, `ask` or `fail`."),
    (
        "exec",
        "exec, workflow",
        "The program and its arguments. It runs in the directory of the configuration file. An agent of `workflow` has this or `url`.",
    ),
    ("env", "exec, workflow", "A table of variables that the program gets beside the few that every program gets."),
    ("dir", "bridge", "The directory where requests are left for a person or a program to answer."),
    (
        "url",
        "run, task, workflow",
        "The address. The paths of the contract are below it; the envelopes of `workflow` are posted to the address itself.",
    ),
    ("via", "message", "How messages reach the agent: `pull` if it asks for them, or `push:` and its address."),
    (
        "token_file",
        "run, task, message, workflow",
        "A file with the token that is presented to the agent. An agent of `message` must present it, too.",
    ),
    ("mode", "run", "The `mode` of a request whose caller gives none."),
];

fn page() -> String {
    let mut out = String::from(
        "# Configuration\n\nThis page is written from the program's own list of keys.\n\nThe file is `crosspoint.toml` \
         in the working directory, or else in the user's configuration directory under\n`crosspoint/`; `--config FILE` \
         names another. Every key of one value can also be set in the environment:\n`CROSSPOINT_SERVER_LISTEN` is the \
         key `listen` of `[server]`. Options win over the environment, the environment over\nthe file, the file over \
         the defaults. `crosspoint config check` says what is wrong with a file, and\n`crosspoint config show` prints \
         what is in force and where it came from.\n\nPaths of files and directories in the tables of agents, works and \
         callers are relative to the configuration file.\n",
    );
    let config = [Config::default()];
    for section in &SECTIONS {
        let _ =
            write!(out, "\n## `[{}]`\n\n| key | default | what it is | values |\n|---|---|---|---|\n", section.name);
        section.keys.iter().for_each(|key| row(&mut out, key, &config));
    }
    out.push_str("\n## `[[agent]]`\n\nOne table for each agent. Without any, the four sample agents are there.\n");
    out.push_str("\n| key | agents | what it is |\n|---|---|---|\n");
    for (name, whose, about) in BY_HAND {
        let _ = writeln!(out, "| `{name}` | {whose} | {about} |");
    }
    let agents = one_of_each();
    let names: Vec<&str> = agents.iter().map(|agent| agent.name.as_str()).collect();
    let _ = write!(out, "\nAll agents also have these, with a default for each contract.\n\n");
    let _ = writeln!(
        out,
        "| key | {} | what it is | values |\n|---{}|---|---|",
        names.join(" | "),
        "|---".repeat(names.len())
    );
    AGENT.iter().for_each(|key| row(&mut out, key, &agents));
    let _ = write!(out, "\nPrograms (`contract = \"exec\"`, or `\"workflow\"` with `exec`) have these:\n\n{HEAD}");
    let programs: Vec<Exec> = agents.iter().filter_map(|agent| program(&agent.contract)).take(1).collect();
    exec::KEYS.iter().for_each(|key| row(&mut out, key, &programs));
    let _ = write!(out, "\nAgents behind an address have these:\n\n{HEAD}");
    let remotes: Vec<Remote> = agents.iter().filter_map(|agent| remote_of(&agent.contract)).take(1).collect();
    remote::KEYS.iter().for_each(|key| row(&mut out, key, &remotes));
    let _ = write!(out, "\nAgents of messages (`contract = \"message\"`) have these:\n\n{HEAD}");
    let messages: Vec<Message> = agents.iter().filter_map(|agent| messages(&agent.contract)).collect();
    message::KEYS.iter().for_each(|key| row(&mut out, key, &messages));
    let _ = write!(out, "\nDirectories (`contract = \"bridge\"`) have these:\n\n{HEAD}");
    let directories: Vec<Bridge> = agents.iter().filter_map(|agent| directory(&agent.contract)).collect();
    bridge::KEYS.iter().for_each(|key| row(&mut out, key, &directories));
    out.push_str(
        "\n## `[[work]]`\n\nThe schemas of a work, one table for each work that has some; see [schemas](schemas.md).\n",
    );
    out.push_str("\n| key | what it is |\n|---|---|\n");
    for (name, about) in work::KEYS {
        let _ = writeln!(out, "| `{name}` | {about} |");
    }
    out.push_str(
        "\n## `[[caller]]`\n\nOne table for each caller that is told later what became of its work; see\n\
         [callers that are told later](contracts/message.md#callers-that-are-told-later) and\n\
         [operations](operations.md#what-callers-are-owed).\n",
    );
    out.push_str("\n| key | what it is |\n|---|---|\n");
    for (name, about) in caller::KEYS {
        let _ = writeln!(out, "| `{name}` | {about} |");
    }
    out
}

/// An agent of each contract, as the program reads them from a file that sets nothing but what it must.
fn one_of_each() -> Vec<Agent> {
    const FILE: &str = r#"
        agent = [
            { name = "builtin", contract = "builtin", run = "echo", work = ["a"] },
            { name = "exec", contract = "exec", exec = ["true"], work = ["b"] },
            { name = "run", contract = "run", url = "http://127.0.0.1:1", work = ["c"] },
            { name = "task", contract = "task", url = "http://127.0.0.1:2", work = ["d"] },
            { name = "message", contract = "message", via = "pull", work = ["f"] },
            { name = "workflow-program", contract = "workflow", exec = ["true"], work = ["g"] },
            { name = "workflow-address", contract = "workflow", url = "http://127.0.0.1:3/envelope", work = ["h"] },
            { name = "bridge", contract = "bridge", dir = "inbox", work = ["e"] },
        ]
    "#;
    let path = env::temp_dir().join(format!("crosspoint-page-{}.toml", std::process::id()));
    fs::write(&path, FILE).expect("it can be written");
    let loaded = Config::load(&Flags { config: Some(path.clone()), ..Flags::default() });
    fs::remove_file(path).expect("it can be removed");
    loaded.unwrap_or_else(|error| panic!("{error:#}")).agents
}

fn program(contract: &Contract) -> Option<Exec> {
    if let Contract::Exec(exec) = contract { Some((**exec).clone()) } else { None }
}

fn remote_of(contract: &Contract) -> Option<Remote> {
    if let Contract::Remote(remote) = contract { Some((**remote).clone()) } else { None }
}

fn messages(contract: &Contract) -> Option<Message> {
    if let Contract::Messages(message) = contract { Some((**message).clone()) } else { None }
}

fn directory(contract: &Contract) -> Option<Bridge> {
    if let Contract::Directory(bridge) = contract { Some((**bridge).clone()) } else { None }
}

const HEAD: &str = "| key | default | what it is | values |\n|---|---|---|---|\n";

/// Writes one key, with the value that it has in each of these.
fn row<T>(out: &mut String, key: &Key<T>, defaults: &[T]) {
    let values = defaults.iter().map(|of| (key.get)(of).map_or_else(|| "-".to_owned(), |value| format!("`{value}`")));
    let values: Vec<String> = values.collect();
    let _ = writeln!(out, "| `{}` | {} | {} | {} |", key.name, values.join(" | "), key.about, key.kind.expected());
}

/// With UPDATE_DOCS set, the page is rewritten instead.
#[test]
fn the_page_of_the_configuration_has_every_key() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PAGE);
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, page()).expect("it can be written");
    }
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page(), "UPDATE_DOCS=1 with the tests rewrites {PAGE}");
}

#[test]
fn every_key_that_is_read_by_hand_is_on_the_page() {
    let known: Vec<&str> = BY_HAND.map(|(name, _, _)| name).to_vec();
    for name in agent::BY_HAND
        .into_iter()
        .chain(agent::BUILTIN_KEYS)
        .chain(exec::keys(None))
        .chain(remote::keys())
        .chain(message::keys())
        .chain(bridge::keys())
    {
        let listed = AGENT.iter().map(|key| key.name).chain(exec::KEYS.iter().map(|key| key.name));
        let mut listed = listed.chain(remote::KEYS.iter().map(|key| key.name)).chain(known.iter().copied());
        assert!(listed.any(|listed| listed == name), "{name} is not on {PAGE}");
    }
}
