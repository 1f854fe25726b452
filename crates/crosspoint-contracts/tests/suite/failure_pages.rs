//! The pages of `docs/failures`: one for each failure, and each says what the code does.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crosspoint_contracts::clause::{self, Clause};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::job::State;
use crosspoint_contracts::{Contract, Options, bridge, message, run, task, workflow};

use crate::failures::{TASK_CODES, job};

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/failures")
}

fn text(name: &str) -> String {
    let path = directory().join(name).with_extension("md");
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of all tables of a page, table by table, without heads and rules.
fn tables(text: &str) -> Vec<Vec<Vec<String>>> {
    let mut tables: Vec<Vec<Vec<String>>> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        let cells = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |"));
        match cells {
            Some(cells) if inside => {
                let row = cells.split(" | ").map(str::to_owned).collect();
                tables.last_mut().expect("a table has begun").push(row);
            }
            _ if line.starts_with("|---") => {
                inside = true;
                tables.push(Vec::new());
            }
            _ => inside = false,
        }
    }
    tables
}

/// The JSON blocks of a page.
fn examples(text: &str) -> Vec<&str> {
    text.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap_or_default()).collect()
}

/// How a contract writes a failure, in the words of the pages.
fn written(failure: Failure, contract: Contract) -> String {
    match contract.name() {
        "message" => match message::failure::write(failure) {
            Some(code) => format!("`error` {code}"),
            None => "`work_result` failed".to_owned(),
        },
        "bridge" => {
            let (status, error_type) = bridge::failure::write(failure);
            format!("`{}` / `{error_type}`", status.word())
        }
        // There is no error in a cancelled task, so the code is not seen in any document.
        "task" if failure == Failure::Cancelled => "status `cancelled`".to_owned(),
        "task" => {
            let (code, recoverable) = task::failure::write(failure);
            format!("`{code}`, recoverable {recoverable}")
        }
        "run" => {
            let (code, status) = run::failure::write(failure);
            format!("`{code}`, HTTP {status}")
        }
        "workflow" => format!("`{}`", workflow::failure::write(failure).word()),
        other => panic!("{other} has no column"),
    }
}

/// Every code of a contract that its pages could name, in the order of its own list, and what it reads as.
fn codes(contract: Contract) -> Vec<(String, Failure)> {
    let own = |(code, failure): (&str, Failure)| (code.to_owned(), failure);
    match contract.name() {
        "message" => (5001..=5999).map(|code| (code.to_string(), message::failure::read(code))).collect(),
        "bridge" => {
            let written = Failure::ALL.map(|failure| bridge::failure::write(failure).1);
            let all = written.into_iter().chain(["RequestTooLarge", "ResponseTooLarge"]);
            all.map(|code| own((code, bridge::failure::read(code)))).collect()
        }
        "task" => TASK_CODES.map(|(code, _)| own((code, task::failure::read(code)))).to_vec(),
        "run" => Failure::ALL
            .map(|failure| run::failure::write(failure).0)
            .map(|code| own((code, run::failure::read(code))))
            .to_vec(),
        // The other contracts have no codes.
        _ => Vec::new(),
    }
}

/// What a contract reads as a failure, in the words of the pages.
fn read_from(failure: Failure, contract: Contract) -> String {
    match (failure, contract) {
        (Failure::AgentFailed, Contract::Message) => return "`work_result` failed, any other code".to_owned(),
        (Failure::AgentFailed, Contract::Workflow) => return "`success` false".to_owned(),
        (Failure::AgentFailed, _) => return "any other code".to_owned(),
        (Failure::Cancelled, Contract::Task) => return "status `cancelled`".to_owned(),
        _ => {}
    }
    let codes = codes(contract).into_iter().filter(|(_, read)| *read == failure);
    let codes: Vec<String> = codes.map(|(code, _)| format!("`{code}`")).collect();
    if codes.is_empty() { "what was carried".to_owned() } else { codes.join(", ") }
}

/// In the order of the pages' tables; the codes of a contract that is not among them stand on its own page.
const CONTRACTS: [Contract; 5] =
    [Contract::Message, Contract::Bridge, Contract::Task, Contract::Run, Contract::Workflow];

fn retried(failure: Failure) -> &'static str {
    if failure.is_retried() { "yes" } else { "no" }
}

/// The clause that states a failure's codes; it begins with the name.
fn clause_of(failure: Failure) -> &'static Clause {
    let about = |clause: &&Clause| {
        let rest = clause.text.strip_prefix(failure.name());
        rest.is_some_and(|rest| rest.starts_with([':', ','])) && clause.id.starts_with("ALL-1")
    };
    clause::every().find(about).unwrap_or_else(|| panic!("no clause is about {failure}"))
}

