//! Who reaches an agent and how, and how it stops.

use std::path::PathBuf;
use std::time::Duration;

use url::Url;

use super::Agent;
use crate::Contract;

impl Agent {
    /// Names a file with the token that every request must present.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// # let file = std::env::temp_dir().join(format!("crosspoint-token-{}", std::process::id()));
    /// # std::fs::write(&file, "a-token-of-32-characters-or-more\n")?;
    /// let agent = Agent::new("echo").on("echo", echo).token_file(&file);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// # std::fs::remove_file(file)?;
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[must_use]
    pub fn token_file(self, path: impl Into<PathBuf>) -> Agent {
        Agent { token_file: Some(path.into()), ..self }
    }

    /// Names the orchestrator of the message contract that is told how pushed work goes.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let orchestrator: Url = "http://127.0.0.1:7420".parse()?;
    /// let agent = Agent::new("echo").on("echo", echo).report_to(orchestrator);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn report_to(mut self, orchestrator: Url) -> Agent {
        self.serving.told = Some(orchestrator);
        self
    }

    /// Connects the agent to this orchestrator of the message contract: it registers there, asks for work, and tells
    /// how the work goes. [`Agent::serve`] does so beside its own address, [`Agent::pull`] without one.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let orchestrator: Url = "http://127.0.0.1:7420".parse()?;
    /// let agent = Agent::new("echo").on("echo", echo).connect(orchestrator);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn connect(mut self, orchestrator: Url) -> Agent {
        self.serving.pulled = Some(orchestrator);
        self
    }

    /// Serves these contracts alone. Without it the agent serves all four: run, task, message and workflow. The bridge
    /// contract has files and no address.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// use crosspoint_agent::Contract;
    ///
    /// let agent = Agent::new("echo").on("echo", echo).contracts(&[Contract::Run, Contract::Task]);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn contracts(mut self, contracts: &[Contract]) -> Agent {
        self.serving.contracts = contracts.iter().copied().collect();
        self
    }

    /// Names the hosts by which callers know the agent, such as `agent.example.org`, besides its address. A request for
    /// any other host is refused, so that a web page cannot reach the agent under a name of its own.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).names(&["echo.example.org"]);
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn names(mut self, hosts: &[&str]) -> Agent {
        self.serving.names = hosts.iter().map(ToString::to_string).collect();
        self
    }

    /// Lets every machine that reaches the agent give it work, without a token. An agent that has no token listens on
    /// the loopback alone otherwise.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).open_to_all();
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn open_to_all(mut self) -> Agent {
        self.serving.is_open_to_all = true;
        self
    }

    /// Says how long a handler that is cancelled, or has passed its deadline, may go on before it is dropped: five
    /// seconds if this is not said.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).grace(std::time::Duration::from_secs(30));
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn grace(self, grace: Duration) -> Agent {
        Agent { grace, ..self }
    }

    /// Says how long work under way may go on when the agent stops: ten seconds if this is not said.
    ///
    /// ```
    /// # mod doc { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/called.rs")); }
    /// # use doc::*;
    /// # async fn echo(input: Value, _: Context) -> Result<Value, Failure> { Ok(input) }
    /// let agent = Agent::new("echo").on("echo", echo).drain(std::time::Duration::from_secs(30));
    /// # assert_eq!(called(agent.forgetful(), "echo", json!({"a": 1}))["outputs"], json!({"a": 1}));
    /// ```
    #[must_use]
    pub fn drain(mut self, drain: Duration) -> Agent {
        self.serving.drain = drain;
        self
    }
}
