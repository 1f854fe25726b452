//! An agent: its name, and a function for each work that it takes.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use crosspoint_contracts::reply::{Failed, Success};
use tokio::net::TcpListener;
use url::Url;

use crate::answers::{Answers, Keep};
use crate::desk::{Desk, Work};
use crate::handler::{Boxed, Handler};
use crate::message::pull::Registering;
use crate::places::Places;
use crate::serve::{self, Serving, Token};
use crate::{Context, Contract, doing};

/// How many jobs are done at a time unless said otherwise.
const CONCURRENCY: usize = 16;

/// How many jobs beside those may wait for a person unless said otherwise.
const WAITING: usize = 1_000;

/// An agent. Give it work with [`Agent::on`], then [serve](Agent::serve).
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
    /// Returns an agent of this name that takes no work yet. Its answers are kept in the file `NAME.answers` of the
    /// working directory.
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

    /// Takes this work: the handler gets the input and the [`Context`](crate::Context), and returns the outputs or a
    /// [`Failure`](crate::Failure). Work that was interrupted by the end of the process is begun again when it is asked
    /// for again.
    #[must_use]
    pub fn on<Types>(self, work: &str, handler: impl Handler<Types>) -> Agent {
        self.taking(work, handler.boxed(), false)
    }

    /// Takes work that must not be begun twice. If the process ends while it does such work, the same request fails as
    /// interrupted.
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
    /// is addressed to any type.
    #[must_use]
    pub fn agent_type(self, agent_type: &str) -> Agent {
        Agent { agent_type: Some(agent_type.into()), ..self }
    }

    /// Says how many jobs are done at a time. The others wait.
    #[must_use]
    pub fn concurrency(self, jobs: usize) -> Agent {
        Agent { concurrency: jobs.max(1), ..self }
    }

    /// Says how many jobs beside those may wait for a person's answer. While more wait, they count as work that is done.
    #[must_use]
    pub fn waiting(self, jobs: usize) -> Agent {
        Agent { waiting: jobs, ..self }
    }

    /// Says where answers are kept over restarts.
    #[must_use]
    pub fn answers(self, path: impl Into<PathBuf>) -> Agent {
        Agent { answers: Some(path.into()), ..self }
    }

    /// Says how long answers are kept, and how many bytes of them.
    #[must_use]
    pub fn keep(self, keep: Keep) -> Agent {
        Agent { keep, ..self }
    }

    /// Keeps answers in memory only: a request that is repeated after a restart is done again.
    #[must_use]
    pub fn forgetful(self) -> Agent {
        Agent { answers: None, ..self }
    }

    /// Names a file with the token that every request must present.
    #[must_use]
    pub fn token_file(self, path: impl Into<PathBuf>) -> Agent {
        Agent { token_file: Some(path.into()), ..self }
    }

    /// Names the orchestrator of the message contract that is told how pushed work goes.
    #[must_use]
    pub fn report_to(mut self, orchestrator: Url) -> Agent {
        self.serving.orchestrator = Some(orchestrator);
        self
    }

    /// Serves these contracts alone. Without it the agent serves all four.
    #[must_use]
    pub fn contracts(mut self, contracts: &[Contract]) -> Agent {
        self.serving.contracts = contracts.iter().copied().collect();
        self
    }

    /// Names the hosts by which callers know the agent, such as `agent.example.org`, besides its address. A request for
    /// any other host is refused, so that a web page cannot reach the agent under a name of its own.
    #[must_use]
    pub fn names(mut self, hosts: &[&str]) -> Agent {
        self.serving.names = hosts.iter().map(ToString::to_string).collect();
        self
    }

    /// Lets every machine that reaches the agent give it work, without a token. An agent that has no token listens on
    /// the loopback alone otherwise.
    #[must_use]
    pub fn open_to_all(mut self) -> Agent {
        self.serving.is_open_to_all = true;
        self
    }

    /// Says how long a handler that is cancelled, or has passed its deadline, may go on before it is dropped: five
    /// seconds if this is not said.
    #[must_use]
    pub fn grace(self, grace: Duration) -> Agent {
        Agent { grace, ..self }
    }

    /// Says how long work under way may go on when the agent stops: ten seconds if this is not said.
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Agent {
        self.serving.drain = drain;
        self
    }

    /// Serves the agent until `shutdown` completes: in the run contract at `/agents/run/*`, in the task contract at
    /// `/tasks`, in the message contract at `/api/agent/message`, and in the workflow contract at
    /// `/agents/NAME/envelope`. Then work under way has some time to end.
    ///
    /// # Errors
    /// Fails if the store of answers or the token cannot be read, or if other machines could reach an agent that has no
    /// token.
    pub async fn serve(mut self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let serving = std::mem::take(&mut self.serving);
        let (desk, token, _) = self.open()?;
        serve::run(listener, desk, (serving, token), shutdown).await
    }

    /// Pulls work of the message contract from this orchestrator until `shutdown` completes. The agent needs no address
    /// of its own. Then work under way has some time to end.
    ///
    /// # Errors
    /// Fails if the store of answers or the token cannot be read.
    pub async fn connect(self, orchestrator: Url, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let drain = self.serving.drain;
        let (desk, token, own) = self.open()?;
        serve::pull(&orchestrator, desk, (token.as_ref(), drain), own, shutdown).await;
        Ok(())
    }

    /// Opens what the agent needs of the disk.
    fn open(self) -> io::Result<(Desk, Option<Token>, Registering)> {
        let answers = self.answers.map(|path| Answers::open(&path, self.keep)).transpose()?;
        let token = self.token_file.map(|path| Token::read(&path)).transpose()?;
        let own = Registering {
            name: self.name.clone(),
            agent_type: self.agent_type.clone(),
            works: self.works.keys().cloned().collect(),
            concurrency: self.concurrency,
        };
        let places = Places::new(self.concurrency, self.waiting);
        Ok((Desk::new((self.name, self.agent_type), self.works, (places, self.grace), answers), token, own))
    }
}
