//! `crosspoint token`: tokens are made, listed, replaced and revoked.

use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::{fmt, fs};

use anyhow::{Context, Result};
use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Exit;
use crate::client::{self, Client, Failed, Need, segment};
use crate::command::flags::Reach;
use crate::terminal::table::{self, Column, Fit};
use crate::terminal::{json, render};

/// Make, list, replace and revoke the tokens that show who asks
#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint token create ops --for admin --out .crosspoint/token
  crosspoint token create upstream --for caller --expires 90d
  crosspoint token create infra-1 --for agent
  crosspoint token list
  crosspoint token rotate upstream --overlap 1h
  crosspoint token revoke upstream

With the first token for a caller or for admin the server is closed: every request but those for its health, schemas
and description needs a token. Commands find theirs in CROSSPOINT_TOKEN, in the file that CROSSPOINT_TOKEN_FILE names,
or in the file \"token\" of the data directory, which is not used with --server and CROSSPOINT_SERVER. A token is printed
once, and only a digest of it is kept.")]
pub(crate) struct Token {
    #[command(subcommand)]
    pub(crate) action: TokenAction,
}

#[derive(Subcommand)]
pub(crate) enum TokenAction {
    /// Make a token, and print it
    Create(TokenCreate),
    /// List the tokens, and nothing of what they are
    List(TokenList),
    /// Make a token useless, for good
    Revoke(TokenRevoke),
    /// Replace a token, and print the new one
    Rotate(TokenRotate),
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint token create ops --for admin --out .crosspoint/token
  crosspoint token create upstream --for caller --expires 90d
  crosspoint token create infra-key --for agent --agent infra-1

A caller sees the jobs that were submitted with its token, and no others. A name is given once and for all, so that
no later token inherits its jobs.")]
pub(crate) struct TokenCreate {
    /// What it is called; a caller's jobs are found by this name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// What it is for
    #[arg(long = "for", value_enum)]
    pub(crate) role: RoleName,

    /// The agent whose token it is [default: NAME]
    #[arg(long, value_name = "AGENT", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) agent: Option<String>,

    /// How long it is good, as 90d, 12h, 30m or 45s [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires: Option<u64>,

    #[command(flatten)]
    pub(crate) made: Made,
}

#[derive(Args)]
pub(crate) struct TokenList {
    /// One JSON object a token, on one line
    #[arg(long)]
    pub(crate) json: bool,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
pub(crate) struct TokenRevoke {
    /// The token's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Args)]
#[command(after_help = "\
Examples:
  crosspoint token rotate upstream --overlap 1h        the old token is good for another hour
  crosspoint token rotate upstream                     the old token is useless at once
  crosspoint token rotate upstream --expires 90d       the new one is good for 90 days

The new token is good for as long as the old one was made for, counted from now, unless --expires says otherwise. A
token that has expired is renewed; one that was revoked is not. Only one old token is good beside the new one: rotating
again during an overlap ends the older one at once.")]
pub(crate) struct TokenRotate {
    /// The token's name
    #[arg(value_name = "NAME", value_hint = ValueHint::Other, value_parser = NonEmptyStringValueParser::new())]
    pub(crate) name: String,

    /// How long the old token is good beside the new one
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) overlap: Option<u64>,

    /// How long the new token is good, as 90d, 12h, 30m or 45s [default: as long as the old one, from now on]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) expires: Option<u64>,

