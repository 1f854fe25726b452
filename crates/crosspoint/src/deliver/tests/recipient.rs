//! A recipient behind a real socket, which answers as the test says.

use std::sync::{Arc, Mutex};

use reqwest::Url;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};

use super::super::lock;
use super::LONG;

/// What a recipient does with a message.
#[derive(Clone)]
pub(super) enum Does {
    /// Answers with this status line and these headers.
    Answers(&'static str),
    /// Acknowledges, and never ends the body of its answer.
    Goes,
    /// Says nothing, and keeps the connection.
    Nothing,
    /// Acknowledges when it is notified.
    Waits(Arc<Notify>),
}

pub(super) const TAKES: Does = Does::Answers("204 No Content");
pub(super) const REFUSES: Does = Does::Answers("500 Internal Server Error");

/// A message, with the head of its request.
#[derive(Clone, Debug)]
pub(super) struct Got {
    pub(super) head: String,
    pub(super) body: Value,
}

impl Got {
    pub(super) fn text(&self, member: &str) -> &str {
        self.body[member].as_str().unwrap_or_default()
    }
}

type Rule = dyn Fn(&Got) -> Does + Send + Sync;

pub(super) struct Listening {
    pub(super) url: Url,
    got: Arc<Mutex<Vec<Got>>>,
    count: watch::Receiver<usize>,
    accepting: tokio::task::JoinHandle<()>,
}

impl Listening {
    pub(super) async fn new(rule: impl Fn(&Got) -> Does + Send + Sync + 'static) -> Listening {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        Listening::on(listener, rule)
    }

    pub(super) fn on(listener: TcpListener, rule: impl Fn(&Got) -> Does + Send + Sync + 'static) -> Listening {
        let address = listener.local_addr().expect("it is bound");
        let (told, count) = watch::channel(0);
        let (rule, got): (Arc<Rule>, _) = (Arc::new(rule), Arc::<Mutex<Vec<Got>>>::default());
        let (told, kept) = (Arc::new(told), got.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, rule.clone(), kept.clone(), told.clone()));
            }
        });
        let url = format!("http://{address}/base/").parse().expect("an address");
        Listening { url, got, count, accepting }
    }

    /// Returns all messages, once there are as many.
    pub(super) async fn got(&self, least: usize) -> Vec<Got> {
        let mut count = self.count.clone();
        let enough = tokio::time::timeout(LONG, count.wait_for(|count| *count >= least)).await;
        enough.unwrap_or_else(|_| panic!("only {} of {least}", lock(&self.got).len())).expect("it is there");
        lock(&self.got).clone()
    }

    /// Waits for a message.
    pub(super) async fn until(&self, wanted: impl Fn(&Got) -> bool) {
        self.until_times(1, wanted).await;
    }

    /// Waits for so many messages of a sort.
    pub(super) async fn until_times(&self, times: usize, wanted: impl Fn(&Got) -> bool) {
        let mut count = self.count.clone();
        let is_enough = |_: &usize| lock(&self.got).iter().filter(|got| wanted(got)).count() >= times;
        let enough = tokio::time::timeout(LONG, count.wait_for(is_enough)).await;
        enough.expect("it comes").expect("it is there");
    }

    pub(super) fn leave(self) {
        self.accepting.abort();
    }
}

async fn serve(mut stream: TcpStream, rule: Arc<Rule>, kept: Arc<Mutex<Vec<Got>>>, told: Arc<watch::Sender<usize>>) {
    while let Some(got) = request(&mut stream).await {
        let does = rule(&got);
        lock(&kept).push(got);
        told.send_modify(|count| *count += 1);
        let answer = match does {
            Does::Answers(head) => format!("HTTP/1.1 {head}\r\ncontent-length: 0\r\n\r\n"),
            Does::Goes => "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\nand so on".to_owned(),
            Does::Nothing => continue,
            Does::Waits(until) => {
                until.notified().await;
                "HTTP/1.1 204 No Content\r\n\r\n".to_owned()
            }
        };
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn request(stream: &mut TcpStream) -> Option<Got> {
    let mut bytes = Vec::new();
    loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length: usize = length.and_then(|length| length.parse().ok()).unwrap_or(0);
            if bytes.len() >= at + 4 + length {
                return Some(Got { head, body: serde_json::from_slice(&bytes[at + 4..]).unwrap_or_default() });
            }
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}
