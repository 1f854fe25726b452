//! Commands without a server: they serve themselves over a socket in the data directory, and open no port.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::cli::config::Place;
use crate::support::programs::bash;
use crate::support::server::until;

/// A program that shows that it runs, and goes on until it is released.
const GATED: &str =
    r#"read input; touch "up-$CROSSPOINT_REQUEST_ID"; until [ -e go ]; do sleep 0.01; done; echo '{"gone": 1}'"#;

pub(crate) fn place(name: &str) -> Place {
    Place::new(&format!("embedded-{name}"), &bash("gate", GATED, ""))
}

/// A command that runs beside the test, and is killed with it.
pub(crate) struct Begun(Option<Child>);

impl Begun {
    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs").id()
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Its output, when it has ended.
    pub(crate) fn output(mut self) -> Output {
        self.0.take().expect("it runs").wait_with_output().expect("it ends")
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        self.kill();
    }
}

pub(crate) fn begun(place: &Place, arguments: &[&str]) -> Begun {
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let mut command = Command::new(program);
    command.args(arguments).current_dir(place.path()).stdin(Stdio::null());
    command.env("NO_COLOR", "1").env_remove("HOME").env_remove("XDG_CONFIG_HOME").env_remove("CROSSPOINT_SERVER");
    Begun(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts")))
}

/// Submits work that goes on until it is released, and waits until its program runs.
pub(crate) fn gated(place: &Place, id: &str, more: &[&str]) -> Begun {
    let child = begun(place, &[&["submit", "gate", "--request-id", id], more].concat());
    until("its program runs", || {
        fs::read_dir(place.path())
            .ok()?
            .flatten()
            .find(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("up-")))
    });
    child
}

pub(crate) fn let_go(place: &Place) {
    File::create(place.path().join("go")).expect("it can be made");
}

#[track_caller]
pub(crate) fn completed(child: Begun) -> Output {
    let output = child.output();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "{\n  \"gone\": 1\n}\n");
    output
}

pub(crate) fn sockets(directory: &Path) -> Vec<PathBuf> {
    let is_socket = |path: &PathBuf| fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket());
    let entries = fs::read_dir(directory).expect("it is there");
    entries.flatten().map(|entry| entry.path()).filter(is_socket).collect()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("it is there").permissions().mode() & 0o7777
}

/// The ports that a process listens on, according to the system.
pub(crate) fn ports_of(pid: u32) -> Vec<String> {
    let links = fs::read_dir(format!("/proc/{pid}/fd")).expect("it runs").flatten();
    let open: BTreeSet<String> = links
        .filter_map(|link| fs::read_link(link.path()).ok()?.to_str().map(str::to_owned))
        .filter_map(|name| Some(name.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut ports = Vec::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let table = fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in table.lines().skip(1) {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            if open.contains(fields[9]) {
                ports.push(fields[1].to_owned());
            }
        }
    }
    ports
}

#[test]
fn a_command_without_a_server_opens_no_port_but_a_socket_for_its_user() {
    let place = place("port");
    let child = gated(&place, "one", &[]);
    assert_eq!(ports_of(child.id()), Vec::<String>::new(), "no other user may ask it anything");
    let data = place.path().join(".crosspoint");
    let found = sockets(&data);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((mode(&data), mode(&found[0])), (0o700, 0o600));
    let_go(&place);
    completed(child);
    assert_eq!(sockets(&data), Vec::<PathBuf>::new(), "it goes with its command");
}

/// Even if the directory is open to all users and the umask removes nothing, only the socket's user can use it.
#[test]
fn the_mode_of_the_socket_depends_on_no_umask() {
    let place = place("umask");
    let data = place.path().join(".crosspoint");
    fs::create_dir(&data).expect("it can be made");
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).expect("it is ours");
    let program = assert_cmd::cargo::cargo_bin!("crosspoint");
    let script = format!("umask 0; exec {} submit gate", program.display());
    let mut child = Command::new("sh");
    let child = Begun(Some(child.args(["-c", &script]).current_dir(place.path()).spawn().expect("it starts")));
    let found = until("there is a socket", || sockets(&data).pop());
    assert_eq!(mode(&found), 0o600);
    let_go(&place);
    assert!(child.output().status.success());
}

#[test]
fn a_data_directory_may_be_longer_than_the_address_of_a_socket() {
    let place = place("long");
    let data = format!("{}/{}/data", "d".repeat(120), "e".repeat(120));
    let child = gated(&place, "one", &["--data", &data]);
    let found = sockets(&place.path().join(&data));
    assert_eq!(found.len(), 1, "{found:?}");
    let_go(&place);
    completed(child);
    assert_eq!(sockets(&place.path().join(&data)), Vec::<PathBuf>::new());
    let listed = begun(&place, &["jobs", "list", "--json", "--data", &data]).output();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("\"completed\""), "{listed:?}");
}

#[test]
fn two_commands_at_once_do_not_disturb_each_other() {
    let place = place("two");
    let one = gated(&place, "one", &["--store", "sqlite:one.db"]);
    let other = begun(&place, &["submit", "gate", "--request-id", "two", "--store", "sqlite:two.db"]);
    let data = place.path().join(".crosspoint");
    until("each has a socket", || (sockets(&data).len() == 2).then_some(()));
    // A command that needs a store in use is told so, and does not disturb the others.
    let third = begun(&place, &["submit", "gate", "--store", "sqlite:one.db"]).output();
    assert_eq!(third.status.code(), Some(2), "{third:?}");
    assert_eq!(sockets(&data).len(), 2);
    let_go(&place);
    completed(one);
    completed(other);
    assert_eq!(sockets(&data), Vec::<PathBuf>::new());
}

#[test]
fn what_a_killed_command_leaves_is_swept_by_the_next() {
    let place = place("killed");
    let mut child = gated(&place, "one", &[]);
    child.kill();
    let data = place.path().join(".crosspoint");
    let left = sockets(&data);
    assert_eq!(left.len(), 1, "{left:?}");
    // A file that only looks like one of these sockets is not touched.
    let kept = data.join("command-1-notours.sock");
    fs::write(&kept, "kept").expect("it can be written");
    let_go(&place);
    let output = completed(begun(&place, &["submit", "gate", "--request-id", "one"]));
    assert!(!left[0].exists(), "{output:?}");
    assert_eq!(sockets(&data), Vec::<PathBuf>::new());
    assert!(kept.exists());
}
