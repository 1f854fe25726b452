//! The scripts of examples/bridge, run as their page says.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use crate::support::asking_programs::ended;
use crate::support::bridge_directory::{Directory, PRINTED_ID};
use crate::support::bridge_run::Ran;
use crate::support::program::root;

const NAMES: [&str; 6] = ["README.md", "agent.sh", "crosspoint.toml", "plain.sh", "review.py", "review.sh"];

/// The example, as it is after copying.
fn example() -> Directory {
    let directory = Directory::temporary();
    for name in NAMES {
        fs::copy(root().join("examples/bridge").join(name), directory.file(name)).expect("it can be copied");
    }
    directory
}

fn run(directory: &Directory, words: &[&str]) -> Ran {
    directory.run_crosspoint(&[&["bridge", "run", "--"], words].concat())
}

const SUMMARY: &str = "All is well.\n";

#[test]
fn every_command_of_the_page_works_and_leaves_nothing() {
    let page = fs::read_to_string(root().join("examples/bridge/README.md")).expect("it is there");
    let commands: Vec<&str> = page.lines().filter_map(|line| line.strip_prefix("crosspoint bridge run -- ")).collect();
    assert_eq!(commands.len(), 3, "{page}");
    for command in commands {
        let directory = example();
        let words: Vec<&str> = command.split(' ').collect();
        let mode = fs::metadata(directory.file(words[0])).expect("it is there").permissions().mode();
        assert!(mode & 0o111 != 0, "{command} is executable as it is");
        // Twice: another run asks anew.
        for _ in 0..2 {
            let ended = run(&directory, &words);
            assert_eq!((ended.code, ended.stdout.as_str()), (0, SUMMARY), "{command}: {}", ended.stderr);
            let questions = if words.len() == 3 { 3 } else { 2 };
            assert_eq!(ended.stderr.matches("answered after").count(), questions, "{command}: {}", ended.stderr);
            assert_eq!(directory.bridge_files(), [""; 0], "{command}");
        }
    }
}

#[test]
fn an_agent_that_fails_at_the_review_is_no_reason_to_stop() {
    for (words, said) in [
        (["./review.sh", "README.md"], "README.md: {\"verdict\": \"nobody could review it\"}"),
        (["./review.py", "README.md"], "README.md: nobody could review it (agent_failed)"),
    ] {
        let directory = example();
        directory.write("agent.sh", "[ $CROSSPOINT_WORK = summarise ] || exit 3\necho 'All is well.'\n");
        let ended = run(&directory, &words);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, SUMMARY), "{}", ended.stderr);
        assert!(ended.stderr.contains(said), "{}", ended.stderr);
    }
}

#[test]
fn an_agent_that_fails_altogether_is_said() {
    for words in [["./review.sh", "README.md"], ["./plain.sh", "README.md"], ["./review.py", "README.md"]] {
        let directory = example();
        directory.write("agent.sh", "exit 3\n");
        let ended = run(&directory, &words);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{words:?}: {}", ended.stderr);
        assert!(ended.stderr.contains("exit code 3"), "{words:?}: {}", ended.stderr);
    }
}

/// Prompts with every sort of character reach the agent unchanged.
#[test]
fn names_and_content_of_files_do_no_harm() {
    let name = "it's \"a\" $(file) é.txt";
    let text = "quotes \" ' ` $HOME \\ tab\t and ✅\nsecond line\n";
    for script in ["./review.sh", "./plain.sh", "./review.py"] {
        let directory = example();
        directory.write(name, text);
        directory.write(
            "agent.sh",
            "read -r input; printf '%s\\n' \"$input\" >> seen\necho '{\"verdict\": \"good\", \"summary\": \"x\"}'\n",
        );
        let ended = run(&directory, &[script, name]);
        assert_eq!(ended.code, 0, "{script}: {}", ended.stderr);
        let seen = directory.read("seen");
        let first: serde_json::Value = serde_json::from_str(seen.lines().next().expect("it was asked")).expect("JSON");
        let asked = format!(
            "{}{}",
            first["prompt"].as_str().expect("a text"),
            first["context"]["text"].as_str().unwrap_or_default()
        );
        assert!(asked.contains(name) && asked.contains(text.trim_end()), "{script}: {asked}");
    }
}

/// Each script keeps a response that is not its own, and says so.
#[test]
fn scripts_refuse_the_answer_to_another_request() {
    for script in ["./plain.sh", "./review.py"] {
        let directory = example();
        let start = |resumed: bool| {
            let mut command = assert_cmd::Command::new(directory.file(script));
            command.current_dir(directory.path()).arg("README.md").args(resumed.then_some("--resume"));
            ended(&mut command)
        };
        let begun = start(false);
        assert_eq!(begun.code, 42, "{script}: {}", begun.stderr);
        let id = directory.respond_text("{}");
        let foreign = directory.read(".agent-response.json").replace(&id, PRINTED_ID);
        directory.write(".agent-response.json", &foreign);
        let ended = start(true);
        assert!([1, 2].contains(&ended.code), "{script}: {}", ended.stderr);
        assert!(ended.stderr.contains(&id) && ended.stderr.contains(PRINTED_ID), "{}", ended.stderr);
        assert_eq!(directory.read(".agent-response.json"), foreign);
    }
}

/// More than the system allows in one argument of a command.
#[test]
fn files_may_be_larger_than_the_words_of_a_command() {
    for script in ["./review.sh", "./plain.sh", "./review.py"] {
        let directory = example();
        directory.write("large.txt", &"0123456789 ".repeat(30_000));
        let ended = run(&directory, &[script, "large.txt"]);
        assert_eq!((ended.code, ended.stdout.as_str()), (0, SUMMARY), "{script}: {}", ended.stderr);
    }
}

/// A python3 that fails at one of the script's steps, after half of its output.
#[test]
fn a_request_that_cannot_be_written_is_not_asked() {
    for step in ["uuid4", "created_at"] {
        let directory = example();
        let found = std::env::var_os("PATH").unwrap_or_default();
        let real = std::env::split_paths(&found).map(|path| path.join("python3")).find(|path| path.exists());
        let real = real.expect("there is a python3").display().to_string();
        let bin = directory.file("bin");
        fs::create_dir(&bin).expect("it can be made");
        let text = format!("#!/bin/sh\ncase $2 in *{step}*) printf '{{\"requ'; exit 7;; esac\nexec '{real}' \"$@\"\n");
        directory.write("bin/python3", &text);
        fs::set_permissions(bin.join("python3"), fs::Permissions::from_mode(0o755)).expect("it can be set");
        let mut command = assert_cmd::Command::new(directory.file("plain.sh"));
        let path = std::env::join_paths([bin].into_iter().chain(std::env::split_paths(&found))).expect("a path");
        command.current_dir(directory.path()).arg("README.md").env("PATH", path);
        let seen = ended(&mut command);
        assert_eq!(seen.code, 7, "{step}: {}", seen.stderr);
        assert!(!directory.has(".agent-request.json") && !directory.has(".agent-answers/review.asked"), "{step}");
        assert_eq!(directory.has(".agent-answers/review.id"), step != "uuid4");
    }
}

#[test]
fn another_work_can_stand_in_as_the_page_says() {
    let page = fs::read_to_string(root().join("examples/bridge/README.md")).expect("it is there");
    let (flag, value) = ("--agent", "summarise=review");
    assert!(page.contains(&format!("`{flag} {value}`")), "{page}");
    let ended = example().run_crosspoint(&["bridge", "run", flag, value, "--", "./review.sh", "README.md"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stdout.starts_with("{\"verdict\""), "{}", ended.stdout);
}
