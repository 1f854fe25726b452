//! Sees to the records of runs that are over: files that a crash left half written are finished or taken back, records
//! of runs whose jobs are gone and copies of dry runs are removed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use crosspoint_engine::runtime::Engine;
use crosspoint_workflow::repository;
use uuid::Uuid;

use super::places::Places;
use super::recovery::{LOCK_WAIT_MAX, Recovery, log_unsettled};
use super::workplace::clear_idle_copy;

/// How often records are looked through. They do no harm but take room.
const PERIOD: Duration = Duration::from_secs(3_600);

/// How often files are tried again that are half written: nothing else is done in their repository.
const AGAIN_PERIOD: Duration = Duration::from_secs(5);

/// Looks through the records again and again.
pub(crate) async fn sweep(engine: &Engine, places: &Places) {
    let mut swept: Option<Instant> = None;
    loop {
        places.neighbours().recovery.again().await;
        if swept.is_none_or(|at| at.elapsed() >= PERIOD) {
            sweep_once(engine, places).await;
            swept = Some(Instant::now());
        }
        tokio::time::sleep(AGAIN_PERIOD).await;
    }
}

/// Finishes or takes back what a run that is over has left half written: a caller that cancels a run may look at once.
/// What cannot be settled just now is tried again, and meanwhile nothing else is done in that repository.
///
/// Where no run is driven, as in a command that only cancels, nothing else removes the copy of a dry run.
pub(crate) async fn settle(places: &Places, run: Uuid) {
    let (record, settling) = (places.record(run), places.clone());
    let settle = move || {
        let Err(fault) = repository::recover_within(&record, LOCK_WAIT_MAX) else { return };
        log_unsettled(&run, &fault);
        if fault.is_half_done() {
            settling.neighbours().recovery.note(&record, &fault);
        }
    };
    let _ = tokio::task::spawn_blocking(settle).await;
    clear_idle_copy(places, run).await;
}

async fn sweep_once(engine: &Engine, places: &Places) {
    let records = places.records().to_owned();
    let list = move || std::fs::read_dir(records).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    let records: Vec<PathBuf> = tokio::task::spawn_blocking(list).await.unwrap_or_default();
    for record in records {
        let name = record.file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(|name| engine.job_id(name)) else { continue };
        let gone = match engine.job(id).await {
            Ok(None) if places.are_records_of_store() => record.clone(),
            Ok(None) => continue,
            // Only the copy of a dry run is of no use any more.
            Ok(Some(watch)) if watch.job().outcome().is_some() => places.copy(id.uuid()),
            // A run that goes on sees to its record itself.
            Ok(Some(_)) | Err(_) => continue,
        };
        let places = places.clone();
        let clear = move || {
            let recovery = &places.neighbours().recovery;
            let settled = match repository::recover_within(&record, LOCK_WAIT_MAX) {
                // The job was kept for as long as it might have been settled.
                Err(fault) if gone == record && Recovery::is_away(&record, &fault) => Ok(()),
                settled => settled.map(drop),
            };
            match settled.and_then(|()| repository::remove(&gone)) {
                Ok(()) if gone == record => recovery.forget(&record),
                Ok(()) => {}
                Err(fault) => {
                    tracing::warn!(fault = fault.kind(), "the record of a run cannot be removed");
                    if fault.is_half_done() {
                        recovery.note(&record, &fault);
                    }
                }
            }
        };
        let _ = tokio::task::spawn_blocking(clear).await;
    }
}