    #[command(flatten)]
    pub(crate) made: Made,
}

/// Where a new token goes
#[derive(Args)]
pub(crate) struct Made {
    /// Write the token into this new file, readable by you alone, and not to stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) out: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RoleName {
    /// Submit jobs, and see its own
    Caller,
    /// Work as one agent
    Agent,
    /// Everything but working as an agent
    Admin,
}

const COLUMNS: [Column; 5] = [
    Column { head: "NAME", fit: Fit::Whole },
    Column { head: "FOR", fit: Fit::Whole },
    Column { head: "CREATED", fit: Fit::Spare },
    Column { head: "EXPIRES", fit: Fit::Whole },
    Column { head: "STATE", fit: Fit::Cut },
];

/// A token as the server shows it.
#[derive(Deserialize)]
struct Shown {
    name: String,
    #[serde(rename = "for")]
    role: String,
    agent: Option<String>,
    /// Servers of earlier versions do not say it.
    state: Option<String>,
    created_at: Option<String>,
    expires_at: Option<String>,
    revoked_at: Option<String>,
    former_until: Option<String>,
    configured: bool,
}

/// A token that was just made. It prints itself nowhere.
#[derive(Deserialize)]
struct New {
    token: Secret,
    former_until: Option<String>,
}

#[derive(Deserialize)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

#[derive(Deserialize)]
struct Page {
    tokens: Vec<Value>,
}

pub(crate) fn run(arguments: &Token) -> Result<Exit> {
    match &arguments.action {
        TokenAction::Create(create) => client::with(&create.made.reach, Need::Often, async |client| {
            let role = match create.role {
                RoleName::Caller => "caller",
                RoleName::Agent => "agent",
                RoleName::Admin => "admin",
            };
            let body = json!({
                "name": create.name, "for": role, "agent": create.agent, "expires_seconds": create.expires,
            });
            let target = Target::open(&create.made)?;
            let made = target.take(client, client.post("/api/v1/tokens", body.to_string()).await)?;
            if create.role == RoleName::Agent {
                note_configured(client, create.agent.as_ref().unwrap_or(&create.name)).await;
            }
            Ok(made)
        }),
        TokenAction::List(list) => client::with(&list.reach, Need::Existing, async |client| show(client, list).await),
        TokenAction::Revoke(revoke) => client::with(&revoke.reach, Need::Existing, async |client| {
            let is_last = is_last_admin(client, &revoke.name).await;
            client.post(&path(&revoke.name, "revoke"), String::new()).await.map_err(no_such_token)?;
            writeln!(io::stdout(), "token {} is revoked", render::visible(&revoke.name))?;
            if is_last {
                render::note(
                    "no token for admin is good now; commands of the server's own user need none, without --server",
                );
            }
            Ok(Exit::Fine)
        }),
        TokenAction::Rotate(rotate) => client::with(&rotate.made.reach, Need::Existing, async |client| {
            let body = json!({ "overlap_seconds": rotate.overlap, "expires_seconds": rotate.expires });
            let target = Target::open(&rotate.made)?;
            target.take(client, client.post(&path(&rotate.name, "rotate"), body.to_string()).await)
        }),
    }
}

fn path(name: &str, what: &str) -> String {
    format!("/api/v1/tokens/{}/{what}", segment(name))
}

/// Says so if the agent may never show the token, because the server calls it. The token is made all the same: some
/// configured agents call the server.
async fn note_configured(client: &Client, agent: &str) {
    let Ok(text) = client.get(&format!("/api/v1/agents/{}", segment(agent))).await else { return };
    let Ok(known) = client.read::<client::Agent>(&text) else { return };
    if known.configured == Some(true) {
        render::note(&format!(
            "the agent {} is in the configuration: if the server calls it, it never shows this token, and what the \
             server shows it is in `token_file` of its [[agent]]",
            render::visible(agent)
        ));
    }
}

/// Whether no other token for admin is good.
async fn is_last_admin(client: &Client, name: &str) -> bool {
    let Ok(page) = tokens(client).await else { return false };
    let is_admin = |token: &&Shown| token.role == "admin" && token.is_good();
    let (own, others): (Vec<_>, Vec<_>) = page.iter().filter(is_admin).partition(|token| token.name == name);
    !own.is_empty() && others.is_empty()
}

async fn tokens(client: &Client) -> Result<Vec<Shown>, Failed> {
    let page: Page = client.read(&client.get("/api/v1/tokens").await?)?;
    page.tokens.iter().map(|token| client.read(&token.to_string())).collect()
}

/// Replaces the API's hint, which is written for callers over HTTP.
fn no_such_token(failed: Failed) -> Failed {
    failed.hinted(StatusCode::NOT_FOUND, "crosspoint token list shows the tokens there are")
}

/// Where a new token goes. A file is opened first, so that no token is made that cannot be written.
enum Target {
    Stdout,
    File(fs::File, PathBuf),
}

impl Target {
    fn open(made: &Made) -> Result<Target> {
        let Some(path) = &made.out else { return Ok(Target::Stdout) };
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
        let shown = render::visible(&path.display().to_string());
        let file = file.with_context(|| format!("{shown} cannot be made; an existing file is not written over"))?;
        Ok(Target::File(file, path.clone()))
    }

