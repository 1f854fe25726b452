//! Everything that can happen to a job, in every phase, as one table; the same for the breaker.
//!
//! The jobs of the table are at their second attempt, so that one attempt was given up and the third was never made.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::{Block, Body};
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::time::Time;
use crosspoint_engine::breaker::{self, Breaker, Health, Mark};
use crosspoint_engine::job::{Job, Phase, State};
use crosspoint_engine::machine::{End, Event, step};
use crosspoint_engine::policy::{MEMORY_BYTES_MAX, Policy, Recovery, Repeats};

use crate::made::{
    POLICY, T0, actions, after, answer, ask, at, dead, done, entries, failed, job, output, progress, start,
};

/// When the second attempt starts. All phases are reached soon after.
const STARTED: u64 = 5_000;
const NOW: u64 = 10_000;

fn job_in(phase: Phase) -> Job {
    let lost = |attempt| failed(attempt, Failure::Unavailable, Dispatched::Yes);
    let running = after(
        job(),
        [
            (T0, start()),
            (at(1_000), lost(1)),
            (at(4_000), Event::Clock),
            (at(STARTED), start()),
            (at(STARTED), output(2, 0, "four")),
        ],
        &POLICY,
    );
    let last = |event| after(running.clone(), [(at(6_000), event)], &POLICY);
    match phase {
        Phase::Queued => after(last(lost(2)), [(at(9_500), Event::Clock)], &POLICY),
        Phase::Running => running.clone(),
        Phase::Retrying => last(lost(2)),
        Phase::Waiting => last(ask(2, "which?")),
        Phase::Completed => last(done(2)),
        Phase::Failed => last(failed(2, Failure::AgentFailed, Dispatched::Yes)),
        Phase::Cancelled => last(Event::Cancel),
    }
}

/// A job that is not begun again, because it may be what kills the process.
fn poisoned() -> Job {
    let suspicious = Policy { cut_short_max: Some(1), ..POLICY };
    after(job_in(Phase::Running), [(at(6_000), Event::Interrupted(End::Unclean))], &suspicious)
}

struct Case {
    name: &'static str,
    event: Event,
    millis: u64,
    policy: Policy,
    /// Whether progress is held back.
    pending: bool,
    /// How long the request allows an attempt to take.
    attempt: Option<Duration>,
}

fn case(name: &'static str, event: Event) -> Case {
    Case { name, event, millis: 7_000, policy: POLICY, pending: false, attempt: None }
}

fn reports() -> Vec<Case> {
    vec![
        case("Start", start()),
        case("Heard, present attempt", Event::Heard { attempt: 2 }),
        case("Heard, attempt given up", Event::Heard { attempt: 1 }),
        case("Heard, attempt never made", Event::Heard { attempt: 3 }),
        case("Progress, present attempt", progress(2, 40.0)),
        case("Progress beyond 100, present attempt", progress(2, 400.0)),
        Case { pending: true, millis: 6_050, ..case("Progress, too soon after the last", progress(2, 40.0)) },
        case("Progress, attempt given up", progress(1, 40.0)),
        case("Progress, attempt never made", progress(3, 40.0)),
        case("Output in order", output(2, 4, "more")),
        case("Output that overlaps", output(2, 2, "urmore")),
        case("Output repeated", output(2, 0, "four")),
        case("Output after a gap", output(2, 5, "more")),
        case("Output over the limit", output(2, 4, "too much")),
        case("Output, attempt given up", output(1, 0, "four")),
        case("Output, attempt never made", output(3, 0, "four")),
        case("Ask", ask(2, "why?")),
        case("Ask what is being asked", ask(2, "which?")),
        case("Ask, attempt given up", ask(1, "why?")),
        case("Ask, attempt never made", ask(3, "why?")),
        case("Unasked, present attempt", Event::Unasked { attempt: 2 }),
        Case { pending: true, millis: 6_050, ..case("Unasked, soon after progress", Event::Unasked { attempt: 2 }) },
        case("Unasked, attempt given up", Event::Unasked { attempt: 1 }),
        case("Remember, present attempt", remember(2, 5)),
        case("Remember too much", remember(2, MEMORY_BYTES_MAX + 1)),
        case("Remember, attempt given up", remember(1, 5)),
        case("Remember, attempt never made", remember(3, 5)),
        case("Step, present attempt", stepped(2)),
        case("Step, attempt given up", stepped(1)),
        case("Step, attempt never made", stepped(3)),
    ]
}

fn stepped(attempt: u32) -> Event {
    Event::Step { attempt, step: Body::of(&"one") }
}

fn remember(attempt: u32, bytes: usize) -> Event {
    Event::Remember { attempt, memory: Block(vec![b'm'; bytes].into()) }
}

/// An agent whose work is repeated only if it never began, except as its recovery says.
fn recovering(recovery: Recovery) -> Policy {
    Policy { repeats: Repeats::BeforeStart, recovery, ..POLICY }
}

