//! Canaries: distinct texts in every field of every kind of document, through every door and every sort of agent, at
//! the highest log level. None may be in logs, metrics, errors to others, arguments of processes or the audit
//! (docs/security.md).
//!
//! The documents are those of `testdata`, so a new kind or a new member is planted without a line here. The build with
//! the feature `leaks` shows that each leak is found.

mod agents;
mod answers;
mod commands;
mod corpus;
mod doors;
mod edges;
mod kept;
#[cfg(feature = "leaks")]
mod leaks;
mod ledger;
mod places;
mod site;

use std::collections::BTreeSet;

use self::ledger::{Found, Ledger};
use self::site::Site;

/// Most findings that are shown, and most characters of the line of each.
const SHOWN_MAX: usize = 30;
const LINE_CHARS_MAX: usize = 300;

/// Least number of canaries that come to those whom they are meant for.
const ARRIVED_MIN: usize = 5_000;

/// Plants everywhere, and returns what is found where it does not belong.
fn planted(site: Site) -> (Vec<Found>, Ledger) {
    doors::good(&site);
    doors::refused(&site);
    doors::told(&site);
    doors::judged(&site);
    agents::people(&site);
    agents::programs(&site);
    agents::workers(&site);
    agents::messages(&site);
    agents::files(&site);
    agents::services(&site);
    edges::endpoints(&site);
    edges::bytes(&site);
    edges::operators(&site);
    commands::caller(&site);
    let mut found = commands::worker(&site);
    found.extend(commands::watcher(&site));
    site.looked_through(found)
}

/// A test that plants nothing finds nothing: the canaries have come to those whom they are meant for.
fn have_arrived(ledger: &Ledger) {
    let arrived = ledger.arrived();
    for kind in corpus::kinds().into_iter().chain(ARRIVING) {
        let (planted, there) = arrived.get(kind).copied().unwrap_or_default();
        assert!(there > 0, "none of {planted} of {kind} has arrived: {arrived:?}");
    }
    let there: usize = arrived.values().map(|(_, there)| there).sum();
    assert!(there > ARRIVED_MIN, "only {there} of {} have arrived: {arrived:?}", ledger.count());
}

/// Kinds that are of no contract.
const ARRIVING: [&str; 13] = [
    "native.job",
    "native.answer",
    "native.report",
    "a directive",
    "a program",
    "a worker",
    "a caller on the command line",
    "the configuration",
    "the input of a file",
    "the input of a message",
    "the input of a service",
    "the input of a worker",
    "the token of an agent",
];

/// The first of each kind in each place, with the line.
fn shown(found: &[Found]) -> String {
    let mut known = BTreeSet::new();
    let firsts = found.iter().filter(|one| known.insert((&one.kind, &one.pointer, &one.place)));
    let line = |one: &Found| one.line.chars().take(LINE_CHARS_MAX).collect::<String>();
    let lines: Vec<String> = firsts
        .take(SHOWN_MAX)
        .map(|one| format!("{} {} is in {}: {}", one.kind, one.pointer, one.place, line(one)))
        .collect();
    format!("{} canaries are where they do not belong:\n{}", found.len(), lines.join("\n"))
}

#[cfg(not(feature = "leaks"))]
#[test]
fn nothing_that_was_planted_is_found_with_a_log_of_json() {
    let (found, ledger) = planted(Site::start("json", &[]));
    assert!(found.is_empty(), "{}", shown(&found));
    have_arrived(&ledger);
}

#[cfg(not(feature = "leaks"))]
#[test]
fn nothing_that_was_planted_is_found_with_a_log_of_text() {
    let (found, ledger) = planted(Site::start("text", &[]));
    assert!(found.is_empty(), "{}", shown(&found));
    have_arrived(&ledger);
}
