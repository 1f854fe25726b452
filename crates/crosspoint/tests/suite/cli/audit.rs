//! `crosspoint store export --audit`: who did what, and nothing that lets anybody in.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crosspoint_contracts::time::Time;
use crosspoint_engine::audit::{Act, Deed};
use crosspoint_engine::core::Batch;
use crosspoint_engine::grant::{Digest, Grant, Role};
use crosspoint_engine::id::{JobId, Seq};
use crosspoint_engine::store::{Options, Store};
use serde_json::{Value, json};

use crate::support::program::{crosspoint, root, stdout, transcript};

/// The bytes of a digest, which are text so that they would be found in any output.
const DIGEST: &[u8; 32] = b"DIGEST-DIGEST-DIGEST-DIGEST-DIGE";

/// A directory with a store, removed when the test is over.
struct Kept(PathBuf);

impl Drop for Kept {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn kept(name: &str) -> Kept {
    let data = std::env::temp_dir().join(format!("crosspoint-audit-{name}-{}", std::process::id()));
    fs::create_dir_all(&data).expect("a directory can be made");
    Kept(data)
}

/// A second of the year 2026.
fn at(second: i64) -> Time {
    Time(1_770_000_000_000_000 + second * 1_000_000)
}

fn job() -> JobId {
    JobId::new(Seq(1), at(0), 7)
}

/// A store with a grant and three entries.
fn filled(name: &str) -> Kept {
    let kept = kept(name);
    let options = Options { path: kept.0.join("jobs.db"), bytes_max: None };
    let (mut store, _) = Store::open(&options).expect("it opens");
    let grant = Grant {
        name: "ann".into(),
        role: Role::Caller,
        digest: Digest::from_bytes(*DIGEST),
        created_at: at(0),
        expires_at: None,
        revoked_at: None,
        former: None,
    };
    let read = Deed { object: Some("document".into()), ..Act::Read.to_job(job()) };
    let audit = vec![
        Act::TokenCreate.to("ann").by(&"root".into(), at(0)),
        Act::Submit.to_job(job()).by(&"ann".into(), at(1)),
        read.by(&"ann".into(), at(2)),
    ];
    let grants = [(grant.name.clone(), Arc::new(grant))].into();
    store.commit(&Batch { grants, audit, ..Batch::default() }).expect("it commits");
    kept
}

fn exported(data: &Path, more: &[&str]) -> String {
    stdout(crosspoint(&["store", "export"]).args(more).arg("--data").arg(data))
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

#[test]
fn the_audit_is_exported_as_lines_with_ids_and_names() {
    let kept = filled("lines");
    let lines = lines(&exported(&kept.0, &["--audit"]));
    assert_eq!(lines[0]["kind"], "store");
    let id = job().to_string();
    let line = |seq: i64, who: &str, act: &str, job: Option<&str>, object: Option<&str>| {
        let at = at(seq - 1).to_string();
        json!({"kind": "audit", "seq": seq, "at": at, "who": who, "act": act, "job": job, "object": object})
    };
    let expected = [
        line(1, "root", "token_create", None, Some("ann")),
        line(2, "ann", "submit", Some(&id), None),
        line(3, "ann", "read", Some(&id), Some("document")),
        json!({"kind": "end", "entries": 3, "unread": 0}),
    ];
    assert_eq!(lines[1..], expected);
    let since = at(2).to_string();
    assert_eq!(
        self::lines(&exported(&kept.0, &["--audit", "--since", &since]))[1..],
        [expected[2].clone(), json!({"kind": "end", "entries": 1, "unread": 0})]
    );
}

#[test]
fn no_export_has_a_digest() {
    let kept = filled("digests");
    let database = fs::read(kept.0.join("jobs.db")).expect("it is there");
    assert!(database.windows(DIGEST.len()).any(|window| window == DIGEST), "the store has it");
    for more in [&[][..], &["--audit"]] {
        let text = exported(&kept.0, more);
        assert!(!text.to_lowercase().contains("digest"), "{text}");
        // As base64 and as hexadecimal digits.
        assert!(!text.contains("RElHRVNU") && !text.to_lowercase().contains("444947455354"), "{text}");
    }
}

#[test]
fn an_entry_that_cannot_be_read_is_named_and_the_others_are_exported() {
    let kept = filled("damaged");
    let store = rusqlite::Connection::open(kept.0.join("jobs.db")).expect("it opens");
    store.execute_batch("UPDATE audit SET act = 'sing' WHERE seq = 2").expect("it can be changed");
    drop(store);
    let said = transcript(crosspoint(&["store", "export", "--audit", "--data"]).arg(&kept.0));
    assert!(said.starts_with("exit 1\n") && said.contains(r#"{"kind":"unread","seq":2}"#), "{said}");
    assert!(said.contains(r#""seq":1"#) && said.contains(r#""seq":3"#), "{said}");
    assert!(said.contains("1 of the entries could not be read"), "{said}");
}

#[test]
fn a_store_from_before_there_was_an_audit_has_none() {
    let kept = kept("older");
    fs::copy(root().join("testdata/stores/schema-12/jobs.db"), kept.0.join("jobs.db")).expect("it can be copied");
    assert_eq!(lines(&exported(&kept.0, &["--audit"]))[1..], [json!({"kind": "end", "entries": 0, "unread": 0})]);
}

#[test]
fn entries_have_no_state() {
    let said = transcript(&mut crosspoint(&["store", "export", "--audit", "--state", "failed"]));
    assert!(said.starts_with("exit 2\n") && said.contains("--audit") && said.contains("--state"), "{said}");
}
