//! Files of a run that can be neither finished nor taken back: nothing else is done in that repository meanwhile.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::support::server::{Server, until};
use crate::support::workflow_place::{Place, stage, tree, workflow, wrote};

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

    /// Puts another directory at the path of the root.
    fn replace_root(&self) {
        fs::rename(self.place.repo(), self.place.file("away")).expect("it can be moved");
        fs::create_dir(self.place.repo()).expect("it can be made");
    }

    fn cancel(&self) {
        let cancelled = self.server.post(&format!("/api/v1/jobs/{}/cancel", self.run), "");
        assert_eq!(cancelled.status, 200, "{cancelled:?}");
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
    stuck.cancel();
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
    stuck.cancel();
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

/// The directory was removed and cloned again, say: what is half written is not there, and nothing waits for it.
#[test]
fn a_root_that_is_gone_for_good_holds_only_the_run_that_began_in_it() {
    let mut stuck = Stuck::new();
    stuck.held(&stuck.run, "its files are half written");
    stuck.replace_root();
    let other = stuck.begin_another();
    assert_eq!(stuck.server.ended(&other)["outcome"]["status"], "completed", "{}", stuck.server.log());
    stuck.held(&stuck.run, "another directory than the one that the run began in");
    stuck.held(&stuck.run, "cancel the run");
    stuck.cancel();
    // The record is of no use when the job is gone, and nothing can be settled any more.
    let record = stuck.server.data().join("workflows").join(&stuck.run);
    stuck.server.stop();
    let agents = ["writer", "other"].map(|name| stuck.place.configured(name, ""));
    let configuration = stuck.place.configuration(&agents);
    // This is a second.
    stuck.server.configure(&format!("[store]\nretention_days = 0.0000116\n{configuration}"));
    stuck.server.start_by(&["env"]);
    stuck.server.restart();
    let path = format!("/api/v1/jobs/{}", stuck.run);
    until("its job is gone", || (stuck.server.get(&path).status == 404).then_some(()));
    assert!(record.exists(), "there is something to remove");
    stuck.server.stop();
    stuck.server.restart();
    until("its record is removed", || (!record.exists()).then_some(()));
    assert_eq!(tree(&stuck.place.repo()), ["c.md"], "nothing of it was put into the other directory");
}

/// Without it a dry run would begin anew in another copy, and the diff of any run would show half of what it did.
#[test]
fn a_run_whose_record_is_gone_is_held() {
    let place = Place::new();
    let mut asks = wrote(&[("a.md", "create", "a\n")]);
    asks["recommendation"] = json!("escalate");
    let goes_on = wrote(&[("b.md", "create", "b\n")]);
    place.replies("writer", &[asks.clone(), asks, goes_on.clone(), goes_on]);
    let mut server = place.server(&[place.configured("writer", "")]);
    let definition = workflow(&[stage("write", "writer", "")]);
    let runs = [false, true].map(|dry| {
        let run = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": dry}));
        server.in_state(&run, "waiting");
        run
    });
    server.kill();
    let (records, away) = (server.data().join("workflows"), place.file("away"));
    fs::rename(&records, &away).expect("it can be moved");
    server.restart();
    for run in &runs {
        server.answer_run(run, &json!("go on"));
        until("it is held", || {
            server.job(run)["stuck"]["reason"].as_str().filter(|why| why.contains("its record is gone")).map(drop)
        });
    }
    let _ = fs::remove_dir_all(&records);
    fs::rename(&away, &records).expect("it can be moved");
    for run in &runs {
        assert_eq!(server.ended(run)["outcome"]["status"], "completed", "{}", server.log());
    }
}

/// The same while it waits for a person.
#[test]
fn a_run_whose_record_goes_while_it_waits_is_held() {
    let place = Place::new();
    let mut asks = wrote(&[("a.md", "create", "a\n")]);
    asks["recommendation"] = json!("escalate");
    place.replies("writer", &[asks, wrote(&[("b.md", "create", "b\n")])]);
    let server = place.server(&[place.configured("writer", "")]);
    let run = server.run_workflow(&workflow(&[stage("write", "writer", "")]), &place.repo());
    server.in_state(&run, "waiting");
    let (record, away) = (server.data().join("workflows").join(&run), place.file("away"));
    fs::rename(&record, &away).expect("it can be moved");
    server.answer_run(&run, &json!("go on"));
    until("it is held", || {
        server.job(&run)["stuck"]["reason"].as_str().filter(|why| why.contains("its record is gone")).map(drop)
    });
    fs::rename(&away, &record).expect("it can be moved");
    assert_eq!(server.ended(&run)["outcome"]["status"], "completed", "{}", server.log());
    let diff = server.get(&format!("/api/v1/workflows/{run}/diff")).text();
    assert!(diff.contains("+++ b/a.md") && diff.contains("+++ b/b.md"), "{diff}");
}

/// Half an output in the copy of a dry run is no half of an output in the repository.
#[test]
fn a_copy_that_was_removed_holds_only_its_own_run() {
    let place = Place::new();
    place.put("a.md", "old a\n");
    place.replies("writer", &[wrote(&[("a.md", "update", "new a\n")])]);
    place.replies("other", &[wrote(&[("c.md", "create", "c\n")])]);
    let mut server = place.server(&[place.configured("writer", ""), place.configured("other", "")]);
    server.kill();
    server.start_by(&["env", "CROSSPOINT_KILL_AT=placed.0"]);
    server.restart();
    let definition = workflow(&[stage("write", "writer", "")]);
    let run = server.ordered(&json!({"definition": definition, "root": place.repo(), "dry_run": true}));
    assert_eq!(server.wait().signal(), Some(9), "it is killed while files are written");
    let record = server.data().join("workflows").join(&run);
    fs::remove_dir_all(record.join("copy")).expect("a person makes room");
    server.start_by(&["env"]);
    server.restart();
    let stuck = Stuck { before: PathBuf::new(), kept: Vec::new(), place, server, run };
    stuck.held(&stuck.run, "if it is gone for good, cancel the run");
    let other = stuck.begin_another();
    assert_eq!(stuck.server.ended(&other)["outcome"]["status"], "completed", "{}", stuck.server.log());
    let journal = record.join("step-1.commit.json");
    assert!(journal.exists());
    stuck.cancel();
    until("what went with the copy is forgotten", || (!journal.exists()).then_some(()));
}
