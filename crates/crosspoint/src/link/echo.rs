//! `echo`: gives back what it is given.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_engine::runtime::{Attempt, Link};

pub(super) struct Echo;

impl Link for Echo {
    fn at_once(&self, input: &Body) -> Option<Result<Success, Failed>> {
        Some(Ok(super::success(input.clone())))
    }

    fn run(self: Arc<Self>, attempt: Attempt) -> Pin<Box<dyn Future<Output = Result<Success, Failed>> + Send>> {
        Box::pin(async move { attempt.input().await.map(super::success) })
    }
}
