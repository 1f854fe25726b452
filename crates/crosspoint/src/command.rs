//! What can be typed: commands, arguments, and the help that teaches them.

mod agent;
mod agents;
mod bridge;
mod clauses;
mod completions;
mod config;
pub(crate) mod jobs;
mod migrate;
mod schema;
mod serve;
mod store;
pub(crate) mod submit;
mod translate;
mod validate;

use std::path::PathBuf;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use crosspoint_contracts::{Contract, Kind};

use crate::Outcome;
use crate::config::Flags;
use crate::translation::AGENT_DEFAULT;
pub(crate) use agent::arguments::Agent;
pub(crate) use bridge::arguments::{
    Bridge, BridgeAction, BridgeAnswer, BridgeAsk, BridgeRun, BridgeStatus, BridgeWatch, Routes,
};
pub(crate) use bridge::{CHILD as BRIDGE_CHILD, become_program as become_bridged_program};
pub(crate) use jobs::arguments::{
    AgentName, Agents, AgentsAction, AgentsList, BreakerChange, Jobs, JobsAction, JobsAnswer, JobsDocument, JobsEvents,
    JobsList, JobsRetry, Reach, Submit,
};
pub(crate) use migrate::arguments::Migrate;
pub(crate) use store::arguments::{Since, StoreAction, StoreCheck, StoreCommand, StoreExport};

/// Connects any caller to any agent, in any of five contracts, and loses nothing.
#[derive(Parser)]
#[command(
    name = "crosspoint",
    version,
    about,
    long_about = None,
    propagate_version = true,
    after_help = "\
Start here:
  crosspoint serve                             durable jobs for the sample agents, on 127.0.0.1:7420
  crosspoint agent rev --work rev -- rev       any program is an agent, from another shell
  crosspoint submit slow_echo                  work, with a bar and the names of its steps
  crosspoint jobs list                         what became of it
  crosspoint bridge run -- ./script.sh         agents for a program that asks by files
  crosspoint validate .agent-response.json     what is wrong with this file, and how do I mend it?
  crosspoint translate run.json --to task      the same request, in another contract
  crosspoint clauses bridge                    the rules of one contract
  crosspoint schema run.request                a JSON Schema, for editors and other tools
  crosspoint migrate old-input.json            a document of an older agent, as a workflow envelope

Exit codes: 0 fine, 1 what you asked about is not fine, 2 it could not be done, 3 it waits for a person, 130 interrupted."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Command {
    pub(crate) fn run(&self) -> Result<Outcome> {
        match self {
            Command::Serve(arguments) => serve::run(arguments),
            Command::Agent(arguments) => agent::run(arguments),
            Command::Submit(arguments) => submit::run(arguments),
            Command::Jobs(arguments) => jobs::run(arguments),
            Command::Agents(arguments) => agents::run(arguments),
            Command::Bridge(arguments) => bridge::run(arguments),
            Command::Validate(arguments) => validate::run(arguments),
            Command::Translate(arguments) => translate::run(arguments),
            Command::Migrate(arguments) => migrate::run(arguments),
            Command::Schema(arguments) => schema::run(arguments),
            Command::Clauses(arguments) => clauses::run(arguments),
            Command::Store(arguments) => store::run(arguments),
            Command::Config(arguments) => config::run(arguments),
            Command::Completions(arguments) => completions::run(arguments),
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(Serve),
    Agent(Agent),
    Submit(Submit),
    Jobs(Jobs),
    Agents(Agents),
    Bridge(Bridge),
    Validate(Validate),
    Translate(Translate),
    Migrate(Migrate),
    Schema(Schema),
    Clauses(Clauses),
    Store(StoreCommand),
    Config(ConfigCommand),
    Completions(Completions),
}

/// Run the orchestrator: take jobs, make them durable, have agents do them
///
/// Without configuration it serves the sample agents echo, slow_echo, ask and fail. Jobs are kept in .crosspoint/ of the
/// working directory and survive anything: what was accepted is on disk, and what was under way when the server ended is
/// taken up at the next start. Ctrl-C stops it, and lets what is under way end; a second one ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint serve                                           on 127.0.0.1:7420, data in ./.crosspoint
  crosspoint serve --listen 127.0.0.1:0 --data /tmp/try      on any free port; it says which
  crosspoint serve --listen unix                             on no port: closed to other users
  crosspoint serve --log warn --log-format json              for machines
  curl -s 'http://127.0.0.1:7420/api/v1/jobs?wait=10' -d '{\"work\":\"echo\",\"input\":{\"message\":\"hello\"}}'

The log goes to stderr. The address is also in server.json, beside the data, as long as the server runs.

Exit codes: 0 stopped, 2 it could not start, 130 interrupted twice.")]
pub(crate) struct Serve {
    /// The address and port to listen on; port 0 is any free one; unix is a socket in the data directory [default: 127.0.0.1:7420]
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Other)]
    pub(crate) listen: Option<String>,

    /// Serve an address that other machines reach, though no token is asked for
    #[arg(long)]
    pub(crate) insecure: bool,

    #[command(flatten)]
    pub(crate) place: Place,

    /// How much is logged: off, error, warn, info, debug [default: info]
    #[arg(long, value_name = "LEVEL", value_parser = PossibleValuesParser::new(["off", "error", "warn", "info", "debug"]), hide_possible_values = true)]
    pub(crate) log: Option<String>,

    /// How it is logged [default: text]
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub(crate) log_format: Option<Format>,
}

