//! Stores results as files of the account: quota of storage, folder, lineage (source of a derived file), event
//! `file.uploaded`.

use sluice_store::{
    Error, Tx,
    files::{self, File, NewFile},
    folders,
    lineage::{self, Derived, Lineage},
    storage,
};
use uuid::Uuid;

use crate::events;

/// A result that is to be kept.
#[derive(Clone, Debug)]
pub(crate) struct UnstoredResult {
    pub(crate) account_id: Uuid,
    /// Its blob is recorded in the same transaction, or named by another row.
    pub(crate) file: NewFile,
    /// Bytes that the account may store in all; 0: no limit.
    pub(crate) limit_bytes: u64,
    pub(crate) source_file_id: Option<Uuid>,
    /// Operation that made it, as the operation table serialises it.
    pub(crate) operation: serde_json::Value,
}

/// Makes a file of a result, in the folder asked for or, when that is gone, at the top, and emits its event.
/// `Error::OverQuota` when the account's storage is full.
pub(crate) async fn keep(
    tx: &mut Tx<'_>,
    keeping: UnstoredResult,
    now_ms: i64,
) -> Result<File, Error> {
    let UnstoredResult {
        account_id,
        mut file,
        limit_bytes,
        source_file_id,
        operation,
    } = keeping;
    storage::check(tx, account_id, file.size_bytes, limit_bytes).await?;
    file.folder_id = existing(tx, account_id, file.folder_id).await?;
    let file = files::create(tx, account_id, file, now_ms).await?;
    events::file_stored(tx, &file, now_ms).await?;
    note_lineage(
        tx,
        Derived::file(file.id),
        source_file_id,
        operation,
        now_ms,
    )
    .await?;
    Ok(file)
}

async fn existing(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    folder_id: Option<Uuid>,
) -> Result<Option<Uuid>, Error> {
    let Some(folder_id) = folder_id else {
        return Ok(None);
    };
    match folders::get(tx, account_id, folder_id).await {
        Ok(folder) => Ok(Some(folder.id)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Notes the source and the operation of a result.
pub(crate) async fn note_lineage(
    tx: &mut Tx<'_>,
    derived: Derived,
    source_file_id: Option<Uuid>,
    operation: serde_json::Value,
    now_ms: i64,
) -> Result<(), Error> {
    lineage::record(
        tx,
        Lineage {
            derived_kind: derived.kind,
            derived_id: derived.id,
            source_file_id,
            operation,
            created_at: now_ms,
        },
    )
    .await
}
