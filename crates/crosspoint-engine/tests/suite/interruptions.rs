//! Interruptions: what the time without a server, and the ends of servers, count for.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::request::Limits;
use crosspoint_engine::core::{AgentCommand, Command, Origin, Reply, Spec};
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request, State};
use crosspoint_engine::machine::{End, Event};
use crosspoint_engine::policy::{Policy, Recovery};
use crosspoint_engine::store::Store;

use crate::made::{POLICY, T0, done, request, secs};
use crate::rows::{self, DOCUMENT, batch, fresh};
use crate::scratch::Scratch;
use crate::town::{Town, agent as spec, origin};

/// The same town after its process was gone for `away`, restored from its rows.
fn back_after(
    job: Job,
    agents: Vec<Spec>,
    alive_at: crosspoint_contracts::time::Time,
    away: Duration,
    end: End,
) -> Town {
    let now = alive_at.plus(away);
    let jobs = vec![Job { pending: None, ..job }];
    let mut town = Town::of(Origin { jobs, last_seq: Seq(1), now, alive_at: Some(alive_at), end, ..origin(agents) });
    town.core.resume(now, &mut town.batch);
    town.core.settle(now, &mut town.batch);
    town
}

#[test]
fn time_without_a_server_counts_against_no_job() {
    let day = secs(86_400);
    let agents = || vec![Spec { policy: Policy { recovery: Recovery::Resume, ..POLICY }, ..spec("one", &["work"], 1) }];
    for limits in [Limits::default(), Limits { total: Some(secs(60)), ..Limits::default() }] {
        let mut town = Town::new(agents());
        let seq = town.submit(Request { limits: limits.clone(), ..request(0, "work") });
        let job = (*town.job(seq)).clone();
        let used = secs(20);
        let mut town = back_after(job, agents(), T0.plus(used), day, End::Unclean);
        let total = limits.total.unwrap_or(POLICY.total);
        // The attempt is heard of meanwhile, so that it does not count as silent.
        let heard = |town: &mut Town| drop(town.happens(Seq(1), Event::Heard { attempt: 1 }));
        let left = total - used;
        for second in (10..left.as_secs()).step_by(10) {
            town.now = T0.plus(used + day + secs(second));
            heard(&mut town);
            assert_eq!(town.job(Seq(1)).phase(), Phase::Running, "{second} s of {left:?}");
        }
        town.now = T0.plus(used + day + left);
        town.tell(&Command::Agent("one".into(), AgentCommand::Drain(false)));
        assert!(town.core.job(Seq(1)).is_none(), "then its time is up");
    }
}

#[test]
fn before_an_attempt_that_was_taken_up_is_given_up_its_agent_is_asked() {
    let policy = Policy { recovery: Recovery::Resume, silence: None, take_up: secs(15), ..POLICY };
    let agents = || vec![Spec { policy: policy.clone(), ..spec("one", &["work"], 1) }];
    let mut town = Town::new(agents());
    let seq = town.submit_work("work");
    let job = (*town.job(seq)).clone();
    // All but one second of the job's time was used.
    let used = POLICY.total - secs(1);
    let mut town = back_after(job, agents(), T0.plus(used), secs(600), End::Unclean);
    town.now = T0.plus(used + secs(610));
    let reply = town.happens(seq, done(1));
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Completed), "it had finished long ago");
}

#[test]
fn the_callers_limit_survives_a_jump_and_a_restart() {
    let scratch = Scratch::new();
    let mut town = Town::new(vec![spec("one", &["other"], 1), spec("two", &["work"], 0)]);
    let limits = Limits { total: Some(secs(60)), ..Limits::default() };
    town.submit(Request { limits, ..request(0, "work") });
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    store.commit(&town.batch).expect("it commits");
    let year = 365 * 86_400 * 1_000_000;
    town.now = T0.shifted(year);
    town.tell(&Command::ClockJumped { micros: year, total_micros: year });
    store.commit(&town.batch).expect("it commits");
    drop(store);
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    let loaded = store.load().expect("it loads");
    assert_eq!(loaded.jobs[0].skew_micros, year);
    assert_eq!(store.jumps().expect("it can be read").total_micros(), year);
}

#[test]
fn a_poisoned_job_waits_for_an_operator_and_clean_ends_poison_no_job() {
    let policy = Policy { cut_short_max: Some(3), ..POLICY };
    let agents = || vec![Spec { policy: policy.clone(), ..spec("one", &["work"], 4) }];
    let mut town = Town::new(agents());
    let seq = town.submit_work("work");
    let mut job = (*town.job(seq)).clone();
    let restarted = |job: Job, at: u64, end: End| back_after(job, agents(), T0.plus(secs(at)), secs(1), end);
    for start in 1..=5 {
        town = restarted(job, start, End::Clean);
        job = (*town.job(seq)).clone();
        assert_eq!((job.phase(), job.attempts, job.cut_short), (Phase::Running, start as u32 + 1, 0));
    }
    for start in 6..=7 {
        town = restarted(job, start, End::Unclean);
        job = (*town.job(seq)).clone();
        assert_eq!(job.phase(), Phase::Running);
    }
    town = restarted(job, 8, End::Unclean);
    assert!(matches!(town.job(seq).state, State::Poisoned));
    assert_eq!(town.dispatched(), []);
    town.now = T0.plus(secs(500));
    assert!(matches!(town.happens(seq, Event::Release), Reply::Job(job) if job.id().seq() == seq));
    assert_eq!((town.job(seq).phase(), town.job(seq).cut_short), (Phase::Running, 0));
}

