//! Appends to a stream of JetStream: each connection publishes one message, waits until the server says that it is
//! stored, and publishes the next.
//!
//! wrk speaks HTTP only, and a front that translates would cost more than what is measured; so this is a client of its
//! own. It prints one line of JSON, with what wrk would say.

use std::error::Error;
use std::time::{Duration, Instant};

use async_nats::jetstream;
use bytes::Bytes;

/// What one connection saw: how long each append took.
type Took = Vec<Duration>;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, url, connections, seconds, payload] = arguments.as_slice() else {
        return Err("usage: nats-append URL CONNECTIONS SECONDS PAYLOAD_FILE".into());
    };
    let connections: usize = connections.parse()?;
    let payload = Bytes::from(std::fs::read(payload)?);
    let length = Duration::from_secs_f64(seconds.parse()?);
    prepare(url).await?;
    let mut clients = Vec::new();
    for _ in 0..connections {
        clients.push(jetstream::new(async_nats::connect(url).await?));
    }
    let began = Instant::now();
    let tasks: Vec<_> =
        clients.into_iter().map(|client| tokio::spawn(append(client, payload.clone(), began + length))).collect();
    let mut took = Took::new();
    for task in tasks {
        took.extend(task.await??);
    }
    let elapsed = began.elapsed();
    print(&mut took, elapsed, stored(url).await?);
    Ok(())
}

/// The stream, kept in files; what was stored before is dropped, so that every cell begins alike.
async fn prepare(url: &str) -> Result<(), Box<dyn Error + Send + Sync>> {
    let context = jetstream::new(async_nats::connect(url).await?);
    let config = jetstream::stream::Config {
        name: "ECHO".to_owned(),
        subjects: vec!["echo".to_owned()],
        storage: jetstream::stream::StorageType::File,
        ..jetstream::stream::Config::default()
    };
    context.get_or_create_stream(config).await?.purge().await?;
    Ok(())
}

/// How many messages the stream holds, by the server's account.
async fn stored(url: &str) -> Result<u64, Box<dyn Error + Send + Sync>> {
    let context = jetstream::new(async_nats::connect(url).await?);
    Ok(context.get_stream("ECHO").await?.info().await?.state.messages)
}

async fn append(
    client: jetstream::Context,
    payload: Bytes,
    until: Instant,
) -> Result<Took, Box<dyn Error + Send + Sync>> {
    let mut took = Took::new();
    while Instant::now() < until {
        let began = Instant::now();
        client.publish("echo", payload.clone()).await?.await?;
        took.push(began.elapsed());
    }
    Ok(took)
}

/// An append that was acknowledged and is not in the stream is a bad one.
fn print(took: &mut Took, elapsed: Duration, stored: u64) {
    took.sort_unstable();
    let at = |share: f64| took.get((took.len() as f64 * share) as usize).map_or(0, Duration::as_micros);
    println!(
        "{{\"requests\": {}, \"seconds\": {:.3}, \"p50_us\": {}, \"p99_us\": {}, \"bad\": {}}}",
        took.len(),
        elapsed.as_secs_f64(),
        at(0.5),
        at(0.99),
        (took.len() as u64).abs_diff(stored)
    );
}
