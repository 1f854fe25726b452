//! What the README promises.

use std::fs;
use std::process::Command;

use crate::support::program::{crosspoint, root};
use crate::support::server::Server;

fn file(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn ci_runs_the_test_command_of_the_readme() {
    assert!(file("README.md").contains("\nscripts/test\n"));
    assert!(file(".ci/run").lines().any(|line| line.trim() == "scripts/test"));
}

#[test]
fn the_first_command_of_the_readme_serves_and_what_it_prints_works() {
    let readme = file("README.md");
    let command = readme.lines().find(|line| line.starts_with("cargo run --release -- ")).expect("the README has it");
    assert_eq!(command, "cargo run --release -- serve");
    let server = Server::start();
    let said = server.log();
    let line = said.lines().skip_while(|line| !line.starts_with("Try, ")).nth(1).expect("it says what to try");
    // Pasted unchanged, in an unrelated directory.
    let output = Command::new("sh").args(["-c", line]).current_dir("/").env_remove("CROSSPOINT_SERVER").output();
    let output = output.expect("there is a shell");
    assert_eq!(output.status.code(), Some(0), "{line}: {output:?}");
    let printed: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the outputs are JSON");
    assert_eq!(printed, serde_json::json!({"message": "hello"}));
    let progress = String::from_utf8_lossy(&output.stderr);
    assert!(progress.starts_with("job ") && progress.contains("%  Step 2 of 10\n"), "{progress}");
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"].as_array().map(Vec::len), Some(1), "this server did it");
}

#[test]
fn the_job_of_the_first_steps_shows_its_progress_and_its_output() {
    let page = file("docs/getting-started.md");
    let (_, example) = page.split_once("\n$ crosspoint submit slow_echo --input ").expect("the page has it");
    let (input, printed) = example.split_once('\n').expect("a line ends");
    let (printed, _) = printed.split_once("```").expect("a block ends");
    let server = Server::start();
    let arguments = ["submit", "slow_echo", "--input", input.trim_matches('\''), "--server", &server.url()];
    let output = crosspoint(&arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    // Ids differ from run to run, and dots stand for lines that are left out.
    for line in printed.lines().filter(|line| !line.starts_with("job ") && *line != "...") {
        assert!(said.lines().any(|said| said == line), "{line:?} is not in {said}");
    }
}

/// The document behind the example of the first steps.
const MISTAKEN: &str = r#"{
  "request_id": "32ecfadc-2b66-4daa-a7c0-a03c449fcea5",
  "version": "1.0",
  "status": "success",
  "result": {"sections": ["boundaries"]},
  "error_message": null,
  "error_type": null,
  "created_at": "2025-11-24T14:22:45+00:00",
  "duration_seconds": "1.0",
  "metadata": {}
}
"#;

#[test]
fn the_mistakes_of_the_first_steps_are_what_the_program_prints() {
    let directory = std::env::temp_dir().join(format!("crosspoint-readme-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("the directory can be made");
    fs::write(directory.join(".agent-response.json"), MISTAKEN).expect("it can be written");
    let output = crosspoint(&["validate", ".agent-response.json"]).current_dir(&directory).output();
    fs::remove_dir_all(&directory).expect("it can be removed");
    let printed = String::from_utf8(output.expect("it starts").stdout).expect("output is UTF-8");
    assert!(file("docs/getting-started.md").contains(&printed), "{printed}");
}

/// Every page of documentation, relative to the repository's root.
fn pages() -> Vec<String> {
    let mut pages: Vec<String> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(String::from).to_vec();
    let mut directories = vec![root().join("docs"), root().join("examples")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("it can be listed") {
            let path = entry.expect("it can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.push(path.strip_prefix(root()).expect("it is below").to_str().expect("UTF-8").to_owned());
            }
        }
    }
    pages
}

const CONSOLE: &str = "```console\n$ crosspoint ";

/// This example uses a file of the reader's own and has a separate test.
const READERS_OWN: &str = "validate .agent-response.json";

/// The reader has written this file in an empty directory. We have the same file in this one.
const READERS_FILE: (&str, &str) = ("workflow show four-stages.toml", "examples/workflows");

/// The page with the output of its console blocks made anew.
fn with_fresh_output(text: &str) -> String {
    let mut fresh = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(CONSOLE) {
        let (command, output) = after.split_once('\n').expect("a command line ends");
        let end = output.find("```").expect("a block ends");
        let made = if command == READERS_OWN { output[..end].to_owned() } else { printed_by(command) };
        fresh += &format!("{before}{CONSOLE}{command}\n{made}");
        rest = &output[end..];
    }
    fresh + rest
}

fn printed_by(command: &str) -> String {
    let arguments: Vec<&str> = command.split_whitespace().collect();
    let directory = if command == READERS_FILE.0 { root().join(READERS_FILE.1) } else { root() };
    String::from_utf8(crosspoint(&arguments).current_dir(directory).output().expect("it starts").stdout)
        .expect("output is UTF-8")
}

/// With UPDATE_DOCS set, the pages are rewritten instead.
#[test]
fn console_blocks_are_what_the_program_prints() {
    let mut blocks = 0;
    for page in pages() {
        let text = file(&page);
        let fresh = with_fresh_output(&text);
        blocks += text.matches(CONSOLE).count();
        if std::env::var_os("UPDATE_DOCS").is_some() {
            fs::write(root().join(&page), &fresh).expect("the page can be written");
        } else {
            assert!(text == fresh, "{page} is stale: UPDATE_DOCS=1 cargo nextest run -p crosspoint console_blocks");
        }
    }
    assert!(blocks > 10, "only {blocks} blocks were found");
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut links = 0;
    for page in &pages() {
        let text = file(page);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if target.starts_with("http") || target.starts_with('#') {
                continue;
            }
            let path = target.split('#').next().unwrap_or_default();
            let place = root().join(page).parent().expect("pages are in a directory").join(path);
            assert!(place.exists(), "{page} links to {target}, which is not there");
            links += 1;
        }
    }
    assert!(links > 10, "only {links} links were found");
}
