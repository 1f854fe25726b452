//! What it costs to know many agents of the message contract that have nothing to do: each has registered, and sends a
//! heartbeat from time to time.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::Extent;
use crate::machine::{Spent, resident_bytes};
use crate::serving::Server;

/// Number of works that the agents take, each one of them.
const WORKS: usize = 10;

/// The use of one core by two servers, and their memory: the first knows no agents of the message contract.
pub(crate) struct Crowd {
    pub(crate) agents: usize,
    pub(crate) period: Duration,
    /// In processors, for each interval in which every agent sends one heartbeat.
    pub(crate) cores: Vec<[f64; 2]>,
    /// At the end.
    pub(crate) resident_bytes: [u64; 2],
}

/// Both servers run at the same time.
pub(crate) fn measure(extent: Extent) -> Crowd {
    let (idle, crowded) = (Server::start("crowd-idle"), Server::start("crowd"));
    let pids = [idle.pid(), crowded.pid()];
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let cores = runtime.block_on(async {
        for agent in 0..extent.agents {
            register(&crowded.address, agent).await;
        }
        let begin = Instant::now();
        let beats: Vec<_> =
            (0..extent.agents).map(|agent| tokio::spawn(beat(crowded.address.clone(), agent, begin, extent))).collect();
        let mut cores = Vec::new();
        // In the first interval everything is done for the first time.
        for interval in 1..=extent.rounds {
            tokio::time::sleep_until(begin + extent.beat * u32::try_from(interval).expect("few")).await;
            let spent = Spent::now(&pids);
            tokio::time::sleep(extent.beat).await;
            let used = spent.cores(&pids).processes;
            eprintln!("{} agents: {:.2}% of a core, idle {:.2}%", extent.agents, used[1] * 1e2, used[0] * 1e2);
            cores.push([used[0], used[1]]);
        }
        for task in beats {
            // A heartbeat that is not taken ends the measurement.
            assert!(!task.is_finished(), "an agent has stopped");
            task.abort();
        }
        cores
    });
    Crowd { agents: extent.agents, period: extent.beat, cores, resident_bytes: pids.map(resident_bytes) }
}

/// The agent is one that work would be pushed to. It gets none.
async fn register(address: &str, agent: usize) {
    let work = agent % WORKS;
    let body = format!(
        r#"{{"agent_id":"crowd-{agent:04}","agent_type":"code","supported_versions":["1.0"],"work_types":["crowd-{work}"],"base_url":"http://127.0.0.1:9"}}"#
    );
    let mut stream = TcpStream::connect(address).await.expect("the server is there");
    post(&mut stream, "/api/agent/register", &body, "200").await;
}

/// Sends a heartbeat in every period, on a connection that is kept. The agents do so one after the other, and not all
/// at once.
async fn beat(address: String, agent: usize, begin: Instant, extent: Extent) {
    let offset = extent.beat.mul_f64(agent as f64 / extent.agents as f64);
    let mut ticks = tokio::time::interval_at(begin + offset, extent.beat);
    ticks.tick().await;
    let mut stream = TcpStream::connect(address).await.expect("the server is there");
    for number in 0_u64.. {
        if number > 0 {
            ticks.tick().await;
        }
        let id = format!("{agent:08x}-0002-4000-8000-{number:012x}");
        let body = format!(
            r#"{{"protocol_version":"1.0","message_id":"{id}","from_agent":"code","to_agent":"orchestrator","timestamp":"2026-01-19T04:21:04Z","trace_id":"{id}","request_id":"{id}","type":"work_status","payload":{{"agent_id":"crowd-{agent:04}","agent_type":"code","status":"online","current_task_id":null,"resources":{{"cpu_percent":12,"gpu_vram_mb":0}},"timestamp":"2026-01-19T04:21:04Z"}},"x_custom_fields":{{}}}}"#
        );
        post(&mut stream, "/api/agent/message", &body, "204").await;
    }
}

async fn post(stream: &mut TcpStream, path: &str, body: &str, status: &str) {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("it can be sent");
    let mut answer = Vec::new();
    while !answer.windows(4).any(|four| four == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut answer).await.expect("it is answered") > 0, "the server closed the connection");
    }
    let is_right = answer.get(9..12).is_some_and(|told| told == status.as_bytes());
    assert!(is_right, "{}", String::from_utf8_lossy(&answer));
}
