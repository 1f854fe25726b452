//! An agent that echoes, for callers of every contract: cargo run --example echo

use crosspoint_agent::{Agent, Context, Failure};
use serde_json::Value;

async fn echo(input: Value, context: Context) -> Result<Value, Failure> {
    context.progress(50.0, "Echoing");
    Ok(input)
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:8000").await?;
    Agent::new("echo").on("echo", echo).serve(listener, crosspoint_agent::interrupted()).await
}
