//! `crosspoint clauses`: prints the clauses as text, as JSON or as the page `docs/clauses.md`.

use std::io::{self, Write};

use anyhow::{Result, bail};
use clap::{Args, ValueEnum, ValueHint};
use crosspoint_contracts::Contract;
use crosspoint_contracts::clause::{self, Clause, Level, Scope};
use serde_json::json;

use crate::Exit;
use crate::terminal::render::{self, bold, dim};

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

fn which_help() -> String {
    format!("{}, all (what they share), or ids of clauses", Contract::ALL.map(Contract::name).join(", "))
}

pub(crate) fn run(arguments: &Clauses) -> Result<Exit> {
    let chosen = choose(&arguments.which)?;
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    match (arguments.format, chosen.as_slice()) {
        (ClauseFormat::Text, groups) => {
            for (_, clauses) in groups {
                match clauses {
                    [only] => detail(&mut out, only)?,
                    many => many.iter().try_for_each(|clause| line(&mut out, clause))?,
                }
            }
        }
        (ClauseFormat::Json, groups) => {
            for clause in groups.iter().flat_map(|(_, clauses)| *clauses) {
                writeln!(out, "{}", as_json(clause))?;
            }
        }
        (ClauseFormat::Markdown, groups) => page(&mut out, groups)?,
    }
    Ok(Exit::Fine)
}

type Group = (&'static str, &'static [&'static Clause]);

/// Returns the clauses that were asked for, grouped by contract.
fn choose(which: &[String]) -> Result<Vec<Group>> {
    let shared: Group = ("all", clause::shared());
    let contracts = Contract::ALL.map(|contract| (contract.name(), clause::of(contract)));
    let groups: Vec<Group> = std::iter::once(shared).chain(contracts).collect();
    if which.is_empty() {
        return Ok(groups);
    }
    which.iter().map(|name| find(name, &groups)).collect()
}

fn find(which: &str, groups: &[Group]) -> Result<Group> {
    for (name, clauses) in groups {
        // A contract is found by its name (`message`) and by the prefix of its clause ids (`msg`).
        let prefix = clauses.first().and_then(|clause| clause.id.split('-').next()).unwrap_or_default();
        if name.eq_ignore_ascii_case(which) || prefix.eq_ignore_ascii_case(which) {
            return Ok((name, clauses));
        }
        if let Some(at) = clauses.iter().position(|clause| clause.id.eq_ignore_ascii_case(which)) {
            return Ok((name, &clauses[at..=at]));
        }
    }
    let contracts: Vec<&str> = groups.iter().map(|(name, _)| *name).collect();
    bail!(
        "no contract and no clause is called {which:?}; contracts are {}, and clauses look like BRIDGE-2",
        contracts.join(", ")
    )
}

fn line(out: &mut impl Write, clause: &Clause) -> io::Result<()> {
    let level = render::level(clause.level);
    let (bold, dim) = (bold(), dim());
    writeln!(
        out,
        "{bold}{:<11}{bold:#} {level}{:<8}{level:#} {dim}{:<10}{dim:#} {}",
        clause.id,
        clause.level.name(),
        clause.scope.name(),
        clause.text
    )
}

fn detail(out: &mut impl Write, clause: &Clause) -> io::Result<()> {
    let level = render::level(clause.level);
    let (bold, dim) = (bold(), dim());
    writeln!(out, "{bold}{}{bold:#}  {}", clause.id, clause.text)?;
    writeln!(out, "  {dim}hint{dim:#}   {}", clause.hint)?;
    writeln!(out, "  {dim}level{dim:#}  {level}{}{level:#}, {}", clause.level.name(), scope_sentence(clause.scope))?;
    writeln!(out, "  {dim}source{dim:#} {}", clause.document)?;
    if !clause.implies.is_empty() {
        writeln!(out, "  {dim}implies{dim:#} {}", clause.implies.join(", "))?;
    }
    if !clause.shown_by.is_empty() {
        writeln!(out, "  {dim}shown by{dim:#} {}", clause.shown_by.join(", "))?;
    }
    Ok(())
}

fn scope_sentence(scope: Scope) -> &'static str {
    match scope {
        Scope::Document => "one document can break it",
        Scope::Exchange => "a conversation can break it",
        Scope::Operation => "a program's behaviour can break it",
    }
}

fn as_json(clause: &Clause) -> serde_json::Value {
    json!({
        "id": clause.id,
        "level": clause.level.name(),
        "scope": clause.scope.name(),
        "document": clause.document,
        "text": clause.text,
        "hint": clause.hint,
        "implies": clause.implies,
        "shown_by": clause.shown_by,
    })
}

/// Writes the page `docs/clauses.md`.
fn page(out: &mut impl Write, groups: &[Group]) -> io::Result<()> {
    let count: usize = groups.iter().map(|(_, clauses)| clauses.len()).sum();
    writeln!(out, "# Clauses\n")?;
    writeln!(
        out,
        "<!-- Written by scripts/generate from the clause tables of crates/crosspoint-contracts; a test keeps it fresh. -->\n"
    )?;
    writeln!(
        out,
        "The {count} rules that validation, error texts and these docs cite. Ids below 100 are this project's rulings on what the\n\
         contracts' documents leave open; from 101 up they are the documents' own sentences, the facts they rely on and what JSON\n\
         itself demands. An *error* is a must, a *warning* a should or an accepted looseness. A rule of scope *document* can be broken by one document, *exchange* by a conversation,\n\
         *operation* by how a program behaves.\n"
    )?;
    for (name, clauses) in groups {
        writeln!(out, "## {name}\n")?;
        writeln!(out, "| clause | level | scope | rule | how to mend it | source |\n|---|---|---|---|---|---|")?;
        for clause in *clauses {
            let level = match clause.level {
                Level::Error => "error",
                Level::Warning => "*warning*",
            };
            writeln!(
                out,
                "| **{}** | {level} | {} | {} | {} | {} |",
                clause.id,
                clause.scope.name(),
                cell(clause.text),
                cell(clause.hint),
                cell(clause.document)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// Escapes text so that it stays within one table cell.
fn cell(text: &str) -> String {
    text.replace('\\', "\\\\").replace('|', "\\|")
}
