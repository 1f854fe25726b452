//! What a job printed, across broken connections: the number of the next byte is the only state.

use bytes::Bytes;
use reqwest::Response;

use super::failed::Failed;
use super::follow::Away;
use super::{Client, segment};

/// A reader of what a job printed.
pub(crate) struct Printed {
    client: Client,
    id: String,
    /// The number of the next byte.
    from: u64,
    follow: bool,
    attempt: Option<u32>,
    stream: Option<Response>,
    away: Option<Away>,
}

impl Printed {
    pub(super) fn new(client: Client, id: &str, from: u64, follow: bool, attempt: Option<u32>) -> Printed {
        Printed { client, id: id.to_owned(), from, follow, attempt, stream: None, away: None }
    }

    /// Returns the next bytes, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, Failed> {
        loop {
            match self.read().await {
                Ok(bytes) => {
                    self.away = None;
                    self.from += bytes.as_ref().map_or(0, |bytes| bytes.len() as u64);
                    return Ok(bytes);
                }
                Err(failed) => {
                    self.stream = None;
                    self.away.get_or_insert_with(Away::begin).wait(&self.client, failed).await?;
                }
            }
        }
    }

    async fn read(&mut self) -> Result<Option<Bytes>, Failed> {
        let response = match &mut self.stream {
            Some(response) => response,
            None => {
                self.client.look_again();
                let attempt = self.attempt.map(|attempt| format!("&attempt={attempt}")).unwrap_or_default();
                let query = format!("follow={}&from={}{attempt}", self.follow, self.from);
                let path = format!("/api/v1/jobs/{}/output?{query}", segment(&self.id));
                self.stream.insert(self.client.stream(&path, None).await?)
            }
        };
        response.chunk().await.map_err(|error| Failed::of(&self.client.shown(), error))
    }
}
