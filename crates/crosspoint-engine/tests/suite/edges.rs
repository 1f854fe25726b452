//! Edge cases: a second writer, agents that forge reports, backlogs, long histories.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::reply::Progress;
use crosspoint_contracts::request::Limits;
use crosspoint_engine::claim::Claim;
use crosspoint_engine::core::{AgentCommand, Command, Grip, Origin, Rejected, Reply, Room, Share, Spec};
use crosspoint_engine::event::What;
use crosspoint_engine::id::Seq;
use crosspoint_engine::job::{Job, Phase, Request, State};
use crosspoint_engine::machine::{End, Event};
use crosspoint_engine::policy::{Policy, Recovery};
use crosspoint_engine::runtime::Readiness;
use crosspoint_engine::store::{Fault, Options, Store};

use crate::made::{POLICY, T0, ask, at, done, request, secs};
use crate::rows::{self, DOCUMENT, batch, fresh, note};
use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, new_job, reaches, submit};
use crate::town::{Town, agent as spec, origin};
use crate::unwritable::{agents, sql};

#[test]
fn a_link_to_the_database_leads_to_the_same_lock_and_no_file_beside_it_counts() {
    let scratch = Scratch::new();
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    let link = scratch.path().join("link.db");
    std::os::unix::fs::symlink(scratch.database(), &link).expect("a link can be made");
    for entry in fs::read_dir(scratch.path()).expect("it can be listed").flatten() {
        if entry.path().extension().is_some_and(|end| end == "lock") {
            fs::remove_file(entry.path()).expect("it can be removed");
        }
    }
    for path in [link.clone(), scratch.database()] {
        let second = Store::open(&Options { path, bytes_max: None });
        assert!(matches!(second, Err(Fault::InUse { .. })));
    }
    drop(store);
    assert!(Store::open(&Options { path: link, bytes_max: None }).is_ok(), "it is free again");
}

#[test]
fn whoever_was_overtaken_writes_nothing_more() {
    let scratch = Scratch::new();
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())])).expect("it commits");
    // Simulates another process that opened the store where locks do not hold.
    sql(&scratch, "UPDATE meta SET value = value + 1 WHERE name = 'epoch'");
    for _ in 0..2 {
        let refused = store.commit(&batch([fresh(rows::job(2), DOCUMENT.as_bytes(), Vec::new())]));
        assert!(matches!(refused, Err(Fault::Lost { .. })), "{refused:?}");
        assert!(matches!(store.probe(), Err(Fault::Lost { .. })));
    }
    drop(store);
    let (store, _) = Store::open(&scratch.options()).expect("it opens");
    assert_eq!(store.load().expect("it loads").last_seq, Seq(1));
}

#[test]
fn whoever_was_overtaken_before_its_first_word_writes_nothing_either() {
    let scratch = Scratch::new();
    drop(Store::open(&scratch.options()).expect("it opens"));
    let (mut store, _) = Store::open(&scratch.options()).expect("it opens");
    sql(&scratch, "INSERT INTO meta VALUES ('epoch', 5) ON CONFLICT(name) DO UPDATE SET value = 5");
    let refused = store.commit(&batch([fresh(rows::job(1), DOCUMENT.as_bytes(), Vec::new())]));
    assert!(matches!(refused, Err(Fault::Lost { .. })), "{refused:?}");
    assert_eq!(Claim::Seen(5).check(5), Ok(6));
}

#[tokio::test]
async fn an_engine_whose_database_was_moved_away_writes_nothing_more_and_ends() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    submit(&engine, new_job("echo", "1")).await;
    let away = scratch.path().join("away.db");
    fs::rename(scratch.database(), &away).expect("it can be moved");
    assert!(engine.submit(new_job("echo", "2")).await.is_err(), "it would be found by nobody");
    tokio::time::timeout(Duration::from_secs(60), engine.died()).await.expect("it ends");
    assert!(matches!(engine.readiness(), Readiness::Failing(fault) if matches!(*fault, Fault::Lost { .. })));
}

