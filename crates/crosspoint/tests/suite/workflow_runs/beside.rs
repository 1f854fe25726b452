//! Commands beside a server and beside each other: what is printed can be pasted, and reaches the same run.

use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use super::commands::{id_of, own};
use crate::support::bridge_run::Ran;
use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, mode_of, said, stage, workflow, wrote};

/// The command that is printed after these words, typed into a shell.
fn pasted(place: &Place, ran: &Ran, words: &str) -> Ran {
    let line =
        ran.stderr.lines().find_map(|line| line.strip_prefix(words)).unwrap_or_else(|| panic!("{words}: {ran:?}"));
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let mut shell = std::process::Command::new("bash");
    let line = line.replace("crosspoint ", "\"$CROSSPOINT\" ").replace("--text TEXT", "--text green");
    shell.args(["-c", &line]).current_dir(place.path()).env("CROSSPOINT", program).env("NO_COLOR", "1");
    shell.env_remove("CROSSPOINT_SERVER").env_remove("HOME").env_remove("XDG_RUNTIME_DIR").stdin(Stdio::null());
    shell.output().expect("it starts").into()
}

/// A place with a workflow of its own programs that asks once.
fn asking(place: &Place) {
    own(place);
    place.replies("judge", &[said("Which colour?", "escalate"), said("Fine.", "proceed")]);
}

#[test]
fn the_next_commands_have_the_options_of_this_one() {
    let place = Place::new();
    asking(&place);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--data", "my data"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.contains("at the stage judge:"), "{ran:?}");
    let shown = place.crosspoint(&["jobs", "show", &id_of(&ran), "--data", "my data"]);
    assert!(shown.stdout.contains("--text TEXT --data 'my data' (or --input JSON)"), "{shown:?}");
    let answered = pasted(&place, &ran, "answer it: ");
    assert!(answered.code == 0 && answered.stdout.contains("--data 'my data'"), "{answered:?}");
    assert_eq!(pasted(&place, &ran, "then go on: ").code, 0);
    let ended = place.crosspoint(&["workflow", "show", &id_of(&ran), "--data", "my data"]);
    assert!(ended.stdout.contains("answered\n    green\n"), "{ended:?}");
}

/// A server that the environment names knows nothing of a run that brings programs.
#[test]
fn a_run_of_a_command_is_not_looked_for_at_a_server_of_the_environment() {
    let place = Place::new();
    asking(&place);
    let server = Server::start();
    let mut command = place.command(&["workflow", "run", "own.toml", "--root", "repo"]);
    let ran: Ran = command.env("CROSSPOINT_SERVER", server.url()).output().expect("it starts").into();
    let id = id_of(&ran);
    let next = format!("crosspoint workflow resume {id} --data .crosspoint\n");
    assert!(ran.code == 3 && ran.stderr.contains(&next), "{ran:?}");
}

#[test]
fn a_workflow_with_programs_runs_beside_a_server() {
    let place = Place::new();
    asking(&place);
    let mut server = Server::start();
    let data = server.data();
    let data = data.to_str().expect("UTF-8");
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--data", data]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.stderr.starts_with("a server has the store here: this command uses one in "), "{ran:?}");
    assert_eq!(mode_of(&server.data().join("embedded")), 0o700);
    assert_eq!(server.get("/api/v1/jobs").json()["jobs"], json!([]), "the server has nothing to do with it");
    // The server does not know the run, and the commands say who does.
    let id = id_of(&ran);
    for command in [["workflow", "show"], ["workflow", "resume"], ["workflow", "cancel"], ["jobs", "answer"]] {
        let text: &[&str] = if command[1] == "answer" { &["--text", "green"] } else { &[] };
        let unknown = place.crosspoint(&[&command[..], &[&id, "--data", data], text].concat());
        assert!(unknown.code == 2 && unknown.stderr.contains(&format!("--data {data}/embedded")), "{unknown:?}");
    }
    let listed = place.crosspoint(&["workflow", "list", "--data", data]);
    assert!(listed.stderr.contains(&format!("workflow list --data {data}/embedded")), "{listed:?}");
    assert_eq!(pasted(&place, &ran, "answer it: ").code, 0);
    // Also when the server is gone.
    server.stop();
    let resumed = pasted(&place, &ran, "then go on: ");
    assert!(resumed.code == 0 && resumed.stderr.contains("Fine."), "{resumed:?}");
}

/// Where the configuration says which store the server has, the data directory alone would name that one.
#[test]
fn a_store_that_is_configured_is_left_to_the_server() {
    let place = Place::new();
    asking(&place);
    let server = Server::configured("[store]\nurl = \"sqlite:elsewhere.db\"\n");
    let (data, config) = (server.data(), server.directory().join("crosspoint.toml"));
    let [data, config] = [&data, &config].map(|path| path.to_str().expect("UTF-8"));
    let arguments = ["workflow", "run", "own.toml", "--root", "repo", "--data", data, "--config", config];
    let ran = place.crosspoint(&arguments);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert_eq!(pasted(&place, &ran, "answer it: ").code, 0);
    assert_eq!(pasted(&place, &ran, "then go on: ").code, 0);
}

