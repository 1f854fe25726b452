//! Questions of agents to people, and their answers.

use crosspoint_contracts::content::Body;
use crosspoint_contracts::failure::{Dispatched, Failure};
use crosspoint_contracts::reply::Question;
use crosspoint_engine::job::Phase;
use crosspoint_engine::machine::Refused;
use crosspoint_engine::runtime::{Attempt, Denied, Watch};

use crate::scratch::Scratch;
use crate::stage::{
    Agent, agent, ended, events, failed, names, never, new_job, outcome, patience, start, stop, submit, success,
};

/// An agent that asks two questions and completes with the answers.
fn asker() -> Agent {
    agent("ask", |attempt: Attempt| async move {
        let mut answers = Vec::new();
        for question in [r#"{"prompt":"one?"}"#, r#"{"prompt":"two?"}"#] {
            let Ok(answer) = attempt.ask(Question::read(Body::trusted(question))).await else {
                return failed(Failure::Cancelled, Dispatched::Yes);
            };
            answers.push(answer.get().to_owned());
        }
        success(&format!("[{}]", answers.join(",")))
    })
}

/// Waits until the job asks this question.
async fn asks(watch: &Watch, question: &str) {
    loop {
        let job = watch.job();
        if let crosspoint_engine::job::State::Waiting { question: asked, .. } = &job.state
            && asked.json().get() == question
        {
            return;
        }
        let moved = watch.moved(job.events, patience()).await;
        assert!(moved.events > job.events && moved.outcome().is_none(), "{job:?} does not ask");
    }
}

#[tokio::test]
async fn people_are_asked_once_also_over_a_restart() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![asker()]);
    let watch = submit(&engine, new_job("ask", "{}")).await;
    let id = watch.job().id();
    asks(&watch, r#"{"prompt":"one?"}"#).await;
    engine.answer(id, Body::trusted(r#"{"size": "groß"}"#)).await.expect("it waits for it");
    asks(&watch, r#"{"prompt":"two?"}"#).await;
    stop(engine).await;
    let engine = start(&scratch, vec![asker()]);
    let watch = engine.job(id).await.expect("it can be read").expect("it is there");
    // The second attempt is given the first answer, and no caller is asked again.
    asks(&watch, r#"{"prompt":"two?"}"#).await;
    let job = engine.answer(id, Body::trusted("2")).await.expect("it waits for it");
    assert_eq!(job.phase(), Phase::Running);
    let job = ended(&watch).await;
    assert_eq!(outcome(&job)["outputs"], serde_json::json!([{"size": "groß"}, 2]));
    let names = names(&events(&engine, id, 0).await);
    assert_eq!(names.iter().filter(|name| **name == "answer").count(), 2);
    let late = engine.answer(id, Body::trusted("3")).await;
    assert!(matches!(late, Err(Denied::Refused(Refused::Ended(Phase::Completed)))));
    let nobody = engine.answer(crate::rows::id(7), Body::trusted("3")).await;
    assert!(matches!(nobody, Err(Denied::NotFound)));
    stop(engine).await;
}

#[tokio::test]
async fn an_answer_without_a_question_is_refused() {
    let scratch = Scratch::new();
    let engine = start(&scratch, vec![agent("work", never)]);
    let id = submit(&engine, new_job("work", "{}")).await.job().id();
    let refused = engine.answer(id, Body::trusted("1")).await;
    assert!(matches!(refused, Err(Denied::Refused(Refused::NotWaiting(Phase::Running)))));
    assert!(matches!(engine.retry(id, None).await, Err(Denied::NotEnded(_))));
    stop(engine).await;
}
