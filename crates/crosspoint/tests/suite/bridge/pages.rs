//! The script at the beginning of docs/bridge.md, taken from the page and run unchanged.

use std::path::PathBuf;

use assert_cmd::Command;

use crate::support::asking_programs::ended;
use crate::support::bridge_directory::Directory;
use crate::support::bridge_run::Ran;
use crate::support::pages::{blocks, page, section};
use crate::support::program::crosspoint;

/// Types this into a shell that finds our program, as readers of the page do.
fn typed(directory: &Directory, lines: &str) -> Ran {
    let program = PathBuf::from(crosspoint(&[]).get_program());
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", program.parent().expect("it is somewhere").display());
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", lines]).current_dir(directory.path()).env("PATH", path).env_remove("CROSSPOINT_SERVER");
    ended(&mut shell)
}

/// Acts as a reader: puts the first two blocks into files, types the third, and sees what stands behind its last
/// command.
fn followed(section: &str) {
    let [("sh", script), ("toml", configuration), ("sh", lines)] = blocks(section)[..] else {
        panic!("not a script, a configuration and commands: {section}");
    };
    let (before, _) = section.split_once("```").expect("there are blocks");
    assert!(before.contains("`review.sh`"), "it says what to call the script: {before}");
    let (_, promised) = lines.trim_end().rsplit_once("# ").expect("it says what is printed");
    let directory = Directory::temporary();
    directory.write("review.sh", script);
    directory.write("crosspoint.toml", configuration);
    // Twice: another run asks anew.
    for _ in 0..2 {
        let seen = typed(&directory, lines);
        assert_eq!((seen.code, seen.stdout.trim_end()), (0, promised), "{}", seen.stderr);
        assert_eq!(seen.stderr.matches("answered after").count(), 2, "{}", seen.stderr);
        assert_eq!(directory.bridge_files(), [""; 0]);
    }
}

#[test]
fn a_script_is_bridged_by_the_opening_of_the_page() {
    followed(section(&page("docs/bridge.md"), "# Programs that ask by files"));
}

/// The recipe for other drivers, with a person's answer behind `answer_it`.
#[test]
fn the_recipe_for_other_drivers_brings_the_script_to_its_end() {
    let page = page("docs/bridge.md");
    let [("sh", script), ..] = blocks(section(&page, "# Programs that ask by files"))[..] else { panic!("{page}") };
    let [("sh", recipe), ..] = blocks(section(&page, "## Recipes for other drivers"))[..] else { panic!("{page}") };
    let directory = Directory::temporary();
    directory.write("review.sh", script);
    directory.write("notes.txt", "hello\n");
    let answer = "answer_it() { crosspoint bridge answer . --text 'Looks good.'; }";
    let seen = typed(&directory, &format!("set +e; chmod +x review.sh\n{answer}\n{recipe}"));
    assert_eq!((seen.code, seen.stdout.as_str()), (0, "Looks good.\n"), "{}", seen.stderr);
}
