//! What can be typed about an agent that joins a server.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueHint};

use crate::command::flags::StoreFlags;
use crate::exec::is_our_variable;

/// Join a running server as an agent: it has your program do the work
///
/// For every job the program is started once: the input is one line of JSON on its stdin, what it prints is the job's
/// output, and exit code 0 is success. The server need not be able to reach this machine, and need not be there yet: it
/// is waited for. Any number of these may run under one name, here or elsewhere; what one of them has when it dies goes
/// to the others. Ctrl-C takes no more work and lets what is under way end; a second one ends it at once.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agent shouter --work shout -- tr a-z A-Z
  crosspoint agent builder --work build --work test --concurrency 2 -- ./build.sh
  crosspoint agent far --work dig --server http://10.0.0.7:7420 -- python3 dig.py
  crosspoint agent asker --work approve --ask -- ./approve.sh      keeps stdin open for answers

One line a job goes to stderr: its id, its work, how it ended, how long it took. Never what it was about.

Exit codes: 0 stopped, 2 it could not join or the program cannot be started, 130 interrupted twice.")]
pub(crate) struct Agent {
    /// The agent's name; crosspoint agents list shows those that are taken
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// A kind of work it takes; may be repeated
    #[arg(long, required = true, value_name = "WORK", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) work: Vec<String>,

    /// How many programs run at one time
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) concurrency: u32,

    /// How many programs beside those may wait for answers: while it is so many, no more work is taken
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

    /// How much a program may print, in bytes [default: 67108864]
    #[arg(long, value_name = "BYTES", help_heading = "Limits")]
    pub(crate) output_bytes: Option<u64>,

    /// Without a word for so long, this agent is held to be dead, and its work goes to others; 5 to 300
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
