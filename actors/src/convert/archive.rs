//! ZIP archives of conversion jobs: an archive that comes in is replaced by its members within the plan's limits, results go
//! out in one archive.
//!
//! Incoming archives are read in a worker; outgoing ones are packed by [`pack`](super::pack).

use std::sync::Arc;

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode, Member, OutputFacts, Task},
};
use sluice_store::{
    Error as StoreError,
    blob::{BlobHash, Sealed},
    jobs::{self, Input, Item, ItemState, Job, NewItem},
    now_ms,
    operations::Charge,
    work::Lease,
};

use super::{
    ConversionServices, batch,
    item::{self, ItemOutcome},
    pack,
};
use crate::durable::{
    input::{shown, sniff},
    owner::begin,
    step_error::{OwnerError, StepError},
};

/// Puts the members of an archive in its item's place, when the operation is done on members; else leaves it as it is.
pub(super) async fn open(
    services: &ConversionServices,
    lease: &Lease,
    job: &Job,
    archive: Item,
) -> Result<(), OwnerError> {
    let members = match members_of(services, job, &archive).await {
        Ok(None) => return Ok(()),
        Ok(Some(members)) => members,
        Err(StepError::Stop(stop)) => return Err(stop),
        Err(StepError::Failed(failure)) => {
            return batch::record(services, lease, job, &archive, failure.into()).await;
        }
    };
    let (under, item) = (lease.clone(), archive.clone());
    let charge = services
        .store
        .write_for(lease.account_id, move |tx| {
            Box::pin(async move { jobs::expand(tx, &under, &item, &members, now_ms()).await })
        })
        .await?;
    match charge {
        Charge::Charged(_) => Ok(()),
        Charge::UsedUp { used } => {
            let rejection = ItemOutcome::Failed {
                code: "operations_used_up".to_owned(),
                message: format!(
                    "the archive has more files than the month has media operations left: {used} of {} are used",
                    job.allowance.operations
                ),
            };
            batch::record(services, lease, job, &archive, rejection).await
        }
    }
}

/// Makes an item of each member; `None` when the item is no archive to be opened.
async fn members_of(
    services: &ConversionServices,
    job: &Job,
    archive: &Item,
) -> Result<Option<Vec<NewItem>>, StepError> {
    let inputs = item::inputs_of(services, archive).await?;
    let [input] = &inputs[..] else {
        return Ok(None);
    };
    if input.member.is_some() || !item::operation_of(archive)?.opens_archives() {
        return Ok(None);
    }
    let file = services.store.blobs().open(&input.blob).await?;
    if sniff(&file, &input.filename)? != Some(Format::Zip) {
        return Ok(None);
    }
    let inputs = vec![Arc::new(file)];
    let done = item::run(
        services,
        job,
        Task::ListArchive,
        inputs,
        &mut [],
        Default::default(),
    )
    .await?;
    let members = done.members.unwrap_or_default();
    // Read again: another archive of the job may have been opened since.
    let job = jobs::by_id(&mut services.store.read().await?, job.id).await?;
    check(&job, archive, &members)?;
    let items = members.into_iter().map(|member| NewItem {
        operation: archive.operation.clone(),
        operations: 1,
        source_file_id: archive.source_file_id,
        inputs: vec![Input {
            blob: input.blob,
            filename: (services.clean)(&member.filename),
            size: i64::try_from(member.size).unwrap_or(i64::MAX),
            member: Some(member.index),
        }],
    });
    Ok(Some(items.collect()))
}

fn check(job: &Job, archive: &Item, members: &[Member]) -> Result<(), Failure> {
    let name = shown(&archive.original_name);
    if members.is_empty() {
        return Err(Failure::new(
            FailureCode::Impossible,
            format!("{name} holds no files"),
        ));
    }
    let total = u64::from(job.total_files) - 1 + members.len() as u64;
    if job.allowance.files > 0 && total > job.allowance.files {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "{name} holds {} files; the plan allows {} in one job",
                members.len(),
                job.allowance.files
            ),
        ));
    }
    let largest = members.iter().max_by_key(|member| member.size);
    if let Some(member) = largest
        && job.allowance.file_bytes > 0
        && member.size > job.allowance.file_bytes
    {
        return Err(Failure::new(
            FailureCode::TooLarge,
            format!(
                "{} in {name} has {} bytes; the plan allows {} in one file",
                shown(&member.filename),
                member.size,
                job.allowance.file_bytes
            ),
        ));
    }
    Ok(())
}

/// Packs all results of a job into one archive.
pub(super) async fn of_results(
    services: &ConversionServices,
    job: &Job,
) -> Result<Sealed, OwnerError> {
    let items = jobs::items(&mut services.store.read().await?, job.id).await?;
    let results = items
        .into_iter()
        .filter(|item| item.state == ItemState::Completed)
        .flat_map(|item| {
            let beside = item.attachment();
            let beside = beside.and_then(|it| Some((it.blob?, it.filename)));
            let result = item.result_blob.zip(item.result_name);
            result.into_iter().chain(beside)
        });
    Ok(packed(services, results.collect()).await?)
}

/// Packs the files of an item as they are into one archive.
pub(super) async fn of_inputs(
    services: &ConversionServices,
    inputs: &[Input],
) -> Result<ItemOutcome, StoreError> {
    let files = inputs
        .iter()
        .map(|input| (input.blob, input.filename.clone()))
        .collect();
    let result = packed(services, files).await?;
    let facts = OutputFacts {
        bytes: result.blob().size,
        format: Some(Format::Zip),
        width: None,
        height: None,
        pages: 1,
        duration_ms: None,
        applied_quality: None,
        path: None,
    };
    Ok(ItemOutcome::Made {
        result,
        filename: "archive.zip".to_owned(),
        format: Format::Zip,
        facts,
        attachment: None,
    })
}

/// Copies blobs into a stored archive.
async fn packed(
    services: &ConversionServices,
    files: Vec<(BlobHash, String)>,
) -> Result<Sealed, StoreError> {
    begin().await?;
    let mut spool = services.store.blobs().spool().await?;
    let mut entries = Vec::with_capacity(files.len());
    for (blob, name) in files {
        entries.push((services.store.blobs().open(&blob).await?, name));
    }
    pack::pack(spool.file()?, entries).await?;
    spool.seal().await
}
