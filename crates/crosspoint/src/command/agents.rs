//! `crosspoint agents`: lists and shows agents, sets their breakers, drains them and forgets them.

use std::io::{self, Write};

use anyhow::Result;
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use reqwest::StatusCode;
use serde_json::json;

use crate::Exit;
use crate::client::{self, Agent, AgentPage, Client, Failed, Heartbeat, Need, segment};
use crate::command::flags::Reach;
use crate::terminal::table::{self, Column, Fit};
use crate::terminal::{json, render};

/// Look at agents, open or close their breakers, drain them
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents list
  crosspoint agents show slow_echo
  crosspoint agents drain slow_echo              no new work for it; what it has goes on
  crosspoint agents drain slow_echo --resume
  crosspoint agents breaker slow_echo close      it is well again: try it now
  crosspoint agents forget shouter               it had joined, and will not come back")]
pub(crate) struct Agents {
    #[command(subcommand)]
    pub(crate) action: AgentsAction,
}

#[derive(Subcommand)]
pub(crate) enum AgentsAction {
    /// List the agents: what they take, and how busy they are
    List(AgentsList),
    /// Show one agent
    Show(AgentsShow),
    /// Show an agent's breaker, or open or close it
    Breaker(AgentsBreaker),
    /// Give an agent no new work, or let it have work again
    Drain(AgentsDrain),
    /// Forget an agent that joined and will not come back
    Forget(AgentsForget),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents list
  crosspoint agents list --json | jq -r 'select(.breaker.state != \"closed\") | .name'")]
pub(crate) struct AgentsList {
    /// One JSON object an agent, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents show slow_echo")]
pub(crate) struct AgentsShow {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents breaker slow_echo
  crosspoint agents breaker slow_echo open       no new work until it is closed again
  crosspoint agents breaker slow_echo close")]
pub(crate) struct AgentsBreaker {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    /// What to do with it; without it, it is shown
    #[arg(value_enum)]
    pub(crate) change: Option<BreakerChange>,

    /// As `open`, which users write as an option, too
    #[arg(long, hide = true, conflicts_with = "change")]
    pub(crate) open: bool,

