//! Agents of the demo contract: a question is posted to `demo` below their address, and its answer is the outcome.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_contracts::{Contract, Kind};
use crosspoint_engine::runtime::{Attempt, Gone, Link};
use crosspoint_exchange::reply::{self, Meaning};
use crosspoint_http::call::Media;

use super::remote::{self, Agent};
use super::status::meaning;
use super::{Fate, Spoken};

pub(super) static SPOKEN: Spoken = Spoken {
    contract: Contract::Demo,
    silence: Duration::from_secs(60),
    fate: Fate::Unknown,
    has_mode: false,
    has_stream: false,
    whole_address: false,
    program: None,
    endpoints: &["/demo"],
    link: |agent, _| Arc::new(Demo(agent)),
};

struct Demo(Agent);

impl Link for Demo {
    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move {
            tokio::select! {
                biased;
                result = answer(&self.0, &attempt) => self.0.concluded(result),
                () = attempt.stopped() => Err(super::gone(Gone)),
            }
        })
    }
}

async fn answer(agent: &Agent, attempt: &Attempt) -> Result<Success, Failed> {
    let request = agent.request(attempt).await?;
    let answer = agent.http.post(&agent.http.endpoint("demo"), request.text, &request.trace, Media::Json).await;
    let answer = answer.map_err(remote::unanswered)?;
    let (status, retry_after) = (answer.status, answer.retry_after);
    let body = answer.whole(agent.answer_bytes_max).await.unwrap_or_default();
    match reply::read(Kind::DemoAnswer, &body).map(|reply| reply.meaning) {
        Ok(Meaning::Ended(result)) => result.map_err(|failed| *failed),
        Ok(Meaning::Queued | Meaning::Running(_) | Meaning::Waiting(_)) | Err(_) => {
            // Without a document the HTTP status says what it means, for every contract alike.
            Err(match meaning(status) {
                Some(meaning) => meaning.failed(&body, retry_after),
                None => reply::unreadable("The agent's answer could not be read.", &body),
            })
        }
    }
}
