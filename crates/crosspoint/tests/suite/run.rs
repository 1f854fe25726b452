//! The run contract: its door and its agents.

pub(crate) mod agent;
mod agent_answers;
mod answer_room;
mod breaks;
mod callers;
mod door;
pub(crate) mod examples;
mod floods;
mod life;
mod misbehaviour;
mod on_the_way;
mod redirects;
mod refusals;
mod streamless;
