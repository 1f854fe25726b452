//! The agents of all kinds: how they are configured, how they are begun, and by which proxies they are reached.

use std::collections::BTreeMap;
use std::path::Path;

use super::ledger::Ledgers;
use super::processes;
use super::proxy::Proxy;
use super::restarts::Restarted;
use super::scripted::{self, Memory, Pulling};
use crate::support::envelopes::program;
use crate::support::programs::bash;
use crate::support::scripted_agent::{ScriptedAgent, configuration};
use crate::support::server::Server;

/// The kinds that the server calls, each by a proxy of its own.
pub(super) const CALLED: [&str; 9] =
    ["run", "run_repeatable", "task", "pushed", "envelope", "sdk_run", "sdk_task", "sdk_pushed", "sdk_envelope"];

/// The kinds that call the server, each by a proxy of its own.
pub(super) const CALLING: [&str; 4] = ["joined", "joined_once", "pulled", "sdk_pulled"];

/// The works of the agent that is made with `crosspoint-agent` and called.
const SERVED: &[&str] = &[
    "sdk_run",
    "sdk_run_once",
    "sdk_task",
    "sdk_task_once",
    "sdk_pushed",
    "sdk_pushed_once",
    "sdk_envelope",
    "sdk_envelope_once",
];

/// A script that counts: the number is in its input. Between effect and answer there is time for it to be killed. If
/// its worker is killed as it starts, the input ends early for the moment until the script is killed too.
fn counting_script(ledger: &Path, then: &str) -> String {
    let ledger = ledger.display();
    format!(
        r#"input=$(cat); [[ $input =~ '"n":'\ *([0-9]+) ]] || exit 1; echo "${{BASH_REMATCH[1]}} $$" >> {ledger}; sleep 0.03; {then}"#
    )
}

const ENVELOPE: &str =
    r#"echo '{"success": true, "summary": "It is counted.", "artifacts": [], "recommendation": "proceed"}'"#;

/// The configuration of the server.
pub(super) fn configured(ledgers: &Ledgers, proxies: &BTreeMap<&str, Proxy>) -> String {
    let script = |kind: &str, then: &str| counting_script(&ledgers.path(kind), then);
    let at = |kind: &str| proxies[kind].url();
    let both = |kind: &str| format!("work = [\"{kind}\", \"{kind}_once\"]");
    let pulling = |name: &str, keys: &str| {
        // A lost message is noticed by the silence that follows.
        format!("[[agent]]\nname = \"{name}\"\ncontract = \"message\"\nvia = \"pull\"\nsilence_seconds = 5\n{keys}\n")
    };
    [
        "[[agent]]\nname = \"builtin\"\ncontract = \"builtin\"\nrun = \"echo\"\nwork = [\"builtin\"]\n".to_owned(),
        "[[agent]]\nname = \"bridge\"\ncontract = \"bridge\"\ndir = \"inbox\"\n".to_owned(),
        bash("exec", &script("exec", "echo counted"), ""),
        bash("exec_once", &script("exec_once", "echo counted"), "repeatable = false"),
        program("program", &script("program", ENVELOPE), ""),
        program("program_once", &script("program_once", ENVELOPE), "repeatable = false"),
        configuration("run", "run", &at("run"), ""),
        configuration("run_repeatable", "run", &at("run_repeatable"), "repeatable = true"),
        configuration("task", "task", &at("task"), ""),
        configuration("pushed", "message", &at("pushed"), ""),
        configuration("envelope", "workflow", &at("envelope"), ""),
        configuration("sdk_run", "run", &at("sdk_run"), &both("sdk_run")),
        configuration("sdk_task", "task", &at("sdk_task"), &both("sdk_task")),
        configuration("sdk_pushed", "message", &at("sdk_pushed"), &both("sdk_pushed")),
        configuration(
            "sdk_envelope",
            "workflow",
            &format!("{}/agents/counting/envelope", at("sdk_envelope")),
            &both("sdk_envelope"),
        ),
        pulling("pulled", ""),
        pulling("sdk_pulled", &both("sdk_pulled")),
    ]
    .concat()
}

/// The agents that the server calls.
pub(super) fn called<'s>(ledgers: &'s Ledgers, proxies: &'s BTreeMap<&str, Proxy>) -> Vec<Restarted<'s>> {
    fn scripted<'s>(
        kinds: &'static [&'static str],
        proxies: &'s BTreeMap<&str, Proxy>,
        begin: impl Fn() -> ScriptedAgent + Send + 's,
    ) -> Restarted<'s> {
        Restarted::called(kinds, vec![&proxies[kinds[0]]], move || {
            let agent = begin();
            (agent.address(), agent)
        })
    }
    let (tasks, messages) = (Memory::default(), Memory::default());
    let served = ["sdk_run", "sdk_task", "sdk_pushed", "sdk_envelope"].map(|kind| &proxies[kind]);
    vec![
        scripted(&["run"], proxies, || scripted::run(&ledgers.path("run"))),
        scripted(&["run_repeatable"], proxies, || scripted::run(&ledgers.path("run_repeatable"))),
        scripted(&["task"], proxies, move || scripted::task(&ledgers.path("task"), &tasks)),
        scripted(&["pushed"], proxies, move || scripted::pushed(&ledgers.path("pushed"), &messages)),
        scripted(&["envelope"], proxies, || scripted::envelope(&ledgers.path("envelope"))),
        Restarted::called(SERVED, served.to_vec(), || processes::serving(ledgers.directory(), SERVED)),
    ]
}

/// The agents that call the server, and the one that works with files.
pub(super) fn calling<'s>(
    ledgers: &'s Ledgers,
    proxies: &'s BTreeMap<&str, Proxy>,
    server: &Server,
) -> Vec<Restarted<'s>> {
    let (directory, address, inbox) = (ledgers.directory(), server.address(), server.directory().join("inbox"));
    let by = |kind: &str| (vec![&proxies[kind]], address);
    let worker = |kinds: &'static [&'static str; 1], more: &'static [&'static str]| {
        let (name, proxy) = (kinds[0], &proxies[kinds[0]]);
        let script = counting_script(&ledgers.path(name), "echo counted");
        Restarted::calling(kinds, by(name), move || processes::worker(directory, &proxy.url(), name, more, &script))
    };
    let (messages, pulled, sdk) = (Memory::default(), &proxies["pulled"], &proxies["sdk_pulled"]);
    vec![
        worker(&["joined"], &[]),
        worker(&["joined_once"], &["--repeatable", "false"]),
        Restarted::calling(&["pulled"], by("pulled"), move || {
            Pulling::start(pulled.address(), "pulled", &ledgers.path("pulled"), &messages)
        }),
        Restarted::calling(&["sdk_pulled", "sdk_pulled_once"], by("sdk_pulled"), move || {
            processes::pulling(directory, &sdk.url(), "sdk_pulled", &["sdk_pulled", "sdk_pulled_once"])
        }),
        Restarted::calling(&["bridge"], (vec![], address), move || {
            processes::files(directory, &inbox, &ledgers.path("bridge"))
        }),
    ]
}