/// What a page says about the doors, which the library does not know.
fn door(failure: Failure) -> String {
    let row = tables(&text(failure.name()))[0].get(3).cloned().unwrap_or_default();
    let [name, door] = &row[..] else { panic!("{failure}: {row:?}") };
    assert_eq!(name, "refused at a door", "{failure}");
    door.clone()
}

#[test]
fn every_page_says_what_the_code_does() {
    for failure in Failure::ALL {
        let page = text(failure.name());
        assert!(page.starts_with(&format!("# {failure}\n\n{}", failure.sentence())), "{failure}");
        let tables = tables(&page);
        let [facts, contracts] = &tables[..] else { panic!("{failure} has {} tables", tables.len()) };
        let expected = [
            ["repeat before dispatch", failure.repeat(Dispatched::No).name()],
            ["repeat after dispatch", failure.repeat(Dispatched::Yes).name()],
            ["retried by an orchestrator", retried(failure)],
            ["refused at a door", &door(failure)],
            ["clause", clause_of(failure).id],
        ];
        assert_eq!(*facts, expected, "{failure}");
        let expected = CONTRACTS.map(|contract| {
            [contract.name().to_owned(), written(failure, contract), read_from(failure, contract)].to_vec()
        });
        assert_eq!(*contracts, expected, "{failure}");
    }
}

#[test]
fn the_index_says_the_same() {
    let index = text("README");
    let tables = tables(&index);
    let [rows] = &tables[..] else { panic!("{} tables", tables.len()) };
    assert_eq!(rows.len(), Failure::ALL.len());
    for (failure, row) in Failure::ALL.into_iter().zip(rows) {
        let (before, after) = (failure.repeat(Dispatched::No).name(), failure.repeat(Dispatched::Yes).name());
        let repeat =
            if before == after { before.to_owned() } else { format!("{before} before dispatch, else {after}") };
        let mut expected = vec![format!("[{failure}]({failure}.md)"), failure.sentence().to_owned()];
        expected.extend(CONTRACTS.map(|contract| written(failure, contract)));
        expected.extend([door(failure), repeat, retried(failure).to_owned()]);
        assert_eq!(*row, expected);
    }
}

/// The three-digit numbers in a text.
fn statuses(text: &str) -> BTreeSet<&str> {
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '-');
    words.filter(|word| word.len() == 3 && word.bytes().all(|byte| byte.is_ascii_digit())).collect()
}

/// The library has no code for what a door answers, so the clauses are compared.
#[test]
fn doors_answer_as_the_clauses_say() {
    for failure in Failure::ALL {
        let clause = clause_of(failure);
        let door = door(failure);
        // The number in brackets is the run's. What follows `workflow` is the door's.
        let (_, at_door) = clause.text.split_once("workflow").expect("every clause says what a workflow does");
        assert_eq!(statuses(&door), statuses(at_door), "{failure}: {door}");
        assert_eq!(door == "-", statuses(&door).is_empty(), "{failure}: {door}");
    }
}

#[test]
fn no_page_is_without_a_failure() {
    for entry in fs::read_dir(directory()).expect("the directory can be listed") {
        let path = entry.expect("the entry can be read").path();
        let stem = path.file_stem().and_then(|stem| stem.to_str()).expect("names are plain");
        assert!(stem == "README" || Failure::from_name(stem).is_some(), "{} is about no failure", path.display());
    }
}

#[test]
fn examples_are_valid_and_read_as_their_failure() {
    for failure in Failure::ALL {
        let page = text(failure.name());
        let examples = examples(&page);
        assert_eq!(examples.len(), 2, "{failure}");
        for example in examples {
            let reading = crosspoint_contracts::read(example.as_bytes(), &Options::default());
            assert_eq!(reading.report.findings, [], "{failure}: {example}");
            let job = job(example);
            assert_eq!(job.failure(), Some(failure), "{example}");
            let state = if failure == Failure::Cancelled { State::Cancelled } else { State::Failed };
            assert_eq!(job.state(), Some(state), "{example}");
        }
    }
}

#[test]
fn links_lead_to_files() {
    let pages = Failure::ALL.map(Failure::name).into_iter().chain(["README"]);
    for page in pages {
        let text = text(page);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert!(directory().join(link).is_file(), "{page} links to {link}");
        }
    }
}
