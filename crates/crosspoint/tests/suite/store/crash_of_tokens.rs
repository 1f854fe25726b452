//! Killing the server amid changes of tokens and other acts: what was done is on record, what is on record was done,
//! and a token that was revoked never works again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::persistent_callers::Dice;
use crate::support::program::{crosspoint, stdout};
use crate::support::server::{Answer, Server, exchange, until};
use crate::support::tokens;

/// Number of kills in the suite; `CROSSPOINT_KILLS` sets more.
const KILLS: u64 = 20;

const OPERATORS: usize = 4;

/// Most revoked tokens that are tried after one start.
const CHECKED_MAX: usize = 30;

/// What the operators know of one token.
#[derive(Clone, Debug)]
struct Token {
    secret: String,
    rotated: usize,
    /// Whether the answer to a rotation was lost, so that there may be another secret.
    is_doubtful: bool,
    is_revoked: bool,
}

/// What the operators know.
#[derive(Default)]
struct Ledger {
    address: Option<SocketAddr>,
    is_over: bool,
    tokens: BTreeMap<String, Token>,
    submitted: BTreeSet<String>,
    cancelled: BTreeSet<String>,
    /// How often each act was answered, and how often the answer was lost.
    acts: BTreeMap<&'static str, (usize, usize)>,
}

struct Operators {
    admin: String,
    ledger: Mutex<Ledger>,
}

impl Operators {
    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answered(&self) -> usize {
        self.ledger().acts.values().map(|(answered, _)| answered).sum()
    }

    fn ask(&self, token: &str, method: &str, path: &str, body: &Value) -> Option<Answer> {
        let address = self.ledger().address?;
        let bearer = format!("Bearer {token}");
        exchange(address, method, path, &[("authorization", &bearer)], body.to_string().as_bytes())
    }

    /// Does something, and notes whether it was answered. A server that has just been killed is not asked.
    fn act(&self, act: &'static str, path: &str, body: &Value) -> Option<Value> {
        until("there is a server", || {
            let ledger = self.ledger();
            (ledger.address.is_some() || ledger.is_over).then_some(())
        });
        let answer = self.ask(&self.admin, "POST", path, body);
        let mut ledger = self.ledger();
        let count = ledger.acts.entry(act).or_default();
        match answer {
            Some(answer) => {
                assert!(answer.status < 300, "{act}: {answer:?}");
                count.0 += 1;
                Some(answer.json())
            }
            None => {
                count.1 += 1;
                None
            }
        }
    }

    /// Goes on until the end is told: each with tokens and jobs of its own.
    fn operate(&self, operator: usize, seed: u64) {
        let mut dice = Dice(seed);
        for number in 0.. {
            if self.ledger().is_over {
                return;
            }
            let name = format!("{operator}-{number}");
            match dice.below(3) {
                0 => self.life_of_a_token(&name, &mut dice),
                1 => self.life_of_a_job(&name, &mut dice),
                _ => drop(self.act("drain", "/api/v1/agents/echo/drain", &json!({"drained": true}))),
            }
        }
    }

    fn life_of_a_token(&self, name: &str, dice: &mut Dice) {
        let secret = |made: &Value| made["token"].as_str().expect("a token").to_owned();
        let new = json!({"name": name, "for": "caller"});
        let Some(made) = self.act("token_create", "/api/v1/tokens", &new) else { return };
        let token = Token { secret: secret(&made), rotated: 0, is_doubtful: false, is_revoked: false };
        self.ledger().tokens.insert(name.to_owned(), token);
        for _ in 0..dice.below(3) {
            let made = self.act("token_rotate", &format!("/api/v1/tokens/{name}/rotate"), &json!({}));
            let mut ledger = self.ledger();
            let token = ledger.tokens.get_mut(name).expect("it was made");
            let Some(made) = made else {
                token.is_doubtful = true;
                return;
            };
            (token.secret, token.rotated) = (secret(&made), token.rotated + 1);
        }
        if dice.below(2) == 0
            && self.act("token_revoke", &format!("/api/v1/tokens/{name}/revoke"), &json!({})).is_some()
        {
            self.ledger().tokens.get_mut(name).expect("it was made").is_revoked = true;
        }
    }

    fn life_of_a_job(&self, name: &str, dice: &mut Dice) {
        let Some(job) = self.act("submit", "/api/v1/jobs", &json!({"work": "echo", "input": {"by": name}})) else {
            return;
        };
        let id = job["id"].as_str().expect("an id").to_owned();
        self.ledger().submitted.insert(id.clone());
        if dice.below(2) == 0 && self.act("cancel", &format!("/api/v1/jobs/{id}/cancel"), &json!({})).is_some() {
            self.ledger().cancelled.insert(id);
        }
    }

    /// Whether a token lets its holder in.
    fn works(&self, token: &Token) -> bool {
        let answer = self.ask(&token.secret, "GET", "/api/v1/jobs?limit=1", &json!({})).expect("it answers");
        assert!([200, 401].contains(&answer.status), "{answer:?}");
        answer.status == 200
    }

