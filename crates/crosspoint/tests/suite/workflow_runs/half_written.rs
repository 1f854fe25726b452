//! Files of a run that can be neither finished nor taken back: nothing else is done in that repository meanwhile.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, stage, workflow, wrote};

/// A run that has written one file of two when another program takes away the directory of the other, and everything
/// from which the first could be taken back.
struct Stuck {
    place: Place,
    server: Server,
    run: String,
    /// What the record kept of the first file.
    before: PathBuf,
    kept: Vec<u8>,
}

impl Stuck {
    fn new() -> Stuck {
        let place = Place::new();
        place.put("a.md", "old a\n");
        place.put("sub/b.md", "old b\n");
        place.replies("writer", &[wrote(&[("a.md", "update", "new a\n"), ("sub/b.md", "update", "new b\n")])]);
        place.replies("other", &[wrote(&[("c.md", "create", "c\n")])]);
        let mut server = place.server(&[place.configured("writer", ""), place.configured("other", "")]);
        server.kill();
        let pipe = place.file("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().expect("it starts").success());
        server.start_by(&["env", &format!("CROSSPOINT_WAIT_AT=placed.0:{}", pipe.display())]);
        server.restart();
        let run = server.run_workflow(&workflow(&[stage("write", "writer", "")]), &place.repo());
        // This waits until the first file is in its place.
        let open = fs::OpenOptions::new().write(true).open(&pipe).expect("it can be opened");
        fs::remove_file(&pipe).expect("it is there");
        fs::rename(place.repo().join("sub"), place.file("sub")).expect("it can be moved");
        for staging in staging(&place.repo()) {
            fs::remove_dir_all(staging).expect("it can be removed");
        }
        let before = server.data().join("workflows").join(&run).join("step-1.before");
        let kept = fs::read(&before).expect("it is there");
        fs::write(&before, "").expect("it can be written");
        drop(open);
        Stuck { place, server, run, before, kept }
    }

    /// Undoes what the other program did.
    fn mend(&self) {
        fs::rename(self.place.file("sub"), self.place.repo().join("sub")).expect("it can be moved");
        fs::write(&self.before, &self.kept).expect("it can be written");
    }

    /// Begins another run in this repository.
    fn begin_another(&self) -> String {
        self.server.run_workflow(&workflow(&[stage("write", "other", "")]), &self.place.repo())
    }

    fn held(&self, run: &str, why: &str) {
        until("it is held", || {
            let reason = self.server.job(run)["stuck"]["reason"].as_str().map(str::to_owned);
            reason.filter(|reason| reason.starts_with("held: ") && reason.contains(why)).map(drop)
        });
    }
}

fn staging(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root).expect("it is there").flatten();
    let staging = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(".crosspoint-"));
    staging.map(|entry| entry.path()).collect()
}

#[test]
fn other_runs_in_a_repository_are_held_while_files_are_half_written_there() {
    let stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    let other = stuck.begin_another();
    stuck.held(&other, &format!("files of the run {} are half written there", stuck.run));
    assert_eq!(stuck.place.seen("other").len(), 0, "no agent sees half of an output");
    stuck.mend();
    for run in [&stuck.run, &other] {
        assert_eq!(stuck.server.ended(run)["outcome"]["status"], "completed", "{}", stuck.server.log());
    }
    let got = ["a.md", "sub/b.md", "c.md"].map(|path| stuck.place.got(path).unwrap_or_default());
    assert_eq!(got, ["new a\n", "new b\n", "c\n"]);
    assert_eq!(staging(&stuck.place.repo()), Vec::<PathBuf>::new());
}

/// The journal of a step that cannot be read says neither which files are half written nor where.
#[test]
fn other_runs_are_held_also_where_the_journal_is_damaged() {
    let mut stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    stuck.server.kill();
    let record = stuck.server.data().join("workflows").join(&stuck.run);
    let is_journal =
        |path: &PathBuf| path.extension().is_some_and(|kind| kind == "json") && !path.ends_with("began.json");
    let mut entries = fs::read_dir(&record).expect("it is there").flatten().map(|entry| entry.path());
    let journal = entries.find(is_journal).expect("a journal");
    let kept = fs::read(&journal).expect("it can be read");
    fs::write(&journal, &kept[..kept.len() / 2]).expect("it can be written");
    stuck.server.restart();
    let other = stuck.begin_another();
    stuck.held(&other, "half written there");
    fs::write(&journal, &kept).expect("it can be written");
    stuck.mend();
    assert_eq!(stuck.server.ended(&other)["outcome"]["status"], "completed", "{}", stuck.server.log());
    assert_eq!(stuck.server.ended(&stuck.run)["outcome"]["status"], "completed", "{}", stuck.server.log());
}

