//! An agent: its name, and a function for each work that it takes.

mod reached;

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::reply::{Failed, Success};
use crosspoint_http::token::Token;
use tokio::net::TcpListener;

use crate::answers::{Answers, Keep};
use crate::backend::{OwnJobs, Work};
use crate::handler::{Boxed, Handler};
use crate::message::pull::Registering;
use crate::places::Places;
use crate::serve::{self, Serving};
use crate::{Context, Contract, doing, doors, gate};

/// How many jobs are done at a time unless said otherwise.
const CONCURRENCY: usize = 16;

/// How many jobs beside those may wait for a person unless said otherwise.
const WAITING: usize = 1_000;

/// An agent. Give it work with [`Agent::on`], then [serve](Agent::serve).
///
/// ```
/// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
/// # use doc::called;
/// use crosspoint_agent::{Agent, Context, Failure};
/// use serde_json::{Value, json};
///
/// async fn greet(input: Value, _: Context) -> Result<Value, Failure> {
///     let name = input["name"].as_str().ok_or_else(|| Failure::new("there is no name"))?;
///     Ok(json!({"greeting": format!("Good day, {name}")}))
/// }
///
/// let agent = Agent::new("greeter").on("greet", greet).concurrency(4);
/// # let answer = called(agent.forgetful(), "greet", json!({"name": "Ada"}));
/// # assert_eq!(answer["outputs"], json!({"greeting": "Good day, Ada"}));
/// ```
pub struct Agent {
    name: Arc<str>,
    agent_type: Option<Arc<str>>,
    works: BTreeMap<Arc<str>, Work>,
    concurrency: usize,
    waiting: usize,
    grace: Duration,
    answers: Option<PathBuf>,
    keep: Keep,
    token_file: Option<PathBuf>,
    serving: Serving,
}

impl Agent {
    /// Returns the contracts in which an agent can be called.
    ///
    /// ```
    /// use crosspoint_agent::Agent;
    ///
    /// let names: Vec<&str> = Agent::all_contracts().map(|contract| contract.name()).collect();
    /// assert_eq!(names, ["run", "task", "message", "workflow"]);
    /// ```
    pub fn all_contracts() -> impl Iterator<Item = Contract> {
        doors::DOORS.iter().map(|door| door.contract)
    }

