//! Archives of a job: one that comes in stands for its members, results and files go out in a stored one.
//!
//! What comes in is read in a worker; what goes out is written here, since nothing of it is parsed: entries are copied
//! as they are, on the blocking pool, in constant memory.

use std::{
    collections::HashSet,
    fs::File,
    io::{self, Read, Write as _},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

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
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{
    Services,
    batch::{self, Stop},
    item::{self, Outcome, Setback},
};

/// From here on an entry needs zip64 fields; the writer wants to know beforehand.
const LARGE: u64 = u32::MAX as u64;
const PIECE: usize = 256 * 1024;

/// Puts the members of an archive in its item's place, when the operation is done on members; else leaves it as it is.
pub(super) async fn open(
    services: &Services,
    lease: &Lease,
    job: &Job,
    archive: Item,
) -> Result<(), Stop> {
    let members = match members_of(services, job, &archive).await {
        Ok(None) => return Ok(()),
        Ok(Some(members)) => members,
        Err(Setback::Stop(stop)) => return Err(stop),
        Err(Setback::Failed(failure)) => {
            return batch::record(services, lease, job, &archive, failure.into()).await;
        }
    };
    let (under, item) = (lease.clone(), archive.clone());
    let charge = services
        .store
        .write(move |tx| {
            Box::pin(async move { jobs::expand(tx, &under, &item, &members, now_ms()).await })
        })
        .await?;
    match charge {
        Charge::Charged(_) => Ok(()),
        Charge::UsedUp { used } => {
            let refusal = Outcome::Failed {
                code: "operations_used_up".to_owned(),
                message: format!(
                    "the archive has more files than the month has media operations left: {used} of {} are used",
                    job.allowance.operations
                ),
            };
            batch::record(services, lease, job, &archive, refusal).await
        }
    }
}

/// One item for each member; `None` when the item is no archive to be opened.
async fn members_of(
    services: &Services,
    job: &Job,
    archive: &Item,
) -> Result<Option<Vec<NewItem>>, Setback> {
    let inputs = item::inputs_of(services, archive).await?;
    let [input] = &inputs[..] else {
        return Ok(None);
    };
    if input.member.is_some() || !item::operation_of(archive)?.opens_archives() {
        return Ok(None);
    }
    let file = services.store.blobs().open(&input.blob).await?;
    if item::sniff(&file, &input.filename)? != Some(Format::Zip) {
        return Ok(None);
    }
    let done = item::run(services, job, Task::ListArchive, vec![Arc::new(file)], None).await?;
    let members = done.members.unwrap_or_default();
    // Asked anew: another archive of the job may have been opened since.
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
    let name = item::shown(&archive.original_name);
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
                item::shown(&member.filename),
                member.size,
                job.allowance.file_bytes
            ),
        ));
    }
    Ok(())
}

/// All results of a job in one archive.
pub(super) async fn of_results(services: &Services, job: &Job) -> Result<Sealed, Stop> {
    let items = jobs::items(&mut services.store.read().await?, job.id).await?;
    let results = items
        .into_iter()
        .filter(|item| item.state == ItemState::Completed)
        .filter_map(|item| item.result_blob.zip(item.result_name));
    Ok(pack(services, results.collect()).await?)
}

/// The files of an item as they are, in one archive.
pub(super) async fn of_inputs(
    services: &Services,
    inputs: &[Input],
) -> Result<Outcome, StoreError> {
    let files = inputs
        .iter()
        .map(|input| (input.blob, input.filename.clone()))
        .collect();
    let result = pack(services, files).await?;
    let facts = OutputFacts {
        bytes: result.blob().size,
        format: Some(Format::Zip),
        width: None,
        height: None,
        pages: 1,
        applied_quality: None,
        path: None,
    };
    Ok(Outcome::Made {
        result,
        filename: "archive.zip".to_owned(),
        format: Format::Zip,
        facts,
    })
}

/// Copies blobs into a stored archive (APPNOTE 4.4.5, method 0) under names that differ.
async fn pack(services: &Services, files: Vec<(BlobHash, String)>) -> Result<Sealed, StoreError> {
    let mut spool = services.store.blobs().spool().await?;
    let mut entries = Vec::with_capacity(files.len());
    let mut names = HashSet::new();
    for (blob, name) in files {
        let file = services.store.blobs().open(&blob).await?;
        entries.push((file, distinct(&name, &mut names)));
    }
    let output = spool.file()?;
    let abandoned = Abandoned::default();
    let flag = abandoned.0.clone();
    let written = tokio::task::spawn_blocking(move || write(output, entries, &flag)).await;
    drop(abandoned);
    match written {
        Ok(Ok(())) => spool.seal().await,
        Ok(Err(error)) if error.kind() == io::ErrorKind::StorageFull => Err(StoreError::Full),
        Ok(Err(error)) => Err(StoreError::Internal(format!("writing an archive: {error}"))),
        Err(error) => Err(StoreError::Internal(format!("writing an archive: {error}"))),
    }
}

/// Tells the blocking pool that nobody waits for the archive any more.
#[derive(Default)]
struct Abandoned(Arc<AtomicBool>);

impl Drop for Abandoned {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn write(output: File, entries: Vec<(File, String)>, abandoned: &AtomicBool) -> io::Result<()> {
    let mut archive = ZipWriter::new(output);
    let mut piece = vec![0; PIECE];
    for (mut file, name) in entries {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Stored)
            .large_file(file.metadata()?.len() >= LARGE);
        archive.start_file(name, options)?;
        loop {
            if abandoned.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            match file.read(&mut piece)? {
                0 => break,
                count => archive.write_all(&piece[..count])?,
            }
        }
    }
    archive.finish()?;
    Ok(())
}

/// The name, or with " (2)" and so on before the extension when an entry has it already. Names compare without case, since
/// many file systems do.
fn distinct(name: &str, taken: &mut HashSet<String>) -> String {
    let (stem, extension) = match name.rfind('.') {
        Some(dot) if dot > 0 => name.split_at(dot),
        _ => (name, ""),
    };
    let numbered = (2u64..).map(|number| format!("{stem} ({number}){extension}"));
    std::iter::once(name.to_owned())
        .chain(numbered)
        .find(|candidate| taken.insert(candidate.to_lowercase()))
        .expect("there are more numbers than names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doubled_names_are_numbered_before_the_extension() {
        let mut taken = HashSet::new();
        let given = ["a.png", "A.PNG", "a.png", "a (2).png", ".x", ".x", "b", "b"];
        let expected = [
            "a.png",
            "A (2).PNG",
            "a (3).png",
            "a (2) (2).png",
            ".x",
            ".x (2)",
            "b",
            "b (2)",
        ];
        for (name, expected) in given.into_iter().zip(expected) {
            assert_eq!(distinct(name, &mut taken), expected);
        }
    }
}
