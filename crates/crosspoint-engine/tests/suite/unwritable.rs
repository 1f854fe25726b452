//! Events of a job that cannot be written: the job is set aside, and all other jobs go on.

use std::time::Duration;

use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::job::Phase;
use crosspoint_engine::policy::Policy;
use crosspoint_engine::runtime::{Ahead, Denied, Engine, Readiness, Submitted, Watch};
use crosspoint_engine::store::check::{CheckNote, Flaw, check};
use rusqlite::Connection;

use crate::scratch::Scratch;
use crate::stage::{self, agent, ended, gated, never, new_job, submit};

pub(crate) fn sql(scratch: &Scratch, sql: &str) {
    let connection = Connection::open(scratch.database()).expect("it opens");
    connection.busy_timeout(Duration::from_secs(10)).expect("it can be settled");
    connection.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

pub(crate) fn agents() -> Vec<stage::Agent> {
    vec![agent("never", never), agent("echo", stage::echo)]
}

/// Checks that another job still goes through, and that the engine is well.
pub(crate) async fn others_go_on(engine: &Engine) {
    let job = ended(&submit(engine, new_job("echo", "1")).await).await;
    assert_eq!(job.phase(), Phase::Completed);
    assert!(matches!(engine.readiness(), Readiness::Ready));
}

pub(crate) async fn why(engine: &Engine, id: JobId) -> String {
    let job = engine.job(id).await.expect("it can be read").expect("it is there").job();
    engine.stuck(&job, Ahead::Counted).map(|stuck| stuck.reason).unwrap_or_default()
}

pub(crate) async fn is_set_aside(engine: &Engine, id: JobId) {
    stage::until("it is set aside", async || why(engine, id).await.starts_with("set aside")).await;
}

pub(crate) fn named_by_the_check(scratch: &Scratch) -> Vec<(Flaw, Option<Seq>)> {
    let mut found = Vec::new();
    let mut tell = |told| {
        if let CheckNote::Finding(finding) = told {
            found.push((finding.flaw, finding.seq));
        }
    };
    check(&scratch.database(), &mut tell).expect("it can be checked");
    found
}

#[tokio::test]
async fn a_job_whose_step_cannot_be_written_is_set_aside_and_other_jobs_go_on() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    let mut limited = new_job("never", "{}");
    limited.limits.total = Some(Duration::from_millis(50));
    sql(&scratch, STUBBORN);
    let id = submit(&engine, limited).await.job().id();
    // No agent reports anything: the job's own clock is what cannot be written.
    is_set_aside(&engine, id).await;
    others_go_on(&engine).await;
    assert!(matches!(engine.cancel(id).await, Err(Denied::Fault(_))), "nor can its end be");
    others_go_on(&engine).await;
    stage::stop(engine).await;
    assert_eq!(named_by_the_check(&scratch), [(Flaw::Aside, Some(Seq(1)))]);

    // A start finds the job as it is, and takes up the others.
    let engine = stage::start(&scratch, agents());
    others_go_on(&engine).await;
    is_set_aside(&engine, id).await;
    sql(&scratch, "DROP TRIGGER stubborn");
    let released = engine.retry(id, None).await.expect("an operator may");
    let Ok(Submitted::Repeat(watch)) = released else { panic!("it is this very job") };
    assert_eq!(watch.job().id(), id);
    let job = ended(&watch).await;
    assert_eq!(job.outcome().and_then(|outcome| outcome.why()).map(|(failure, _)| failure.name()), Some("timeout"));
    stage::stop(engine).await;
    assert_eq!(named_by_the_check(&scratch), []);
}

#[tokio::test]
async fn what_cannot_be_written_at_a_start_keeps_no_server_from_starting() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    let id = submit(&engine, new_job("never", "{}")).await.job().id();
    stage::stop(engine).await;
    sql(&scratch, STUBBORN);
    let engine = stage::start(&scratch, agents());
    is_set_aside(&engine, id).await;
    others_go_on(&engine).await;
    stage::stop(engine).await;
}

const STUBBORN: &str =
    "CREATE TRIGGER stubborn BEFORE UPDATE ON job WHEN old.seq = 1 BEGIN SELECT RAISE(ABORT, 'no'); END;";

const OUTCOME: &str = r#"INSERT INTO outcome(job, n, at, status, body)
    SELECT seq, events + 1, updated_at, 0, CAST('{"status":"completed","outputs":7,"artifacts":[]}' AS BLOB) FROM job WHERE seq = 1"#;

#[tokio::test]
async fn a_live_row_that_has_an_outcome_is_put_right() {
    for found_at_a_start in [true, false] {
        let scratch = Scratch::new();
        let mut engine = stage::start(&scratch, agents());
        let watch = submit(&engine, new_job("never", "{}")).await;
        let id = watch.job().id();
        if found_at_a_start {
            stage::stop(engine).await;
            sql(&scratch, OUTCOME);
            engine = stage::start(&scratch, agents());
        } else {
            sql(&scratch, OUTCOME);
            assert!(matches!(engine.cancel(id).await, Err(Denied::Refused(_))), "it has ended");
            assert_eq!(ended(&watch).await.phase(), Phase::Completed, "whoever waits is told");
        }
        let job = engine.job(id).await.expect("it can be read").expect("it is there").job();
        assert_eq!(job.phase(), Phase::Completed, "{found_at_a_start}");
        others_go_on(&engine).await;
        stage::stop(engine).await;
        assert_eq!(named_by_the_check(&scratch), []);
    }
}

