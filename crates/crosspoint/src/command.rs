//! What can be typed: commands, arguments, and the help that teaches them.

mod agent;
mod agents;
mod bridge;
mod clauses;
mod completions;
mod config;
pub(crate) mod flags;
pub(crate) mod jobs;
mod migrate;
mod schema;
mod serve;
mod store;
pub(crate) mod submit;
mod token;
mod translate;
mod validate;
mod workflow;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::Exit;
pub(crate) use bridge::{CHILD as BRIDGE_CHILD, become_program as become_bridged_program};

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
  crosspoint workflow run specify.toml         stages of agents that write files to a repository
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
    pub(crate) fn run(&self) -> Result<Exit> {
        match self {
            Command::Serve(arguments) => serve::run(arguments),
            Command::Agent(arguments) => agent::run(arguments),
            Command::Submit(arguments) => submit::run(arguments),
            Command::Jobs(arguments) => jobs::run(arguments),
            Command::Agents(arguments) => agents::run(arguments),
            Command::Bridge(arguments) => bridge::run(arguments),
            Command::Workflow(arguments) => workflow::run(arguments),
            Command::Validate(arguments) => validate::run(arguments),
            Command::Translate(arguments) => translate::run(arguments),
            Command::Migrate(arguments) => migrate::run(arguments),
            Command::Schema(arguments) => schema::run(arguments),
            Command::Clauses(arguments) => clauses::run(arguments),
            Command::Token(arguments) => token::run(arguments),
            Command::Store(arguments) => store::run(arguments),
            Command::Config(arguments) => config::run(arguments),
            Command::Completions(arguments) => completions::run(arguments),
        }
    }
}

#[derive(Subcommand)]
pub(crate) enum Command {
    Serve(serve::Serve),
    Agent(Box<agent::arguments::Agent>),
    Submit(submit::Submit),
    Jobs(jobs::arguments::Jobs),
    Agents(agents::Agents),
    Bridge(bridge::arguments::Bridge),
    Workflow(workflow::arguments::Workflow),
    Validate(validate::Validate),
    Translate(translate::Translate),
    Migrate(migrate::Migrate),
    Schema(schema::Schema),
    Clauses(clauses::Clauses),
    Token(token::Token),
    Store(store::arguments::StoreCommand),
    Config(config::ConfigCommand),
    Completions(completions::Completions),
}
