//! An answer that is written in an editor, with the request shown below a cut line.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use crosspoint_bridge::request::Request;
use uuid::Uuid;

use super::prompt_of;
use crate::terminal::render;

/// Nothing is read from this line on.
const CUT: &str = "# ------------------------ >8 ------------------------";

const FILE: &str = "ANSWER.md";

/// A private directory for the file. It is removed on drop, unless it is to be kept.
struct Draft {
    path: PathBuf,
    kept: bool,
}

impl Draft {
    fn new() -> Result<Draft> {
        let path = std::env::temp_dir().join(format!("crosspoint-answer-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Draft { path, kept: false })
    }

    fn write(&self, text: &str) -> Result<PathBuf> {
        let path = self.path.join(FILE);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(text.as_bytes())?;
        Ok(path)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.kept {
            // What cannot be removed is cleared away with everything else in the temporary directory.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Returns what the person writes; `None` if that is nothing, which was printed.
pub(super) fn text(request: Option<&Request>) -> Result<Option<String>> {
    let mut draft = Draft::new()?;
    let path = draft.write(&shown(request))?;
    if !edited(&path)? {
        render::refused("nothing was answered: the editor failed", "the request waits as before");
        return Ok(None);
    }
    let written = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let Ok(written) = String::from_utf8(written) else {
        draft.kept = true;
        bail!("{} is not UTF-8; it is kept", path.display());
    };
    let Some(answer) = answer(&written) else {
        draft.kept = true;
        let hint = format!(
            "what is above it is the answer; yours is kept in {}: give it with --text - < FILE",
            path.display()
        );
        render::refused("nothing was answered: the line that ends the answer was removed", &hint);
        return Ok(None);
    };
    if answer.trim().is_empty() {
        render::refused(
            "nothing was answered: the answer is empty",
            "the request waits as before; --text '' answers with nothing",
        );
        return Ok(None);
    }
    Ok(Some(answer.to_owned()))
}

/// Keeps an answer that could not be given, and prints where.
pub(super) fn keep(text: &str) {
    let kept = Draft::new().and_then(|mut draft| {
        draft.kept = true;
        draft.write(text)
    });
    if let Ok(path) = kept {
        render::note(&render::visible(&format!("the answer is kept in {}", path.display())));
    }
}

/// Returns what is above the cut; `None` if there is no cut.
fn answer(written: &str) -> Option<&str> {
    let mut end = 0;
    for line in written.split_inclusive('\n') {
        if line.trim_end() == CUT {
            return Some(written[..end].trim_matches(['\n', '\r']));
        }
        end += line.len();
    }
    None
}

/// The text that the editor begins with.
fn shown(request: Option<&Request>) -> String {
    let mut lines = vec![
        String::new(),
        CUT.to_owned(),
        "# Write the answer above this line. From it on nothing is read, and an empty answer answers nothing."
            .to_owned(),
        "#".to_owned(),
    ];
    let Some(request) = request else {
        lines.push("# The request is too large to be shown.".to_owned());
        return lines.join("\n") + "\n";
    };
    lines.push(format!("# agent: {}", request.agent_name.replace('\n', " ")));
    if let Some(phase) = request.phase {
        let name = request.phase_name.as_deref().map(|name| format!(" ({})", name.replace('\n', " ")));
        lines.push(format!("# phase: {phase}{}", name.unwrap_or_default()));
    }
    lines.extend(["# prompt:".to_owned(), String::new(), prompt_of(request)]);
    lines.join("\n") + "\n"
}

/// Opens the editor; returns whether it ended well. It is run as a command of the shell, as is usual.
fn edited(path: &Path) -> Result<bool> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let named = of("VISUAL").or_else(|| of("EDITOR"));
    if named.is_none() && !io::stdin().is_terminal() {
        bail!("there is no terminal to edit in; use --text, --json or --error, or set VISUAL or EDITOR");
    }
    let editor = named.unwrap_or_else(|| "vi".into());
    let mut words = editor.clone();
    words.push(" \"$@\"");
    let status = Command::new("sh").arg("-c").arg(words).arg(&editor).arg(path).status();
    let status = status.context("cannot run the shell that opens the editor")?;
    if matches!(status.code(), Some(126 | 127)) {
        bail!("the editor {} cannot be run; set VISUAL or EDITOR, or use --text", editor.display());
    }
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_above_the_cut_is_the_answer() {
        assert_eq!(answer(&shown(None)), Some(""));
        assert_eq!(answer(&format!("\nLine 1\n\nLine 2  \n\n{CUT}\nrest\n{CUT}\n")), Some("Line 1\n\nLine 2  "));
        assert_eq!(answer(&format!("a\r\n{CUT}\r\n")), Some("a"));
        assert_eq!(answer("a\nb\n"), None, "what is shown below would be part of it");
    }
}