/// A town with two agents that joined and are present.
fn neighbours() -> Town {
    let joined = |name: &str, works: &[&str]| {
        let policy = Policy { recovery: Recovery::Resume, ..POLICY };
        let spec = Spec { policy, ..spec(name, works, 0) };
        Command::Join(Arc::new(crosspoint_engine::core::Member { spec, lease: secs(15), left_at: None }))
    };
    let mut town = Town::new(Vec::new());
    for (name, works) in [("honest", &["work"][..]), ("forger", &["forging"][..])] {
        town.tell(&joined(name, works));
        town.tell(&Command::Agent(name.into(), crosspoint_engine::core::AgentCommand::Capacity(4)));
    }
    town
}

fn says(town: &mut Town, agent: &str, grip: Grip, seq: Seq, event: Event) -> Reply {
    let id = town.job(seq).id();
    town.tell(&Command::Report { agent: agent.into(), grip, id, event })
}

#[test]
fn only_the_agent_that_had_an_attempt_can_end_it() {
    let mut town = neighbours();
    let seq = town.submit_work("work");
    assert_eq!(town.with(seq).as_deref(), Some("honest"));
    for grip in [Grip::Holds, Grip::Lost] {
        for event in [done(1), Event::Heard { attempt: 1 }, ask(1, "whose?")] {
            let reply = says(&mut town, "forger", grip, seq, event);
            assert!(matches!(reply, Reply::NotTheirs), "{reply:?}");
            let recorded: Vec<&str> = town.batch.violations.iter().map(|(_, _, violation)| violation.clause).collect();
            assert_eq!(recorded, ["ALL-2"], "it is on record");
            assert_eq!(town.job(seq).phase(), Phase::Running);
        }
    }
    let reply = says(&mut town, "honest", Grip::Holds, seq, done(1));
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Completed));
}

#[test]
fn a_success_of_an_earlier_attempt_counts_from_the_agent_that_had_it() {
    let mut town = neighbours();
    let seq = town.submit_work("work");
    says(&mut town, "honest", Grip::Holds, seq, crate::made::dead(1));
    town.now = at(10_000);
    town.tell(&Command::Agent("honest".into(), AgentCommand::Drain(false)));
    assert_eq!((town.job(seq).attempts, town.job(seq).had_by(1).map(|name| &**name)), (2, Some("honest")));
    // The agent, in a session that was given up, reports a failure, and another agent reports a success.
    let failed = crate::made::failed(1, crosspoint_contracts::failure::Failure::AgentFailed, POLICY_BEGUN);
    assert!(matches!(says(&mut town, "honest", Grip::Lost, seq, failed), Reply::NotTheirs));
    assert!(matches!(says(&mut town, "forger", Grip::Lost, seq, done(1)), Reply::NotTheirs));
    assert_eq!(town.job(seq).phase(), Phase::Running);
    let reply = says(&mut town, "honest", Grip::Lost, seq, done(1));
    assert!(matches!(reply, Reply::Job(job) if job.phase() == Phase::Completed));
}

const POLICY_BEGUN: crosspoint_contracts::failure::Dispatched = crosspoint_contracts::failure::Dispatched::Yes;

#[test]
fn the_backlog_of_one_work_or_agent_leaves_room_for_the_others() {
    let room = Room { jobs: 10, of_work: 3, of_agent: 4, of_caller: 10 };
    let agents = vec![spec("one", &["a", "b"], 1), spec("two", &["c", "d"], 1), spec("three", &["d"], 1)];
    let mut town = Town::of(Origin { room, ..origin(agents) });
    let full = |reply: Reply| {
        let Reply::Rejected(Rejected::Full { share, most }) = reply else { return None };
        Some((share, most))
    };
    for _ in 0..3 {
        town.submit_work("a");
    }
    assert_eq!(full(town.try_submit(request(0, "a"))), Some((Share::Work, 3)));
    town.submit_work("b");
    assert_eq!(full(town.try_submit(request(0, "b"))), Some((Share::Agent, 4)), "only one agent takes either");
    town.submit_work("c");
    for _ in 0..3 {
        town.submit_work("d");
    }
    assert_eq!(full(town.try_submit(request(0, "d"))), Some((Share::Work, 3)));
    // A job that ends makes room.
    town.finish(Seq(1));
    town.submit_work("a");
}

