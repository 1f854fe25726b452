//! The table that is printed: cases down, doors and agents across.

use std::collections::BTreeMap;

use super::agents::Kind;
use super::cases::CASES;
use super::cell::Verdict;
use super::doors::Door;

#[derive(Default)]
pub(super) struct Table {
    cells: BTreeMap<(usize, usize), Verdict>,
}

const CASE_WIDTH: usize = 24;
const CELL_WIDTH: usize = 8;

impl Table {
    pub(super) fn put(&mut self, case: usize, door: Door, kind: Kind, verdict: Verdict) {
        self.cells.insert((case, column(door, kind)), verdict);
    }

    /// How many cases hold between this door and this agent, and how many make no sense there.
    pub(super) fn counts(&self, door: Door, kind: Kind) -> (usize, usize) {
        let column = column(door, kind);
        let verdicts = || self.cells.iter().filter(|((_, at), _)| *at == column).map(|(_, verdict)| verdict);
        let right = verdicts().filter(|verdict| matches!(verdict, Verdict::Right)).count();
        (right, verdicts().filter(|verdict| matches!(verdict, Verdict::NotHere(_))).count())
    }

    /// What is wrong, cell by cell.
    pub(super) fn wrong(&self) -> Vec<String> {
        let shown = |((case, column), verdict): (&(usize, usize), &Verdict)| {
            let Verdict::Wrong(why) = verdict else { return None };
            let (door, kind) = (Door::ALL[column / Kind::ALL.len()], Kind::ALL[column % Kind::ALL.len()]);
            Some(format!("- {} at the {} door with {}: {why}", CASES[*case].0, door.name(), kind.name()))
        };
        self.cells.iter().filter_map(shown).collect()
    }

    #[expect(clippy::print_stdout, reason = "the table is what a reader of this test wants to see")]
    pub(super) fn print(&self) {
        println!("{}", self.shown());
    }

    fn shown(&self) -> String {
        let group = CELL_WIDTH * Kind::ALL.len();
        let mut out = format!("{:CASE_WIDTH$}", "");
        Door::ALL.iter().for_each(|door| out += &format!("| {:group$}", door.name()));
        out += &format!("\n{:CASE_WIDTH$}", "case");
        for _ in Door::ALL {
            out += "| ";
            Kind::ALL.iter().for_each(|kind| out += &format!("{:CELL_WIDTH$}", kind.name()));
        }
        let mut reasons: Vec<&'static str> = Vec::new();
        for (case, (name, _)) in CASES.iter().enumerate() {
            out += &format!("\n{name:CASE_WIDTH$}");
            for column in 0..Door::ALL.len() * Kind::ALL.len() {
                let edge = if column % Kind::ALL.len() == 0 { "| " } else { "" };
                out += &format!("{edge}{:CELL_WIDTH$}", word(self.cells.get(&(case, column)), &mut reasons));
            }
        }
        let legend = reasons.iter().enumerate().map(|(at, reason)| format!("\n{}  {reason}", letter(at)));
        out + "\n" + &legend.collect::<String>()
    }
}

/// The column of an agent at a door.
fn column(door: Door, kind: Kind) -> usize {
    let door = Door::ALL.iter().position(|one| *one == door).expect("it is one of them");
    door * Kind::ALL.len() + Kind::ALL.iter().position(|one| *one == kind).expect("it is one of them")
}

/// One cell: `ok`, or a letter that the legend explains.
fn word(verdict: Option<&Verdict>, reasons: &mut Vec<&'static str>) -> String {
    match verdict {
        None => "-".to_owned(),
        Some(Verdict::Right) => "ok".to_owned(),
        Some(Verdict::Wrong(_)) => "WRONG".to_owned(),
        Some(Verdict::NotHere(reason)) => {
            let known = reasons.iter().position(|known| known == reason);
            let at = known.unwrap_or_else(|| {
                reasons.push(reason);
                reasons.len() - 1
            });
            letter(at)
        }
    }
}

fn letter(at: usize) -> String {
    let letter = (b'a'..=b'z').chain(b'A'..=b'Z').nth(at).expect("there are few reasons");
    char::from(letter).to_string()
}
