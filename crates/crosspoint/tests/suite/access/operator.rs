//! The socket in the data directory of a server with a port: the way in for its own user, who needs no token there.

use std::fs;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::cli::embedded::{mode, sockets};
use crate::support::program::{crosspoint, transcript};
use crate::support::server::{Server, until};
use crate::support::tokens::{self, private, with};

/// A command in the data directory of the server, with this token.
fn said(server: &Server, token: Option<&str>, arguments: &[&str]) -> String {
    let mut command = crosspoint(arguments);
    command.arg("--data").arg(server.data());
    for variable in ["CROSSPOINT_SERVER", "CROSSPOINT_TOKEN", "CROSSPOINT_TOKEN_FILE"] {
        command.env_remove(variable);
    }
    if let Some(token) = token {
        command.env("CROSSPOINT_TOKEN", token);
    }
    transcript(&mut command)
}

/// A server that a token in the configuration closes: there is none for admin.
fn closed_by_configuration() -> Server {
    let mut server = Server::start();
    server.stop();
    fs::write(server.directory().join("planner.token"), "p".repeat(32)).expect("it can be written");
    server.configure("[[caller]]\nname = \"planner\"\ntoken_file = \"planner.token\"\n");
    server.restart();
    server
}

#[test]
fn commands_of_the_servers_own_user_are_not_locked_out() {
    for server in [closed_by_configuration(), Server::start()] {
        let made = said(&server, None, &["token", "create", "one", "--for", "caller"]);
        assert!(made.starts_with("exit 0\n"), "{made}");
        assert_eq!(with(&server, None, "GET", "/api/v1/jobs", "").status, 401, "the port is closed");
        for command in [
            &["token", "create", "two", "--for", "caller"][..],
            &["token", "revoke", "one"],
            &["submit", "echo", "--input", "{}"],
            &["jobs", "list"],
            &["agents", "list"],
        ] {
            let done = said(&server, None, command);
            assert!(done.starts_with("exit 0\n") && !done.contains("no server runs here"), "{command:?}: {done}");
        }
        // A command that names the address is a client like all others.
        let named = said(&server, None, &["jobs", "list", "--server", &server.url()]);
        assert!(named.starts_with("exit 2\n") && named.contains("CROSSPOINT_TOKEN"), "{named}");
    }
}

#[test]
fn no_other_user_can_open_the_socket_and_it_goes_with_the_server() {
    let mut server = Server::start();
    let socket = server.data().join("server.sock");
    assert_eq!(sockets(&server.data()), std::slice::from_ref(&socket));
    assert_eq!((mode(&server.data()), mode(&socket)), (0o700, 0o600));
    let left: Value =
        serde_json::from_slice(&fs::read(server.data().join("server.json")).expect("it is there")).expect("it is JSON");
    assert_eq!((&left["url"], &left["socket"]), (&json!(server.url()), &json!(format!("unix:{}", socket.display()))));
    server.stop();
    assert!(sockets(&server.data()).is_empty());
}

#[test]
fn a_token_that_is_shown_over_the_socket_counts() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let (one, other) = (tokens::caller(&server, &admin, "one"), tokens::caller(&server, &admin, "other"));
    let submitted = said(&server, Some(&one), &["submit", "echo", "--input", "{}", "--json"]);
    assert!(submitted.starts_with("exit 0\n"), "{submitted}");
    let count = |token: Option<&str>| {
        let page = private(&server, token, "GET", "/api/v1/jobs", "").json();
        page["jobs"].as_array().map(Vec::len)
    };
    let counted = [Some(one.as_str()), Some(&other), Some(&admin), None].map(count);
    assert_eq!(counted, [Some(1), Some(0), Some(1), Some(1)]);
    // A token for something else, or none of this server's, is not passed over.
    assert_eq!(private(&server, Some(&one), "GET", "/api/v1/tokens", "").status, 403);
    assert_eq!(private(&server, Some("wrong"), "GET", "/api/v1/jobs", "").status, 401);
    let wrong = said(&server, Some("wrong"), &["jobs", "list"]);
    assert!(wrong.starts_with("exit 2\n") && wrong.contains("CROSSPOINT_TOKEN"), "{wrong}");
    assert!(said(&server, None, &["token", "revoke", "one"]).starts_with("exit 0\n"));
    assert_eq!(private(&server, Some(&one), "GET", "/api/v1/jobs", "").status, 401);
}

#[test]
fn what_is_done_there_without_a_token_is_on_record_as_that() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    assert!(said(&server, None, &["token", "create", "one", "--for", "caller"]).starts_with("exit 0\n"));
    assert!(said(&server, Some(&admin), &["token", "create", "two", "--for", "caller"]).starts_with("exit 0\n"));
    let made: Vec<_> =
        tokens::audit(&server).iter().map(|line| (line["who"].clone(), line["object"].clone())).collect();
    let by = |who: &str, object: &str| (json!(who), json!(object));
    assert_eq!(made, [by("no token", "ops"), by("no token", "one"), by("ops", "two")]);
}