#[test]
fn the_backlog_of_one_caller_leaves_room_for_the_others() {
    let room = Room { jobs: 10, of_work: 10, of_agent: 10, of_caller: 2 };
    let mut town = Town::of(Origin { room, ..origin(vec![spec("one", &["work"], 1)]) });
    let of = |caller: &str| Request { caller: caller.into(), ..request(0, "work") };
    for _ in 0..2 {
        assert!(matches!(town.try_submit(of("busy")), Reply::Accepted(_)));
    }
    let refused = town.try_submit(of("busy"));
    assert!(matches!(refused, Reply::Rejected(Rejected::Full { share: Share::Caller, most: 2 })), "{refused:?}");
    assert!(matches!(town.try_submit(of("other")), Reply::Accepted(_)));
}

#[test]
fn an_agent_has_only_so_many_jobs_that_wait_for_people() {
    let mut town = Town::new(vec![Spec { waiting_max: 2, ..spec("one", &["work"], 1) }]);
    let seqs: Vec<Seq> = (0..4).map(|_| town.submit_work("work")).collect();
    for seq in &seqs[..2] {
        assert_eq!(town.with(*seq).as_deref(), Some("one"));
        town.happens(*seq, ask(1, "which?"));
    }
    assert_eq!(town.with(seqs[2]), None, "two questions are as many as there may be");
    town.happens(seqs[0], crate::made::answer("that"));
    town.finish(seqs[0]);
    assert_eq!(town.with(seqs[2]).as_deref(), Some("one"));
}

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
fn time_in_which_nobody_was_there_counts_against_nobody() {
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
fn a_poisoned_job_waits_for_an_operator_and_clean_ends_poison_nobody() {
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
fn a_long_history_is_found_in_pages() {
    const EVENTS: u32 = 10_000;
    let scratch = Scratch::new();
    let (mut store, readers) = Store::open(&scratch.options()).expect("it opens");
    let mut job = rows::job(1);
    let progress = |n: u32| {
        What::Progress(Progress { percent: Some(f64::from(n % 100)), step: None, document: None, began: None })
    };
    let entries = (0..EVENTS).map(|n| note(&mut job, progress(n))).collect();
    store.commit(&batch([fresh(job, DOCUMENT.as_bytes(), entries)])).expect("it commits");
    let (mut pages, mut places, mut from) = (0, Vec::new(), None);
    loop {
        let page = readers.some_event_places(Seq(1), 1, from).expect("it can be read");
        assert!(page.places.len() <= 4_096, "one read is short");
        pages += 1;
        places.extend(page.places);
        from = page.rest;
        if from.is_none() {
            break;
        }
    }
    assert!(pages >= 3, "{pages}");
    places.reverse();
    assert_eq!(places, readers.event_places(Seq(1), 1).expect("it can be read"));
    assert_eq!(places.len(), EVENTS as usize);
}

#[tokio::test]
async fn a_follower_of_a_long_history_is_told_all_of_it() {
    let scratch = Scratch::new();
    let printing = agent("print", |mut attempt: crosspoint_engine::runtime::Attempt| async move {
        for _ in 0..5_000 {
            attempt.output(bytes::Bytes::from_static(b"x")).await.expect("it goes on");
        }
        stage::success("{}")
    });
    let engine = stage::start(&scratch, vec![printing]);
    let watch = submit(&engine, new_job("print", "{}")).await;
    reaches(&watch, Phase::Running).await;
    let id = ended(&watch).await.id();
    let told = stage::events(&engine, id, 0).await;
    assert_eq!(stage::names(&told).iter().filter(|name| **name == "output").count(), 5_000);
    stage::stop(engine).await;
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

#[test]
fn a_job_that_goes_to_and_fro_remembers_only_so_many_of_those_that_had_it() {
    let mut job = Job::accepted(Arc::new(request(1, "work")));
    let step = |job: &Job, event| crosspoint_engine::machine::step(job, event, T0, &POLICY).expect("it may").job;
    for attempt in 1..=500 {
        let agent: Arc<str> = if attempt % 2 == 0 { "even".into() } else { "odd".into() };
        job = step(&job, Event::Start { agent });
        job = step(&job, Event::Withdrawn { attempt });
    }
    assert!(job.had.len() <= 100, "{}", job.had.len());
    assert_eq!(job.had_by(499).map(|agent| &**agent), Some("odd"));
    assert_eq!(job.had_by(498).map(|agent| &**agent), Some("even"));
    assert_eq!(job.had_by(1).map(|agent| &**agent), Some(""), "it is nobody's who could claim it");
}
