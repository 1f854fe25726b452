//! The page of the documentation and the example, followed to the letter.

use std::fs;
use std::path::{Path, PathBuf};

use assert_cmd::Command;

use super::commands::id_of;
use crate::support::asking_programs::ended;
use crate::support::bridge_run::Ran;
use crate::support::pages::{announced, blocks, page, section};
use crate::support::program::{crosspoint, root};
use crate::support::workflow_place::Place;

/// Types this into a shell that finds our program.
fn typed(directory: &Path, lines: &str) -> Ran {
    let program = PathBuf::from(crosspoint(&[]).get_program());
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().expect("it is somewhere").display());
    let mut shell = Command::new("bash");
    shell.args(["-e", "-c", lines]).current_dir(directory).env("PATH", path).env("NO_COLOR", "1");
    shell.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_RUNTIME_DIR");
    ended(&mut shell)
}

/// The lines of the page about stages are in what was printed, whatever time each took.
fn printed(promised: &str, ran: &Ran) {
    let timeless = |line: &str| -> Vec<String> {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_time = |at: usize| at == 2 && words.get(3) == Some(&"s");
        words.iter().enumerate().filter(|(at, _)| !is_time(*at)).map(|(_, word)| (*word).to_owned()).collect()
    };
    let seen: Vec<Vec<String>> = ran.stderr.lines().map(timeless).collect();
    for line in promised.lines() {
        assert!(seen.contains(&timeless(line)), "{line:?} is not in {}", ran.stderr);
    }
}

/// From nothing to a workflow of four stages that is written, checked, run, escalated and answered.
#[test]
fn four_stages_are_written_checked_run_escalated_and_answered_by_the_page() {
    let page = page("docs/workflows.md");
    let place = Place::new();
    let section = section(&page, "## From nothing to four stages");
    let mut last: Option<Ran> = None;
    let mut id = String::new();
    for (before, language, text) in announced(section) {
        match language {
            "toml" | "python" => {
                let name = before.rsplit('`').nth(1).expect("it says what to call the file");
                let path = place.file(name);
                fs::create_dir_all(path.parent().expect("it is below")).expect("it can be made");
                fs::write(path, text).expect("it can be written");
                let kept = fs::read_to_string(root().join("examples/workflows").join(name)).expect("it is there");
                assert_eq!(text, kept, "the page and the example are the same");
            }
            "sh" => {
                let ran = typed(place.path(), &text.replace("ID", &id));
                let parks = text.contains("workflow run");
                assert_eq!(ran.code, if parks { 3 } else { 0 }, "{text}: {ran:?}");
                if parks {
                    id = id_of(&ran);
                }
                last = Some(ran);
            }
            "text" => {
                let ran = last.as_ref().expect("commands come first");
                // A file that was printed, or lines about stages.
                if !ran.stdout.starts_with(text) {
                    printed(text, ran);
                }
            }
            "console" if text.starts_with("$ ") => {
                let (command, output) = text.split_once('\n').expect("a command line ends");
                let ran = typed(place.path(), command.trim_start_matches("$ "));
                assert_eq!((ran.code, ran.stdout.as_str()), (0, output), "{ran:?}");
            }
            "console" => {}
            other => panic!("a block of {other}"),
        }
    }
    assert_eq!(fs::read_to_string(place.file("letter.txt")).expect("it is there"), "Dear reader,\nall is well.\nAda\n");
}

/// The example runs as its page says, in a scratch directory.
#[test]
fn the_specify_loop_runs_as_its_page_says() {
    let page = page("examples/workflows/README.md");
    let found = blocks(&page);
    let [("sh", run), ("sh", answer), ("text", spec)] = found[..] else { panic!("not three blocks: {page}") };
    // The commands of the page are for the root of the repository, and make a directory of their own.
    let place = Place::new();
    let ran = typed(&root(), &format!("export TMPDIR={}; {run}", place.path().display()));
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("retry") && ran.stderr.contains("Which provider signs users in?"), "{ran:?}");
    let scratch = fs::read_dir(place.path()).expect("it is there").flatten().map(|entry| entry.path());
    let scratch = scratch.into_iter().find(|path| path.join("specs").exists()).expect("the run made it");
    let answered = typed(&scratch, &answer.replace("ID", &id_of(&ran)));
    assert_eq!(answered.code, 0, "{answered:?}");
    assert!(answered.stdout.ends_with(spec), "{spec}: {answered:?}");
    let index = fs::read_to_string(scratch.join("specs/001-user-auth/.workflow/index.md")).expect("it is there");
    assert_eq!(index, "Status: specified\n");
}