fn results() -> Vec<Case> {
    let before_start = Policy { repeats: Repeats::BeforeStart, ..POLICY };
    let same_agent = Policy { repeats: Repeats::SameAgent, ..POLICY };
    let refused = failed(2, Failure::Unavailable, Dispatched::No);
    let lost = failed(2, Failure::Unavailable, Dispatched::Yes);
    let no = Failure::AgentFailed;
    vec![
        case("Finish Ok, present attempt", done(2)),
        case("Finish Ok, attempt given up", done(1)),
        case("Finish Ok, attempt never made", done(3)),
        case("Finish Ok, attempt zero", done(0)),
        case("Finish Err to be retried, begun, repeatable agent", lost.clone()),
        Case { policy: before_start.clone(), ..case("Finish Err to be retried, begun, other agent", lost.clone()) },
        Case { policy: before_start, ..case("Finish Err to be retried, not begun, other agent", refused.clone()) },
        Case { policy: same_agent.clone(), ..case("Finish Err to be retried, begun, SameAgent", lost) },
        Case { policy: same_agent, ..case("Finish Err to be retried, not begun, SameAgent", refused) },
        Case { policy: recovering(Recovery::Rerun), ..case("Finish Err, it died, Rerun", dead(2)) },
        Case { policy: recovering(Recovery::Resume), ..case("Finish Err, it died, Resume", dead(2)) },
        Case { policy: recovering(Recovery::ResumeOnce), ..case("Finish Err, it died, ResumeOnce", dead(2)) },
        Case { policy: recovering(Recovery::Fail), ..case("Finish Err, it died, Fail", dead(2)) },
        case("Finish Err, it died, attempt given up", dead(1)),
        case("Finish Err final, present attempt", failed(2, no, Dispatched::Yes)),
        case("Finish Err to be retried, attempt given up", failed(1, Failure::Unavailable, Dispatched::Yes)),
        case("Finish Err final, attempt given up", failed(1, no, Dispatched::Yes)),
        case("Finish Err, attempt never made", failed(3, no, Dispatched::Yes)),
    ]
}

fn wishes_and_clocks() -> Vec<Case> {
    let suspicious = Policy { cut_short_max: Some(1), ..POLICY };
    let (unclean, clean) = (Event::Interrupted(End::Unclean), Event::Interrupted(End::Clean));
    let patient = Policy { total: Duration::from_secs(1_000), ..POLICY };
    let same_agent = Policy { repeats: Repeats::SameAgent, ..POLICY };
    let limit = Some(Duration::from_secs(20));
    vec![
        case("Answer", answer("that")),
        case("Withdrawn, present attempt", Event::Withdrawn { attempt: 2 }),
        case("Withdrawn, attempt given up", Event::Withdrawn { attempt: 1 }),
        case("Cancel", Event::Cancel),
        case("Clock, nothing due", Event::Clock),
        Case { millis: NOW, ..case("Clock, the pause is over", Event::Clock) },
        Case { millis: 36_000, policy: patient, ..case("Clock, silence", Event::Clock) },
        Case { millis: 25_000, attempt: limit, ..case("Clock, the attempt takes too long", Event::Clock) },
        Case {
            millis: 25_000,
            attempt: limit,
            policy: same_agent.clone(),
            ..case("Clock, the attempt takes too long, SameAgent", Event::Clock)
        },
        Case { millis: 100_000, ..case("Clock, the total is used up", Event::Clock) },
        Case { pending: true, ..case("Clock, progress was held back", Event::Clock) },
        case("Interrupted, Rerun", Event::Interrupted(End::Unclean)),
        Case { policy: same_agent, ..case("Interrupted, Rerun, SameAgent", Event::Interrupted(End::Unclean)) },
        Case { policy: recovering(Recovery::Resume), ..case("Interrupted, Resume", Event::Interrupted(End::Unclean)) },
        Case {
            policy: recovering(Recovery::ResumeOnce),
            ..case("Interrupted, ResumeOnce", Event::Interrupted(End::Unclean))
        },
        Case { policy: recovering(Recovery::Fail), ..case("Interrupted, Fail", Event::Interrupted(End::Unclean)) },
        Case { policy: suspicious.clone(), ..case("Interrupted uncleanly, once is enough", unclean) },
        Case { policy: suspicious, ..case("Interrupted cleanly, once is enough", clean) },
        case("Release", Event::Release),
    ]
}

/// A new event does not compile until it has its place here, and then the test fails until the table has a case of it.
fn kind(event: &Event) -> usize {
    match event {
        Event::Start { .. } => 0,
        Event::Heard { .. } => 1,
        Event::Progress { .. } => 2,
        Event::Output { .. } => 3,
        Event::Ask { .. } => 4,
        Event::Finish { .. } => 5,
        Event::Answer { .. } => 6,
        Event::Cancel => 7,
        Event::Clock => 8,
        Event::Interrupted(_) => 9,
        Event::Withdrawn { .. } => 10,
        Event::Unasked { .. } => 11,
        Event::Release => 12,
        Event::Remember { .. } => 13,
        Event::Step { .. } => 14,
    }
}