    /// As `close`, which users write as an option, too
    #[arg(long, hide = true, conflicts_with_all = ["change", "open"])]
    pub(crate) close: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BreakerChange {
    /// No new work
    Open,
    /// Work again
    Close,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents drain slow_echo
  crosspoint agents drain slow_echo --resume")]
pub(crate) struct AgentsDrain {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    /// Let it have work again
    #[arg(long)]
    pub(crate) resume: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint agents forget shouter               its work is not known any more, unless others take it

It is refused while the agent is there or has work, and for agents of the configuration.")]
pub(crate) struct AgentsForget {
    #[command(flatten)]
    pub(crate) agent: AgentName,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct AgentName {
    /// The agent's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// The agent as one line of JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The column that says whether an agent refuses the server's token.
const TOKEN: &str = "TOKEN";

const COLUMNS: [Column; 7] = [
    Column { head: "NAME", fit: Fit::Whole },
    Column { head: "CONTRACT", fit: Fit::Whole },
    Column { head: "RUNNING", fit: Fit::Whole },
    Column { head: "BREAKER", fit: Fit::Whole },
    Column { head: "DRAINED", fit: Fit::Whole },
    Column { head: TOKEN, fit: Fit::Whole },
    Column { head: "WORK", fit: Fit::Cut },
];

pub(crate) fn run(arguments: &Agents) -> Result<Exit> {
    match &arguments.action {
        AgentsAction::List(list) => {
            client::with(&list.reach, Need::Existing, async |client| list_agents(client, list).await)
        }
        AgentsAction::Show(show) => client::with(&show.reach, Need::Existing, async |client| {
            print_agent(client, &show.agent, client.get(&path(&show.agent, "")).await)
        }),
        AgentsAction::Breaker(breaker) => client::with(&breaker.reach, Need::Existing, async |client| {
            let option = breaker.open.then_some(BreakerChange::Open);
            let option = option.or(breaker.close.then_some(BreakerChange::Close));
            let answer = match breaker.change.or(option) {
                None => client.get(&path(&breaker.agent, "")).await,
                Some(change) => {
                    let state = if change == BreakerChange::Open { "open" } else { "closed" };
                    client.post(&path(&breaker.agent, "/breaker"), json!({ "state": state }).to_string()).await
                }
            };
            print_agent(client, &breaker.agent, answer)
        }),
        AgentsAction::Drain(drain) => client::with(&drain.reach, Need::Existing, async |client| {
            let body = json!({ "drained": !drain.resume }).to_string();
            print_agent(client, &drain.agent, client.post(&path(&drain.agent, "/drain"), body).await)
        }),
        AgentsAction::Forget(forget) => client::with(&forget.reach, Need::Existing, async |client| {
            print_forgotten(&forget.agent, client.delete(&path(&forget.agent, "")).await)
        }),
    }
}

fn path(agent: &AgentName, what: &str) -> String {
    format!("/api/v1/agents/{}{what}", segment(&agent.name))
}

async fn list_agents(client: &Client, arguments: &AgentsList) -> Result<Exit> {
    let page: AgentPage = client.read(&client.get("/api/v1/agents").await?)?;
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if arguments.json {
        page.agents.iter().try_for_each(|agent| writeln!(out, "{}", json::one_line(agent.get())))?;
        return Ok(Exit::Fine);
    }
    let agents: Vec<Agent> = page.agents.iter().map(|agent| client.read(agent.get())).collect::<Result<_, Failed>>()?;
    // Tokens are shown only where one is refused: that is an operator's business, and rare.
    let has_refused = agents.iter().any(|agent| agent.token_refused_since.is_some());
    let is_shown = |column: &Column| has_refused || column.head != TOKEN;
    let rows = agents.iter().map(|agent| {
        let cells = COLUMNS.into_iter().zip(row(agent));
        cells.filter(|(column, _)| is_shown(column)).map(|(_, cell)| cell).collect()
    });
    let columns: Vec<Column> = COLUMNS.into_iter().filter(is_shown).collect();
    table::print(&mut out, &columns, &rows.collect::<Vec<Vec<String>>>())?;
    Ok(Exit::Fine)
}

fn row(agent: &Agent) -> Vec<String> {
    vec![
        agent.name.clone(),
        agent.contract.clone(),
        if agent.away_since.is_some() {
            "away".to_owned()
        } else {
            format!("{} of {}", agent.running, agent.concurrency)
        },
        agent.breaker.state.clone(),
        if agent.drained { "yes" } else { "no" }.to_owned(),
        if agent.token_refused_since.is_some() { "refused" } else { "" }.to_owned(),
        agent.work.join(", "),
    ]
}

/// Replaces the API's hint, which is written for callers over HTTP.
fn no_such_agent(failed: Failed) -> Failed {
    failed.hinted(StatusCode::NOT_FOUND, "crosspoint agents list shows the agents there are")
}

/// Says that the agent is there no more. With `--json`, as what it was.
fn print_forgotten(name: &AgentName, answer: Result<String, Failed>) -> Result<Exit> {
    let text = answer.map_err(no_such_agent)?;
    let mut out = io::stdout().lock();
    if name.json {
        writeln!(out, "{}", json::one_line(&text))?;
    } else {
        writeln!(out, "agent {} is forgotten", render::visible(&name.name))?;
    }
    Ok(Exit::Fine)
}

fn print_agent(client: &Client, name: &AgentName, answer: Result<String, Failed>) -> Result<Exit> {
    let text = answer.map_err(no_such_agent)?;
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if name.json {
        writeln!(out, "{}", json::one_line(&text))?;
        return Ok(Exit::Fine);
    }
    let agent: Agent = client.read(&text)?;
    let rows = [("agent", agent.name.clone()), ("contract", contract(&agent))];
    let of_type = agent.agent_type.iter().map(|name| ("type", name.clone()));
    let standing = [
        ("work", agent.work.join(", ")),
        ("running", running(&agent)),
        ("breaker", breaker(&agent)),
        ("drained", if agent.drained { "yes: it gets no new work" } else { "no" }.to_owned()),
    ];
    let joined = (agent.configured == Some(false)).then(|| ("configured", "no: it joined or registered".to_owned()));
    let away = agent.away_since.iter().map(|since| ("away", format!("since {since}: what comes for it waits")));
    let heartbeat = agent.heartbeat.iter().map(|beat| ("heartbeat", heartbeat(beat)));
    let token = agent.token_refused_since.iter().map(|since| ("token", refused_token(since)));
    let address = agent.address.iter().map(|address| ("address", address.clone()));
    let trouble =
        agent.cannot_connect.iter().map(|cause| ("unreached", format!("the last connection failed: {cause}")));
    let known = joined.into_iter().chain(away).chain(heartbeat).chain(token).chain(address).chain(trouble);
    for (name, value) in rows.into_iter().chain(of_type).chain(standing).chain(known) {
        let dim = render::dim();
        writeln!(out, "{dim}{name:<12}{dim:#}{}", render::visible(&value))?;
    }
    Ok(Exit::Fine)
}

/// Says how busy the agent is. While it is away, it has room for nothing, which is no limit of its own.
fn running(agent: &Agent) -> String {
    match agent.away_since {
        Some(_) => agent.running.to_string(),
        None => format!("{} of {}", agent.running, agent.concurrency),
    }
}

fn contract(agent: &Agent) -> String {
    let version = agent.protocol_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    format!("{}{version}", agent.contract)
}

fn heartbeat(beat: &Heartbeat) -> String {
    let resources = beat.resources.as_ref().map(|resources| format!(", {}", json::one_line(resources.get())));
    format!("{} at {}{}", beat.status, beat.at, resources.unwrap_or_default())
}

fn refused_token(since: &str) -> String {
    format!("refused by the agent since {since}: look at its token_file, and restart the server")
}

fn breaker(agent: &Agent) -> String {
    let breaker = &agent.breaker;
    match (breaker.state.as_str(), &breaker.until) {
        ("open", Some(until)) => format!("open until {until}"),
        ("open", None) => "open until it is closed by hand".to_owned(),
        ("closed", _) if breaker.failures == 1 => "closed, 1 failure".to_owned(),
        ("closed", _) if breaker.failures > 0 => format!("closed, {} failures in a row", breaker.failures),
        (state, _) => state.replace('_', " "),
    }
}