#[tokio::test]
async fn a_row_that_can_never_be_put_right_keeps_no_server_from_starting() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    submit(&engine, new_job("never", "{}")).await;
    stage::stop(engine).await;
    sql(&scratch, OUTCOME);
    sql(&scratch, STUBBORN);
    let engine = stage::start(&scratch, agents());
    others_go_on(&engine).await;
    stage::stop(engine).await;
}

#[tokio::test]
async fn what_stands_in_the_place_of_a_new_job_is_passed_over() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    others_go_on(&engine).await;
    sql(&scratch, "INSERT INTO document(job, bytes) VALUES (2, x'7b7d'), (3, x'7b7d')");
    for _ in 0..3 {
        others_go_on(&engine).await;
    }
    stage::stop(engine).await;
    let engine = stage::start(&scratch, agents());
    others_go_on(&engine).await;
    stage::stop(engine).await;
}

/// An agent finishes a job whose outcomes of this kind cannot be written.
async fn done_in_vain(scratch: &Scratch, outcomes: &str) -> (Engine, Watch) {
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let engine = stage::start(scratch, vec![gated("gated", &gate), agent("echo", stage::echo)]);
    let watch = submit(&engine, new_job("gated", "{}")).await;
    let trigger = format!(
        "CREATE TRIGGER picky BEFORE INSERT ON outcome WHEN new.job = 1 AND {outcomes} BEGIN SELECT RAISE(ABORT, 'no'); END;"
    );
    sql(scratch, &trigger);
    gate.add_permits(1);
    (engine, watch)
}

#[tokio::test]
async fn a_result_that_cannot_be_written_ends_its_job_as_our_failure() {
    let scratch = Scratch::new();
    let (engine, watch) = done_in_vain(&scratch, "new.status = 0").await;
    let job = ended(&watch).await;
    assert_eq!(job.outcome().and_then(|outcome| outcome.why()).map(|(failure, _)| failure.name()), Some("internal"));
    others_go_on(&engine).await;
    stage::stop(engine).await;
}

#[tokio::test]
async fn a_job_whose_end_can_never_be_written_is_set_aside_when_its_agent_is_done() {
    let scratch = Scratch::new();
    let (engine, watch) = done_in_vain(&scratch, "true").await;
    is_set_aside(&engine, watch.job().id()).await;
    others_go_on(&engine).await;
    stage::stop(engine).await;
}

/// How many jobs are submitted to an engine that stops.
const SUBMISSIONS: usize = 20;

#[tokio::test]
async fn a_job_that_waits_for_an_operator_does_not_shorten_the_time_that_others_have_at_a_stop() {
    let scratch = Scratch::new();
    let engine = stage::start(&scratch, agents());
    let poisoned = submit(&engine, new_job("never", "{}")).await.job().id();
    stage::stop(engine).await;
    sql(&scratch, "UPDATE job SET cut_short = 2; DELETE FROM meta WHERE name = 'clean_end'");

    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let careful = Policy { cut_short_max: Some(3), ..Policy::DEFAULT };
    let agents = vec![stage::with_policy(agent("never", never), careful), gated("gated", &gate)];
    let engine = stage::start(&scratch, agents);
    assert!(why(&engine, poisoned).await.starts_with("poison"));
    let watch = submit(&engine, new_job("gated", "{}")).await;
    let stopping = tokio::spawn({
        let engine = engine.clone();
        async move { engine.stop_and_part(Duration::from_secs(60), Duration::ZERO).await }
    });
    // The committing thread ends with the engine, so each submission that it accepts shows that the engine still waits.
    for _ in 0..SUBMISSIONS {
        submit(&engine, new_job("gated", "{}")).await;
    }
    assert!(!stopping.is_finished(), "it waits for what is under way");
    // Those that came before the engine handed out nothing more are under way too.
    gate.add_permits(1 + SUBMISSIONS);
    assert_eq!(ended(&watch).await.phase(), Phase::Completed, "it was waited for");
    stopping.await.expect("it stops");
}

#[tokio::test]
async fn a_job_whose_progress_cannot_be_written_is_set_aside_and_frees_its_agent() {
    let scratch = Scratch::new();
    let gate = std::sync::Arc::new(tokio::sync::Semaphore::new(0));
    let opened = gate.clone();
    let talking = agent("talking", move |attempt| {
        let gate = opened.clone();
        async move {
            gate.acquire().await.expect("the gate stays").forget();
            let _ = attempt.progress(Some(50.0), None).await;
            never(attempt).await
        }
    });
    let engine = stage::start(&scratch, vec![talking, agent("echo", stage::echo)]);
    let watch = submit(&engine, new_job("talking", "{}")).await;
    sql(&scratch, STUBBORN);
    gate.add_permits(1);
    is_set_aside(&engine, watch.job().id()).await;
    assert_eq!(engine.agent("talking").expect("it is known").running, 0, "its place is free");
    others_go_on(&engine).await;
    stage::stop(engine).await;
}
