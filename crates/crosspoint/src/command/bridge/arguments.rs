//! What can be typed about the bridge: programs that ask by files.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueHint};

use crate::command::flags::{Inner, Reach};

/// Have agents answer programs that can only read and write files
///
/// A program that needs an agent writes .agent-request.json into its directory and exits with code 42. The driver has
/// an agent answer, writes .agent-response.json, removes the request and runs the program again with --resume.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint bridge run -- ./review.sh src/              a script, with agents for what it asks
  crosspoint bridge watch inbox/ ../other/               answers there, for as long as it runs
  crosspoint bridge status inbox/                        what waits there, and is wrong with it
  crosspoint bridge answer inbox/ --text 'Looks good.'   be the agent yourself

In a script that a driver runs:
  answer=$(crosspoint bridge ask reviewer --prompt @diff.txt) || exit")]
pub(crate) struct Bridge {
    #[command(subcommand)]
    pub(crate) action: BridgeAction,
}

#[derive(Subcommand)]
pub(crate) enum BridgeAction {
    Run(BridgeRun),
    Watch(BridgeWatch),
    Ask(BridgeAsk),
    Answer(BridgeAnswer),
    Status(BridgeStatus),
}

/// Run a program, and have agents answer what it asks
///
/// Whenever the program exits with code 42, its request (or one for each phase) is done as a job, the response is
/// written, the request is removed and the program is run again with --resume. Any other exit code is passed on. Ctrl-C
/// keeps everything: the same command goes on where it stopped, and what an agent has finished is not done again.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint bridge run -- ./review.sh src/
  crosspoint bridge run --agent reviewer=echo -- ./review.sh src/       its `reviewer` is our echo
  crosspoint bridge run --dir build --max-iterations 20 -- python3 generate.py
  crosspoint bridge run --dir .bridge --cwd . -- ./review.sh src/       its files are kept in a place of their own
  crosspoint bridge run --resume -- ./review.sh src/                    it was run by hand, and has asked already
  crosspoint bridge run --server http://127.0.0.1:7420 -- make docs

What the program prints is left as it is; what happens in between is said on stderr.

Exit codes: those of the program, 128 and its number where a signal ended it; 1 its request is missing or malformed, or it asks once more than it \
may; 2 it could not be done (no server, directory in use); 126 and 127 the program cannot be run; 130 interrupted. Everything is kept, unless the \
program ended by itself: then the same command begins anew.")]
pub(crate) struct BridgeRun {
    /// The directory that the program leaves its requests in, and runs in unless --cwd says otherwise [default: .]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,

    /// The directory that the program runs in; CROSSPOINT_BRIDGE_DIR tells it where its requests go [default: --dir]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,

    /// Answer a request that is there from before, and resume the program with the answer [default: the request is
    /// set aside, unless this very command asked it]
    #[arg(long)]
    pub(crate) resume: bool,

    /// How often the program is resumed at most
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: u32,

    #[command(flatten)]
    pub(crate) routes: Routes,

    #[command(flatten)]
    pub(crate) reach: Reach,

    /// The program and its arguments
    #[arg(value_name = "CMD", required = true, last = true, value_hint = ValueHint::CommandWithArguments)]
    pub(crate) command: Vec<OsString>,
}

/// Who does what a program asks for
#[derive(Args, Clone, Default)]
pub(crate) struct Routes {
    /// Requests for the agent NAME are for the work WORK; may be repeated
    #[arg(long = "agent", value_name = "NAME=WORK", value_hint = ValueHint::Other)]
    pub(crate) agents: Vec<Route>,
}

/// What requests for one name are for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) work: String,
}

impl FromStr for Route {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Route, &'static str> {
        match text.split_once('=') {
            Some((name, work)) if !name.is_empty() && !work.is_empty() => {
                Ok(Route { name: name.to_owned(), work: work.to_owned() })
            }
            Some(_) | None => Err("write NAME=WORK, as reviewer=echo"),
        }
    }
}

impl Routes {
    /// The work that requests for this agent are for, where it is another.
    pub(crate) fn work_for(&self, agent_name: &str) -> Option<&str> {
        self.agents.iter().find(|route| route.name == agent_name).map(|route| route.work.as_str())
    }
}

