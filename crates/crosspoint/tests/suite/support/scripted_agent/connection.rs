//! The connection that a script answers on, and the bytes of answers.

use std::io::{self, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use std::{fs, thread};

use axum::http::StatusCode;
use rustix::net::sockopt::set_socket_linger;
use serde_json::Value;

use crate::support::server::{PATIENCE, until};

/// The head of a stream that ends with its connection.
pub(crate) const STREAM_HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";

/// The head of a stream that comes in chunks.
pub(crate) const CHUNKED_STREAM_HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// What happens to a connection after an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request may come on it.
    Keep,
    /// It is closed in order.
    Close,
    /// The other side gets a reset.
    Reset,
}

/// One side of a connection over which a test sends any bytes.
pub(crate) struct Connection {
    stream: TcpStream,
    /// Number of bytes that were taken.
    pub(crate) written: u64,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Connection {
        Connection { stream, written: 0 }
    }

    /// The same connection for another thread.
    pub(crate) fn shared(&self) -> Connection {
        Connection::new(self.stream.try_clone().expect("a socket can be shared"))
    }

    pub(crate) fn reader(&self) -> BufReader<TcpStream> {
        BufReader::new(self.shared().stream)
    }

    /// Sends some bytes; `false` if the other side takes no more.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        let mut rest = bytes.as_ref();
        while !rest.is_empty() {
            match self.stream.write(rest) {
                Ok(0) | Err(_) => return false,
                Ok(taken) => {
                    self.written += taken as u64;
                    rest = &rest[taken..];
                }
            }
        }
        true
    }

    /// Answers with JSON, and keeps the connection.
    pub(crate) fn json(&mut self, status: u16, body: &Value) -> After {
        self.whole(status, "application/json", body.to_string())
    }

    /// Answers with a whole stream, and keeps the connection.
    pub(crate) fn events(&mut self, text: String) -> After {
        self.whole(200, "text/event-stream", text)
    }

    /// Answers with a length, and keeps the connection.
    pub(crate) fn whole(&mut self, status: u16, content_type: &str, body: impl AsRef<[u8]>) -> After {
        self.send(answer(status, content_type, body));
        After::Keep
    }

    /// Answers with a stream that ends with its connection.
    pub(crate) fn stream(&mut self, events: &[String]) -> After {
        self.send(STREAM_HEAD.to_owned() + &events.concat());
        After::Close
    }

    /// Sends some bytes after a pause; `false` if the other side takes no more.
    ///
    /// The pace is what is tested: an agent that is slow and never silent for long.
    pub(crate) fn send_after(&mut self, pause: Duration, bytes: impl AsRef<[u8]>) -> bool {
        thread::sleep(pause);
        self.send(bytes)
    }

    /// Sends one byte after the other, `apart` from each other; `false` if the other side takes no more.
    pub(crate) fn drip(&mut self, bytes: &str, apart: Duration) -> bool {
        bytes.as_bytes().chunks(1).all(|byte| self.send_after(apart, byte))
    }

    /// Sends the same bytes again and again, until the other side takes no more or `at_most` bytes were sent.
    pub(crate) fn flood(&mut self, bytes: &[u8], at_most: u64) {
        while self.written < at_most && self.send(bytes) {}
    }

    /// Waits until the other side has closed the connection.
    pub(crate) fn until_gone(&mut self) -> After {
        let _ = self.stream.set_read_timeout(Some(PATIENCE));
        loop {
            match self.stream.read(&mut [0; 1024]) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => panic!("the connection is never closed"),
                Ok(0) | Err(_) => return After::Close,
            }
        }
    }

    /// Waits until the other side has read everything that was sent.
    pub(crate) fn until_read(&self) -> io::Result<()> {
        let ends = (self.stream.peer_addr()?.port(), self.stream.local_addr()?.port());
        until("what was sent is read", || (unread_bytes(ends) == 0).then_some(()));
        Ok(())
    }

    pub(super) fn reset(self) {
        // Without lingering, the system drops what was not sent, and sends a reset instead of an end.
        let _ = set_socket_linger(&self.stream, Some(Duration::ZERO));
    }
}

/// Number of bytes that wait to be read by the socket between these ports, by the system's list of its sockets.
fn unread_bytes((local, remote): (u16, u16)) -> u64 {
    let sockets = fs::read_to_string("/proc/net/tcp").expect("the system lists its sockets");
    let is_port = |address: &str, port: u16| address.ends_with(&format!(":{port:04X}"));
    let socket = sockets
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| matches!(fields.as_slice(), [_, from, to, ..] if is_port(from, local) && is_port(to, remote)));
    let queues = socket.as_ref().and_then(|fields| fields.get(4)?.split_once(':'));
    queues.map_or(0, |(_, unread)| u64::from_str_radix(unread, 16).expect("a length"))
}

/// A whole answer with a length. A 204 has neither a length nor a body.
pub(crate) fn answer(status: u16, content_type: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let (status, body) = (StatusCode::from_u16(status).expect("a status"), body.as_ref());
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n");
    if status == StatusCode::NO_CONTENT {
        return (head + "\r\n").into_bytes();
    }
    [head.as_bytes(), format!("content-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// A whole answer of JSON, or of a text that should be.
pub(crate) fn json_answer(status: u16, body: impl AsRef<[u8]>) -> Vec<u8> {
    answer(status, "application/json", body)
}

/// One chunk of an answer in chunks; an empty one is the last.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// One event of a stream.
pub(crate) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}

#[test]
fn bytes_are_unread_until_the_other_side_has_read_them() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it has an address");
    let mut near = Connection::new(TcpStream::connect(address).expect("it listens"));
    let (mut far, from) = listener.accept().expect("it is called");
    let ends = (address.port(), from.port());
    near.send("some");
    until("the bytes arrive", || (unread_bytes(ends) == 4).then_some(()));
    far.read_exact(&mut [0; 3]).expect("they are there");
    assert_eq!(unread_bytes(ends), 1);
    far.read_exact(&mut [0; 1]).expect("it is there");
    near.until_read().expect("they are connected");
}
