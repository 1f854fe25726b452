//! A `server.json` that may come from another user or from a repository: it is not followed, and commands go on as
//! without a server.

use std::fs;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rustix::fs::{Uid, fchown};
use serde_json::json;

use crate::cli::config::Place;
use crate::support::program::transcript;
use crate::support::server::{PATIENCE, Server, until};

/// A user other than the one that runs the tests.
const STRANGER: u32 = 65_534;

/// A directory with a `.crosspoint` in it, as a repository may contain, and a listener that notices connections.
struct Planted {
    place: Place,
    data: PathBuf,
    listener: TcpListener,
}

impl Planted {
    fn new(name: &str) -> Planted {
        let place = Place::new(&format!("planted-{name}"), "");
        let data = place.path().join(".crosspoint");
        fs::create_dir_all(&data).expect("it can be made");
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
        listener.set_nonblocking(true).expect("it can be asked");
        Planted { place, data, listener }
    }

    fn url(&self) -> String {
        format!("http://{}", self.listener.local_addr().expect("it has an address"))
    }

    fn file(&self) -> PathBuf {
        self.data.join("server.json")
    }

    fn write(&self, url: &str) {
        write(&self.file(), url);
    }

    /// Submits work, and returns the output.
    fn submitted(&self) -> String {
        let mut command = self.place.crosspoint(&["submit", "echo", "--input", "{\"a\": 1}"]);
        transcript(command.env_remove("CROSSPOINT_SERVER").timeout(PATIENCE))
    }

    /// Checks that the work is done here, that the listener gets no connection, and that the reason is given.
    #[track_caller]
    fn leads_nowhere(&self, why: &str) {
        let said = self.submitted();
        assert!(said.starts_with("exit 0\n--- stdout\n{\n  \"a\": 1\n}\n"), "{said}");
        assert!(said.contains("server.json is not believed") && said.contains(why), "{said}");
        let came = self.listener.accept();
        assert!(came.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "a stranger was asked");
    }
}

fn write(path: &Path, url: &str) {
    fs::write(path, json!({ "url": url, "pid": 1, "version": "0.1.0" }).to_string()).expect("it can be written");
}

/// Shows that the listener would notice a connection.
#[test]
fn a_file_of_this_user_that_names_this_users_port_is_believed() {
    let planted = Planted::new("good");
    planted.write(&planted.url());
    let listener = planted.listener.try_clone().expect("it can be shared");
    // The connection is closed without an answer: there is no server, and the command does the work itself.
    let asked = std::thread::spawn(move || drop(until("it is asked", || listener.accept().ok())));
    let said = planted.submitted();
    asked.join().expect("it was asked");
    assert!(said.starts_with("exit 0\n") && !said.contains("is not believed"), "{said}");
}

#[test]
fn an_address_beyond_the_loopback_leads_nowhere() {
    let planted = Planted::new("remote");
    let port = planted.listener.local_addr().expect("it has an address").port();
    for url in [
        "http://192.0.2.1:7420".to_owned(),
        "https://127.0.0.1:7420".to_owned(),
        "http://jobs.example.org:7420".to_owned(),
        format!("http://localhost:{port}"),
        format!("http://192.0.2.1@127.0.0.1:{port}"),
        format!("http://127.0.0.1:{port}/path"),
        format!("http://0.0.0.0:{port}"),
    ] {
        planted.write(&url);
        planted.leads_nowhere("it names no address of this machine's loopback");
    }
}

#[test]
fn a_port_on_which_another_user_listens_leads_nowhere() {
    let planted = Planted::new("stranger");
    planted.write(&planted.url());
    // As if that user had opened the port.
    fchown(&planted.listener, Some(Uid::from_raw(STRANGER)), None).expect("the tests run as root");
    planted.leads_nowhere("another user listens");
}

#[test]
fn a_file_that_is_none_or_not_this_users_leads_nowhere() {
    let planted = Planted::new("file");
    let elsewhere = planted.place.path().join("elsewhere.json");
    write(&elsewhere, &planted.url());
    symlink(&elsewhere, planted.file()).expect("it can be made");
    planted.leads_nowhere("it is a link");
    fs::remove_file(planted.file()).expect("it is there");
    fs::create_dir(planted.file()).expect("it can be made");
    planted.leads_nowhere("it is no regular file");
    fs::remove_dir(planted.file()).expect("it is there");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        planted.file(),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .expect("it can be made");
    planted.leads_nowhere("it is no regular file");
    fs::remove_file(planted.file()).expect("it is there");
    fs::write(planted.file(), "[]").expect("it can be written");
    planted.leads_nowhere("it is not what servers write");
    planted.write(&planted.url());
    chown(planted.file(), Some(STRANGER), None).expect("the tests run as root");
    planted.leads_nowhere("it belongs to another user");
}

#[test]
fn a_directory_that_others_write_to_or_own_leads_nowhere() {
    let planted = Planted::new("directory");
    planted.write(&planted.url());
    for mode in [0o777, 0o775, 0o1777] {
        fs::set_permissions(&planted.data, fs::Permissions::from_mode(mode)).expect("it is ours");
        planted.leads_nowhere("other users may write to its directory");
    }
    fs::set_permissions(&planted.data, fs::Permissions::from_mode(0o755)).expect("it is ours");
    chown(&planted.data, Some(STRANGER), None).expect("the tests run as root");
    planted.leads_nowhere("its directory belongs to another user");
}

/// The operator is told, instead of being left to wonder why no command finds the server.
#[test]
fn a_server_says_that_commands_will_not_believe_what_it_leaves() {
    let mut server = Server::start();
    server.stop();
    assert!(!server.log().contains("do not believe"), "{}", server.log());
    fs::set_permissions(server.data(), fs::Permissions::from_mode(0o770)).expect("it is ours");
    server.restart();
    let told =
        until("it is told", || server.log().lines().find(|line| line.contains("do not believe")).map(str::to_owned));
    assert!(told.contains("chmod go-w") && told.contains(&server.url()), "{told}");
}

#[test]
fn a_socket_of_another_directory_or_user_leads_nowhere() {
    let planted = Planted::new("socket");
    let outside = planted.place.path().join("outside.sock");
    let listener = UnixListener::bind(&outside).expect("it can be made");
    listener.set_nonblocking(true).expect("it can be asked");
    for path in [outside.clone(), planted.data.join("../outside.sock"), PathBuf::from("outside.sock")] {
        planted.write(&format!("unix:{}", path.display()));
        planted.leads_nowhere("it names a socket outside its directory");
        // Beside an address that would be believed.
        let both = json!({ "url": planted.url(), "socket": format!("unix:{}", path.display()) });
        fs::write(planted.file(), both.to_string()).expect("it can be written");
        planted.leads_nowhere("it names a socket outside its directory");
    }
    let inside = planted.data.join("server.sock");
    symlink(&outside, &inside).expect("it can be made");
    planted.write(&format!("unix:{}", inside.display()));
    planted.leads_nowhere("it names a file that is no socket");
    fs::remove_file(&inside).expect("it is there");
    let foreign = UnixListener::bind(&inside).expect("it can be made");
    foreign.set_nonblocking(true).expect("it can be asked");
    chown(&inside, Some(STRANGER), None).expect("the tests run as root");
    planted.leads_nowhere("it names a socket of another user");
    for listener in [listener, foreign] {
        assert!(listener.accept().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it was asked");
    }
}
