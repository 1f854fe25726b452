//! `crosspoint store check`: checks the store and prints what is wrong with it.

use std::io::{self, Write};
use std::path::Path;

use anstyle::AnsiColor;
use anyhow::Result;
use crosspoint_engine::store::check::{self, CheckNote, Checked, Finding, TOLD_MAX};
use serde::Serialize;

use super::progress::Progress;
use crate::Exit;
use crate::command::store::arguments::StoreCheck;
use crate::terminal::render;

/// The last line of `--json`.
#[derive(Serialize)]
struct Sum {
    whole: bool,
    jobs: u64,
    events: u64,
    findings: u64,
}

/// One line of `--json`.
#[derive(Serialize)]
struct Line<'f> {
    #[serde(flatten)]
    finding: &'f Finding,
    hint: &'static str,
}

pub(super) fn check(path: &Path, arguments: &StoreCheck) -> Result<Exit> {
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    let progress = Progress::new();
    let mut written = Ok(());
    let checked = check::check(path, &mut |note| match note {
        CheckNote::Progress { what, at, of } => progress.show(what, at, of),
        CheckNote::Finding(finding) if written.is_ok() => {
            written = progress.suspend(|| print(&mut out, &finding, arguments.json));
        }
        CheckNote::Finding(_) => {}
    })?;
    drop(progress);
    written?;
    if arguments.json {
        let Checked { jobs, events, findings } = checked;
        writeln!(out, "{}", serde_json::to_string(&Sum { whole: findings == 0, jobs, events, findings })?)?;
    } else {
        writeln!(out, "{}", summary(path, checked))?;
    }
    Ok(if checked.findings == 0 { Exit::Fine } else { Exit::NotFine })
}

fn print(out: &mut impl Write, finding: &Finding, json: bool) -> io::Result<()> {
    let hint = finding.flaw.hint();
    if json {
        return writeln!(out, "{}", serde_json::to_string(&Line { finding, hint })?);
    }
    let red = AnsiColor::Red.on_default().bold();
    let job = match (finding.id, finding.seq) {
        (Some(id), _) => format!("job {id}: "),
        (None, Some(seq)) => format!("job number {}: ", seq.0),
        (None, None) => String::new(),
    };
    let (name, what) = (finding.flaw.name(), render::visible(&finding.what));
    writeln!(out, "{red}error[{name}]{red:#}: {job}{what}\n  = hint: {hint}")
}

fn summary(path: &Path, checked: Checked) -> String {
    let path = render::visible(&path.display().to_string());
    let (green, red) = (AnsiColor::Green.on_default().bold(), AnsiColor::Red.on_default().bold());
    let Checked { jobs, events, findings } = checked;
    let looked_at = format!("{jobs} jobs, {events} events");
    match findings {
        0 => format!("{green}ok{green:#}: {path} is whole: {looked_at}"),
        1 => format!("{red}damaged{red:#}: {path}: 1 error; {looked_at}"),
        _ if findings > TOLD_MAX => {
            format!(
                "{red}damaged{red:#}: {path}: {findings} errors, of which the first {TOLD_MAX} are shown; {looked_at}"
            )
        }
        _ => format!("{red}damaged{red:#}: {path}: {findings} errors; {looked_at}"),
    }
}
