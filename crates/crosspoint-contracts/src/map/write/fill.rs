//! What is written where a job has no value and readers want one.

use std::borrow::Cow;

use uuid::Uuid;

use super::Out;
use crate::content::Json;
use crate::failure::Failure;
use crate::job::{Filled, Home};
use crate::json::Levels;
use crate::map::carry;
use crate::map::codec::{Codec, derived, quoted_id};
use crate::map::shape::{Is, Member, Need};

/// What a writer needs that no document has: the time, new ids, and the operator's settings.
#[derive(Clone, Copy, Debug)]
pub struct WriteContext<'f> {
    /// The current time, in RFC 3339 with `Z`.
    pub now: &'f str,
    /// An id that is not used elsewhere.
    pub id: Uuid,
    /// The id of the message, in contracts where each message has one.
    pub message_id: Uuid,
    /// Agent types that the operator added to the five of the message contract.
    pub agent_types: &'f [&'f str],
    /// The type of an agent that has another name or none.
    pub agent_type: &'f str,
    /// Whether facts that the contract has no field for are carried. If not, they are lost, and listed.
    pub carrying: Carrying,
    /// The id under which the recipient of the document knows the request (ALL-2). The caller's own id is carried
    /// beside it.
    pub known_as: Option<Uuid>,
    /// Whether members that the contract recommends are written even into a document that goes back where it came from.
    pub completing: bool,
    /// How deep the document may nest: as deep as other readers allow, unless what it holds was accepted already.
    pub levels: Levels,
    /// What is known of a failure, by the names of the members that must say it and where its details do not.
    pub facts: &'f [(&'static str, Json<'f>)],
}

impl WriteContext<'_> {
    /// Whether the document is a request on its way to an agent.
    pub(crate) fn is_dispatch(&self) -> bool {
        self.known_as.is_some()
    }
}

/// Whether facts without a field are carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrying {
    /// Carried under one key in the open object.
    On,
    /// Not carried, for agents that refuse members that they do not know.
    Off,
}

/// The value that is written where a job has none and readers want one.
#[derive(Clone, Copy)]
pub(crate) enum Fill {
    /// This JSON.
    Raw(&'static str),
    /// The new id.
    Id,
    /// An id for one message.
    MessageId,
    /// The id of the request, as a UUID.
    RequestUuid,
    /// An id for the trace that stays the same when the request is sent again.
    TraceId,
    /// The current time.
    Now,
    /// A sentence that says what the failure means.
    Sentence,
    /// The type of the agent that does the work.
    AgentType,
}

impl<'j, 's> Out<'j, 's> {
    /// Returns the value that was filled in here when the job was in this contract before.
    fn filled_earlier(&self) -> Option<&'j Filled<'s>> {
        if self.job.filled.is_empty() {
            return None;
        }
        let is_here = |filled: &Filled<'_>| carry::below(&filled.pointer, &self.path) == Some("");
        self.job.filled.iter().find(|filled| filled.contract == self.contract && is_here(filled))
    }

    pub(super) fn needed(&mut self, member: &Member) -> Option<Cow<'j, str>> {
        let fill = match &member.need {
            Need::Optional => return None,
            Need::Follows(from) => return Some(Cow::Owned(from(self.job).get().to_owned())),
            Need::Recommended(_) if self.leaves_out() => return None,
            Need::Required(fill) | Need::Recommended(fill) => fill,
        };
        let earlier = self.filled_earlier();
        let value = match earlier {
            Some(earlier) => Cow::Borrowed(earlier.value.get()),
            None => self.fill(*fill, member),
        };
        self.stands_in(Json::new(value.clone()));
        Some(value)
    }

    /// Returns the id of the request. An event may leave it to the other events of its stream.
    fn request_id(&self) -> Option<&'j Json<'s>> {
        self.job.get(Home::RequestId).or(self.job.stream_id.as_ref())
    }

    /// Whether the document is a message of its own and has a new id. A request to an agent carries the id of its
    /// caller's message, if it carries anything; an answer has nothing to say of the agent's.
    pub(super) fn is_new_message(&mut self) -> bool {
        if self.context.completing || self.context.carrying == Carrying::Off {
            self.own_here();
        }
        self.context.completing || self.context.is_dispatch()
    }

    fn fill(&self, fill: Fill, member: &Member) -> Cow<'j, str> {
        let id = |id: Uuid| Cow::Owned(quoted_id(id));
        match fill {
            Fill::Raw(json) => Cow::Borrowed(json),
            Fill::Id => match (&self.job.stream_id, &member.is) {
                (Some(request_id), Is::Home(_, codec)) => codec.write(request_id.get(), self.context),
                (Some(_) | None, _) => id(self.context.id),
            },
            Fill::MessageId => id(self.context.message_id),
            Fill::RequestUuid => match (self.context.known_as, self.request_id()) {
                (Some(known_as), _) => id(known_as),
                (None, Some(request_id)) => Codec::Uuid.write(request_id.get(), self.context),
                (None, None) => id(self.context.id),
            },
            Fill::TraceId => match self.request_id() {
                Some(request_id) => id(derived(&format!("trace {}", request_id.get()))),
                None => id(derived(&format!("trace {}", self.context.id))),
            },
            Fill::Now => Cow::Owned(Json::string(self.context.now).get().to_owned()),
            Fill::Sentence => {
                let failure = self.job.failure().unwrap_or(Failure::AgentFailed);
                Cow::Owned(Json::string(failure.sentence()).get().to_owned())
            }
            Fill::AgentType => Cow::Owned(Json::string(self.context.agent_type).get().to_owned()),
        }
    }
}
