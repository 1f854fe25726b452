//! `crosspoint bridge status`: what waits in directories, since when, and what is wrong with it.
//!
//! Nothing is changed, and nothing is shown of what was asked or answered: names, times, clauses and places alone. A
//! person who is to answer can have the prompts shown (`--prompts`).

mod view;

use std::io::{self, Write};
use std::path::Path;

use anyhow::Result;

use self::view::{DirectoryView, Problem, Seen};
use crate::Exit;
use crate::command::bridge::arguments::BridgeStatus;
use crate::terminal::render;
use crate::terminal::table::{self, Column, Fit};

const COLUMNS: [Column; 6] = [
    Column { head: "FILE", fit: Fit::Whole },
    Column { head: "AGENT", fit: Fit::Cut },
    Column { head: "PHASE", fit: Fit::Spare },
    Column { head: "SINCE", fit: Fit::Whole },
    Column { head: "LEFT", fit: Fit::Spare },
    Column { head: "STATE", fit: Fit::Whole },
];

pub(crate) fn run(arguments: &BridgeStatus) -> Result<Exit> {
    let mut outcome = Exit::Fine;
    let mut seen = Vec::new();
    for path in &arguments.directories {
        match view::look(path, arguments.prompts) {
            Ok(found) => seen.push((path.as_path(), found)),
            Err(fault) => {
                render::refused(&fault.to_string(), fault.hint());
                outcome = Exit::CouldNot;
            }
        }
    }
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if arguments.json {
        for (path, found) in &seen {
            found.requests.iter().try_for_each(|one| writeln!(out, "{}", one.json(path)))?;
        }
    } else {
        print(&mut out, &seen)?;
    }
    let wrong = seen.iter().flat_map(|(_, found)| &found.requests).any(Seen::is_wrong);
    Ok(if wrong { outcome.max(Exit::NotFine) } else { outcome })
}

fn print(out: &mut impl Write, seen: &[(&Path, DirectoryView)]) -> io::Result<()> {
    let now = jiff::Timestamp::now();
    let requests = || seen.iter().flat_map(|(path, found)| found.requests.iter().map(|one| (*path, one)));
    let rows: Vec<Vec<String>> = requests().map(|(path, one)| row(path, one, now)).collect();
    if !rows.is_empty() {
        table::print(out, &COLUMNS, &rows)?;
    }
    for (path, one) in requests() {
        ask(out, path, one)?;
    }
    if requests().any(|(_, one)| !one.problems.is_empty()) {
        writeln!(out)?;
    }
    for (path, one) in requests() {
        for problem in &one.problems {
            explain(out, path, problem)?;
        }
    }
    for (path, found) in seen {
        if found.requests.is_empty() {
            render::note(&render::visible(&format!("nothing waits in {}", path.display())));
        }
        for (name, what) in &found.leftovers {
            writeln!(out, "{}: {what}", shown(path, name))?;
        }
    }
    Ok(())
}

fn row(path: &Path, one: &Seen, now: jiff::Timestamp) -> Vec<String> {
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let phase = one.phase.map(|phase| match &one.phase_name {
        Some(name) => format!("{phase} {name}"),
        None => phase.to_string(),
    });
    vec![
        shown(path, &one.file),
        or_dash(one.agent_name.clone()),
        or_dash(phase),
        or_dash(one.since.map(|since| table::age(since, now))),
        or_dash(left(one, now)),
        one.state.name().replace('_', " "),
    ]
}

/// How much is left of the time that the requester gives.
fn left(one: &Seen, now: jiff::Timestamp) -> Option<String> {
    let until = one.until?;
    // A requester's clock that runs ahead gives no more time.
    let from = one.since?.max(now);
    Some(if until <= from { "none".to_owned() } else { table::age(from, until) })
}

/// Prints what is asked, if it is to be shown.
fn ask(out: &mut impl Write, path: &Path, one: &Seen) -> io::Result<()> {
    let Some(prompt) = &one.prompt else { return Ok(()) };
    writeln!(out, "\n{}:", shown(path, &one.file))?;
    prompt.lines().try_for_each(|line| writeln!(out, "  {}", render::visible(line)))
}

fn explain(out: &mut impl Write, path: &Path, problem: &Problem) -> io::Result<()> {
    let name = shown(path, &problem.file);
    if let Some(finding) = &problem.finding {
        return render::finding(out, &name, finding);
    }
    let (style, bold, dim) = (render::level(problem.level()), render::bold(), render::dim());
    let clause = problem.clause.map(|clause| format!("[{}]", clause.id)).unwrap_or_default();
    let message = render::visible(&problem.message);
    writeln!(out, "{style}{}{clause}{style:#}{bold}: {message}{bold:#}", problem.level().name())?;
    writeln!(out, " {dim}-->{dim:#} {name}")?;
    writeln!(out, "  {dim}={dim:#} hint: {}\n", render::visible(&problem.hint))
}

/// The path of a file of a directory, as it would be typed.
fn shown(path: &Path, file: &str) -> String {
    let path = if path == Path::new(".") { Path::new(file).to_owned() } else { path.join(file) };
    render::visible(&path.display().to_string())
}
