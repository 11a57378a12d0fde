//! Sweeps of expired rows and files: jobs 90 days after their end, broadcasts 400 days, sessions, invitations, shares, uploads,
//! audit log. They run in short turns of the writer, so that other work is done between them.

use std::time::Duration;

use crate::{
    Error, Store, audit, blobs, broadcasts, cluster, counters, duration_ms, idempotency,
    invitations, jobs, publisher_connections, selections, sessions, shares,
    statement::query,
    turns::in_turns,
    tus, uploads, video,
    webhooks::{Retention, retention},
    work, workflows,
};

/// Time for which the record of a job is kept after its end.
const JOBS_KEPT_MS: i64 = 90 * 24 * 60 * 60 * 1000;
/// Time for which broadcasts and connections of publishers stay in their input's history after their end; broadcasts longer
/// while they have a recording.
const BROADCASTS_KEPT_MS: i64 = 400 * 24 * 60 * 60 * 1000;

/// Time for which a node is known to be dead.
const NODES_KEPT_MS: i64 = 24 * 60 * 60 * 1000;

impl Store {
    /// Deletes expired rows and files, in turns of about 20 ms with other work between them; returns how many. Of a cluster's
    /// nodes the janitor deletes rows, and each what lies in its own folder.
    pub async fn sweep(&self, now_ms: i64) -> Result<u64, Error> {
        let rows = match self.cluster().is_janitor() {
            true => sweep(self, now_ms).await?,
            false => 0,
        };
        Ok(rows + sweep_folder(self, now_ms).await?)
    }

    /// [`Store::sweep`] for events and the deliveries of webhooks.
    pub async fn sweep_events(&self, retention: &Retention, now_ms: i64) -> Result<u64, Error> {
        retention::sweep(self, retention, now_ms).await
    }

    /// [`Store::sweep`] for workflows and their runs.
    pub async fn sweep_runs(
        &self,
        retention: &workflows::Retention,
        now_ms: i64,
    ) -> Result<u64, Error> {
        workflows::sweep(self, retention, now_ms).await
    }

    /// [`Store::sweep`] for the audit log: entries that are older than `keep`, and those of each account beyond its newest `most`.
    pub async fn sweep_audit(&self, keep: Duration, most: u32, now_ms: i64) -> Result<u64, Error> {
        let before = now_ms.saturating_sub(duration_ms(keep));
        let old = delete(self, audit::DELETE_BEFORE, before).await?;
        Ok(old + audit::sweep_beyond(self, most).await?)
    }
}

/// Runs a statement that deletes at most `$2` rows by the time `$1`, in turns; returns how many rows. The statement reads them in
/// the order of their times: without one PostgreSQL may read the whole table for the few that are old.
async fn delete(store: &Store, statement: &'static str, time_ms: i64) -> Result<u64, Error> {
    in_turns(store, move |tx, rows| {
        Box::pin(async move {
            let deleted = query(statement)
                .bind(time_ms)
                .bind(rows)
                .execute(tx)
                .await?;
            Ok(deleted.rows_affected())
        })
    })
    .await
}

/// Deletes expired sessions, invitations, shares, uploads, selections, broadcasts and connections, segments that belong to no
/// video stream, dead nodes, and blobs that nothing has named for long; returns how many rows.
async fn sweep(store: &Store, now_ms: i64) -> Result<u64, Error> {
    store
        .write(move |tx| Box::pin(work::mend_due_times(tx, now_ms)))
        .await?;
    let sessions = delete(store, sessions::DELETE_EXPIRED, now_ms).await?;
    let invited_before = invitations::deleted_before(now_ms);
    let invitations = delete(store, invitations::DELETE_EXPIRED, invited_before).await?;
    let shares = delete(store, shares::DELETE_EXPIRED, now_ms).await?;
    let jobs = sweep_jobs(store, now_ms).await?;
    let streams = video::sweep_segments(store).await?;
    let ended_before = now_ms - BROADCASTS_KEPT_MS;
    let broadcasts = delete(store, broadcasts::DELETE_ENDED, ended_before).await?;
    let connections = delete(store, publisher_connections::DELETE_ENDED, ended_before).await?;
    let selections = delete(store, selections::DELETE_EXPIRED, now_ms).await?;
    let counts = delete(store, counters::DELETE_ENDED, now_ms).await?;
    let most = counters::MOST;
    let counts = counts
        + store
            .write_beside(move |tx| Box::pin(counters::drop_beyond(tx, most)))
            .await?;
    let nodes = delete(store, cluster::DELETE_DEAD, now_ms - NODES_KEPT_MS).await?;
    let live = broadcasts + connections + counts + nodes;
    let files = selections + sweep_files(store, now_ms).await?;
    Ok(sessions + invitations + shares + jobs + streams + live + files)
}

/// Deletes folders of video streams, bytes of uploads and scratch of runs in the data folder that no row needs; returns how many.
async fn sweep_folder(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let folders = video::sweep_folders(store).await?;
    let partials = tus::sweep_partials(store, now_ms).await?;
    let scratch = workflows::sweep_scratch(store).await?;
    Ok(folders + partials + scratch + blobs::sweep_folder(store, now_ms).await?)
}

/// Deletes unfinished uploads, and then the blobs that nothing names any more.
async fn sweep_files(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let uploads = delete(store, uploads::DELETE_EXPIRED, now_ms).await?;
    let resumable = tus::sweep(store, now_ms).await?;
    Ok(uploads + resumable + blobs::sweep(store, now_ms).await?)
}

/// Deletes expired results, old idempotency keys and jobs that ended long ago.
async fn sweep_jobs(store: &Store, now_ms: i64) -> Result<u64, Error> {
    let results = in_turns(store, move |tx, rows| {
        Box::pin(jobs::expire_results(tx, now_ms, rows))
    })
    .await?;
    let keys = delete(store, idempotency::DELETE_EXPIRED, now_ms).await?;
    let ended_before = now_ms - JOBS_KEPT_MS;
    let old = in_turns(store, move |tx, rows| {
        Box::pin(jobs::delete_ended_before(tx, ended_before, rows))
    })
    .await?;
    Ok(results + keys + old)
}
