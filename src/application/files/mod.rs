//! Storing of files: fetch by `sourceUrl`, media type and facts, check of the plan's storage, runs of workflows; largest file
//! (`uploads.max_file`).

pub(crate) mod bulk;
pub(crate) mod changes;
pub(crate) mod detail;
pub(crate) mod facts;
pub(crate) mod kind;
pub(crate) mod list;
pub(crate) mod list_query;
pub(crate) mod previews;
pub(crate) mod record;
pub(crate) mod request;

use sluice_store::{
    blobs, file_facts,
    files::{self, NewFile, Role},
    folders, now_ms, storage, write_tx,
};
use uuid::Uuid;

use crate::{
    application::{
        context::{FileContext, Platform},
        error::ApiError,
        files::{
            facts::find as find_facts,
            kind::mime_type,
            record::{FileAnswer, FileRecord, Record},
        },
        part::{Part, SizeLimit},
        reached::Reached,
        source_url,
        workflows::trigger,
    },
    config::Plan,
};

pub(crate) fn size_limit(platform: &Platform) -> SizeLimit {
    SizeLimit {
        bytes: platform.config.uploads.max_file.as_u64(),
        named: "uploads.max_file",
    }
}

/// Fetches a file from its address. Looks the folder up first, as the file may be large; fetches no more than the
/// account has room for.
pub(crate) async fn fetch(
    context: &FileContext,
    account_id: Uuid,
    folder_id: Option<Uuid>,
    address: String,
    storage_limit: u64,
) -> Result<Part, ApiError> {
    let mut db = context.store.read().await?;
    if let Some(folder_id) = folder_id {
        folders::get(&mut db, account_id, folder_id).await?;
    }
    let room = storage::room(&mut db, account_id, storage_limit).await?;
    drop(db);
    let limit = size_limit(context);
    let bytes = limit.bytes.min(room);
    let fetched = source_url::fetch(
        context,
        source_url::ONE,
        &[address],
        SizeLimit { bytes, ..limit },
    )
    .await;
    if room < limit.bytes && matches!(fetched, Err(ApiError::TooLarge(_))) {
        let mut db = context.store.read().await?;
        storage::check(&mut db, account_id, room + 1, storage_limit).await?;
    }
    let one = fetched?.into_iter().next();
    Ok(one.expect("an address gives a file or an error"))
}

pub(crate) async fn store(
    context: &FileContext,
    account_id: Uuid,
    folder_id: Option<Uuid>,
    mut part: Part,
    plan: Plan,
) -> Result<files::File, ApiError> {
    let mime_type = mime_type(part.spool.head(), &part.filename);
    let reader = part.spool.reader().await?;
    let inspection = find_facts(context, account_id, mime_type, reader).await;
    let sealed = part.spool.seal().await?;
    let new = NewFile {
        folder_id,
        filename: part.filename,
        mime_type: mime_type.to_owned(),
        size_bytes: sealed.blob().size,
        blob: sealed.blob().hash,
        role: Role::Uploaded,
        width: inspection.facts.width,
        height: inspection.facts.height,
        duration_ms: inspection.facts.duration_ms,
        generation: 0,
    };
    let engine = context.workflows.clone();
    let (file, begins_runs) = write_tx!(context.store, account_id, |tx| {
        blobs::record(tx, &sealed, now_ms()).await?;
        let limit = plan.storage.as_u64();
        storage::check(tx, account_id, new.size_bytes, limit).await?;
        let now = now_ms();
        let file = files::create(tx, account_id, new, now).await?;
        if let Some(found) = &inspection.found {
            file_facts::record(tx, file.id, found).await?;
        }
        let begins_runs = trigger::file_stored(tx, &engine, &plan, &file, now).await?;
        Ok((file, begins_runs))
    })?;
    if begins_runs {
        context.workflows.announce();
    }
    Ok(file)
}

/// Runs work to its end even when the client disconnects: a committed change must reach the images made before it.
pub(crate) async fn to_its_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, ApiError>> + Send + 'static,
) -> Result<T, ApiError> {
    tokio::spawn(work)
        .await
        .unwrap_or_else(|error| Err(ApiError::internal(error)))
}

pub(crate) async fn answer(
    platform: &Platform,
    reached: &Reached,
    file: files::File,
) -> Result<FileAnswer, ApiError> {
    let file = record_of(platform, reached, file).await?;
    Ok(FileAnswer { file })
}

/// Builds the record of one file for the API.
pub(crate) async fn record_of(
    platform: &Platform,
    reached: &Reached,
    file: files::File,
) -> Result<FileRecord, ApiError> {
    let mut db = platform.store.read().await?;
    let record = Record::of_all(&mut db, platform, reached, std::slice::from_ref(&file)).await?;
    Ok(record.of(file))
}
