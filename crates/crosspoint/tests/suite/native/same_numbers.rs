//! ALL-1: the same request with a number that is spelled differently is the same job, and one with another number is a
//! conflict, however many digits they have.

use crate::support::bridge_caller::{BRIDGE, new_id};
use crate::support::server::Server;

/// Spellings of the same number.
const SAME: [&[&str]; 4] = [
    &["1000000000000000000001", "1000000000000000000001.0", "1.000000000000000000001e21", "1000000000000000000001E+0"],
    &["0.1000000000000000000000001", "1000000000000000000000001e-25"],
    &["1e400", "10E399", "0.1e401"],
    &["0", "-0", "0e999999999999999999999", "0.000"],
];

/// Different numbers that are equal in floating point.
const OTHER: [(&str, &str); 5] = [
    ("1000000000000000000001", "1000000000000000000002"),
    ("9007199254740993", "9007199254740993.1"),
    ("0.1000000000000000000000001", "0.1"),
    ("1e400", "1e401"),
    ("1e-400", "0"),
];

/// A door, and the body of a request there with this id and number. All ask a person, so that no outcome contains the
/// number.
type Door = (&'static str, fn(&str, &str) -> String);

const DOORS: [Door; 4] = [
    ("/api/v1/jobs", |id, number| {
        format!(r#"{{"work":"ask","request_id":"{id}","input":{{"prompt":"?","n":{number}}}}}"#)
    }),
    ("/agents/run/sync", |id, number| {
        format!(r#"{{"request_id":"{id}","task_type":"ask","inputs":{{"prompt":"?","n":[{number}]}}}}"#)
    }),
    ("/tasks", |id, number| format!(r#"{{"id":"{id}","type":"ask","payload":{{"prompt":"?","n":{{"m":{number}}}}}}}"#)),
    (BRIDGE, |id, number| {
        format!(r#"{{"request_id":"{id}","version":"1.0","agent_name":"ask","prompt":"?","context":{{"n":{number}}}}}"#)
    }),
];

fn jobs(server: &Server) -> usize {
    server.get("/api/v1/jobs?limit=500").json()["jobs"].as_array().map_or(0, Vec::len)
}

#[test]
fn numbers_that_differ_only_in_spelling_are_the_same_request() {
    let server = Server::configured("[server]\nsync_wait_seconds = 0.01\n");
    for (path, body) in DOORS {
        for same in SAME {
            let (id, before) = (new_id(), jobs(&server));
            for number in same {
                let answer = server.post(path, &body(&id, number));
                assert_ne!(answer.status, 409, "{path} {number}: {answer:?}");
            }
            assert_eq!(jobs(&server), before + 1, "{path} {same:?}");
        }
    }
}

#[test]
fn numbers_that_differ_beyond_floating_point_are_a_conflict() {
    let server = Server::configured("[server]\nsync_wait_seconds = 0.01\n");
    for (path, body) in DOORS {
        for (first, second) in OTHER {
            let id = new_id();
            let answer = server.post(path, &body(&id, first));
            assert!([200, 202, 504].contains(&answer.status), "{path} {first}: {answer:?}");
            let answer = server.post(path, &body(&id, second));
            assert_eq!(answer.status, 409, "{path} {first} and {second}: {answer:?}");
        }
    }
}
