//! `POST /api/uploads/complete`: the file of an upload whose bytes have arrived, made once; runs of bound workflows.

use sluice_store::{
    file_facts, now_ms,
    uploads::{self, State, Upload},
    write_tx,
};
use uuid::Uuid;

use super::UploadCompleted;
use crate::application::{
    caller::{Caller, Write},
    context::FileContext,
    error::ApiError,
    files::{
        facts::{self, Inspection},
        record_of,
    },
    reached::Reached,
    workflows::trigger,
};

/// Makes the file of an upload whose bytes have arrived, once; a repeat finds the same file. Workflows that are bound to
/// its folder run on it.
pub(crate) async fn complete(
    context: &FileContext,
    caller: &Caller<Write>,
    reached: &Reached,
    id: Uuid,
) -> Result<UploadCompleted, ApiError> {
    let (account_id, plan) = (caller.account_id(), caller.plan(context));
    let engine = context.workflows.clone();
    let upload = uploads::by_id(&mut context.store.read().await?, id).await?;
    let inspection = inspected(context, &upload).await?;
    let (file, idempotent, begins_runs) = write_tx!(context.store, account_id, |tx| {
        let (now, limit) = (now_ms(), plan.storage.as_u64());
        let facts = inspection.facts;
        let (file, is_known) = uploads::complete(tx, account_id, id, facts, limit, now).await?;
        if let Some(found) = inspection.found.filter(|_| !is_known) {
            file_facts::record(tx, file.id, &found).await?;
        }
        let begins_runs = match is_known {
            true => false,
            false => trigger::file_stored(tx, &engine, &plan, &file, now).await?,
        };
        Ok((file, is_known, begins_runs))
    })
    .map_err(|error| ApiError::from(error).offering(|| reached.upgrade_url(context)))?;
    if begins_runs {
        context.workflows.announce();
    }
    let file = record_of(context, reached, file).await?;
    Ok(UploadCompleted { file, idempotent })
}

/// Inspects an upload, before the transaction that makes the file; finds nothing for an upload that has no bytes yet.
async fn inspected(context: &FileContext, upload: &Upload) -> Result<Inspection, ApiError> {
    let (State::Received, Some(blob), Some(mime_type)) =
        (upload.state, upload.blob_hash, &upload.mime_type)
    else {
        return Ok(Inspection::default());
    };
    let file = context.store.blobs().open(&blob).await?;
    Ok(facts::find(context, upload.account_id, mime_type, file).await)
}
