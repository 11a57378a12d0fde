//! `ConversionBatch`: one conversion job (`/api/convert`, `/api/compress`, tools), from its first unfinished file to its
//! end.
//!
//! Nothing survives a restart but the row: a batch that begins again continues with the files that have no result yet.
//! Each result is recorded in one transaction with its blob, its file, its lineage and the lease that it was made
//! under, so that a kill at any moment neither loses nor doubles one. The actor only holds the work's task
//! ([`crate::durable::owner`]).

use std::sync::Arc;

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use sluice_store::{
    Error as StoreError, Store, Tx,
    blob::BlobHash,
    jobs::{self, Item, ItemState, Job},
    now_ms,
    work::{Lane, Lease},
};

use super::{
    ConversionServices, archive, events,
    item::{self, ItemOutcome},
};
use crate::durable::{
    outcome_counters::count_failure,
    owner::{RowOwner, RowServices, RowTask},
    step_error::{OwnerError, with_patience},
};

/// The actor of one job.
pub(crate) type ConversionBatch = RowOwner<ConversionServices>;

impl RowServices for ConversionServices {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn work(task: &RowTask<Self>) -> Result<(), OwnerError> {
        let _attended = task.services.followers.attend(task.lease.id);
        tokio::select! {
            biased;
            worked = work(&task.services, &task.lease) => worked,
            () = task.guard.drained() => Err(OwnerError::Drained),
        }
    }
}

/// Opens archives, converts files, packs results, and ends the job.
async fn work(services: &ConversionServices, lease: &Lease) -> Result<(), OwnerError> {
    let job = jobs::by_id(&mut services.store.read().await?, lease.id).await?;
    services.publish(&job);
    // Interactive work is no archive: that was checked when it was made.
    if job.lane == Lane::Batch {
        for item in pending(services, &job).await? {
            archive::open(services, lease, &job, item).await?;
        }
    }
    let left = pending(services, &job).await?;
    stream::iter(left)
        .map(|item| convert(services, lease, &job, item))
        .buffer_unordered(services.workers.width())
        .try_collect::<()>()
        .await?;
    finish(services, lease).await
}

async fn pending(services: &ConversionServices, job: &Job) -> Result<Vec<Item>, OwnerError> {
    let mut items = jobs::items(&mut services.store.read().await?, job.id).await?;
    items.retain(|item| item.state == ItemState::Pending);
    Ok(items)
}

async fn convert(
    services: &ConversionServices,
    lease: &Lease,
    job: &Job,
    item: Item,
) -> Result<(), OwnerError> {
    let outcome = item::perform(services, job, &item).await?;
    record(services, lease, job, &item, outcome).await
}

/// Writes the outcome of a file and publishes it; with a job's last file, its end.
pub(super) async fn record(
    services: &ConversionServices,
    lease: &Lease,
    job: &Job,
    item: &Item,
    outcome: ItemOutcome,
) -> Result<(), OwnerError> {
    let outcome = Arc::new(outcome);
    let written = with_patience(|| write(services, lease, job, item, outcome.clone())).await;
    let (job, failure) = match written {
        Ok(job) => (job, outcome.code()),
        // A result that cannot be stored fails its file alone; the others of the job may still fit.
        Err(error @ StoreError::OverQuota { .. }) => {
            let rejection = ItemOutcome::Failed {
                code: "storage_used_up".to_owned(),
                message: error.to_string(),
            };
            let code = rejection.code();
            (
                write(services, lease, job, item, Arc::new(rejection)).await?,
                code,
            )
        }
        Err(error) => return Err(error.into()),
    };
    services.counters.note(|counts| match failure {
        None => counts.converted += 1,
        Some(code) => count_failure(&mut counts.failed, &code),
    });
    services.publish(&job);
    Ok(())
}

async fn write(
    services: &ConversionServices,
    lease: &Lease,
    job: &Job,
    item: &Item,
    outcome: Arc<ItemOutcome>,
) -> Result<Job, StoreError> {
    let (lease, job, item) = (lease.clone(), job.clone(), item.clone());
    let keep_ms = services.keep_ms();
    services
        .store
        .write_for(lease.account_id, move |tx| {
            Box::pin(async move {
                let now = now_ms();
                let job = outcome.record(tx, &lease, &job, &item, now).await?;
                events::file_finished(tx, &job, &item, outcome.message(), now).await?;
                let is_last = job.completed_files + job.failed_files == job.total_files;
                match is_last && !job.archives {
                    true => end(tx, &lease, None, keep_ms, now).await,
                    false => Ok(job),
                }
            })
        })
        .await
}

/// Ends the job, unless its last file did; packs the results first where that was asked for.
async fn finish(services: &ConversionServices, lease: &Lease) -> Result<(), OwnerError> {
    let job = jobs::by_id(&mut services.store.read().await?, lease.id).await?;
    if job.state.has_ended() {
        return Ok(());
    }
    let archive = match job.archives && job.completed_files > 0 {
        true => Some(archive::of_results(services, &job).await?),
        false => None,
    };
    let (lease, keep_ms) = (lease.clone(), services.keep_ms());
    let job = services
        .store
        .write_for(lease.account_id, move |tx| {
            Box::pin(async move {
                let mut packed = None;
                if let Some(archive) = &archive {
                    sluice_store::blobs::record(tx, archive, now_ms()).await?;
                    packed = Some((archive.blob().hash, archive.blob().size));
                }
                end(tx, &lease, packed, keep_ms, now_ms()).await
            })
        })
        .await?;
    services.publish(&job);
    Ok(())
}

/// Ends the job and emits its event.
async fn end(
    tx: &mut Tx<'_>,
    lease: &Lease,
    archive: Option<(BlobHash, u64)>,
    keep_ms: i64,
    now_ms: i64,
) -> Result<Job, StoreError> {
    let job = jobs::finish(tx, lease, archive, keep_ms, now_ms).await?;
    events::ended(tx, &job, now_ms).await?;
    Ok(job)
}
