//! Agents that have types, that may be away although they are configured, and that are reached by links although they
//! joined; and requests that are addressed to types.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::request::Limits;
use crosspoint_engine::core::{AgentCommand, Command, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::Request;
use crosspoint_engine::policy::Repeats;

use super::dice::Dice;
use super::disk::Disk;
use super::known::{Known, Life};
use super::model::Model;
use super::rule::{Verdict, ensure, micros};
use super::world::World;

/// The contract of agents that joined and are reached by a link.
pub(crate) const LINKED: &str = "linked";

fn a_type(dice: &mut Dice) -> Option<Arc<str>> {
    dice.pick(&[None, None, Some("x"), Some("y")]).map(Arc::from)
}

/// Gives agents their types, and lets some be awaited and some recognise what they have done.
pub(crate) fn cast(dice: &mut Dice, joins: &[bool], specs: &mut [Spec]) {
    for (spec, joins) in specs.iter_mut().zip(joins) {
        change(dice, spec);
        spec.awaited = !joins && dice.percent(30);
        if !joins {
            spec.contract = "builtin".into();
        }
    }
}

/// Changes what an agent says when it joins.
pub(crate) fn change(dice: &mut Dice, spec: &mut Spec) {
    spec.agent_type = a_type(dice);
    spec.contract = dice.pick(&["pull", LINKED]).into();
    spec.policy.repeats = dice.pick(&[Repeats::SameAgent, Repeats::SameAgent, Repeats::Always, Repeats::BeforeStart]);
}

impl World {
    /// A configured agent goes away or comes back, or its link gives back what it never gave to the agent.
    pub(crate) fn settled_act(&mut self) {
        let index = self.dice.below(self.specs.len() as u64) as usize;
        if self.model.joins[index] || !self.dice.percent(15) {
            return;
        }
        if self.dice.percent(15) {
            self.count("withdrawn by a link");
            return self.withdraw_some(index);
        }
        let capacity = self.dice.pick(&[0, 1, 2, 9]);
        if capacity == 0 {
            self.count("a configured agent went away");
        }
        let name = self.specs[index].name.clone();
        self.post(0, Command::Agent(name, AgentCommand::Capacity(capacity)));
    }

    /// What an agent says when it joins: the same as before, or something else.
    pub(crate) fn registration(&mut self, index: usize, otherwise: bool) -> Option<Block> {
        if !otherwise || *self.model.specs[index].contract == *"builtin" {
            return self.model.registrations[index].clone();
        }
        Some(Block(self.rounds.to_string().into()))
    }

    /// Addresses a request to a type, limits its attempts, and names a recipient.
    pub(crate) fn addressed(&mut self, request: Request) -> Request {
        let dice = &mut self.dice;
        let addressed = dice.pick(&[None, None, Some("x"), Some("y"), Some("z")]).map(Arc::from);
        let attempt = dice.percent(30).then(|| Duration::from_millis(dice.between(100, 60_000)));
        let notify = dice.percent(50).then(|| Arc::from(dice.pick(&["one", "two"])));
        Request { addressed, notify, limits: Limits { attempt, ..request.limits.clone() }, ..request }
    }
}

impl Model {
    /// Whether a request may go to an agent of this type (MSG-18).
    pub(crate) fn is_addressed(&self, agent: usize, request: &Request) -> bool {
        match (&self.specs[agent].agent_type, &request.addressed) {
            (Some(own), Some(wanted)) => own == wanted,
            (None, _) | (_, None) => true,
        }
    }

    /// Checks that the disk has what the agents that joined said last.
    pub(crate) fn check_members(&self, disk: &Disk) -> Verdict {
        for (index, spec) in self.specs.iter().enumerate().filter(|(index, _)| self.joins[*index]) {
            let found = disk.members.get(&spec.name).map(|member| {
                (&member.registration, &member.spec.contract, &member.spec.agent_type, &member.spec.policy.repeats)
            });
            let said = (&self.registrations[index], &spec.contract, &spec.agent_type, &spec.policy.repeats);
            let due = self.known[index].then_some(said);
            ensure!(found == due, "the disk has {found:?} of {}, not {due:?}", spec.name);
        }
        Ok(())
    }

    /// Notes whether a job waits for the one agent that may have it, and that is away.
    pub(crate) fn note_waits(&mut self) {
        let waits =
            |seq: &Seq| self.jobs[seq].stays && self.is_queued(*seq) && self.capacity[self.jobs[seq].agent] == 0;
        if self.live.iter().any(waits) {
            *self.reached.entry("stays with one that is away").or_default() += 1;
        }
    }

    /// Whether the present attempt takes longer than the request allows.
    pub(crate) fn is_overdue(&self, job: &Known) -> bool {
        let limit = job.request.limits.attempt.filter(|_| matches!(job.life, Life::With { .. }));
        limit.is_some_and(|limit| self.now >= job.timed_from + micros(limit))
    }
}
