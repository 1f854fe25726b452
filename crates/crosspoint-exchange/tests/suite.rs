//! One binary for all tests that use the crate from outside.

#[path = "suite/answers.rs"]
mod answers;
#[path = "suite/made.rs"]
mod made;
#[path = "suite/pieces.rs"]
mod pieces;
#[path = "suite/refusals.rs"]
mod refusals;
#[path = "suite/replies.rs"]
mod replies;
#[path = "suite/requests.rs"]
mod requests;
#[path = "suite/submitted.rs"]
mod submitted;
