//! The places of event streams: each caller has a limited number.
//!
//! A place is taken before the request is carried out, so that a caller without one has no job either. The stream keeps
//! it until the caller has everything or has left.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use crosspoint_exchange::refusal::{Limit, Refusal};

use super::Peer;
use super::shares::Share;
use crate::{Refused, Site};

/// What a caller is counted by, where it is known better than by its address. It is attached to the request by the code
/// that finds out who the caller is, and the limit then holds on the loopback too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerKey(pub u64);

/// The place of one event stream, until this value is dropped.
pub struct StreamPlace {
    _share: Option<Share>,
}

impl<S: Send + Sync> FromRequestParts<S> for StreamPlace
where
    Site: FromRef<S>,
{
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<StreamPlace, Refused> {
        let site = Site::from_ref(state);
        let each = site.limits().streams_per_caller;
        let limit = match parts.extensions.get::<CallerKey>() {
            Some(CallerKey(key)) => Some((*key, each.number())).filter(|(_, most)| *most > 0),
            None => parts.extensions.get::<Peer>().and_then(|peer| each.of(*peer)),
        };
        let Some((key, most)) = limit else { return Ok(StreamPlace { _share: None }) };
        let refusal = || Refusal::too_many("event streams of this caller", Limit::StreamsPerCaller, most);
        let share = site.streams().take(key, most).ok_or_else(refusal)?;
        Ok(StreamPlace { _share: Some(share) })
    }
}
