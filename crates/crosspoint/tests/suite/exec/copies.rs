//! A copy of a data directory beside the original: two servers that have the same jobs, and each its own programs.

use std::fs;
use std::process::Command;

use serde_json::json;

use crate::support::programs::{alive_for, bash};
use crate::support::server::Server;

/// Starts child processes, and goes on until it is released.
const PATIENT: &str = r#"
sleep 600 &
setsid sleep 600 &
echo $$ > pid
while [ ! -e go ]; do sleep 0.05; done
echo '{"done": true}'
"#;

#[test]
fn a_server_on_a_copy_leaves_the_programs_of_the_original_alone() {
    let toml = bash("patient", PATIENT, "");
    let (original, mut copy) = (Server::configured(&toml), Server::configured(&toml));
    let id = original.begin("patient");
    let pid: u32 = original.said_in("pid").trim().parse().expect("a number");
    copy.kill();
    fs::remove_dir_all(copy.data()).expect("it can be removed");
    let copied = Command::new("cp").arg("-r").args([original.data(), copy.data()]).status();
    assert!(copied.is_ok_and(|status| status.success()), "it can be copied");
    copy.restart();
    let other: u32 = copy.said_in("pid").trim().parse().expect("a number");
    let attempts = |server: &Server| server.in_state(&id, "running")["attempts"].clone();
    assert_eq!((attempts(&original), attempts(&copy)), (json!(1), json!(2)), "both have the same job");
    let alive = alive_for(&id);
    assert!(alive.contains(&pid) && alive.contains(&other) && alive.len() >= 6, "{alive:?}");
    for server in [&original, &copy] {
        fs::write(server.directory().join("go"), "").expect("it can be written");
        let job = server.ended(&id);
        assert_eq!(job["outcome"]["outputs"], json!({"done": true}), "{job}");
    }
}
