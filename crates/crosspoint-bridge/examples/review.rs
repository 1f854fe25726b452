//! A program that has a text reviewed, and then the review summed up: two questions, one after the other.
//!
//! ```sh
//! cargo build -p crosspoint-bridge --example review
//! crosspoint bridge run --agent reviewer=echo --agent summariser=echo -- target/debug/examples/review README.md
//! ```

use std::error::Error;
use std::io::Write;

use crosspoint_bridge::{Question, RESUME, ask};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().skip(1).find(|word| word != RESUME).ok_or("usage: review FILE")?;
    // The agent is told where the text is: a request holds 1 MiB, and a path is the same whenever the program is run.
    let review = Question::new("reviewer", format!("Review {path}.")).context(r#"{"tone": "friendly"}"#);
    let review = match ask(&review)?.text() {
        Ok(text) => text.to_owned(),
        // An agent that fails is no reason to fail.
        Err(failed) => format!("nobody could review it: {failed}"),
    };
    let summary = ask(&Question::new("summariser", format!("In one sentence:\n{review}")).phase_name("summary"))?;
    writeln!(std::io::stdout(), "{}", summary.text()?)?;
    crosspoint_bridge::ask::finish()?;
    Ok(())
}
