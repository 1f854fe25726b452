//! How often tokens may be guessed and used.

use crate::support::server::Server;
use crate::support::tokens::{self, with};

#[test]
fn an_address_that_guesses_has_to_wait_and_good_tokens_pass() {
    let server = Server::configured("[limits]\nfailures_per_address = 3\n");
    let admin = tokens::closed(&server);
    let asks = |token: &str| with(&server, Some(token), "GET", "/api/v1/jobs", "");
    // A request without a token is no guess.
    for _ in 0..10 {
        assert_eq!(with(&server, None, "GET", "/api/v1/jobs", "").status, 401);
    }
    for guess in ["a", "b", "c"] {
        assert_eq!(asks(&guess.repeat(32)).status, 401);
    }
    let late = asks(&"d".repeat(32));
    assert_eq!(late.status, 429, "{late:?}");
    assert!(late.header("retry-after").is_some(), "{late:?}");
    assert_eq!(asks(&admin).status, 200, "agents and callers at the same address are not locked out");
    assert_eq!(server.get("/health").status, 200);
    let metrics = server.fetch("/metrics");
    assert_eq!(metrics.status, 429, "{metrics:?}");
    let planner = tokens::caller(&server, &admin, "planner");
    assert_eq!(with(&server, Some(&planner), "GET", "/metrics", "").status, 403, "a good token is told its scope");
    let log = server.log();
    let warnings: Vec<&str> = log.lines().filter(|line| line.contains("tokens that are not good")).collect();
    assert!(matches!(warnings[..], [only] if only.contains("127.0.0.1")), "{warnings:?}");
    assert!(!log.contains(&"a".repeat(32)));
}

#[test]
fn a_token_is_good_for_so_many_requests_in_a_second() {
    let server = Server::configured("[limits]\nrequests_per_token = 5\n");
    let admin = tokens::closed(&server);
    let planner = tokens::caller(&server, &admin, "planner");
    let answers: Vec<_> = (0..60).map(|_| with(&server, Some(&planner), "GET", "/api/v1/jobs", "")).collect();
    let refused = answers.iter().find(|answer| answer.status == 429).expect("some are too many");
    assert!(refused.header("retry-after").is_some(), "{refused:?}");
    assert_eq!(answers[0].status, 200);
    assert_eq!(with(&server, Some(&admin), "GET", "/api/v1/jobs", "").status, 200, "each token is counted by itself");
}
