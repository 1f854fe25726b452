//! The agent's side of HTTP over bare sockets: requests are kept as the bytes that came, and answers are whatever bytes
//! a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use serde_json::Value;

use crate::support::server::PATIENCE;

/// One request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// Up to the empty line, with it.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

/// What becomes of a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come on it.
    Keep,
    Close,
}

/// Answers all requests that come to a free port, each connection in a thread of its own, for as long as the test's
/// process lives.
pub(crate) fn listen(answer: impl Fn(&Asked, &mut TcpStream) -> After + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it has an address");
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || serve(stream, &*answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: &dyn Fn(&Asked, &mut TcpStream) -> After) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut reading = BufReader::new(stream.try_clone().ok()?);
    while let Some(asked) = Asked::read(&mut reading) {
        if answer(&asked, &mut stream) == After::Close {
            break;
        }
    }
    Some(())
}

impl Asked {
    /// Reads one request; `None` where the connection ends first.
    fn read(stream: &mut impl BufRead) -> Option<Asked> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let mut asked = Asked { head, body: Vec::new() };
        let length = asked.header("content-length").map_or(0, |length| length.parse().expect("a length is a number"));
        asked.body.resize(length, 0);
        stream.read_exact(&mut asked.body).ok()?;
        Some(asked)
    }

    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap_or_default()
    }

    /// With its query.
    pub(crate) fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.filter(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("a request is JSON")
    }
}

/// A whole answer of JSON.
pub(crate) fn json(status: &str, body: &Value) -> Vec<u8> {
    json_text(status, &body.to_string())
}

/// The same with a text that may be none.
pub(crate) fn json_text(status: &str, body: &str) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", body.len());
    (head + body).into_bytes()
}

/// One chunk of a body; an empty one is the last.
pub(crate) fn chunk(bytes: &str) -> Vec<u8> {
    format!("{:x}\r\n{bytes}\r\n", bytes.len()).into_bytes()
}

/// Sends some bytes; `false` where nobody takes them any more.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) -> bool {
    stream.write_all(bytes).is_ok()
}

/// Says nothing until the other side has closed the connection; `false` where it never does.
pub(crate) fn until_gone(stream: &mut TcpStream) -> bool {
    let _ = stream.set_read_timeout(Some(PATIENCE));
    loop {
        match stream.read(&mut [0; 1024]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}
