//! Memory, start time, and whether a million stored jobs make anything slower.

use std::time::{Duration, Instant};

use crate::call::Call;
use crate::load::{self, Connection};
use crate::report::{Report, Scale, Search};
use crate::serving::{Server, data_directory};
use crate::{Extent, bare};

/// Number of turns. In each turn both servers answer once.
const TURNS: usize = 400;

pub(crate) fn measure(extent: Extent, report: &mut Report) {
    let idle = Server::start("idle");
    let (ready_empty, idle_bytes) = (idle.ready_after, idle.resident_bytes());
    drop(idle);

    let queue = Server::start("queue");
    let before = queue.resident_bytes();
    drain(&queue.address, "echo");
    load::submit(&queue.address, 50, extent.queued, "echo");
    let queued_bytes = queue.resident_bytes().saturating_sub(before);
    drop(queue);

    eprintln!("filling a store with {} jobs", extent.stored);
    let many = data_directory("many");
    bare::fill(&many, extent.stored);
    let few = data_directory("few");
    bare::fill(&few, 1_000);
    let many = Server::start_in(&many, &[]);
    let ready_many = many.ready_after;
    let many_bytes = many.resident_bytes();
    let few = Server::start_in(&few, &[]);
    let submit =
        in_turns(&few, &many, |connection| Box::pin(async move { connection.submit(&Call::native("echo")).await }));
    let list = in_turns(&few, &many, |connection| Box::pin(connection.get("jobs?limit=50")));
    let searches = searches(&many);
    report.scale(&Scale {
        ready_empty,
        ready_many,
        idle_bytes,
        many_bytes,
        queued: extent.queued,
        queued_bytes,
        stored: extent.stored,
        submit,
        list,
        searches,
    });
}

/// Every job matches the first filter, and none matches the others, which therefore look through the whole store.
const FILTERS: [&str; 6] =
    ["state=completed", "state=failed", "state=running", "work=nothing", "agent=nobody&state=completed", "door=task"];

/// Lists as a client does that goes on until it has a full page or there is no more.
fn searches(server: &Server) -> Vec<Search> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let search = |filter: &'static str| {
        runtime.block_on(async {
            let mut connection = Connection::open(&server.address).await;
            let (mut pages, mut longest, begun) = (0, Duration::ZERO, Instant::now());
            let mut next = Some(String::new());
            while let Some(at) = next {
                let start = Instant::now();
                next = connection.page(filter, &at).await;
                longest = longest.max(start.elapsed());
                pages += 1;
                if filter == FILTERS[0] {
                    break;
                }
            }
            Search { filter, pages, longest, whole: begun.elapsed() }
        })
    };
    FILTERS.into_iter().map(search).collect()
}

fn drain(address: &str, agent: &str) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the server is there");
    let request = format!(
        "POST /api/v1/agents/{agent}/drain HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it can be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it is answered");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

type Asked<'c> = std::pin::Pin<Box<dyn Future<Output = ()> + 'c>>;

/// The median times of both servers, asked alternately by one client.
fn in_turns(few: &Server, many: &Server, ask: impl for<'c> Fn(&'c mut Connection) -> Asked<'c>) -> [Duration; 2] {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut connections = [Connection::open(&few.address).await, Connection::open(&many.address).await];
        let mut times = [Vec::new(), Vec::new()];
        for turn in 0..TURNS {
            for (connection, times) in connections.iter_mut().zip(&mut times) {
                let start = Instant::now();
                ask(connection).await;
                // The first turns fill caches.
                if turn >= TURNS / 10 {
                    times.push(start.elapsed());
                }
            }
        }
        times.map(|mut times| {
            times.sort();
            times[times.len() / 2]
        })
    })
}