fn row(table: &mut String, name: &str, mut before: Job, case: &Case) {
    let phase = before.phase();
    Arc::make_mut(&mut before.request).limits.attempt = case.attempt;
    if case.pending && !phase.is_end() {
        let shown = at(6_000);
        before.progress_at = shown;
        before.pending = Some(Arc::new(crosspoint_contracts::reply::Progress {
            percent: Some(7.0),
            step: None,
            document: None,
            began: None,
        }));
    }
    let _ = write!(table, "  {name:9} ");
    let step = match step(&before, case.event.clone(), at(case.millis), &case.policy) {
        Ok(step) => step,
        Err(refused) => {
            let _ = writeln!(table, "refused: {refused}");
            return;
        }
    };
    if phase.is_end() {
        assert!(step.entries.is_empty() && step.actions.is_empty(), "nothing follows an outcome: {}", case.name);
        assert_eq!(step.job.outcome(), before.outcome(), "an outcome never changes: {}", case.name);
    }
    let is_poisoned = matches!(step.job.state, State::Poisoned);
    let _ = write!(table, "-> {}", if is_poisoned { "poisoned" } else { step.job.phase().name() });
    for entry in entries(&step) {
        let _ = write!(table, "; store {entry}");
    }
    for action in actions(&step) {
        let _ = write!(table, "; {action}");
    }
    let memory = |job: &Job| job.memory.as_ref().map_or(0, |memory| memory.0.len());
    if memory(&step.job) != memory(&before) {
        let _ = write!(table, "; remembers {} bytes", memory(&step.job));
    }
    if step.job.stays != before.stays {
        let _ = write!(table, "; stays with its agent");
    }
    if let Some(violation) = &step.violation {
        let _ = write!(table, "; violates {}: {}", violation.clause, violation.what);
    }
    let heard = |job: &Job| job.running().map(|running| running.heard_at);
    if step.entries.is_empty() && heard(&before) != heard(&step.job) {
        let _ = write!(table, "; heard");
    }
    if step.entries.is_empty() && before.pending != step.job.pending {
        let _ = write!(table, "; held back");
    }
    table.push('\n');
}

#[test]
fn every_event_in_every_phase() {
    let cases: Vec<Case> = [reports(), results(), wishes_and_clocks()].into_iter().flatten().collect();
    let kinds: BTreeSet<usize> = cases.iter().map(|case| kind(&case.event)).collect();
    assert_eq!(kinds, (0..15).collect(), "the table has a case of every event");
    let mut table = String::new();
    for case in &cases {
        let _ = writeln!(table, "{}, at {} s", case.name, case.millis as f64 / 1_000.0);
        for phase in Phase::ALL {
            assert_eq!(job_in(phase).phase(), phase);
            row(&mut table, phase.name(), job_in(phase), case);
        }
        row(&mut table, "poisoned", poisoned(), case);
    }
    insta::assert_snapshot!("job_matrix", table);
}

#[test]
fn every_event_in_every_state_of_a_breaker() {
    use breaker::Event::{Checked, Clock, Close, Interrupted, Marked, Open};
    let states = [
        ("closed, 0 bad marks", Breaker::Closed { failures: 0 }),
        ("closed, 4 bad marks", Breaker::Closed { failures: 4 }),
        ("open until 60 s", Breaker::Open { until: at(60_000) }),
        ("open by an operator", Breaker::Open { until: Time::NEVER }),
        ("half open", Breaker::HalfOpen),
    ];
    let events = [
        ("Marked good", Marked(Mark::Good), 10_000),
        ("Marked bad", Marked(Mark::Bad), 10_000),
        ("Marked dropped", Marked(Mark::Dropped), 10_000),
        ("Clock, too early", Clock, 59_999),
        ("Clock, due", Clock, 60_000),
        ("Checked well", Checked(Health::Well), 10_000),
        ("Checked sick", Checked(Health::Sick), 10_000),
        ("Open", Open, 10_000),
        ("Close", Close, 10_000),
        ("Interrupted", Interrupted, 10_000),
    ];
    let mut table = String::new();
    for (event_name, event, millis) in events {
        let _ = writeln!(table, "{event_name}, at {} s", millis as f64 / 1_000.0);
        for (state_name, state) in states {
            let (next, action) = state.step(event, at(millis));
            let action = match action {
                breaker::Action::None => "",
                breaker::Action::Check => "; check",
            };
            let _ = writeln!(table, "  {state_name:20} -> {}{action}", shown(next));
        }
    }
    insta::assert_snapshot!("breaker_matrix", table);
}

fn shown(breaker: Breaker) -> String {
    match breaker {
        Breaker::Closed { failures } => format!("closed, {failures} bad marks"),
        Breaker::Open { until: Time::NEVER } => "open by an operator".to_owned(),
        Breaker::Open { until } => format!("open until {} s", until.since(T0).as_secs_f64()),
        Breaker::HalfOpen => "half open".to_owned(),
    }
}