/// Say what is wrong with documents of the five contracts, where, and how to mend it
///
/// The kind of each document is detected, or follows from names that the contracts give to files: .agent-request*.json,
/// .agent-response*.json, *.sse. --as says it. Directories are searched for files that end in .json or .sse, hidden
/// ones included; .git, node_modules and links to directories are passed over. At most 256 MiB of a document are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint validate .agent-response.json
  crosspoint validate --inner json .agent-response.json      the text in `response` must be JSON too
  curl -sN localhost:8000/agents/run/stream -d @run.json | crosspoint validate --as run.stream -
  crosspoint validate --format json specs/ | jq 'select(.valid | not)'

Reports go to stdout, errors and the sum to stderr. NO_COLOR=1 turns colour off.

Exit codes: 0 all valid, 1 a document breaks a clause, 2 a file could not be read or its kind not be told.")]
pub(crate) struct Validate {
    /// Files or directories; - reads standard input [default: - unless that is a terminal]
    #[arg(value_name = "FILE|DIR|-")]
    pub(crate) paths: Vec<PathBuf>,

    /// Read every document as this kind instead of detecting it
    #[arg(long = "as", value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,

    /// What the text inside a bridge response must be
    #[arg(long, value_name = "FORMAT")]
    pub(crate) inner: Option<Inner>,

    /// A further agent type that messages may name, besides the five of the contract; may be repeated
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) agent_type: Vec<String>,

    /// Warnings count as errors
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print nothing about valid documents, not even their warnings
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// For people, or one JSON object a document on one line
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inner {
    /// One JSON value
    Json,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
}

/// Write a document of one contract as the same document of another
///
/// What the other contract has no field for travels along under the key x_crosspoint, so that translating back gives the
/// document as it was. The kind is detected as by validate. A stream of a run is read to its end and becomes one
/// document a line, an event each; work that has not ended becomes an event of a stream. At most 256 MiB are read.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint translate run.json --to task
  crosspoint translate .agent-request.json --to message --agent research
  crosspoint translate run.json --to task | crosspoint translate --to run     # gives run.json again
  curl -sN localhost:8000/agents/run/stream -d @run.json | crosspoint translate --to message

The document goes to stdout; what was carried, lost or loose goes to stderr.

Exit codes: 0 translated, 1 it is not valid, has no counterpart, or would lose something under --strict, 2 the file could not be \
read or its kind not be told.")]
pub(crate) struct Translate {
    /// The document; - reads standard input [default: - unless that is a terminal]
    #[arg(value_name = "FILE|-")]
    pub(crate) path: Option<PathBuf>,

    /// The contract it is to be written in
    #[arg(long, value_name = "CONTRACT", value_parser = contract_parser())]
    pub(crate) to: Contract,

    /// Read it as this kind instead of detecting it
    #[arg(long, alias = "as", value_name = "KIND", value_parser = kind_parser())]
    pub(crate) from: Option<Kind>,

    /// The type of the agent in messages, where the document names none, or none that is known
    #[arg(long, value_name = "TYPE", default_value = AGENT_DEFAULT, value_hint = ValueHint::Other)]
    pub(crate) agent: String,

