//! Kills of a server that drives several runs, and of their agents.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use super::{
    AGENT_KILLS, DRIVER_KILLS, Hits, JITTER, KILLED, agent, begun, below, enough_kills, failed_stages, is_whole,
    is_written, kill_agent, some_moment, stages, text,
};
use crate::support::persistent_callers::Dice;
use crate::support::server::{Server, until};
use crate::support::workflow_place::Place;

const RUNS: usize = 3;

/// Several runs of one server, each in a repository of its own.
struct Runs {
    places: Vec<Place>,
    marks: Vec<String>,
    ids: Vec<String>,
    hits: Hits,
}

impl Runs {
    fn begin(number: usize) -> (Server, Runs) {
        let places: Vec<Place> = (0..RUNS).map(|_| Place::new()).collect();
        let marks: Vec<String> =
            (0..RUNS).map(|run| format!("round-{number}-run-{run}-of-{}", std::process::id())).collect();
        let roots: Vec<Value> = places.iter().map(|place| json!(place.path())).collect();
        let keys = "contract = \"workflow\"\nwork = [\"s1\", \"s2\", \"s3\", \"s4\"]";
        let agents = (0..RUNS).map(|run| {
            let agent = agent(&marks[run], &places[run].file("ledger"), keys);
            agent.replace("\"worker\"", &format!("\"worker-{run}\""))
        });
        let server =
            Server::configured(&format!("[workflow]\nroots = {}\n{}", json!(roots), agents.collect::<String>()));
        let begin = |run: usize| {
            let definition = stages().replace("\"worker\"", &format!("\"worker-{run}\""));
            server.run_workflow(&definition, &places[run].repo())
        };
        let ids = (0..RUNS).map(begin).collect();
        (server, Runs { places, marks, ids, hits: Hits::default() })
    }

    /// Answers runs that wait because an agent was killed, and returns whether all are completed.
    fn are_done(&self, server: &Server) -> bool {
        let mut done = 0;
        for id in &self.ids {
            let run = server.job(id);
            match run["state"].as_str().expect("a text") {
                "waiting" => {
                    let asked = text(&run["question"]["prompt"]);
                    assert!(asked.contains("agent_failed") && asked.contains(KILLED), "{run}");
                    server.answer_run(id, &json!("go on"));
                }
                "completed" => done += 1,
                "failed" | "cancelled" => panic!("{run}"),
                _ => {}
            }
        }
        done == RUNS
    }

    fn begun(&self, run: usize) -> Vec<i32> {
        begun(&self.places[run].file("ledger"))
    }

    /// Waits until the agents of these runs have begun so many more stages, or all runs are completed.
    fn begin_more(&self, server: &Server, runs: &[usize], more: usize) {
        let count = || runs.iter().map(|run| self.begun(*run).len()).sum::<usize>();
        let wanted = count() + more;
        until("stages begin", || (count() >= wanted || self.are_done(server)).then_some(()));
    }

    fn kill_agent(&self, server: &Server, dice: &mut Dice) {
        let run = below(dice, RUNS);
        self.begin_more(server, &[run], 1);
        let begun = self.begun(run);
        kill_agent(begun[begun.len() - 1], &self.marks[run], dice);
    }

    fn kill_server(&mut self, server: &mut Server, dice: &mut Dice) {
        // After a restart no further stage means the moment at which runs are taken up.
        self.begin_more(server, &[0, 1, 2], below(dice, 4));
        some_moment(dice, JITTER);
        let was_killed = server.killed().is_some_and(|status| status.signal() == Some(9));
        let is_over = self.places.iter().all(|place| is_written(&place.repo()));
        self.hits.drivers += usize::from(was_killed && !is_over);
        server.restart();
    }
}

#[test]
fn no_kill_of_a_server_or_its_agents_repeats_or_halves_a_stage() {
    enough_kills(|number, dice| {
        let (mut server, mut runs) = Runs::begin(number);
        let (mut servers, mut agents) = (DRIVER_KILLS, AGENT_KILLS);
        while servers + agents > 0 {
            if below(dice, servers + agents) < servers {
                runs.kill_server(&mut server, dice);
                servers -= 1;
            } else {
                runs.kill_agent(&server, dice);
                agents -= 1;
            }
        }
        until("all runs are completed", || runs.are_done(&server).then_some(()));
        for (place, id) in runs.places.iter().zip(&runs.ids) {
            let jobs = server.stages_of(id);
            is_whole(&place.repo(), &place.file("ledger"), &jobs);
            runs.hits.agents += failed_stages(&jobs);
        }
        // A kill of the server may come before it has noticed that of an agent, which then counts as none.
        assert!(runs.hits.agents <= AGENT_KILLS, "an agent failed that was not killed: {:?}", runs.hits);
        runs.hits
    });
}
