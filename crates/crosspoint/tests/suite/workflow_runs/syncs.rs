//! What a stage costs the disk.

use crate::store::sync::Watched;
use crate::support::workflow_place::{Place, said, stage, workflow};

/// The stages of the run: enough that what the run itself costs is little beside them.
const STAGES: u64 = 60;

/// Syncs of a stage: one when it is accepted, one when it has ended, and one for the progress of its run.
const OF_A_STAGE_MAX: u64 = 3;

/// Syncs beside those: where the run begins and ends, and of the database now and then.
const BESIDE_MAX: u64 = 30;

#[test]
fn a_stage_that_does_nothing_takes_three_syncs_at_most() {
    let place = Place::new();
    place.replies("judge", &[said("Fine.", "proceed")]);
    let watched = Watched::with(&place.configuration(&[place.configured("judge", "")]));
    let stages: Vec<String> = (0..STAGES).map(|number| stage(&format!("s{number}"), "judge", "")).collect();
    let before = watched.count();
    let id = watched.server.run_workflow(&workflow(&stages), &place.repo());
    let run = watched.server.ended(&id);
    assert_eq!(run["outcome"]["outputs"]["stages"], STAGES, "{run}");
    let syncs = watched.count() - before;
    assert!(syncs >= STAGES, "{syncs}: each stage is on disk");
    assert!(syncs <= STAGES * OF_A_STAGE_MAX + BESIDE_MAX, "{syncs} syncs for {STAGES} stages");
}
