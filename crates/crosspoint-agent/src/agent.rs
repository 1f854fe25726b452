//! An agent: its name, and a function for each work that it takes.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use url::Url;

use crate::answers::{Answers, Keep};
use crate::desk::{Desk, Work};
use crate::handler::Handler;
use crate::message::pull::Registering;
use crate::places::Places;
use crate::serve::{self, Token};

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
    answers: Option<PathBuf>,
    keep: Keep,
    token_file: Option<PathBuf>,
    orchestrator: Option<Url>,
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
            answers: Some(answers),
            keep: Keep::default(),
            token_file: None,
            orchestrator: None,
        }
    }

    /// Takes this work: the handler gets the input and the [`Context`](crate::Context), and returns the outputs or a
    /// [`Failure`](crate::Failure). Work that was interrupted by the end of the process is begun again when it is asked
    /// for again.
    #[must_use]
    pub fn on<Types>(self, work: &str, handler: impl Handler<Types>) -> Agent {
        self.with(work, handler, false)
    }

    /// Takes work that must not be begun twice. If the process ends while it does such work, the same request fails as
    /// interrupted.
    #[must_use]
    pub fn at_most_once<Types>(self, work: &str, handler: impl Handler<Types>) -> Agent {
        self.with(work, handler, true)
    }

    fn with<Types>(mut self, work: &str, handler: impl Handler<Types>, at_most_once: bool) -> Agent {
        self.works.insert(work.into(), Work { handler: handler.boxed(), at_most_once });
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
    pub fn report_to(self, orchestrator: Url) -> Agent {
        Agent { orchestrator: Some(orchestrator), ..self }
    }

    /// Serves the agent until `shutdown` completes: in the run contract at `/agents/run/*`, in the task contract at
    /// `/tasks`, in the message contract at `/api/agent/message`, and in the workflow contract at
    /// `/agents/NAME/envelope`. Then work under way has ten seconds to end.
    pub async fn serve(self, listener: TcpListener, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let orchestrator = self.orchestrator.clone();
        let (desk, token, _) = self.open()?;
        serve::run(listener, desk, (token, orchestrator), shutdown).await
    }

    /// Pulls work of the message contract from this orchestrator until `shutdown` completes. The agent needs no address
    /// of its own. Then work under way has ten seconds to end.
    pub async fn connect(self, orchestrator: Url, shutdown: impl Future<Output = ()>) -> io::Result<()> {
        let (desk, token, own) = self.open()?;
        serve::pull(&orchestrator, desk, token.as_ref(), own, shutdown).await;
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
        Ok((Desk::new((self.name, self.agent_type), self.works, places, answers), token, own))
    }
}