    fn take(self, client: &Client, answer: Result<String, Failed>) -> Result<Exit> {
        let text = match answer {
            Ok(text) => text,
            Err(failed) => {
                if let Target::File(_, path) = self {
                    // It is empty, and stays behind only if it cannot be removed.
                    let _ = fs::remove_file(path);
                }
                return Err(no_such_token(failed).into());
            }
        };
        let New { token: Secret(token), former_until } = client.read(&text)?;
        match self {
            Target::Stdout => {
                writeln!(io::stdout(), "{token}")?;
                if io::stdout().is_terminal() {
                    render::note("keep it now: it is shown this once, and only a digest of it is kept");
                }
            }
            Target::File(mut file, path) => {
                writeln!(file, "{token}")?;
                file.sync_all()?;
                render::note(&format!("the token is in {}", render::visible(&path.display().to_string())));
            }
        }
        if let Some(until) = former_until {
            render::note(&format!("the one before is good until {}; rotating again ends it at once", minute(&until)));
        }
        Ok(Exit::Fine)
    }
}

async fn show(client: &Client, arguments: &TokenList) -> Result<Exit> {
    let page: Page = client.read(&client.get("/api/v1/tokens").await?)?;
    let mut out = anstream::AutoStream::auto(io::stdout().lock());
    if arguments.json {
        page.tokens.iter().try_for_each(|token| writeln!(out, "{}", json::one_line(&token.to_string())))?;
        return Ok(Exit::Fine);
    }
    if page.tokens.is_empty() {
        render::note(
            "there are no tokens: every client that reaches the server may do everything; crosspoint token create --help",
        );
        return Ok(Exit::Fine);
    }
    let shown: Vec<Shown> =
        page.tokens.iter().map(|token| client.read(&token.to_string())).collect::<Result<_, Failed>>()?;
    table::print(&mut out, &COLUMNS, &shown.iter().map(row).collect::<Vec<_>>())?;
    Ok(Exit::Fine)
}

impl Shown {
    fn is_good(&self) -> bool {
        self.state.as_deref().map_or(self.revoked_at.is_none(), |state| state == "good")
    }
}

/// Returns a time of the API to the minute: `2026-11-17 23:07Z`.
fn minute(at: &str) -> String {
    let is_time = at.is_ascii() && at.len() > 16 && at.ends_with('Z');
    if is_time { format!("{} {}Z", &at[..10], &at[11..16]) } else { at.to_owned() }
}

fn row(token: &Shown) -> Vec<String> {
    let role = match &token.agent {
        Some(agent) if *agent != token.name => format!("{} {agent}", token.role),
        Some(_) | None => token.role.clone(),
    };
    let state = match token {
        Shown { revoked_at: Some(at), .. } => format!("revoked {}", minute(at)),
        Shown { configured: true, .. } => "configured".to_owned(),
        Shown { former_until: Some(until), .. } => format!("old until {}", minute(until)),
        Shown { state: Some(state), .. } => state.clone(),
        Shown { .. } => "good".to_owned(),
    };
    // Its day is enough, and leaves room for what the token is now.
    let created = token.created_at.as_deref().and_then(|at| at.get(..10)).unwrap_or_default().to_owned();
    let expires = token.expires_at.as_deref().map(minute).unwrap_or_default();
    vec![token.name.clone(), role, created, expires, state]
}

/// Reads a duration as people write it: a whole number and a unit.
fn duration(text: &str) -> Result<u64, &'static str> {
    const HINT: &str = "it must be a whole number and a unit, as 90d, 12h, 30m or 45s";
    let unit = text.chars().next_back().ok_or(HINT)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        _ => return Err(HINT),
    };
    let number: u64 = text[..text.len() - 1].parse().map_err(|_| HINT)?;
    number.checked_mul(seconds).filter(|seconds| *seconds > 0).ok_or(HINT)
}
