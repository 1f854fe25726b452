//! Files that are opened as they should not be: torn, damaged, of other programs, links, and put elsewhere.

use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use super::*;
use crate::answers::shorter;

/// A file with an answer to each of these requests. Returns its bytes.
fn file_of(path: &Path, names: &[&str]) -> Vec<u8> {
    let now = crate::clock::now();
    let (file, index, _) = AnswerFile::open(path, Keep::default(), now).expect("it opens");
    let index = Mutex::new(index);
    for name in names {
        append(&file, &index, name, now);
    }
    std::fs::read(path).expect("it is there")
}

fn opened(path: &Path) -> (AnswerFile, Index) {
    let (file, index, _) = AnswerFile::open(path, Keep::default(), crate::clock::now()).expect("it opens");
    (file, index)
}

fn refused(path: &Path) -> String {
    match Answers::open(path, Keep::default()) {
        Ok(_) => panic!("{} is used", path.display()),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_line_that_was_torn_stays_and_says_so_after_every_start() {
    let path = scratch("answers");
    let whole = file_of(&path, &["a", "b"]);
    let first = whole.iter().position(|byte| *byte == b'\n').expect("a line ends") + 1;
    let name_ends = first + r#"0123456789abcdef {"names":["b""#.len();
    for zeros in [0, 4_096] {
        for cut in first + 1..whole.len() {
            let torn = [&whole[..cut], &vec![0; zeros]].concat();
            std::fs::write(&path, &torn).expect("it can be written");
            for start in 0..3 {
                let (file, index) = opened(&path);
                let place = index.place("b");
                assert!(file.read(index.place("a").expect("it is whole")).is_ok());
                if cut == whole.len() - 1 && zeros == 0 {
                    assert!(place.is_some_and(|place| file.read(place).is_ok()), "only its end was missing");
                } else if cut == whole.len() - 1 {
                    assert!(place.is_some_and(|place| !index.is_torn(place) && file.read(place).is_err()));
                } else {
                    let is_known = place.is_some_and(|place| index.is_torn(place) && file.read(place).is_err());
                    assert_eq!((is_known, place.is_some()), (cut >= name_ends, cut >= name_ends), "{cut} {start}");
                }
                append(&file, &Mutex::new(index), "c", crate::clock::now());
                drop(file);
                assert!(opened(&path).1.place("c").is_some(), "what is added is a line of its own");
                let now = std::fs::read(&path).expect("it is there");
                assert!(now.starts_with(&torn), "nothing is cut off");
            }
        }
    }
}

#[test]
fn what_was_known_before_a_torn_line_counts() {
    let path = scratch("answers");
    let whole = file_of(&path, &["a", "a"]);
    std::fs::write(&path, &whole[..whole.len() - 9]).expect("it can be written");
    let (file, index) = opened(&path);
    let place = index.place("a").expect("it is known");
    assert!(!index.is_torn(place) && file.read(place).is_ok());
}

#[test]
fn lines_whose_ends_are_other_bytes_are_whole_also_when_the_file_is_shortened() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let whole = file_of(&path, &["a", "b", "c"]);
    let changed: Vec<u8> = whole.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }).collect();
    for bytes in [changed, whole.iter().copied().filter(|byte| *byte != b'\n').collect()] {
        std::fs::write(&path, bytes).expect("it can be written");
        let keep = Keep { bytes: 300, ..Keep::default() };
        let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
        let whole_in = |file: &AnswerFile, index: &Index| {
            let is_whole = |name: &&str| index.place(name).is_some_and(|place| file.read(place).is_ok());
            ["a", "b", "c", "d"].into_iter().filter(is_whole).collect::<Vec<_>>()
        };
        assert_eq!(whole_in(&file, &index), ["a", "b", "c"]);
        let index = Mutex::new(index);
        // The third is under way, so that it is copied whatever its age, and its line ends where the next begins.
        index.lock().expect("it is free").reopen("c");
        append(&file, &index, "d", now);
        file.shorten(&index, now).expect("it can be shortened");
        drop(file);
        let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
        assert_eq!(whole_in(&file, &index), ["c", "d"]);
    }
}