/// Answer the requests in directories, for as long as it runs
///
/// Each request is done once, also when the watcher is restarted and when several watch one directory. What cannot be
/// answered is said and left as it is. Programs are not run: the program that left the request takes the response.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint bridge watch .
  crosspoint bridge watch inbox/* --server http://127.0.0.1:7420
  crosspoint bridge watch /mnt/share/inbox --poll        where the system tells of no changes

Exit codes: 0 stopped by Ctrl-C or SIGTERM, 2 it could not begin.")]
pub(crate) struct BridgeWatch {
    /// The directories
    #[arg(value_name = "DIR", required = true, value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,

    /// Look again and again instead of being told of changes [default: only where the file system needs it]
    #[arg(long)]
    pub(crate) poll: bool,

    #[command(flatten)]
    pub(crate) routes: Routes,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// Ask an agent from a script that a driver runs: prints the answer, or exits with 42
///
/// The first time the request is written and the exit code is 42, which the script passes on to its driver. When the
/// driver runs the script again, the same question has its answer, which is printed. A script may ask many things one
/// after the other and simply begins anew each time: what was answered before is answered at once. The same words in
/// one run are the same question.
///
/// What was answered is kept in .agent-answers until the run is over. `crosspoint bridge run` says when that is; under
/// another driver begin the script with --forget, unless it is resumed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  review=$(crosspoint bridge ask reviewer --prompt @diff.txt) || exit
  crosspoint bridge ask planner --prompt 'Plan it.' --context '{\"files\": 3}' > plan.md || exit
  crosspoint bridge ask planner --phase 2 --phase-name planning < prompt.txt || exit
  [[ \" $* \" == *' --resume '* ]] || crosspoint bridge ask --forget

Exit codes: 0 answered, 1 the agent failed (its message is on stderr), 2 it could not be asked, 42 an agent is needed: run the script with \
crosspoint bridge run.")]
pub(crate) struct BridgeAsk {
    /// The work or the agent that is wanted
    #[arg(value_name = "AGENT", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new(), required_unless_present = "forget")]
    pub(crate) agent: Option<String>,

    /// What the agent is told: a text, @FILE, or - for standard input [default: - unless that is a terminal]
    #[arg(long, short, value_name = "TEXT|@FILE|-", value_hint = ValueHint::Other, allow_hyphen_values = true)]
    pub(crate) prompt: Option<String>,

    /// Structured input beside it: a JSON object, @FILE, or - for standard input
    #[arg(long, value_name = "JSON|@FILE|-", value_hint = ValueHint::Other)]
    pub(crate) context: Option<String>,

    /// The phase of the script, 1 to 9: uses the files of that phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) phase: Option<u8>,

    /// What that phase is called
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) phase_name: Option<String>,

    /// How long the agent may take, in seconds [default: 120]
    #[arg(long, value_name = "SECONDS", value_parser = crate::command::flags::seconds)]
    pub(crate) timeout: Option<f64>,

    /// The model that is wanted
    #[arg(long, value_name = "NAME", value_hint = ValueHint::Other)]
    pub(crate) model: Option<String>,

    /// What the answer must be
    #[arg(long, value_name = "FORMAT")]
    pub(crate) inner: Option<Inner>,

    /// Ask nothing, and forget what was asked and answered: a new run begins
    #[arg(long, conflicts_with_all = ["agent", "prompt", "context", "phase", "phase_name", "timeout", "model", "inner"])]
    pub(crate) forget: bool,

    /// The directory that the driver looks into [default: the one in CROSSPOINT_BRIDGE_DIR, else .]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
}

/// Answer a request yourself
///
/// Writes a valid response beside the request and removes the request. Without one of the options an editor is opened
/// ($VISUAL, $EDITOR) with the request shown in it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint bridge answer inbox/                              in an editor
  crosspoint bridge answer inbox/ --text 'Looks good to me.'
  crosspoint bridge answer inbox/ --json review.json           encoded as the contract wants it
  crosspoint bridge answer inbox/ --error 'I cannot read this file' --error-type unreadable

Exit codes: 0 answered, 1 there is no request, or it cannot be answered, 2 it could not be done.")]
#[command(group = clap::ArgGroup::new("said").args(["text", "json", "error"]))]
pub(crate) struct BridgeAnswer {
    /// The directory
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,

    /// The answer: a text, or - for standard input
    #[arg(long, value_name = "TEXT|-", value_hint = ValueHint::Other, allow_hyphen_values = true)]
    pub(crate) text: Option<String>,

    /// A file that holds one JSON value, or - for standard input
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// That it failed, and why
    #[arg(long, value_name = "MESSAGE", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) error: Option<String>,

    /// What sort of failure it is, for programs
    #[arg(long, value_name = "TYPE", requires = "error", default_value = "agent_failed", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) error_type: String,

    /// Which request, where several wait: the one of this phase
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=9))]
    pub(crate) phase: Option<u8>,
}

/// Say what waits in directories, since when, and what is wrong with it
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint bridge status
  crosspoint bridge status inbox/ ../other/
  crosspoint bridge status inbox/ --prompts                    for whoever is to answer
  crosspoint bridge status inbox/ --json | jq -r 'select(.state == \"waiting\") | .request_id'

Exit codes: 0 nothing is wrong, 1 something is, 2 a directory could not be looked at.")]
pub(crate) struct BridgeStatus {
    /// The directories
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) directories: Vec<PathBuf>,

    /// Also show what is asked, which is left out otherwise
    #[arg(long)]
    pub(crate) prompts: bool,

    /// One JSON object a request, on one line
    #[arg(long)]
    pub(crate) json: bool,
}
