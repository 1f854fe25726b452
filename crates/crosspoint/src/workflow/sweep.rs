//! Sees to the records of runs that are over: files that a crash left half written are finished or taken back, records
//! of runs whose jobs are gone and copies of dry runs are removed.

use std::path::PathBuf;
use std::time::Duration;

use crosspoint_engine::runtime::Engine;
use crosspoint_workflow::repository;
use uuid::Uuid;

use super::places::Places;

/// How often records are looked through. They do no harm but take room.
const PERIOD: Duration = Duration::from_secs(3_600);

/// Looks through the records again and again.
pub(crate) async fn sweep(engine: &Engine, places: &Places) {
    loop {
        sweep_once(engine, places).await;
        tokio::time::sleep(PERIOD).await;
    }
}

/// Finishes or takes back what a run that is over has left half written: a caller that cancels a run may look at once.
pub(crate) async fn settle(places: &Places, run: Uuid) {
    let record = places.record(run);
    if let Ok(Err(fault)) = tokio::task::spawn_blocking(move || repository::recover(&record)).await {
        tracing::error!(%run, fault = fault.kind(), "files of a run are half written");
    }
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
        let clear = move || repository::recover(&record).and_then(|_| repository::remove(&gone));
        let removed = tokio::task::spawn_blocking(clear).await;
        if let Ok(Err(fault)) = removed {
            tracing::warn!(fault = fault.kind(), "the record of a run cannot be removed");
        }
    }
}
