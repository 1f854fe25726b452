//! `slow_echo`: gives back what it is given, in ten steps over `seconds` of its input.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::runtime::{Attempt, Gone, Link};

const STEPS: u8 = 10;
const SECONDS_DEFAULT: f64 = 2.0;

pub(super) struct SlowEcho;

impl Link for SlowEcho {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(run(attempt))
    }
}

async fn run(mut attempt: Attempt) -> Result<Success, Failed> {
    let input = attempt.input().await?;
    let pause = super::seconds(asked_for(&input), SECONDS_DEFAULT) / u32::from(STEPS);
    for number in 1..=STEPS {
        let name = format!("Step {number} of {STEPS}");
        let percent = f64::from(number - 1) * 100.0 / f64::from(STEPS);
        attempt.progress(Some(percent), Some(&name)).await.map_err(super::gone)?;
        attempt.output(format!("{name}\n").into()).await.map_err(super::gone)?;
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            () = attempt.stopped() => return Err(super::gone(Gone)),
        }
    }
    attempt.progress(Some(100.0), None).await.map_err(super::gone)?;
    Ok(super::success(input))
}

fn asked_for(input: &Body) -> Option<f64> {
    let tape = Tape::scan(input.bytes()).ok()?;
    tape.root()?.get("seconds")?.float()
}