    /// Checks some of the revoked tokens, by chance. All of them are checked at the end.
    fn revoked_tokens_stay_revoked(&self, dice: &mut Dice) {
        let revoked: Vec<Token> = self.ledger().tokens.values().filter(|token| token.is_revoked).cloned().collect();
        let from = usize::try_from(dice.below(revoked.len() as u64 + 1)).expect("it is small");
        let some = revoked.iter().cycle().skip(from).take(revoked.len().min(CHECKED_MAX));
        assert!(some.into_iter().all(|token| !self.works(token)), "a revoked token works again");
    }

    fn get(&self, path: &str) -> Value {
        let answer = self.ask(&self.admin, "GET", path, &json!({})).expect("it answers");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// All jobs, and whether each was cancelled.
    fn jobs(&self) -> BTreeMap<String, bool> {
        let (mut jobs, mut next) = (BTreeMap::new(), Some(String::new()));
        while let Some(before) = next {
            let page = self.get(&format!("/api/v1/jobs?limit=500{before}"));
            for job in page["jobs"].as_array().expect("a page has jobs") {
                jobs.insert(job["id"].as_str().expect("an id").to_owned(), job["state"] == "cancelled");
            }
            next = page["next"].as_str().map(|next| format!("&before={next}"));
        }
        jobs
    }
}

/// The audit: how often each act was done to each job or name.
fn audited(server: &Server) -> BTreeMap<(String, String), usize> {
    let text = stdout(crosspoint(&["store", "export", "--audit", "--data"]).arg(server.data()));
    let mut found = BTreeMap::new();
    for line in text.lines().map(|line| serde_json::from_str::<Value>(line).expect("it is JSON")) {
        let Some(act) = line["act"].as_str() else { continue };
        let of = line["job"].as_str().or(line["object"].as_str()).expect("it is about something");
        *found.entry((act.to_owned(), of.to_owned())).or_default() += 1;
    }
    found
}

#[test]
fn acts_and_their_record_are_on_disk_together_however_often_the_server_is_killed() {
    let kills = std::env::var("CROSSPOINT_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(KILLS);
    let mut dice = Dice(super::crash::seed());
    let mut server = Server::with("", &["--log", "warn"]);
    let operators = Operators { admin: tokens::closed(&server), ledger: Mutex::default() };
    operators.ledger().address = Some(server.address());
    // Jobs wait until they are cancelled.
    operators.act("drain", "/api/v1/agents/echo/drain", &json!({"drained": true}));
    thread::scope(|scope| {
        for operator in 0..OPERATORS {
            let (operators, seed) = (&operators, dice.below(u64::MAX));
            scope.spawn(move || operators.operate(operator, seed));
        }
        for _ in 0..kills {
            let enough = operators.answered() + usize::try_from(dice.below(40)).expect("it is small");
            until("operators are answered", || (operators.answered() >= enough).then_some(()));
            // This does not wait for anything: it makes the moment random.
            thread::sleep(Duration::from_micros(dice.below(4_000)));
            server.kill();
            operators.ledger().address = None;
            server.restart();
            operators.ledger().address = Some(server.address());
            operators.revoked_tokens_stay_revoked(&mut dice);
        }
        operators.ledger().is_over = true;
    });
    let lost: usize = operators.ledger().acts.values().map(|(_, lost)| lost).sum();
    assert!(lost > 0, "no answer was lost");
    let audited = audited(&server);
    let count = |act: &str, of: &str| audited.get(&(act.to_owned(), of.to_owned())).copied().unwrap_or_default();
    let all = |act: &str| audited.iter().filter(|((done, _), _)| done == act).map(|(_, count)| count).sum::<usize>();
    for (act, (answered, lost)) in &operators.ledger().acts {
        // The administrator's own token is one more.
        let done = all(act) - usize::from(*act == "token_create");
        assert!((*answered..=answered + lost).contains(&done), "{act}: {done} of {answered} and {lost}");
    }
    each_token_is_as_on_record(&operators, &count, all("token_create"));
    let jobs = operators.jobs();
    assert!(operators.ledger().submitted.iter().all(|id| jobs.contains_key(id)));
    assert!(operators.ledger().cancelled.iter().all(|id| jobs[id]));
    assert_eq!(all("submit"), jobs.len());
    for (id, is_cancelled) in &jobs {
        assert_eq!((count("submit", id), count("cancel", id)), (1, usize::from(*is_cancelled)), "{id}");
    }
}

fn each_token_is_as_on_record(operators: &Operators, count: &dyn Fn(&str, &str) -> usize, created: usize) {
    let page = operators.get("/api/v1/tokens");
    let listed = page["tokens"].as_array().expect("a list");
    assert_eq!(listed.len(), created);
    let known = operators.ledger().tokens.clone();
    assert!(known.keys().all(|name| listed.iter().any(|token| token["name"] == json!(name))));
    for token in listed {
        let name = token["name"].as_str().expect("a name");
        let is_revoked = !token["revoked_at"].is_null();
        assert_eq!((count("token_create", name), count("token_revoke", name)), (1, usize::from(is_revoked)), "{token}");
        let Some(known) = known.get(name) else { continue };
        let (works, rotated) = (operators.works(known), count("token_rotate", name));
        assert!(!known.is_revoked || is_revoked, "{token}");
        assert!(!works || !is_revoked, "{token}");
        if is_revoked || !known.is_doubtful {
            assert_eq!((works, rotated), (!is_revoked, known.rotated), "{token}");
        } else {
            assert_eq!(rotated, known.rotated + usize::from(!works), "{token}");
        }
    }
}