/// What no artifact may touch is also that of the server, at the beginning and when the run is taken up.
#[test]
fn the_data_directory_of_the_server_is_no_place_for_artifacts() {
    let place = Place::new();
    own(&place);
    let server = Server::start();
    let (root, data) = (server.directory().to_str().expect("UTF-8"), server.data());
    let data = data.to_str().expect("UTF-8");
    place.replies("writer", &[wrote(&[("data/server.json", "update", "{}")])]);
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", root, "--data", data]);
    assert!(ran.code == 3 && ran.stderr.contains("WF-4"), "{ran:?}");
    assert_eq!(pasted(&place, &ran, "answer it: ").code, 0);
    let resumed = pasted(&place, &ran, "then go on: ");
    assert!(resumed.code == 3 && resumed.stderr.contains("WF-4"), "{resumed:?}");
    let inside = place.crosspoint(&["workflow", "run", "own.toml", "--root", data, "--data", data]);
    assert!(inside.code == 2 && inside.stderr.contains("the root is in the data directory"), "{inside:?}");
    assert_ne!(fs::read_to_string(server.data().join("server.json")).expect("it is there"), "{}");
}

/// A repository may contain a link where the store would be.
#[test]
fn a_link_is_no_place_for_the_store() {
    let place = Place::new();
    own(&place);
    let server = Server::start();
    std::os::unix::fs::symlink(place.file("agents"), server.data().join("embedded")).expect("it can be made");
    let data = server.data();
    let data = data.to_str().expect("UTF-8");
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--data", data]);
    assert!(ran.code == 2 && ran.stderr.contains("no directory of this user"), "{ran:?}");
    assert!(!place.file("agents/jobs.db").exists());
}

#[test]
fn a_server_cannot_be_named_for_a_workflow_with_programs() {
    let place = Place::new();
    own(&place);
    let server = Server::start();
    let ran = place.crosspoint(&["workflow", "run", "own.toml", "--root", "repo", "--server", &server.url()]);
    assert!(ran.code == 2 && ran.stderr.contains("--server cannot be used"), "{ran:?}");
    assert_eq!(place.seen("writer").len(), 0);
}

/// A run whose stage goes on until there is a file, and the command that does it.
fn held(place: &Place) -> (Child, String) {
    let script = r#"cat > /dev/null; touch "$PLACE/began"; until [ -e "$PLACE/go" ]; do sleep 0.02; done
        echo '{"success":true,"summary":"Done.","artifacts":[],"recommendation":"proceed"}'"#;
    place.write("held.toml", &workflow(&[stage("hold", "hold", ""), place.own_script("hold", script, "")]));
    let mut command = place.command(&["workflow", "run", "held.toml", "--root", "repo"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    until("the stage runs", || place.file("agents/began").exists().then_some(()));
    let listed = place.crosspoint(&["workflow", "list", "--json"]);
    let run: Value = serde_json::from_str(&listed.stdout).unwrap_or_else(|error| panic!("{error}: {listed:?}"));
    (child, run["id"].as_str().expect("an id").to_owned())
}

#[test]
fn a_run_of_another_command_can_be_looked_at_and_followed() {
    let place = Place::new();
    let (child, id) = held(&place);
    assert_eq!(mode_of(&place.file(".crosspoint/command.json")), 0o600);
    let listed = place.crosspoint(&["jobs", "list"]);
    assert!(listed.code == 0 && listed.stdout.contains(&id), "{listed:?}");
    for arguments in [["jobs", "show", &id], ["workflow", "show", &id]] {
        let shown = place.crosspoint(&arguments);
        assert!(shown.code == 0 && shown.stdout.contains("running"), "{shown:?}");
    }
    // A command that does work of its own is told who has the store.
    let second = place.crosspoint(&["workflow", "run", "held.toml", "--root", "repo"]);
    assert!(second.code == 2 && second.stderr.contains(&format!("process {}", child.id())), "{second:?}");
    place.write("agents/go", "");
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(!place.file(".crosspoint/command.json").exists(), "the address goes with its command");
    assert_eq!(place.crosspoint(&["workflow", "show", &id]).code, 0);
}

#[test]
fn a_run_of_another_command_can_be_cancelled() {
    let place = Place::new();
    let (child, id) = held(&place);
    let cancelled = place.crosspoint(&["workflow", "cancel", &id]);
    assert_eq!(cancelled.code, 0, "{cancelled:?}");
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(ran.code, 1, "{ran:?}");
}

/// What a killed command leaves leads nowhere, and neither does a file that names no socket here.
#[test]
fn an_address_without_a_command_is_passed_over() {
    let place = Place::new();
    let (mut child, id) = held(&place);
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert!(place.file(".crosspoint/command.json").exists());
    let shown = place.crosspoint(&["workflow", "show", &id]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    listener.set_nonblocking(true).expect("it can be asked");
    let url = format!("http://{}", listener.local_addr().expect("it has an address"));
    let note = json!({"url": url, "pid": 1, "store": place.file(".crosspoint/jobs.db")});
    place.write(".crosspoint/command.json", &note.to_string());
    let shown = place.crosspoint(&["workflow", "show", &id]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(listener.accept().is_err(), "a port is not asked");
}
