//! Agents that joined, as rows.

use std::sync::Arc;
use std::time::Duration;

use crosspoint_contracts::content::Block;
use crosspoint_contracts::time::Time;
use rusqlite::types::Type;
use rusqlite::{Connection, Row, Transaction, params};
use serde::{Deserialize, Serialize};

use crate::core::{Member, Spec};
use crate::policy::{OUTPUT_BYTES_DEFAULT, Policy, Recovery, Repeats, TOTAL_DEFAULT};

/// The part of a policy that an agent can set when it joins. Missing members have their defaults.
#[derive(Serialize, Deserialize)]
struct PolicyText {
    silence_micros: Option<u64>,
    total_micros: Option<u64>,
    repeats: bool,
    /// Whether only the same agent may repeat work. Missing in stores of earlier versions.
    #[serde(default)]
    same_agent: bool,
    recovery: RecoveryText,
    output_bytes: Option<u64>,
}

/// The words are in stores that exist: their meaning never changes.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RecoveryText {
    Rerun,
    Resume,
    ResumeOnce,
    Fail,
}

pub(super) fn write(transaction: &Transaction<'_>, member: &Member) -> rusqlite::Result<()> {
    let mut write = transaction.prepare_cached(
        "INSERT INTO member(name, contract, works, policy, lease, left_at, agent_type, concurrency, registration)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
         ON CONFLICT(name) DO UPDATE SET contract = ?2, works = ?3, policy = ?4, lease = ?5, left_at = ?6, agent_type = ?7,
            concurrency = ?8, registration = ?9",
    )?;
    let spec = &member.spec;
    let works: Vec<&str> = spec.works.iter().map(|work| &**work).collect();
    write.execute(params![
        &*spec.name,
        &*spec.contract,
        text(&works),
        text(&policy_text(&spec.policy)),
        micros(member.lease).cast_signed(),
        member.left_at.map(|at| at.0),
        spec.agent_type.as_deref(),
        spec.concurrency,
        member.registration.as_ref().map(|registration| &*registration.0),
    ])?;
    Ok(())
}

/// Removes an agent with its stored state, so that another agent of this name starts without it.
pub(super) fn forget(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    transaction.prepare_cached("DELETE FROM member WHERE name = ?1")?.execute([name])?;
    transaction.prepare_cached("DELETE FROM agent WHERE name = ?1")?.execute([name])?;
    Ok(())
}

pub(super) fn all(connection: &Connection) -> rusqlite::Result<Vec<Member>> {
    let sql = "SELECT name, contract, works, policy, lease, left_at, agent_type, concurrency, registration FROM member";
    let mut all = connection.prepare(sql)?;
    let one = |row: &Row<'_>| {
        let works: Vec<String> = serde_json::from_str(row.get_ref(2)?.as_str()?).unwrap_or_default();
        Ok(Member {
            spec: Spec {
                name: row.get(0)?,
                contract: row.get(1)?,
                works: works.into_iter().map(Arc::from).collect(),
                agent_type: row.get(6)?,
                awaited: false,
                concurrency: row.get(7)?,
                waiting_max: u32::MAX,
                policy: policy(row.get_ref(3)?.as_str()?),
            },
            lease: Duration::from_micros(row.get::<_, i64>(4)?.unsigned_abs()),
            left_at: row.get::<_, Option<i64>>(5)?.map(Time),
            registration: row.get::<_, Option<Vec<u8>>>(8)?.map(|registration| Block(registration.into())),
        })
    };
    all.query_map((), one)?.collect()
}

/// Checks that all rows can be read, with their works and policies.
pub(super) fn check(connection: &Connection) -> rusqlite::Result<()> {
    let mut all = connection.prepare("SELECT works, policy FROM member")?;
    let mut rows = all.query(())?;
    while let Some(row) = rows.next()? {
        let unreadable =
            |column: usize| move |error| rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error));
        serde_json::from_str::<Vec<&str>>(row.get_ref(0)?.as_str()?).map_err(unreadable(0))?;
        serde_json::from_str::<PolicyText>(row.get_ref(1)?.as_str()?).map_err(unreadable(1))?;
    }
    self::all(connection).map(drop)
}

fn policy_text(policy: &Policy) -> PolicyText {
    PolicyText {
        silence_micros: policy.silence.map(micros),
        total_micros: Some(micros(policy.total)),
        repeats: policy.repeats == Repeats::Always,
        same_agent: policy.repeats == Repeats::SameAgent,
        recovery: match policy.recovery {
            Recovery::Rerun => RecoveryText::Rerun,
            Recovery::Resume => RecoveryText::Resume,
            Recovery::ResumeOnce => RecoveryText::ResumeOnce,
            Recovery::Fail => RecoveryText::Fail,
        },
        output_bytes: Some(policy.output_bytes_max),
    }
}

/// Reads a policy. With a policy that cannot be read, nothing can be known about the agent's work.
fn policy(text: &str) -> Policy {
    let Ok(text) = serde_json::from_str::<PolicyText>(text) else {
        return Policy { recovery: Recovery::Fail, ..Policy::DEFAULT };
    };
    Policy {
        silence: text.silence_micros.map(Duration::from_micros),
        total: text.total_micros.map_or(TOTAL_DEFAULT, Duration::from_micros),
        repeats: match (text.repeats, text.same_agent) {
            (true, _) => Repeats::Always,
            (false, true) => Repeats::SameAgent,
            (false, false) => Repeats::BeforeStart,
        },
        recovery: match text.recovery {
            RecoveryText::Rerun => Recovery::Rerun,
            RecoveryText::Resume => Recovery::Resume,
            RecoveryText::ResumeOnce => Recovery::ResumeOnce,
            RecoveryText::Fail => Recovery::Fail,
        },
        output_bytes_max: text.output_bytes.unwrap_or(OUTPUT_BYTES_DEFAULT),
        ..Policy::DEFAULT
    }
}

fn text(value: &impl Serialize) -> String {
    // Strings and numbers can always be serialised.
    serde_json::to_string(value).unwrap_or_default()
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
