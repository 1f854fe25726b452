//! Requests over connections of their own.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};

use crate::support::conformity;
use crate::support::server::{Answer, PATIENCE, head};

/// One request. Its answer is checked against the description of the API.
pub(in super::super) fn call(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&'static str, String)],
    body: &str,
) -> Answer {
    let answer = exchange(address, method, path, headers, body);
    conformity::check(method, path, &answer);
    answer
}

/// Gets an answer without checking it.
pub(in super::super) fn fetch(address: SocketAddr, path: &str) -> Answer {
    exchange(address, "GET", path, &[], "")
}

fn exchange(address: SocketAddr, method: &str, path: &str, headers: &[(&'static str, String)], body: &str) -> Answer {
    let mut stream = opened(address, method, path, headers, body);
    let answer = Answer::read(&mut stream).expect("it answers");
    Answer { body: shallow(&answer.text()).into_bytes(), ..answer }
}

/// Few readers accept the deepest nesting allowed: `[[[...]]]` of a hundred levels or more, also within a text or over
/// several lines, is replaced by `[100]`.
pub(in super::super) fn shallow(text: &str) -> String {
    const DEEP: usize = 100;
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('[') {
        let (before, from) = rest.split_at(at);
        let after = from.trim_start_matches(|next: char| next == '[' || next.is_whitespace());
        let levels = from[..from.len() - after.len()].matches('[').count();
        out += before;
        if levels < DEEP {
            out += &from[..from.len() - after.len()];
            rest = after;
            continue;
        }
        let (end, _) = after.match_indices(']').nth(levels - 1).expect("what is open is closed");
        out += &format!("[{levels}]");
        rest = &after[end + 1..];
    }
    out + rest
}

pub(super) fn opened(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&'static str, String)],
    body: &str,
) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket can have a timeout");
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let head = head(method, path, &headers, body.len());
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).expect("it is taken");
    BufReader::new(stream)
}

/// An id, encoded for a path.
pub(super) fn encoded(id: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    id.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
