//! The banner that a server prints when it is ready: its address, its agents, and one command to try.

use std::env;
use std::io::{self, Write};
use std::path::Path;

use crosspoint_engine::runtime::Engine;
use crosspoint_exchange::listed::listed;

use super::listening::Address;
use crate::config::Config;
use crate::terminal::{fold, render};

/// The program's name if it is installed.
const PROGRAM: &str = "crosspoint";

/// Where what is said of a thing begins.
const INDENT: usize = 10;

/// Most agents, and most callers, that are shown.
const AGENTS_MAX: usize = 20;

pub(super) fn show(address: &Address, (config, is_closed): (&Config, bool), engine: &Engine) {
    // Written at once, so that no log line comes in between. A failed write to stderr cannot be reported anywhere.
    let mut banner = Vec::new();
    let _ = write(&mut banner, address, (config, is_closed), engine);
    let _ = anstream::stderr().lock().write_all(&banner);
}

fn write(
    out: &mut impl Write,
    address: &Address,
    (config, is_closed): (&Config, bool),
    engine: &Engine,
) -> io::Result<()> {
    let (bold, url) = (render::bold(), address.url());
    let version = env!("CARGO_PKG_VERSION");
    writeln!(out, "{bold}crosspoint {version}{bold:#} listens on {bold}{}{bold:#}", address.shown())?;
    if let Some(warning) = address.exposure(is_closed) {
        writeln!(out, "{}", fold::for_stderr(&format!("  {bold}insecure{bold:#} {warning}"), INDENT))?;
    }
    writeln!(out, "  data    {}", config.store.path.display())?;
    if is_closed {
        let tokens =
            "  tokens  every request needs one, but commands of this user here; crosspoint token list lists them";
        writeln!(out, "{}", fold::for_stderr(tokens, INDENT))?;
    }
    write_agents(out, engine)?;
    write_callers(out, config)?;
    let sample = engine.agents().iter().any(|agent| agent.spec.works.iter().any(|work| &**work == "slow_echo"));
    if sample {
        let input = r#"{"message":"hello"}"#;
        writeln!(out, "\nTry, in another terminal:")?;
        writeln!(out, "  {} submit slow_echo --input '{input}'{}", program(), server(&url, config, is_closed))?;
    }
    writeln!(out, "\nCtrl-C stops it.")
}

/// Prints some of the agents. Agents that joined are remembered, and there may be many.
fn write_agents(out: &mut impl Write, engine: &Engine) -> io::Result<()> {
    let (dim, agents) = (render::dim(), engine.agents());
    for (at, agent) in agents.iter().take(AGENTS_MAX).enumerate() {
        let head = if at == 0 { "agents" } else { "" };
        let works: Vec<&str> = agent.spec.works.iter().map(|work| &**work).collect();
        let works = render::visible(&listed(&works, "crosspoint agents show lists all"));
        let takes = if agent.joined.is_some() { "joined, takes" } else { "takes" };
        writeln!(out, "  {head:<7} {:<12} {dim}{takes}{dim:#} {works}", render::visible(&agent.spec.name))?;
    }
    match agents.len().saturating_sub(AGENTS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  {:<7} and {more} more; crosspoint agents list lists all", ""),
    }
}

/// Prints some of the callers, and how each is told.
fn write_callers(out: &mut impl Write, config: &Config) -> io::Result<()> {
    let dim = render::dim();
    for (at, caller) in config.callers.iter().take(AGENTS_MAX).enumerate() {
        let head = if at == 0 { "callers" } else { "" };
        let told = caller.callback.as_ref().map_or_else(|| "pulls".to_owned(), |url| format!("is told at {url}"));
        writeln!(out, "  {head:<7} {:<12} {dim}{told}{dim:#}", render::visible(&caller.name))?;
    }
    match config.callers.len().saturating_sub(AGENTS_MAX) {
        0 => Ok(()),
        more => writeln!(out, "  {:<7} and {more} more; crosspoint config show lists all", ""),
    }
}

/// Returns how a shell in any directory starts this very program: `cargo run` installs nothing on the path.
fn program() -> String {
    let Ok(this) = env::current_exe() else { return PROGRAM.to_owned() };
    let directories = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&directories).map(|directory| directory.join(PROGRAM)).find(|path| path.is_file());
    if found.is_some_and(|found| is_same(&found, &this)) { PROGRAM.to_owned() } else { quoted(&this.to_string_lossy()) }
}

fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Returns the option that names the server. With the default address and data directory, commands find it by
/// themselves. A server that asks for tokens is found through its data directory, where commands of its user need none.
fn server(url: &str, config: &Config, is_closed: bool) -> String {
    let default = Config::default();
    let is_default = config.server.listen == default.server.listen && config.data == default.data;
    if is_closed && config.data != default.data {
        let data = std::path::absolute(&config.data).unwrap_or_else(|_| config.data.clone());
        return format!(" --data {}", quoted(&data.to_string_lossy()));
    }
    if is_default || is_closed { String::new() } else { format!(" --server {}", quoted(url)) }
}

/// Quotes a text as one word of a shell.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%".contains(&byte);
    if word.bytes().all(is_plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for path in ["/opt/crosspoint", "/my tools/crosspoint", "/it's/$HOME/`x`/\"crosspoint\"", "/\u{e4}/;crosspoint"]
        {
            let command = format!("printf %s {}", quoted(path));
            let output = std::process::Command::new("sh").args(["-c", &command]).output().expect("there is a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), path);
        }
    }
}