/// Nobody drives it any more, so the server itself tries again.
#[test]
fn what_a_cancelled_run_has_half_written_is_settled_as_soon_as_that_is_possible() {
    let stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    let cancelled = stuck.server.post(&format!("/api/v1/jobs/{}/cancel", stuck.run), "");
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    let other = stuck.begin_another();
    stuck.held(&other, "half written there");
    stuck.mend();
    assert_eq!(stuck.server.ended(&other)["outcome"]["status"], "completed", "{}", stuck.server.log());
    let got = ["a.md", "sub/b.md", "c.md"].map(|path| stuck.place.got(path).unwrap_or_default());
    assert!(got == ["old a\n", "old b\n", "c\n"] || got == ["new a\n", "new b\n", "c\n"], "{got:?}");
    assert_eq!(staging(&stuck.place.repo()), Vec::<PathBuf>::new());
}

/// A record that cannot be looked through says neither whether files are half written nor where.
#[test]
fn all_runs_are_held_while_a_record_cannot_be_read() {
    let mut stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    stuck.server.kill();
    let record = stuck.server.data().join("workflows").join(&stuck.run);
    // Also for a user who may read everything.
    let away = stuck.place.file("record");
    fs::rename(&record, &away).expect("it can be moved");
    fs::write(&record, "").expect("it can be written");
    fs::write(record.with_file_name("notes"), "").expect("what is no record can be there");
    stuck.server.restart();
    let other = stuck.begin_another();
    stuck.held(&other, &format!("files of the run {} may be half written", stuck.run));
    stuck.held(&stuck.run, "it cannot be told");
    assert_eq!(stuck.place.seen("other").len(), 0);
    fs::remove_file(&record).expect("it is there");
    fs::rename(&away, &record).expect("it can be moved");
    // What is found now is another reason, and it is said.
    stuck.held(&other, "are half written");
    stuck.mend();
    for run in [&stuck.run, &other] {
        assert_eq!(stuck.server.ended(run)["outcome"]["status"], "completed", "{}", stuck.server.log());
    }
}

#[test]
fn no_run_begins_before_all_records_are_looked_through() {
    let place = Place::new();
    place.replies("other", &[wrote(&[("c.md", "create", "c\n")])]);
    let mut server = place.server(&[place.configured("other", "")]);
    server.kill();
    let records = server.data().join("workflows");
    let _ = fs::remove_dir_all(&records);
    fs::write(&records, "").expect("it can be written");
    server.restart();
    let run = server.run_workflow(&workflow(&[stage("write", "other", "")]), &place.repo());
    until("it is held", || {
        server.job(&run)["stuck"]["reason"].as_str().filter(|why| why.contains("cannot be listed")).map(drop)
    });
    fs::remove_file(&records).expect("it is there");
    assert_eq!(server.ended(&run)["outcome"]["status"], "completed", "{}", server.log());
}

/// No run looks at the repository after the restart, so the server itself has to.
#[test]
fn what_a_run_left_that_is_over_is_settled_without_another_run() {
    let mut stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    let cancelled = stuck.server.post(&format!("/api/v1/jobs/{}/cancel", stuck.run), "");
    assert_eq!(cancelled.status, 200, "{cancelled:?}");
    stuck.server.kill();
    stuck.server.start_by(&["env"]);
    stuck.server.restart();
    until("it has been tried once", || stuck.server.log().contains("cannot be removed").then_some(()));
    stuck.mend();
    until("it is settled", || {
        let got = ["a.md", "sub/b.md"].map(|path| stuck.place.got(path).unwrap_or_default());
        let is_whole = got == ["old a\n", "old b\n"] || got == ["new a\n", "new b\n"];
        (is_whole && staging(&stuck.place.repo()).is_empty()).then_some(())
    });
}
