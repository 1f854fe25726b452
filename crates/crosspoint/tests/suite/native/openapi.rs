//! The description of the API: it matches the router, it is valid OpenAPI, and the server does what it says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, fs};

use serde_json::Value;

use crate::support::conformity::{KEPT, kept};
use crate::support::program::root;
use crate::support::server::{Server, until, within};

/// Longest time of a run of the generator. It takes some twenty seconds on an idle machine, so this only ends what
/// hangs.
const GENERATOR_TIME_MAX: Duration = Duration::from_secs(300);

/// A program of the Python environment that `scripts/test` makes.
pub(crate) fn python(program: &str) -> Command {
    let beside = || Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("python");
    let path = env::var_os("CROSSPOINT_PYTHON").map_or_else(beside, PathBuf::from).join("bin").join(program);
    assert!(path.exists(), "{} is not there: run scripts/test once, which installs it", path.display());
    Command::new(path)
}

/// Where endpoints are named: the router, and the doors of contracts that it merges.
const ROUTES: [&str; 4] = [
    "crates/crosspoint/src/server/router.rs",
    "crates/crosspoint-http/src/door/run.rs",
    "crates/crosspoint-http/src/door/task.rs",
    "crates/crosspoint-http/src/door/workflow.rs",
];

/// Method, path and handler of each endpoint, as the routers have them.
fn routed() -> BTreeSet<(String, String, String)> {
    let router = fs::read_to_string(root().join(ROUTES[0])).expect("it is there");
    let merged = router.matches(".merge(").count() - router.matches(".merge(demo_door::").count();
    assert_eq!(merged, ROUTES.len() - 1, "a door that the router merges is on the list of ROUTES");
    let sources = ROUTES.map(|path| fs::read_to_string(root().join(path)).expect("it is there"));
    // A handler that is generic over its backend says so where it is named.
    let tables = sources.map(|source| {
        let (_, table) = source.split_once(".route(").expect("there is a table");
        let table = table.split("fallback(").next().and_then(|table| table.split("\n}\n").next());
        format!(".route({}", table.expect("it ends").replace("::<B>", ""))
    });
    let table = tables.concat();
    let mut routed = BTreeSet::new();
    for route in table.split(".route(").skip(1) {
        let path = route.split('"').nth(1).expect("a path is a string");
        for method in ["get", "post", "put", "delete", "patch"] {
            for handler in route.split(&format!("{method}(")).skip(1).filter_map(|rest| rest.split(')').next()) {
                let name = handler.rsplit("::").next().expect("a handler has a name").trim();
                routed.insert((method.to_owned(), path.to_owned(), name.to_owned()));
            }
        }
    }
    routed
}

fn described() -> BTreeSet<(String, String, String)> {
    let mut described = BTreeSet::new();
    for (path, operations) in kept()["paths"].as_object().expect("there are paths") {
        for (method, operation) in operations.as_object().expect("there are operations") {
            let id = operation["operationId"].as_str().expect("an operation has an id");
            described.insert((method.clone(), path.clone(), id.to_owned()));
        }
    }
    described
}

#[test]
fn the_router_and_the_description_have_the_same_endpoints() {
    let (routed, described) = (routed(), described());
    assert!(routed.len() > 10, "the router was not understood: {routed:?}");
    let missing: Vec<_> = routed.difference(&described).collect();
    assert!(missing.is_empty(), "describe these in server/openapi/table.rs, then UPDATE_DOCS=1: {missing:?}");
    let gone: Vec<_> = described.difference(&routed).collect();
    assert!(gone.is_empty(), "these are described and not in the router: {gone:?}");
}

/// With UPDATE_DOCS set, the file is rewritten instead.
#[test]
fn the_kept_description_is_that_of_a_server() {
    let path = root().join(KEPT);
    let server = Server::start();
    let fresh = server.fetch("/openapi.json").text();
    assert_eq!(server.fetch("/openapi.json").text(), fresh, "it stays the same");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, fresh).expect("it can be written");
    } else {
        let kept = fs::read_to_string(path).unwrap_or_default();
        assert!(kept == fresh, "{KEPT} is stale: UPDATE_DOCS=1 cargo nextest run -p crosspoint kept_description");
    }
}

#[test]
fn every_operation_says_what_it_takes_and_how_it_refuses() {
    for (path, operations) in kept()["paths"].as_object().expect("there are paths") {
        for (method, operation) in operations.as_object().expect("there are operations") {
            let about = format!("{method} {path}");
            assert!(operation["summary"].is_string() && operation["tags"][0].is_string(), "{about}");
            let named: BTreeSet<&str> = path.split(['{', '}']).skip(1).step_by(2).collect();
            let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
            let of_path = parameters.iter().filter(|parameter| parameter["in"] == "path");
            assert_eq!(of_path.filter_map(|parameter| parameter["name"].as_str()).collect::<BTreeSet<_>>(), named);
            let responses = operation["responses"].as_object().expect("it answers");
            assert!(responses.keys().any(|status| status.starts_with('2')), "{about}");
            for status in ["403", "408", "500", "503"] {
                assert!(responses.contains_key(status), "{about} can be refused with {status}");
            }
            if let Some(body) = operation.get("requestBody") {
                assert!(responses.contains_key("413") && responses.contains_key("400"), "{about}");
                let content = body["content"].as_object().expect("a body has a type");
                assert!(content.values().all(|content| content.get("example").is_some()), "{about} has no example");
            }
        }
    }
}

