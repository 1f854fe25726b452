//! Prints the configuration in effect as a configuration file, with the source of every value.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::key::{AGENT, SECTIONS};
use super::kind::Value;
use super::load::{Loaded, Origin};
use super::{Agent, Contract, Exec, bridge, exec, message, remote};
use crate::terminal::render;

/// The column in which remarks begin, if the values leave room.
const REMARK_COLUMN: usize = 44;

/// Prints the configuration as TOML.
pub(crate) fn show(out: &mut impl Write, loaded: &Loaded) -> io::Result<()> {
    let config = &loaded.config;
    let data = render::visible(&config.data.display().to_string());
    writeln!(out, "# data directory: {data} ({})", origin_of(loaded, "data"))?;
    for section in &SECTIONS {
        writeln!(out, "\n[{}]", section.name)?;
        for key in section.keys {
            let value = (key.get)(config).filter(|_| may_be_shown(key.name));
            let origin = origin_of(loaded, &format!("{}.{}", section.name, key.name));
            match config.limits.in_force(key.name).filter(|_| value.is_none() && section.name == "limits") {
                Some((most, whose)) => {
                    remarked(out, &format!("# {} is {most}", key.name), &format!("{origin}{whose}"))?;
                }
                None => line(out, key.name, value.as_ref(), &origin)?,
            }
        }
    }
    for (index, agent) in config.agents.iter().enumerate() {
        show_agent(out, loaded, agent, loaded.agent_lines.get(index))?;
    }
    for (name, schemas) in config.schemas.works() {
        let lines = loaded.work_lines.get(name);
        let origin = |key: &str| {
            lines.and_then(|lines| lines.get(key)).map_or_else(|| "default".to_owned(), |at| at_line(loaded, *at))
        };
        writeln!(out, "\n[[work]]")?;
        line(out, "name", Some(&Value::Text(name.clone())), &origin("name"))?;
        for (key, schema) in [("input_schema", &schemas.input), ("output_schema", &schemas.output)] {
            let written = schema.as_ref().map(|schema| Value::Text(schema.written.clone()));
            line(out, key, written.as_ref(), &origin(key))?;
        }
    }
    for (caller, lines) in config.callers.iter().zip(&loaded.caller_lines) {
        writeln!(out, "\n[[caller]]")?;
        for (key, value) in caller.shown() {
            let origin = lines.get(key).map_or_else(|| "default".to_owned(), |at| at_line(loaded, *at));
            line(out, key, value.as_ref(), &origin)?;
        }
    }
    Ok(())
}

/// Whether a key's value may be shown. Secrets are given by the name of a file, or their keys have one of these
/// endings.
fn may_be_shown(key: &str) -> bool {
    !key.ends_with("token") && !key.ends_with("password") && !key.ends_with("secret")
}

fn origin_of(loaded: &Loaded, key: &str) -> String {
    match loaded.origins.get(key) {
        None => "default".to_owned(),
        Some(Origin::File(line)) => at_line(loaded, *line),
        Some(Origin::Environment(variable)) => format!("environment {variable}"),
        Some(Origin::Flag(flag)) => format!("flag {flag}"),
    }
}

fn at_line(loaded: &Loaded, line: usize) -> String {
    let path = loaded.config.origin.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    format!("file {}:{line}", render::visible(&path))
}

fn show_agent(
    out: &mut impl Write,
    loaded: &Loaded,
    agent: &Agent,
    lines: Option<&BTreeMap<String, usize>>,
) -> io::Result<()> {
    let origin = |key: &str| match lines {
        None => "sample agent".to_owned(),
        Some(lines) => lines.get(key).map_or_else(|| "default".to_owned(), |at| at_line(loaded, *at)),
    };
    let text = |text: &str| Some(Value::Text(text.to_owned()));
    writeln!(out, "\n[[agent]]")?;
    line(out, "name", text(&agent.name).as_ref(), &origin("name"))?;
    line(out, "contract", text(agent.contract.name()).as_ref(), &origin("contract"))?;
    match &agent.contract {
        Contract::Builtin(builtin) => line(out, "run", text(builtin.name()).as_ref(), &origin("run"))?,
        Contract::Exec(exec) => show_exec(out, exec, &origin)?,
        Contract::Remote(settled) => {
            for (key, value) in settled.shown() {
                line(out, key, value.as_ref(), &origin(key))?;
            }
            for key in &remote::KEYS {
                line(out, key.name, (key.get)(settled).as_ref(), &origin(key.name))?;
            }
        }
        Contract::Messages(settled) => {
            for (key, value) in settled.shown() {
                line(out, key, value.as_ref(), &origin(key))?;
            }
            for key in &message::KEYS {
                line(out, key.name, (key.get)(settled).as_ref(), &origin(key.name))?;
            }
        }
        Contract::Directory(settled) => {
            line(out, "dir", settled.shown().as_ref(), &origin("dir"))?;
            for key in &bridge::KEYS {
                line(out, key.name, (key.get)(settled).as_ref(), &origin(key.name))?;
            }
        }
    }
    let work: Vec<String> = agent.work.iter().map(|work| Value::Text(work.clone()).to_string()).collect();
    remarked(out, &format!("work = [{}]", work.join(", ")), &origin("work"))?;
    for key in &AGENT {
        line(out, key.name, (key.get)(agent).as_ref(), &origin(key.name))?;
    }
    Ok(())
}

/// Prints a program. Only the names of its variables are shown: their values may be secrets.
fn show_exec(out: &mut impl Write, exec: &Exec, origin: &impl Fn(&str) -> String) -> io::Result<()> {
    let argv: Vec<String> = exec.argv.iter().map(|argument| Value::Text(argument.clone()).to_string()).collect();
    remarked(out, &format!("exec = [{}]", argv.join(", ")), &origin("exec"))?;
    if !exec.env.is_empty() {
        let names: Vec<String> = exec.env.keys().map(|name| render::visible(name)).collect();
        remarked(out, &format!("# env has {}; values are not shown", names.join(", ")), &origin("env"))?;
    }
    for key in exec::keys_of(exec.speaks) {
        line(out, key.name, (key.get)(exec).as_ref(), &origin(key.name))?;
    }
    Ok(())
}

fn line(out: &mut impl Write, key: &str, value: Option<&Value>, origin: &str) -> io::Result<()> {
    match value {
        Some(value) => remarked(out, &format!("{key} = {value}"), origin),
        None => remarked(out, &format!("# {key} is not set"), origin),
    }
}

fn remarked(out: &mut impl Write, text: &str, origin: &str) -> io::Result<()> {
    writeln!(out, "{text:<REMARK_COLUMN$} # {origin}")
}
