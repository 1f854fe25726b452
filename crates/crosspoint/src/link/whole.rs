//! What an answer in one piece means where its contract does not say: an answer that is no document, or no whole one.
//! Pure, and the same for all contracts.

use std::time::Duration;

use crosspoint_contracts::clause::Clause;
use crosspoint_contracts::clause::all::{ALL_101, ALL_145};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_exchange::reply::{self, Unreadable};
use crosspoint_http::call::{Answer, Unread};
use reqwest::StatusCode;

use super::record::{Note, found, note};
use super::remote::too_long;
use super::status;

/// What is said of an answer that no outcome can be made of, if no more can be said.
pub(super) const UNREADABLE: &str = "The agent's answer could not be read.";

/// How an attempt ended, and what was wrong with how the agent said it.
pub(super) struct Verdict {
    pub(super) result: Result<Success, Failed>,
    pub(super) violations: Vec<Note>,
}

/// The head of an answer, as far as it says what the answer means.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) status: StatusCode,
    pub(super) retry_after: Option<Duration>,
}

impl Head {
    pub(super) fn of(answer: &Answer) -> Head {
        Head { status: answer.status, retry_after: answer.retry_after }
    }
}

/// Judges an answer of which only the beginning came.
pub(super) fn of_unread(unread: Unread, head: Head, beginning: &[u8], bytes_max: usize) -> Verdict {
    let is_refusal = status::meaning(head.status).is_some();
    match unread {
        Unread::TooLong => Verdict {
            result: Err(if is_refusal { by_status(head, beginning) } else { too_long(bytes_max) }),
            violations: vec![note(&ALL_145, "the answer is longer than it may be")],
        },
        // A refusal is complete with its status line.
        Unread::Lost | Unread::Garbled if is_refusal => {
            Verdict { result: Err(by_status(head, beginning)), violations: Vec::new() }
        }
        Unread::Garbled => Verdict {
            result: Err(Failed::said(Failure::BrokenContract, Dispatched::Yes, UNREADABLE)),
            violations: vec![note(&ALL_101, "the framing of the answer is wrong")],
        },
        Unread::Lost => {
            let message = "The connection to the agent was lost before its answer was whole.";
            Verdict {
                result: Err(Failed::dropped(message)),
                violations: vec![note(&ALL_101, "the connection was lost before the answer was whole")],
            }
        }
    }
}

/// Judges an answer that cannot be read. Missing members that are only `recommended` are not held against it.
pub(super) fn of_unreadable(
    head: Head,
    Unreadable { lack, report }: Unreadable,
    body: &[u8],
    recommended: &[&'static Clause],
) -> Verdict {
    // An error in words of the agent's own, or of a proxy before it, is no document, and breaks no rule for documents.
    let is_error = head.status.is_client_error() || head.status.is_server_error();
    let violations = if is_error { Vec::new() } else { found(report, recommended) };
    let is_success = head.status.is_success();
    let failed = if is_success { reply::unreadable(lack.sentence(), body) } else { by_status(head, body) };
    Verdict { result: Err(failed), violations }
}

/// Returns what a status says where there is no document, with whatever came in its place.
pub(super) fn by_status(head: Head, body: &[u8]) -> Failed {
    match status::meaning(head.status) {
        Some(meaning) => meaning.failed(body, head.retry_after),
        None if head.status.is_redirection() => {
            reply::unreadable("The agent refers to another place, where it is not followed.", body)
        }
        None => reply::unreadable(UNREADABLE, body),
    }
}
