//! The server is killed while a person is asked: the question stays, and is asked and answered once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use serde_json::json;

use crate::support::bridge_agent::{human, inbox_of, prompt};
use crate::support::bridge_directory::{Directory, REQUEST, success};
use crate::support::server::{Server, until};
use crate::task::agent::ended;

#[test]
fn a_question_under_way_stays() {
    let mut server = Server::configured(&human("inbox", ""));
    let inbox = inbox_of(&server);
    let id = prompt(&server, "Still?");
    inbox.request_of(&id);
    let inode = inbox.request_inode();
    server.kill();
    server.restart();
    assert_eq!((server.in_state(&id, "running")["attempts"].clone(), inbox.request_inode()), (json!(1), inode));
    inbox.write_response(&success(&id, "yes"));
    let job = ended(&server, &id);
    assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("yes"), &json!(1)), "{job}");
    inbox.is_cleared();
}

#[test]
fn an_answer_that_came_meanwhile_is_taken() {
    for by_driver in [true, false] {
        let mut server = Server::configured(&human("inbox", ""));
        let inbox = inbox_of(&server);
        let id = prompt(&server, "Meanwhile?");
        inbox.request_of(&id);
        server.kill();
        if by_driver {
            assert_eq!(inbox.answer(&["--text", "yes"]), 0);
        } else {
            inbox.write_response(&success(&id, "yes"));
        }
        server.restart();
        assert_eq!(ended(&server, &id)["outcome"]["outputs"], "yes");
        inbox.is_cleared();
    }
}

/// The steps of a job are for people. Whether a request was put into its place is remembered separately.
#[test]
fn whatever_the_steps_say_a_request_that_was_taken_away_is_not_asked_again() {
    for step in [r#""Ganz andere Worte""#, r#""Not asked yet: it only seems so""#] {
        let mut server = Server::configured(&human("inbox", ""));
        let inbox = inbox_of(&server);
        let id = prompt(&server, "Taken?");
        inbox.request_of(&id);
        until("it is on record", || server.job(&id)["progress"]["step"].is_string().then_some(()));
        server.kill();
        // A person has taken the request away to work on it.
        inbox.remove(REQUEST);
        let store = rusqlite::Connection::open(server.data().join("jobs.db")).expect("it opens");
        let progress = format!("[null,{step},null]");
        store.execute("UPDATE job SET step = ?1", [step.as_bytes()]).expect("a row can be written");
        store.execute("UPDATE event SET body = ?1 WHERE kind = 2", [progress.as_bytes()]).expect("it can be written");
        drop(store);
        server.restart();
        until("it is taken up", || {
            let step = server.job(&id)["progress"]["step"].clone();
            step.as_str().is_some_and(|step| step.contains("was taken away")).then_some(())
        });
        assert_eq!(inbox.found(REQUEST), None, "it is asked again");
        inbox.write_response(&success(&id, "yes"));
        let job = ended(&server, &id);
        assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("yes"), &json!(1)), "{job}");
    }
}

/// Answers every request, and counts them.
struct Answerer {
    count: Arc<AtomicU32>,
    /// Number of exits with a code that means neither an answer nor that there was nothing to answer.
    failed: Arc<AtomicU32>,
    stop: Arc<AtomicBool>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Answerer {
    fn of(inbox: Directory) -> Answerer {
        let (count, stop) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(false)));
        let failed = Arc::new(AtomicU32::new(0));
        let (counted, stopped, failures) = (count.clone(), stop.clone(), failed.clone());
        let thread = thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                if inbox.found(REQUEST).is_some() {
                    match inbox.answer(&["--text", "yes"]) {
                        0 => drop(counted.fetch_add(1, Ordering::Relaxed)),
                        1 => {}
                        _ => drop(failures.fetch_add(1, Ordering::Relaxed)),
                    }
                }
                thread::yield_now();
            }
        });
        Answerer { count, failed, stop, thread: Some(thread) }
    }
}

impl Drop for Answerer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(thread::JoinHandle::join);
    }
}

#[test]
fn wherever_the_server_is_killed_it_is_asked_and_answered_once() {
    let steps = [
        "target.created",
        "target.written",
        "target.synced",
        "target.renamed",
        "target.kept",
        "target.asked",
        "target.answered",
        "target.committed",
        "target.half-tidied",
        "removal.moved",
        "removal.unlinked",
    ];
    for step in steps {
        let mut server = Server::configured(&human("inbox", ""));
        let inbox = inbox_of(&server);
        server.stop();
        server.start_by(&["env", &format!("CROSSPOINT_FAILPOINT={step}")]);
        server.restart();
        let body = json!({"work": "human", "input": "Killed?", "request_id": step}).to_string();
        // The caller sends a request that was not answered again.
        let _ = server.try_request("POST", "/api/v1/jobs", &[], body.as_bytes());
        let answerer = Answerer::of(inbox_of(&server));
        server.wait();
        server.start_by(&[]);
        server.restart();
        let id = server.submit(&body)["id"].as_str().expect("an id").to_owned();
        let job = ended(&server, &id);
        assert_eq!((&job["outcome"]["outputs"], &job["attempts"]), (&json!("yes"), &json!(1)), "{step}: {job}");
        // The next request clears away what was left.
        let next = prompt(&server, "Next?");
        assert_eq!(ended(&server, &next)["outcome"]["outputs"], "yes", "{step}");
        let (count, failed) = (answerer.count.clone(), answerer.failed.clone());
        // The job has its answer before the answering command has ended, and the answer is counted only then.
        drop(answerer);
        let counts = (count.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
        assert_eq!(counts, (2, 0), "{step}: each of the two was answered once");
        inbox.is_cleared();
    }
}
