//! What can be typed about an agent that joins a server.

use std::path::PathBuf;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use crosspoint_agent::{Agent as Service, Contract, Url};

use crate::command::flags::StoreFlags;
use crate::exec::is_our_variable;

/// Make a program an agent of a running server, or with --listen a service
///
/// For every job the program is started once: the input is one line of JSON on its stdin, what it prints is the job's
/// output, and exit code 0 is success.
///
/// Without --listen it joins a server. The server need not be able to reach this machine, and need not be there yet: it
/// is waited for. Any number of these may run under one name, here or elsewhere; what one of them has when it dies goes
/// to the others.
///
/// With --listen it needs no server: callers of the run, task, message and workflow contract call it at that address.
/// The same request again gets the same answer, also after a restart.
///
/// Ctrl-C takes no more work and lets what is under way end; a second one ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agent shouter --work shout -- tr a-z A-Z
  crosspoint agent builder --work build --work test --concurrency 2 -- ./build.sh
  crosspoint agent far --work dig --server http://10.0.0.7:7420 -- python3 dig.py
  crosspoint agent asker --work approve --ask -- ./approve.sh      keeps stdin open for answers
  crosspoint agent loud --work shout --listen 127.0.0.1:8000 -- tr a-z A-Z    serves callers itself

One line a job goes to stderr: its id, its work, how it ended, how long it took. Never what it was about.

Where the server asks for tokens, CROSSPOINT_TOKEN_FILE names a file with the one for this agent's name.

Exit codes: 0 stopped, 2 it could not join, listen or start the program, 130 interrupted twice.")]
pub(crate) struct Agent {
    /// The agent's name; crosspoint agents list shows those that are taken
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new().try_map(name))]
    pub(crate) name: String,

    /// A kind of work it takes; may be repeated
    #[arg(long, required = true, value_name = "WORK", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) work: Vec<String>,

    /// Serve callers at this address, as 127.0.0.1:8000, instead of joining a server
    #[arg(long, value_name = "ADDRESS", value_hint = ValueHint::Other, help_heading = "Without a server", conflicts_with_all = ["server", "store", "lease_seconds"])]
    pub(crate) listen: Option<String>,

    /// The contracts in which it is called [default: run,task,message,workflow]
    #[arg(long, value_name = "CONTRACT,...", value_delimiter = ',', help_heading = "Without a server", requires = "listen", value_parser = contract_parser())]
    pub(crate) contract: Option<Vec<Contract>>,

    /// A file with the token that every caller must present. Without it the agent keeps to the loopback
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Without a server", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,

    /// Every machine that reaches the address may give it work, without a token
    #[arg(long, help_heading = "Without a server", requires = "listen", conflicts_with = "token_file")]
    pub(crate) open_to_all: bool,

    /// Hosts by which callers know it, besides its address
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', value_hint = ValueHint::Hostname, help_heading = "Without a server", requires = "listen")]
    pub(crate) host: Vec<String>,

    /// Its type in the message contract, such as infra [default: it takes what is addressed to any type]
    #[arg(long, value_name = "TYPE", value_hint = ValueHint::Other, help_heading = "Without a server", requires = "listen", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent_type: Option<String>,

    /// The orchestrator of the message contract that is told how pushed work goes on
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = "Without a server", requires = "listen")]
    pub(crate) report_to: Option<Url>,

    /// How many programs run at one time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,

    /// How many programs beside those may wait for answers; while that many wait, no more work is taken
    #[arg(long, value_name = "N", default_value_t = 64, help_heading = "Limits", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) waiting: u32,

    /// The program may ask: its stdin stays open, and answers come as lines of JSON
    #[arg(long)]
    pub(crate) ask: bool,

    /// A variable for the program's environment, beside PATH, HOME, LANG, TMPDIR and those of the job; may be repeated.
    /// NAME alone held on this command's own: secrets need not stand where other users can read them
    #[arg(long, value_name = "NAME[=VALUE]", value_hint = ValueHint::Other, value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,

    /// Work that may have begun may begin again (true), or not even after its worker died (false) [default: again only
    /// after a death]
    #[arg(long, value_name = "BOOL", help_heading = "Limits")]
    pub(crate) repeatable: Option<bool>,

    /// Exit codes of the program that mean "not now", besides 75: the job fails as resource_limit, and is tried again
    /// where it is repeatable
    #[arg(long, value_name = "CODE,...", value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) retry_exit_codes: Vec<u8>,

    /// How much memory a program and all it starts may use, in MiB
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub(crate) memory_mb: Option<u64>,

    /// How many processes a program may be at one time [default: 256]
    #[arg(long, value_name = "N", help_heading = "Limits", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) processes: Option<u32>,

    /// How long a program has to end after SIGTERM, before SIGKILL [default: 5]
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", value_parser = seconds)]
    pub(crate) grace_seconds: Option<f64>,

    /// How long a program may print nothing, and report no progress [default: no limit]
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", value_parser = seconds)]
    pub(crate) silence_seconds: Option<f64>,

    /// How long a job may take in all [default: 3600]
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", value_parser = seconds)]
    pub(crate) total_seconds: Option<f64>,

    /// How much a program may print, in bytes [default: 67108864, and with --listen 10485760, which is its most there]
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    pub(crate) output_bytes: Option<u64>,

    /// After this time without a word this agent is held to be dead, and its work goes to others; 5 to 300
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", default_value_t = 15.0, value_parser = lease)]
    pub(crate) lease_seconds: f64,

    /// The server, as http://127.0.0.1:7420 [env: CROSSPOINT_SERVER] [default: the one of the data directory]
    #[arg(long, visible_alias = "connect", value_name = "URL", value_hint = ValueHint::Url, help_heading = "Where")]
    pub(crate) server: Option<String>,

    #[command(flatten)]
    pub(crate) store: StoreFlags,

    /// The program and its arguments, after --
    #[arg(last = true, required = true, value_name = "PROGRAM", value_hint = ValueHint::CommandWithArguments)]
    pub(crate) program: Vec<String>,
}

fn contract_parser() -> impl TypedValueParser<Value = Contract> {
    PossibleValuesParser::new(Service::all_contracts().map(Contract::name))
        .try_map(|name| Contract::from_name(&name).ok_or("no such contract"))
}

/// Reads the agent's name, which becomes part of addresses and of names of files.
fn name(text: String) -> Result<String, &'static str> {
    match &*text {
        "." | ".." => Err("it means a directory; write a name like report-writer"),
        _ => Ok(text),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    let name = text.split_once('=').map_or(text, |(name, _)| name);
    if is_our_variable(name) {
        return Err(format!("{name} is set by crosspoint itself; give yours another name"));
    }
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => Ok((name.to_owned(), value.to_owned())),
        None if !text.is_empty() => match std::env::var(text) {
            Ok(value) => Ok((text.to_owned(), value)),
            Err(_) => Err(format!("{text} is not set here, or is no text; write it as NAME=VALUE, or set it first")),
        },
        Some(_) | None => Err("write it as NAME=VALUE, or NAME alone for your own".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if seconds > 0.0 && seconds <= f64::from(u32::MAX) => Ok(seconds),
        Ok(_) | Err(_) => Err("it must be a number of seconds, more than 0"),
    }
}

fn lease(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(seconds) if (5.0..=300.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("it must be a number of seconds from 5 to 300"),
    }
}
