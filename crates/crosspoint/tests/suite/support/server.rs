//! A running server: the real program on a free port, and callers that speak HTTP over bare sockets, so that framing is
//! checked.

use std::fmt;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::conformity;

/// Longest wait of a test. Nothing takes so long on any machine, so this only ends what would hang.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The status of an answer that has neither a length nor a body.
pub(crate) const NO_CONTENT: u16 = 204;

/// A server on a directory of its own, which is removed with it.
pub(crate) struct Server {
    child: Option<Child>,
    directory: PathBuf,
    arguments: Vec<String>,
    /// The command that starts the program, if it is not started directly.
    starter: Vec<String>,
    address: Option<SocketAddr>,
    /// Where it listens: on a free port, unless it must be found again.
    listen: String,
    /// The token with which the API is asked where no other is given.
    pub(crate) operator: Option<String>,
}

/// What a server answered.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Server {
    /// Starts a server without configuration, with the sample agents.
    pub(crate) fn start() -> Server {
        Server::configured("")
    }

    pub(crate) fn configured(toml: &str) -> Server {
        Server::with(toml, &[])
    }

    pub(crate) fn with(toml: &str, arguments: &[&str]) -> Server {
        Server::listening("127.0.0.1:0", toml, arguments)
    }

    /// Starts a server that listens there.
    pub(crate) fn listening(listen: &str, toml: &str, arguments: &[&str]) -> Server {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("crosspoint-live-{}-{number}", std::process::id()));
        fs::create_dir_all(&directory).expect("a directory can be made");
        fs::write(directory.join("crosspoint.toml"), toml).expect("it can be written");
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut server = Server {
            child: None,
            directory,
            arguments,
            starter: Vec::new(),
            address: None,
            listen: listen.to_owned(),
            operator: None,
        };
        server.restart();
        server
    }

    /// Directory of its configuration, in which its programs run.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Sets the configuration from the next start on.
    pub(crate) fn configure(&self, toml: &str) {
        fs::write(self.directory.join("crosspoint.toml"), toml).expect("it can be written");
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.directory.join("data")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it runs").id()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address.expect("it runs")
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Its stderr, over all its starts.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).expect("the log can be read")
    }

    /// The command that starts the program, not started yet.
    pub(crate) fn command(&self) -> Command {
        let log =
            File::options().create(true).append(true).open(self.directory.join("log")).expect("a log can be made");
        let program = assert_cmd::cargo::cargo_bin!("crosspoint");
        let mut command = match self.starter.split_first() {
            Some((starter, arguments)) => {
                let mut command = Command::new(starter);
                command.args(arguments).arg(program);
                command
            }
            None => Command::new(program),
        };
        command.current_dir(&self.directory).args(["serve", "--listen", &self.listen, "--data", "data"]);
        command.args(&self.arguments).stderr(log).env("NO_COLOR", "1").env_remove("HOME").env_remove("XDG_CONFIG_HOME");
        command
    }

    /// From the next start on, the program is started by this command, which must replace itself by it.
    pub(crate) fn start_by(&mut self, starter: &[&str]) {
        self.starter = starter.iter().map(ToString::to_string).collect();
    }

    /// Starts it again on the same data, on another port, after it was killed or stopped.
    pub(crate) fn restart(&mut self) {
        assert!(self.child.is_none(), "it still runs");
        self.child = Some(self.command().spawn().expect("the program starts"));
        let pid = self.pid();
        self.address = Some(until("it is ready", || {
            let child = self.child.as_mut().expect("it runs");
            if let Some(status) = child.try_wait().expect("it can be asked") {
                panic!(
                    "it ended with {status}: {}",
                    fs::read_to_string(self.directory.join("log")).unwrap_or_default()
                );
            }
            address_of(&self.directory.join("data/server.json"), pid)
        }));
    }

    /// Starts it again at the same address.
    pub(crate) fn restart_in_place(&mut self) {
        self.listen = self.address().to_string();
        self.restart();
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.killed();
    }

    /// The same. Returns how it ended, which need not be by the signal; `None` if it was not running.
    pub(crate) fn killed(&mut self) -> Option<ExitStatus> {
        let mut child = self.child.take()?;
        let _ = child.kill();
        child.wait().ok()
    }

    /// Sends it a signal, by name.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "the signal was sent");
    }

    pub(crate) fn wait(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("it runs");
        until("it ends", || child.try_wait().expect("it can be asked"))
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal("TERM");
        self.wait()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address()).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
        stream
    }

    /// One request over a connection of its own.
    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        self.try_request(method, path, headers, body).expect("it answers")
    }

    /// The same for a server that may be gone at any moment; `None` means that there was no whole answer.
    ///
    /// Every answer is checked against the description of the API.
    pub(crate) fn try_request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Option<Answer> {
        let answer = self.exchange(method, path, headers, body)?;
        conformity::check(method, path, &answer);
        Some(answer)
    }

    /// Gets an answer without checking it.
    pub(crate) fn fetch(&self, path: &str) -> Answer {
        self.exchange("GET", path, &[], b"").expect("it answers")
    }

    pub(crate) fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Option<Answer> {
        let is_named = headers.iter().any(|(name, _)| *name == "authorization");
        let operator = self.operator.as_ref().filter(|_| !is_named && path.starts_with("/api/v1"));
        let bearer = operator.map(|token| format!("Bearer {token}"));
        let shown = bearer.iter().map(|bearer| ("authorization", bearer.as_str()));
        let headers: Vec<(&str, &str)> = headers.iter().copied().chain(shown).collect();
        exchange(self.address(), method, path, &headers, body)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path, &[], b"")
    }

    pub(crate) fn post(&self, path: &str, body: &str) -> Answer {
        self.request("POST", path, &[], body.as_bytes())
    }

    /// Submits a job and returns it as it was accepted.
    pub(crate) fn submit(&self, body: &str) -> Value {
        let answer = self.post("/api/v1/jobs", body);
        assert!([200, 202].contains(&answer.status), "{answer:?}");
        answer.json()
    }

    pub(crate) fn job(&self, id: &str) -> Value {
        let answer = self.get(&format!("/api/v1/jobs/{id}"));
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The job, once it has ended.
    pub(crate) fn ended(&self, id: &str) -> Value {
        let job = self.get(&format!("/api/v1/jobs/{id}?wait=60")).json();
        assert!(job["outcome"].is_object(), "{job}");
        job
    }

    /// The job, once it is in this state.
    pub(crate) fn in_state(&self, id: &str, state: &str) -> Value {
        until(state, || Some(self.job(id)).filter(|job| job["state"] == state))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// One request to whoever listens there; `None` if there is no whole answer.
pub(crate) fn exchange(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Option<Answer> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    let head = head(method, path, headers, body.len());
    // A server that refuses early may have stopped reading. Its answer is there all the same.
    let _ = stream.write_all(&[head.as_bytes(), body].concat());
    Answer::read(&mut BufReader::new(stream))
}

/// The head of a request after which the connection is closed.
pub(crate) fn head(method: &str, path: &str, headers: &[(&str, &str)], body_bytes: usize) -> String {
    let mut head = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n");
    if method != "GET" {
        head += &format!("content-length: {body_bytes}\r\n");
    }
    for (name, value) in headers {
        head += &format!("{name}: {value}\r\n");
    }
    head + "\r\n"
}

impl Answer {
    /// Reads one answer; `None` if it is not whole.
    pub(crate) fn read(stream: &mut impl BufRead) -> Option<Answer> {
        let status = line(stream)?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        let mut headers = Vec::new();
        loop {
            let line = line(stream)?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':')?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut answer = Answer { status, headers, body: Vec::new() };
        if status == NO_CONTENT {
            return Some(answer);
        }
        answer.body = match answer.header("content-length").map(str::to_owned) {
            // There is nothing to read, and nothing says how long it is.
            _ if status == 204 => Vec::new(),
            Some(length) => {
                let mut body = vec![0; length.parse().ok()?];
                stream.read_exact(&mut body).ok()?;
                body
            }
            None => chunks(stream)?,
        };
        Some(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("it is UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}\n{}", self.status, self.headers, String::from_utf8_lossy(&self.body))
    }
}

fn line(stream: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    stream.read_line(&mut line).ok()?;
    Some(line.strip_suffix("\r\n")?.to_owned())
}

/// A body in chunks, up to its last.
fn chunks(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = chunk(stream)? {
        body.extend(chunk);
    }
    Some(body)
}

/// The next chunk; the inner `None` is the last one.
pub(crate) fn chunk(stream: &mut impl BufRead) -> Option<Option<Vec<u8>>> {
    let size = usize::from_str_radix(&line(stream)?, 16).ok()?;
    let mut chunk = vec![0; size];
    stream.read_exact(&mut chunk).ok()?;
    line(stream).filter(String::is_empty)?;
    Some((size > 0).then_some(chunk))
}

/// Repeats `ask` until it returns a value.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    within(PATIENCE, &mut ask).unwrap_or_else(|| panic!("waited in vain: {what}"))
}

/// The same at most for this time.
///
/// What another process has done can only be looked at again and again. This is the one place where tests do that.
pub(crate) fn within<T>(time: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if begun.elapsed() > time {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The address that this process has written to the file.
fn address_of(path: &Path, pid: u32) -> Option<SocketAddr> {
    let known: Value = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
    if known["pid"] != pid {
        return None;
    }
    known["url"].as_str()?.strip_prefix("http://")?.parse().ok()
}