#[test]
fn a_validator_of_such_descriptions_finds_nothing() {
    let output = python("openapi-spec-validator").args(["--schema", "3.1"]).arg(root().join(KEPT)).output();
    let output = output.expect("it starts");
    assert!(output.status.success(), "{output:?}");
}

/// Agents for the generator: what it does to the agent that the description names as an example does not keep the other
/// from working.
const FOR_THE_GENERATOR: &str = r#"
[server]
wait_seconds_max = 0.2
sync_wait_seconds = 0.2
log = "warn"

[[agent]]
name = "worker"
contract = "builtin"
run = "echo"
work = ["echo"]

[[agent]]
name = "echo"
contract = "builtin"
run = "echo"
work = ["aside"]

[[agent]]
name = "person"
contract = "builtin"
run = "ask"
work = ["asking"]
"#;

/// The generator makes up requests from the description, right and wrong ones, and checks the answers against it.
#[test]
fn a_generator_of_requests_finds_nothing() {
    let server = Server::configured(FOR_THE_GENERATOR);
    let directory = server.data().join("generator");
    fs::create_dir_all(&directory).expect("a directory can be made");
    // The generator would never guess the id of a job that waits for an answer.
    let asks = server.submit(r#"{"work":"asking"}"#)["id"].as_str().expect("it has an id").to_owned();
    let settled = fs::read_to_string(root().join("crates/crosspoint/tests/schemathesis.toml")).expect("it is there");
    let asked = format!("[[operations]]\ninclude-operation-id = \"answer_job\"\nparameters = {{ id = \"{asks}\" }}\n");
    fs::write(directory.join("schemathesis.toml"), format!("{settled}\n{asked}")).expect("it can be written");
    let said = directory.join("said");
    let out = || Stdio::from(fs::File::options().create(true).append(true).open(&said).expect("it can be written"));
    let mut generator = python("schemathesis");
    generator.args(["--config-file", "schemathesis.toml"]);
    generator.args(["run", &format!("{}/openapi.json", server.url()), "--checks", "all", "--max-examples", "8"]);
    // With the first token it made, the generator would shut itself out.
    generator.args(["--exclude-path", "/api/v1/tokens"]);
    generator.args(["--generation-deterministic", "--request-timeout", "30"]);
    generator.args(["--no-color", "--continue-on-failure"]).current_dir(&directory).stdout(out()).stderr(out());
    let mut child = generator.env("HOME", &directory).env("PYTHONIOENCODING", "utf-8").spawn().expect("it starts");
    let status = within(GENERATOR_TIME_MAX, || child.try_wait().expect("it can be asked"));
    if status.is_none() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let said = fs::read_to_string(&said).unwrap_or_default();
    assert!(status.is_some_and(|status| status.success()), "{status:?}\n{said}\n{}", server.log());
    // The generator fetches the description itself, and does not test that endpoint.
    let operations = described().len() - 3;
    assert!(said.contains(&format!("Tested: {operations}")), "it was not let at everything:\n{said}");
    assert!(!server.log().contains("internal error"), "{}", server.log());
    until("it found an answer", || Some(server.job(&asks)).filter(|job| job["outcome"].is_object()));
    // The server is still complete and works.
    let job = server.post("/api/v1/jobs?wait=0.2", r#"{"work":"aside","agent":"echo"}"#);
    assert!([200, 202].contains(&job.status), "{job:?}");
}

#[test]
fn following_from_beyond_the_last_number_that_there_is_ends() {
    let server = Server::start();
    let job = server.post("/api/v1/jobs?wait=60", r#"{"work":"echo"}"#).json();
    let path = format!("/api/v1/jobs/{}/events", job["id"].as_str().expect("it has an id"));
    for after in [3, 4, u32::MAX - 1, u32::MAX] {
        let answer = server.get(&format!("{path}?after={after}"));
        assert_eq!((answer.status, answer.text().as_str()), (200, ""), "after {after}");
    }
    let whole = server.get(&path).text();
    assert_eq!(whole.matches("\nid: ").count(), 3, "{whole}");
}

#[test]
fn the_description_names_what_is_configured() {
    let server = Server::configured("[server]\nwait_seconds_max = 7\n");
    let described: Value = server.fetch("/openapi.json").json();
    let wait = &described["paths"]["/api/v1/jobs"]["post"]["parameters"][0];
    assert_eq!((&wait["name"], wait["schema"]["maximum"].as_f64()), (&Value::from("wait"), Some(7.0)), "{wait}");
}
