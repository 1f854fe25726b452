//! Every door with every agent: every caller and every agent keeps to its own contract, and everything that can happen
//! between them gives exactly one result, which is correct in the caller's contract.
//!
//! A cell is a case, a door and an agent. All cells run on one server, many at a time. A table of them is printed, and
//! where a case makes no sense it says why.

#[path = "matrix/agents.rs"]
mod agents;
#[path = "matrix/cases.rs"]
mod cases;
#[path = "matrix/cell.rs"]
mod cell;
#[path = "matrix/doors.rs"]
mod doors;
#[path = "matrix/ledger.rs"]
mod ledger;
#[path = "matrix/picture.rs"]
mod picture;
#[path = "matrix/table.rs"]
mod table;
#[path = "matrix/view.rs"]
mod view;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::{fs, thread};

use self::agents::{Agents, Kind};
use self::cases::CASES;
use self::cell::{Cell, Verdict, World};
use self::doors::{Callback, Door};
use self::table::Table;
use crate::support::bridge_watcher::watched;
use crate::support::program::root;
use crate::support::server::Server;

/// Number of cells that run at a time. Most of them wait most of the time.
const AT_A_TIME: usize = 48;

#[test]
fn every_door_reaches_every_agent() {
    let (agents, callback) = (Agents::start(), Callback::start());
    let server = Server::configured(&(callback.configuration() + &agents.configuration()));
    Agents::write_files(server.directory());
    agents.serve(&server);
    let world = World::new(&server, &agents, &callback);
    let (watcher, _home) = watched(&server, &rooms(&world));
    let table = Mutex::new(Table::default());
    // The slow cases are the last, so they begin first.
    let queue: Mutex<Vec<(usize, Door, Kind)>> = Mutex::new(cells());
    thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some((case, door, kind)) = next(&queue) {
                    let (name, run) = CASES[case];
                    let cell = Cell { world: &world, case: name, door, kind };
                    let verdict = catch_unwind(AssertUnwindSafe(|| run(&cell)));
                    let verdict = verdict.unwrap_or_else(|panic| Verdict::Wrong(said(&*panic)));
                    table.lock().expect("no thread panics with it").put(case, door, kind, verdict);
                }
            });
        }
    });
    let table = table.into_inner().expect("no thread panics with it");
    table.print();
    let wrong = table.wrong();
    assert!(wrong.is_empty(), "{} cells are wrong:\n{}\n{}", wrong.len(), wrong.join("\n"), watcher.log());
    keep(&table);
}

/// Compares the picture of the table with the kept one. With UPDATE_DOCS set, it is rewritten instead.
fn keep(table: &Table) {
    let (path, fresh) = (root().join(picture::KEPT), picture::picture(table));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(path, fresh).expect("it can be written");
    } else {
        let kept = fs::read_to_string(path).unwrap_or_default();
        let again = "UPDATE_DOCS=1 cargo nextest run -p crosspoint every_door_reaches_every_agent";
        assert!(kept == fresh, "{} is stale: {again}", picture::KEPT);
    }
}

/// The directories of the requesters: one for each cell at the bridge door, all with one driver.
fn rooms(world: &World<'_>) -> Vec<PathBuf> {
    let cells = cells().into_iter().filter(|(_, door, _)| *door == Door::Bridge);
    let rooms = cells.map(|(case, door, kind)| Cell { world, case: CASES[case].0, door, kind }.room());
    rooms.inspect(|room| fs::create_dir_all(room).expect("it can be made")).collect()
}

fn cells() -> Vec<(usize, Door, Kind)> {
    let pairs = || Door::ALL.into_iter().flat_map(|door| Kind::ALL.into_iter().map(move |kind| (door, kind)));
    (0..CASES.len()).flat_map(|case| pairs().map(move |(door, kind)| (case, door, kind))).collect()
}

fn next(queue: &Mutex<Vec<(usize, Door, Kind)>>) -> Option<(usize, Door, Kind)> {
    queue.lock().expect("no thread panics with it").pop()
}

/// The message of a panic.
fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}
