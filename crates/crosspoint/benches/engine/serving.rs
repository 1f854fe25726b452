//! The real program, serving.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
    /// Time from the start to the first answer that the server is ready.
    pub(crate) ready_after: Duration,
}

/// An empty directory on the disk where the build is.
pub(crate) fn data_directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench-engine").join(name);
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).expect("a directory can be made");
    directory
}

impl Server {
    /// Starts on an empty store.
    pub(crate) fn start(name: &str) -> Server {
        Server::start_in(&data_directory(name), &[])
    }

    /// Starts on an empty store, with other agents than the samples.
    pub(crate) fn start_configured(name: &str, config: &str) -> Server {
        let directory = data_directory(name);
        let file = directory.join("crosspoint.toml");
        fs::write(&file, config).expect("it can be written");
        Server::start_in(&directory, &["--config", file.to_str().expect("a path of text")])
    }

    /// Starts on the store in a directory.
    pub(crate) fn start_in(directory: &std::path::Path, arguments: &[&str]) -> Server {
        let _ = fs::remove_file(directory.join("server.json"));
        let start = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_crosspoint"))
            // Otherwise one log line per request and transition would be measured too.
            .args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"])
            .arg(directory)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let address = address(directory, start);
        ready(&address, start);
        Server { child, address, ready_after: start.elapsed() }
    }

    /// Waits until an agent for this work has joined.
    pub(crate) fn knows(&self, work: &str) {
        use std::io::{Read, Write};
        let start = Instant::now();
        let named = format!("\"work\":[\"{work}\"]");
        loop {
            assert!(start.elapsed() < Duration::from_secs(60), "nobody joins for {work}");
            let mut agents = String::new();
            let asked = std::net::TcpStream::connect(&self.address).and_then(|mut stream| {
                stream.write_all(b"GET /api/v1/agents HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
                stream.read_to_string(&mut agents)
            });
            if asked.is_ok() && agents.contains(&named) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn resident_bytes(&self) -> u64 {
        crate::machine::resident_bytes(self.child.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the address, which the server writes when it listens.
fn address(directory: &std::path::Path, start: Instant) -> String {
    loop {
        assert!(start.elapsed() < Duration::from_secs(60), "the server does not start");
        let text = fs::read_to_string(directory.join("server.json")).unwrap_or_default();
        let file: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(url) = file["url"].as_str() {
            return url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

fn ready(address: &str, start: Instant) {
    use std::io::{Read, Write};
    loop {
        assert!(start.elapsed() < Duration::from_secs(60), "the server does not become ready");
        let answer = std::net::TcpStream::connect(address).and_then(|mut stream| {
            stream.write_all(b"GET /health/ready HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
            let mut answer = [0; 12];
            stream.read_exact(&mut answer)?;
            Ok(answer)
        });
        if answer.is_ok_and(|answer| answer.ends_with(b"200")) {
            return;
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}
