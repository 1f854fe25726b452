//! Connections that an agent dropped after it had taken the request: they count only if its health check fails too
//! (MSG-7).

use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Failed;
use crosspoint_engine::breaker::{self, Breaker, FAILURES_MAX, Health, OPEN_FOR};
use crosspoint_engine::core::{AgentCommand, Command, Effect};
use crosspoint_engine::id::Seq;
use crosspoint_engine::machine::Event;

use crate::made::failed;
use crate::town::{Town, agent};

/// An agent that has as many jobs as it can be given.
fn busy(jobs: u32) -> (Town, Vec<Seq>) {
    let mut town = Town::new(vec![agent("a", &["work"], jobs)]);
    let jobs = (0..jobs).map(|_| town.submit_work("work")).collect();
    (town, jobs)
}

/// The agent drops the connection of a job. Returns how many health checks follow.
fn drops(town: &mut Town, seq: Seq) -> usize {
    let attempt = town.job(seq).attempts;
    town.happens(seq, Event::Finish { attempt, result: Err(Failed::dropped("It was dropped.")) });
    town.batch.effects.iter().filter(|effect| matches!(effect, Effect::Check { .. })).count()
}

fn tell(town: &mut Town, event: breaker::Event) {
    town.tell(&Command::Agent("a".into(), AgentCommand::Breaker(event)));
}

fn closed(failures: u32) -> Breaker {
    Breaker::Closed { failures }
}

#[test]
fn drops_of_an_agent_that_is_well_count_as_nothing() {
    let (mut town, jobs) = busy(30);
    for seq in &jobs[..20] {
        assert_eq!(drops(&mut town, *seq), 1, "each is asked about");
        tell(&mut town, breaker::Event::Checked(Health::Well));
        assert_eq!(town.standing("a").breaker, closed(0));
    }
    // They are not good either: what was bad before stays bad.
    town.happens(jobs[20], failed(1, Failure::Timeout, Dispatched::Yes));
    drops(&mut town, jobs[21]);
    tell(&mut town, breaker::Event::Checked(Health::Well));
    assert_eq!(town.standing("a").breaker, closed(1));
}

#[test]
fn drops_of_an_agent_that_is_sick_count_one_by_one() {
    let (mut town, jobs) = busy(9);
    for (before, seq) in (0..FAILURES_MAX - 1).zip(&jobs) {
        drops(&mut town, *seq);
        assert_eq!(town.standing("a").breaker, closed(before), "not before the check");
        tell(&mut town, breaker::Event::Checked(Health::Sick));
        assert_eq!(town.standing("a").breaker, closed(before + 1));
    }
    drops(&mut town, jobs[5]);
    tell(&mut town, breaker::Event::Checked(Health::Sick));
    assert_eq!(town.standing("a").breaker, Breaker::Open { until: town.now.plus(OPEN_FOR) });
}

#[test]
fn many_drops_at_once_share_one_check() {
    let (mut town, jobs) = busy(1_000);
    let checks: usize = jobs.iter().map(|seq| drops(&mut town, *seq)).sum();
    assert_eq!((checks, town.standing("a").breaker), (1, closed(0)));
    tell(&mut town, breaker::Event::Checked(Health::Sick));
    assert_eq!(town.standing("a").breaker, Breaker::Open { until: town.now.plus(OPEN_FOR) });
    let (mut town, jobs) = busy(1_000);
    jobs.iter().for_each(|seq| _ = drops(&mut town, *seq));
    tell(&mut town, breaker::Event::Checked(Health::Well));
    assert_eq!(town.standing("a").breaker, closed(0));
}

#[test]
fn an_agent_that_answers_and_drops_in_turn_is_checked_once_at_a_time() {
    let (mut town, jobs) = busy(100);
    let mut checks = 0;
    for pair in jobs.chunks(2) {
        checks += drops(&mut town, pair[0]);
        town.finish(pair[1]);
    }
    assert_eq!(checks, 1);
    tell(&mut town, breaker::Event::Checked(Health::Sick));
    assert_eq!(town.standing("a").breaker, closed(0), "it has answered since");
}