#[test]
fn those_who_see_all_work_see_whose_it_is() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let one = tokens::caller(&server, &admin, "one");
    let body = json!({"work": "echo", "input": {}}).to_string();
    let job = with(&server, Some(&one), "POST", "/api/v1/jobs?wait=60", &body).json();
    let id = job["id"].as_str().expect("an id");
    let path = format!("/api/v1/jobs/{id}");
    let listed = |page: Value| page["jobs"][0]["caller"].clone();
    for token in [None, Some(admin.as_str())] {
        assert_eq!(private(&server, token, "GET", &path, "").json()["caller"], "one");
        assert_eq!(listed(private(&server, token, "GET", "/api/v1/jobs", "").json()), "one");
    }
    for shown in [job.clone(), with(&server, Some(&one), "GET", &path, "").json()] {
        assert_eq!(shown["caller"], Value::Null, "{shown}");
    }
    assert_eq!(listed(with(&server, Some(&one), "GET", "/api/v1/jobs", "").json()), Value::Null);
    let shown = said(&server, None, &["jobs", "show", id]);
    assert!(shown.lines().any(|line| line.split_whitespace().eq(["caller", "one"])), "{shown}");
}

/// Does over the socket, without a token, whatever can be done there, to work of this caller.
fn do_everything(server: &Server, token: Option<&str>) {
    let post = |path: &str, body: &Value| {
        let answer = private(server, None, "POST", path, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        answer.json()
    };
    let ask = |id: &str| {
        let body = json!({"work": "ask", "input": {"prompt": "why?"}, "request_id": id}).to_string();
        let job = with(server, token, "POST", "/api/v1/jobs", &body).json();
        let id = job["id"].as_str().expect("an id").to_owned();
        until("it asks", || {
            private(server, None, "GET", "/api/v1/jobs?state=waiting", "").text().contains(&id).then_some(())
        });
        id
    };
    let [first, second, third] = ["1", "2", "3"].map(ask);
    post(&format!("/api/v1/jobs/{first}/answer"), &json!({"input": 1}));
    post(&format!("/tasks/{second}/input"), &json!({"input": 2}));
    post(&format!("/tasks/{third}/cancel"), &json!({}));
    assert_eq!(private(server, None, "GET", &format!("/api/v1/jobs/{first}?wait=60"), "").status, 200);
    post(&format!("/api/v1/jobs/{first}/retry"), &json!({}));
    post("/api/v1/jobs", &json!({"work": "echo", "input": {}}));
    post("/tasks", &json!({"id": "t", "type": "echo", "payload": {}}));
    post("/api/v1/agents/echo/drain", &json!({"drained": true}));
    post("/api/v1/agents/echo/breaker", &json!({"state": "open"}));
}

#[test]
fn every_act_there_without_a_token_is_on_record() {
    let server = Server::start();
    let admin = tokens::closed(&server);
    let one = tokens::caller(&server, &admin, "one");
    do_everything(&server, Some(&one));
    let lines = tokens::audit(&server);
    let did = |who: &str| {
        let of_them = lines.iter().filter(|line| line["who"] == who);
        of_them.filter_map(|line| line["act"].as_str()).collect::<Vec<&str>>()
    };
    assert_eq!(did("one"), ["submit"; 3], "what others did is not on record as the caller's: {lines:?}");
    let expected = [
        &["token_create", "answer", "read", "answer", "read", "cancel", "read", "retry"][..],
        &["submit", "submit", "drain", "breaker_open"],
    ];
    assert_eq!(did("no token"), expected.concat(), "{lines:?}");
    // While nobody has a token, nothing is on record.
    let open = Server::start();
    do_everything(&open, None);
    assert_eq!(tokens::audit(&open), Vec::<Value>::new());
}

#[test]
fn the_socket_of_a_killed_server_is_replaced() {
    let mut server = closed_by_configuration();
    server.kill();
    assert_eq!(sockets(&server.data()).len(), 1, "a killed server leaves its socket");
    // No server runs: the command does it by itself.
    assert!(said(&server, None, &["jobs", "list"]).starts_with("exit 0\n"));
    server.restart();
    assert_eq!(sockets(&server.data()), [server.data().join("server.sock")]);
    assert_eq!(private(&server, None, "GET", "/api/v1/jobs", "").status, 200);
    assert!(said(&server, None, &["jobs", "list"]).starts_with("exit 0\n"));
}

#[test]
fn a_server_whose_directory_takes_no_socket_serves_its_address_and_says_so() {
    let mut server = Server::start();
    server.stop();
    fs::create_dir(server.data().join("server.sock")).expect("it can be made");
    server.restart();
    // The log is written beside everything else.
    until("it is said", || server.log().contains("there is no server.sock").then_some(()));
    let done = said(&server, None, &["submit", "echo", "--input", "{}"]);
    assert!(done.starts_with("exit 0\n") && !done.contains("no server runs here"), "{done}");
    assert_eq!(server.log().matches("there is no server.sock").count(), 1, "{}", server.log());
}

#[test]
fn callers_that_use_up_what_addresses_may_have_do_not_lock_the_operator_out() {
    let limits = "[limits]\nconnections = 3\nrequests_per_address = 1\nfailures_per_address = 1\n";
    let server = Server::configured(limits);
    let one = private(&server, None, "POST", "/api/v1/tokens", &json!({"name": "one", "for": "caller"}).to_string());
    assert_eq!(one.status, 200, "{one:?}");
    let _held: Vec<TcpStream> = (0..3).map(|_| server.connect()).collect();
    until("the port is full", || (server.fetch("/health").status == 503).then_some(()));
    for _ in 0..50 {
        assert_eq!(private(&server, None, "GET", "/api/v1/jobs", "").status, 200);
    }
    for _ in 0..20 {
        assert_eq!(private(&server, Some("wrong"), "GET", "/api/v1/jobs", "").status, 401);
    }
}
