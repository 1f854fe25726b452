//! What a stage costs the disk.

use crate::store::sync::Watched;
use crate::support::workflow_place::{Place, said, stage, workflow};

/// Stages of a short run and of a long one: what a run costs beside its stages is the same for both.
const STAGES: [u64; 2] = [40, 160];

/// Syncs of a stage: one when it is accepted, one when it has ended, and one for the progress of its run.
const OF_A_STAGE_MAX: u64 = 3;

#[test]
fn a_stage_that_does_nothing_takes_three_syncs_at_most() {
    let place = Place::new();
    place.replies("judge", &[said("Fine.", "proceed")]);
    let watched = Watched::with(&place.configuration(&[place.configured("judge", "")]));
    let syncs = STAGES.map(|count| {
        let stages: Vec<String> = (0..count).map(|number| stage(&format!("s{number}"), "judge", "")).collect();
        let before = watched.count();
        let id = watched.server.run_workflow(&workflow(&stages), &place.repo());
        let run = watched.server.ended(&id);
        assert_eq!(run["outcome"]["outputs"]["stages"], count, "{run}");
        watched.count() - before
    });
    let (more, stages) = (syncs[1].saturating_sub(syncs[0]), STAGES[1] - STAGES[0]);
    assert!(more >= stages, "{syncs:?}: each stage is on disk");
    assert!(more <= stages * OF_A_STAGE_MAX, "{syncs:?}: {more} syncs for {stages} more stages");
}