#[test]
fn all_requests_in_a_damaged_line_are_refused() {
    let path = scratch("answers");
    let whole = String::from_utf8(file_of(&path, &["a", "b", "c", "d"])).expect("it is text");
    // The end of the first line is another byte, and both lines around it are damaged.
    let damaged = whole.replacen('\n', " ", 1).replacen("\"a\":1", "\"a\":2", 2);
    // The last line is damaged inside, and so is its end.
    let damaged = damaged.replace(r#""request_id":"d""#, r#""request_id","d""#).trim_end().to_owned() + "x";
    std::fs::write(&path, damaged).expect("it can be written");
    for _ in 0..2 {
        let (file, index) = opened(&path);
        for (name, is_read) in [("a", false), ("b", false), ("c", true), ("d", false)] {
            let place = index.place(name).expect("its name can be read");
            assert_eq!((file.read(place).is_ok(), index.is_torn(place)), (is_read, false), "{name}");
        }
    }
}

#[test]
fn names_are_read_as_far_as_they_are_there() {
    let names = |text: &str| crate::answers::seal::names(text.as_bytes());
    let head = "0123456789abcdef {\"names\":[";
    assert_eq!(names(&format!("{head}\"a\",\"b\\n\"]}}")), ["a".into(), "b\n".into()] as [Box<str>; 2]);
    assert_eq!(names(&format!("{head}\"a\",\"b")), ["a".into()] as [Box<str>; 1]);
    assert_eq!(names(&format!("{head}\"a\";\"b\"]")), ["a".into()] as [Box<str>; 1]);
    assert!(names(head).is_empty() && names("garbage").is_empty());
}

#[test]
fn a_file_of_another_program_is_refused_and_left_alone() {
    let path = scratch("answers");
    let png = [&b"\x89PNG"[..], &b"no line ends here".repeat(100)].concat();
    for foreign in [&png[..], b"dear diary\ntoday\n", b"{\"names\":[\"a\"]}\n", b"\n"] {
        std::fs::write(&path, foreign).expect("it can be written");
        let why = refused(&path);
        assert!(why.contains("it holds something else; name another file") && why.contains("answers cannot"), "{why}");
        assert_eq!(std::fs::read(&path).expect("it is there"), foreign);
    }
    let whole = file_of(&scratch("other"), &["a"]);
    for ours in [&[][..], &whole[..3], &whole[..20], &whole[..40], &[0; 100]] {
        std::fs::write(&path, ours).expect("it can be written");
        opened(&path);
    }
}

#[test]
fn a_file_that_was_removed_or_replaced_keeps_nothing_until_it_is_back() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let elsewhere = path.with_file_name("elsewhere");
    let keep = Keep { bytes: 300, ..Keep::default() };
    let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
    let index = Mutex::new(index);
    for name in ["a", "b", "c"] {
        append(&file, &index, name, now);
    }
    let why = |file: &AnswerFile| file.append(&[&line("d", now)]).expect_err("nothing is kept").to_string();
    std::fs::rename(&path, &elsewhere).expect("it can be renamed");
    assert!(why(&file).contains("was removed or replaced while the agent uses it"), "{}", why(&file));
    std::fs::write(&path, "of another agent").expect("it can be written");
    assert!(why(&file).contains("was removed or replaced while the agent uses it"), "{}", why(&file));
    assert!(file.shorten(&index, now).is_err(), "what is there now is not replaced");
    assert_eq!(std::fs::read_to_string(&path).expect("it is there"), "of another agent");
    std::fs::rename(&elsewhere, &path).expect("it can be renamed");
    append(&file, &index, "e", now);
    drop(file);
    assert_eq!(opened(&path).1.names(), ["a", "b", "c", "e"]);
}

#[test]
fn a_shorter_file_is_a_new_one_whatever_stands_there() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let keep = Keep { bytes: 300, ..Keep::default() };
    let (victim, beside) = (path.with_file_name("victim"), path.with_file_name("answers.new"));
    std::fs::write(&victim, "of another program").expect("it can be written");
    let (file, index, _) = AnswerFile::open(&path, keep, now).expect("it opens");
    let index = Mutex::new(index);
    let fill = |index: &Mutex<Index>| ["a", "b", "c", "d"].iter().for_each(|name| append(&file, index, name, now));
    fill(&index);
    symlink(&victim, &beside).expect("it can be made");
    file.shorten(&index, now).expect("it can be shortened");
    assert_eq!(std::fs::read_to_string(&victim).expect("it is there"), "of another program");
    std::fs::write(&beside, "made before").expect("it can be written");
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(0o666)).expect("it can be set");
    fill(&index);
    file.shorten(&index, now).expect("it can be shortened");
    assert_eq!(std::fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
}

/// A file that looks at the index whenever something is written to it.
struct Looking<'i>(&'i Mutex<Index>, usize);

impl Write for Looking<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        assert!(self.0.try_lock().is_ok(), "the index can be used while the file is shortened");
        self.1 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_index_can_be_used_while_the_file_is_shortened() {
    let (path, now) = (scratch("answers"), crate::clock::now());
    let bytes = file_of(&path, &["a", "b", "c", "d"]).len() as u64;
    let (_, index) = opened(&path);
    let index = Mutex::new(index);
    let (mut to, of) = (Looking(&index, 0), std::fs::File::open(&path).expect("it opens"));
    let keep = Keep { bytes, ..Keep::default() };
    let shorter = shorter::write((&of, bytes), &index, (keep, now), &mut to).expect("it can be written");
    assert_eq!((shorter.index.names(), to.1 as u64), (vec!["c", "d"], shorter.bytes));
}

#[test]
fn only_a_regular_file_is_used_and_errors_name_it() {
    let path = scratch("answers");
    let (device, link, socket) =
        (path.with_file_name("device"), path.with_file_name("link"), path.with_file_name("socket"));
    symlink("/dev/null", &device).expect("it can be made");
    symlink("elsewhere", &link).expect("it can be made");
    // A pipe would be made by another process, which has the locks of all other tests until it runs.
    let _bound = std::os::unix::net::UnixListener::bind(&socket).expect("it can be made");
    let directory = path.with_file_name("directory");
    std::fs::create_dir(&directory).expect("it can be made");
    let is_link = "it is a link; name the file itself";
    for (strange, why) in [
        (&device, is_link),
        (&link, is_link),
        (&socket, "it is no regular file; name one, or none that exists"),
        (&directory, "it is a directory"),
    ] {
        assert_eq!(refused(strange), format!("answers cannot be kept in {}: {why}", strange.display()));
    }
    assert!(!path.with_file_name("elsewhere").exists(), "what a link names is not made");
    let _used = Answers::open(&path, Keep::default()).expect("it opens");
    let taken = format!("another agent keeps its answers in {}", path.display());
    assert_eq!(refused(&path), format!("{taken}; give this one another name, or another file with Agent::answers"));
}