    /// Returns an agent of this name that takes no work yet. Its answers are kept in the file `NAME.answers` of the
    /// working directory.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    pub fn new(name: &str) -> Agent {
        let answers = PathBuf::from(format!("{name}.answers"));
        Agent {
            name: name.into(),
            agent_type: None,
            works: BTreeMap::new(),
            concurrency: CONCURRENCY,
            waiting: WAITING,
            grace: doing::GRACE,
            answers: Some(answers),
            keep: Keep::default(),
            token_file: None,
            serving: Serving::default(),
        }
    }

    /// Takes this work: the handler gets the input and the [`Context`], and returns the outputs or a
    /// [`Failure`](crate::Failure). Work that was interrupted by the end of the process is begun again when it is asked
    /// for again.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # use std::collections::BTreeMap;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let total = async |prices: BTreeMap<String, u32>, _: Context| {
    ///     Ok::<_, Failure>(json!({"total": prices.values().sum::<u32>()}))
    /// };
    /// let agent = Agent::new("worker").on("echo", echo).on("total", total);
    /// # let answer = called(agent.forgetful(), "total", json!({"tea": 3, "bread": 4}));
    /// # assert_eq!(answer["outputs"], json!({"total": 7}));
    /// ```
    #[must_use]
    pub fn on<Types>(self, work: &str, handler: impl Handler<Types>) -> Agent {
        self.taking(work, handler.boxed(), false)
    }

    /// Takes work that must not be begun twice. If the process ends while it does such work, the same request fails as
    /// interrupted. An agent that is [`forgetful`](Agent::forgetful) cannot know that, and begins it again.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// async fn pay(_: Value, context: Context) -> Result<Value, Failure> {
    ///     Ok(json!({"paid": context.request_id()}))
    /// }
    ///
    /// let agent = Agent::new("cashier").at_most_once("pay", pay);
    /// # assert_eq!(called(agent.forgetful(), "pay", json!({}))["outputs"], json!({"paid": "r-1"}));
    /// ```
    #[must_use]
    pub fn at_most_once<Types>(self, work: &str, handler: impl Handler<Types>) -> Agent {
        self.taking(work, handler.boxed(), true)
    }

    /// Takes work like [`Agent::on`], or like [`Agent::at_most_once`], with a function that ends in the parts that all
    /// contracts know. So programs are made agents.
    #[doc(hidden)]
    #[must_use]
    pub fn on_outcome<Doing>(
        self,
        work: &str,
        worker: impl Fn(Bytes, Context) -> Doing + Send + Sync + 'static,
        at_most_once: bool,
    ) -> Agent
    where
        Doing: Future<Output = Result<Success, Failed>> + Send + 'static,
    {
        self.taking(work, Box::new(move |input, context| Box::pin(worker(input, context))), at_most_once)
    }

    fn taking(mut self, work: &str, handler: Boxed, at_most_once: bool) -> Agent {
        self.works.insert(work.into(), Work { handler, at_most_once });
        self
    }

    /// Says of which type the agent is in the message contract, such as `infra`. Without it the agent takes work that
    /// is addressed to any type. An orchestrator that it pulls from asks for a type: there it is `code` if none is
    /// said, and gets work that is addressed to `code` or to no type.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("infra-1").agent_type("infra").on("echo", echo);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn agent_type(self, agent_type: &str) -> Agent {
        Agent { agent_type: Some(agent_type.into()), ..self }
    }

    /// Says how many jobs are done at a time. The others wait.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).concurrency(2);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn concurrency(self, jobs: usize) -> Agent {
        Agent { concurrency: jobs.max(1), ..self }
    }

    /// Says how many jobs beside those may wait for a person's answer. While more wait, they count as work that is
    /// done.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).concurrency(2).waiting(100);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn waiting(self, jobs: usize) -> Agent {
        Agent { waiting: jobs, ..self }
    }

    /// Says where answers are kept over restarts.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// # let directory = std::env::temp_dir().join(format!("crosspoint-answers-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory)?;
    /// let agent = Agent::new("echo").on("echo", echo).answers(directory.join("echo.answers"));
    /// # assert_eq!(called(agent, "echo", json!({"a": 1}))["ok"], json!(true));
    /// # assert!(std::fs::metadata(directory.join("echo.answers"))?.len() > 0);
    /// # std::fs::remove_dir_all(directory)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn answers(self, path: impl Into<PathBuf>) -> Agent {
        Agent { answers: Some(path.into()), ..self }
    }

    /// Says how long answers are kept, and how many bytes of them.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// use std::time::Duration;
    ///
    /// let an_hour = Keep { age: Duration::from_secs(3_600), ..Keep::default() };
    /// let agent = Agent::new("echo").on("echo", echo).keep(an_hour);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn keep(self, keep: Keep) -> Agent {
        Agent { keep, ..self }
    }

    /// Keeps answers in memory only, and only those of the latest jobs: a request that is repeated after 1,000 others,
    /// or after a restart, is done again, also if it is [`at_most_once`](Agent::at_most_once).
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).forgetful();
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn forgetful(self) -> Agent {
        Agent { answers: None, ..self }
    }

    /// Serves the agent until `shutdown` completes: in the run contract at `/agents/run/*`, in the task contract at
    /// `/tasks`, in the message contract at `/api/agent/message`, and in the workflow contract at
    /// `/agents/NAME/envelope`. If the agent is [connected](Agent::connect) to an orchestrator, it also pulls work from
    /// there. Then work under way has some time to end.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// # #[tokio::main]
    /// # async fn main() -> std::io::Result<()> {
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    /// println!("http://{}", listener.local_addr()?);
    /// let stop = crosspoint_agent::interrupted();
    /// # let stop = async { drop(stop) };
    /// Agent::new("echo").on("echo", echo).forgetful().serve(listener, stop).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails if the store of answers or the token cannot be read, or if other machines could reach an agent that has no
    /// token.
    pub async fn serve(mut self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let serving = std::mem::take(&mut self.serving);
        let (backend, token, own) = self.open()?;
        serve::run(listener, (backend, own), (serving, token), shutdown).await
    }

    /// Pulls work of the message contract from the orchestrator of [`Agent::connect`] until `shutdown` completes, and
    /// serves no address of its own. Then work under way has some time to end.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// # #[tokio::main]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let stop = crosspoint_agent::interrupted();
    /// # let stop = async { drop(stop) };
    /// let agent = Agent::new("echo").on("echo", echo).connect("http://127.0.0.1:7420".parse()?);
    /// agent.forgetful().pull(stop).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Fails if the agent is connected to no orchestrator, or if the store of answers or the token cannot be read.
    pub async fn pull(mut self, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let serving = std::mem::take(&mut self.serving);
        let (backend, token, own) = self.open()?;
        serve::pull((backend, own), (serving, token), shutdown).await
    }

    /// Opens what the agent needs of the disk.
    fn open(self) -> io::Result<(OwnJobs, Option<Token>, Registering)> {
        let answers = self.answers.map(|path| Answers::open(&path, self.keep)).transpose()?;
        let token = self.token_file.map(|path| gate::read(&path)).transpose()?;
        let own = Registering {
            name: self.name.clone(),
            agent_type: self.agent_type.clone(),
            works: self.works.keys().cloned().collect(),
            concurrency: self.concurrency,
            is_awaited: AtomicBool::new(false),
        };
        let places = Places::new(self.concurrency, self.waiting);
        Ok((OwnJobs::new((self.name, self.agent_type), self.works, (places, self.grace), answers), token, own))
    }
}