#[test]
fn no_job_is_blamed_for_what_another_one_did() {
    // Both jobs were under way at two unclean ends, and one of them is what kills the process.
    let policy = Policy { cut_short_max: Some(3), silence: None, ..POLICY };
    let agents = || vec![Spec { policy: policy.clone(), ..spec("one", &["work"], 4) }];
    let suspect = |seq: u64| {
        let mut job = Job::accepted(Arc::new(request(seq, "work")));
        job.cut_short = 2;
        job
    };
    let jobs = vec![suspect(1), suspect(2)];
    let mut town = Town::of(Origin { jobs, last_seq: Seq(2), alive_at: Some(T0), ..origin(agents()) });
    town.core.settle(T0, &mut town.batch);
    assert_eq!(town.dispatched(), [Seq(1)], "one begins");
    town.now = T0.plus(secs(29));
    assert_eq!(town.with(Seq(2)), None, "and is alone for a while");
    town.now = T0.plus(secs(30));
    town.tell(&Command::Agent("one".into(), AgentCommand::Drain(false)));
    assert_eq!(town.with(Seq(2)).as_deref(), Some("one"));
    // The process ends five seconds later. The second job, which has just begun, may be to blame, or the first, which
    // takes longer to kill.
    let rows: Vec<Job> = town.core.jobs().map(|job| (**job).clone()).collect();
    let (alive, now) = (T0.plus(secs(35)), T0.plus(secs(40)));
    let mut town = Town::of(Origin {
        jobs: rows,
        last_seq: Seq(2),
        alive_at: Some(alive),
        now,
        end: End::Unclean,
        ..origin(agents())
    });
    town.core.resume(now, &mut town.batch);
    town.core.settle(now, &mut town.batch);
    let cut_short = |town: &Town| [Seq(1), Seq(2)].map(|seq| town.job(seq).cut_short);
    assert_eq!(cut_short(&town), [2, 2], "neither is blamed");
    // The job that begins now is alone for as long as it takes.
    town.now = now.plus(secs(60));
    town.tell(&Command::Agent("one".into(), AgentCommand::Drain(false)));
    assert_eq!([Seq(1), Seq(2)].map(|seq| town.with(seq).is_some()), [true, false]);
    assert!(town.core.alarm(town.now).is_none_or(|at| at > town.now), "nobody looks again and again");
    let rows: Vec<Job> = town.core.jobs().map(|job| (**job).clone()).collect();
    let (alive_at, now) = (Some(town.now), town.now.plus(secs(1)));
    let end = End::Unclean;
    let mut town = Town::of(Origin { jobs: rows, last_seq: Seq(2), alive_at, now, end, ..origin(agents()) });
    town.core.resume(now, &mut town.batch);
    assert!(matches!(town.job(Seq(1)).state, State::Poisoned), "now it is known which");
    assert_eq!((town.job(Seq(2)).cut_short, town.job(Seq(2)).phase()), (2, Phase::Queued));
}

#[test]
fn what_only_visits_a_store_neither_ends_cleanly_for_a_server_nor_is_killed_for_it() {
    let scratch = Scratch::new();
    let opened = |serves: bool, batch: &crosspoint_engine::core::Batch| {
        let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
        if serves {
            store.serve();
        }
        store.commit(batch).expect("it commits");
        let loaded = store.load().expect("it loads");
        (loaded.end, loaded.visited.into_iter().collect::<Vec<Seq>>())
    };
    let clean_end = || crosspoint_engine::core::Batch { is_clean_end: true, ..batch([]) };
    let two = || {
        batch([
            fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new()),
            fresh(rows::job(2), DOCUMENT.as_bytes(), Vec::new()),
        ])
    };
    assert_eq!(opened(true, &two()), (End::Unclean, vec![]), "it is killed");
    let again = || batch([rows::stepped(rows::job(1), Vec::new())]);
    assert_eq!(opened(false, &again()), (End::Unclean, vec![Seq(1)]), "the other one is still cut short by that");
    assert_eq!(opened(true, &clean_end()), (End::Clean, vec![]));
    assert_eq!(opened(false, &again()), (End::Clean, vec![Seq(1)]), "a visit that is killed is no crash of a server");
}