    /// A further agent type that messages may name, besides the five of the contract; may be repeated
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) agent_type: Vec<String>,

    /// Carry nothing, for agents that refuse members they do not know; what would be carried is lost, and listed
    #[arg(long)]
    pub(crate) no_carry: bool,

    /// Print nothing and exit with 1 if anything would be lost
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print it on one line
    #[arg(long)]
    pub(crate) compact: bool,
}

/// Print the JSON Schema of a kind of document, or list the kinds
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint schema                                          the kinds there are
  crosspoint schema bridge.response > bridge.response.json   for your editor")]
pub(crate) struct Schema {
    /// Which kind; without it the kinds are listed
    #[arg(value_name = "KIND", value_parser = kind_parser())]
    pub(crate) kind: Option<Kind>,
}

/// Print the clauses: every rule that validation, errors and docs cite
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint clauses bridge          the rules of one contract
  crosspoint clauses BRIDGE-2        one rule, with how to mend what breaks it
  crosspoint clauses --format json | jq -r 'select(.scope == \"document\") | .id'")]
pub(crate) struct Clauses {
    #[arg(value_name = "CONTRACT|ID", value_hint = ValueHint::Other, help = which_help())]
    pub(crate) which: Vec<String>,

    /// For people, one JSON object a clause on one line, or a page of documentation
    #[arg(long, value_enum, default_value_t = ClauseFormat::Text)]
    pub(crate) format: ClauseFormat,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClauseFormat {
    Text,
    Json,
    Markdown,
}

/// Where the configuration and the data are
#[derive(Args, Clone, Default)]
pub(crate) struct Place {
    /// The configuration file [default: ./crosspoint.toml, or crosspoint/crosspoint.toml in the user's configuration directory]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Where")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory: the database is there, and the address of a server that runs [default: .crosspoint]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Where")]
    pub(crate) data: Option<PathBuf>,

    /// The database, as sqlite:PATH [default: jobs.db in the data directory]
    #[arg(long, value_name = "URL", value_hint = ValueHint::Other, help_heading = "Where")]
    pub(crate) store: Option<String>,
}

impl Place {
    pub(crate) fn flags(&self) -> Flags {
        let Place { config, data, store } = self.clone();
        Flags { config, data, store, ..Flags::default() }
    }
}

/// Check or show the configuration: what holds, and where it came from
///
/// The defaults hold unless the file says otherwise; the environment wins over the file, and options win over both. Every key of one value
/// can be set in the environment: CROSSPOINT_SERVER_LISTEN is the key listen of the table server.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config check                     can the configuration be used? if not: where is the mistake?
  crosspoint config check new.toml
  crosspoint config show                      everything that holds, and where it came from
  crosspoint config show > new.toml           a file to start from")]
pub(crate) struct ConfigCommand {
    #[command(subcommand)]
    pub(crate) action: ConfigAction,
}

#[derive(Subcommand)]
pub(crate) enum ConfigAction {
    Check(ConfigCheck),
    Show(ConfigShow),
}

/// Say what is wrong with the configuration, where, and how to mend it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config check
  crosspoint config check new.toml

Exit codes: 0 it can be used, 1 it cannot, 2 it could not be read.")]
pub(crate) struct ConfigCheck {
    /// The file to check [default: the one that serve would use]
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "config")]
    pub(crate) file: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) place: Place,
}

/// Print everything that holds as TOML, each value with where it came from
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint config show
  CROSSPOINT_SERVER_LISTEN=127.0.0.1:0 crosspoint config show | grep listen")]
pub(crate) struct ConfigShow {
    #[command(flatten)]
    pub(crate) place: Place,
}

/// Print a completion script for a shell
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint completions bash > ~/.local/share/bash-completion/completions/crosspoint
  crosspoint completions zsh > ~/.zfunc/_crosspoint
  crosspoint completions fish > ~/.config/fish/completions/crosspoint.fish")]
pub(crate) struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

fn which_help() -> String {
    format!("{}, all (what they share), or ids of clauses", Contract::ALL.map(Contract::name).join(", "))
}

fn kind_parser() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name)).try_map(|name| Kind::from_name(&name).ok_or("no such kind"))
}

fn contract_parser() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(Contract::ALL.map(Contract::name))
        .try_map(|name| Contract::from_name(&name).ok_or("no such contract"))
}
