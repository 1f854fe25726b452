//! An agent that uses what a handler has: cargo run -p crosspoint-agent --example deploy -- 127.0.0.1:8000

use std::io::Write as _;

use crosspoint_agent::{Agent, Context, Failure};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;

#[derive(Deserialize)]
struct Order {
    service: String,
    hosts: Vec<String>,
}

#[derive(Serialize)]
struct Deployed {
    hosts: usize,
}

async fn plan(order: Order, _: Context) -> Result<Deployed, Failure> {
    if order.hosts.is_empty() {
        return Err(Failure::new("there is no host to deploy to").code("NO_HOST"));
    }
    Ok(Deployed { hosts: order.hosts.len() })
}

async fn deploy(order: Order, context: Context) -> Result<Deployed, Failure> {
    let schema = json!({"type": "boolean"});
    let is_wanted: bool = context.ask(&format!("Deploy {}?", order.service), Some(&schema)).await?;
    if !is_wanted {
        return Err(Failure::new("a person said no").code("NOT_WANTED"));
    }
    let mut hosts = 0;
    for host in order.hosts.iter().take_while(|_| !context.is_cancelled()) {
        context.progress(100.0 * f64::from(hosts) / order.hosts.len() as f64, host);
        context.output().write_all(format!("{host}: {} runs\n", order.service).as_bytes()).await?;
        hosts += 1;
    }
    context.artifact("hosts.json", "application/json", &order.hosts)?;
    Ok(Deployed { hosts: hosts.try_into()? })
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8000".to_owned());
    let listener = tokio::net::TcpListener::bind(address).await?;
    writeln!(std::io::stdout(), "http://{}", listener.local_addr()?)?;
    let agent = Agent::new("deployer").on("plan", plan).at_most_once("deploy", deploy);
    agent.serve(listener, crosspoint_agent::interrupted()).await
}
