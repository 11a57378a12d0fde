//! Changes of a stored file (`PATCH` and `DELETE /api/files/{id}`), carried out to their end also when the caller goes; purge of
//! its images.

use std::sync::Arc;

use sluice_store::{
    Error,
    files::{self, File},
    now_ms, write_tx,
};
use uuid::Uuid;

use super::{request::ChangeFile, to_its_end};
use crate::application::{context::FileContext, error::ApiError};

/// Changes the fields given. Another focal point purges the images that were cropped by the one before.
pub(crate) async fn change(
    context: &Arc<FileContext>,
    account_id: Uuid,
    id: Uuid,
    request: ChangeFile,
) -> Result<File, ApiError> {
    let patch = request.checked()?;
    let is_refocused = patch.focal_point.is_some();
    let context = Arc::clone(context);
    to_its_end(async move {
        let file = write_tx!(context.store, account_id, |tx| {
            files::patch(tx, account_id, id, patch, now_ms()).await
        });
        if is_refocused && may_be_made(&file) {
            context.images.purge_file(id).await;
        }
        Ok(file?)
    })
    .await
}

/// Deletes a file and the images made of it.
pub(crate) async fn delete(
    context: Arc<FileContext>,
    account_id: Uuid,
    id: Uuid,
) -> Result<(), ApiError> {
    to_its_end(async move {
        let deleted = write_tx!(context.store, account_id, |tx| {
            files::delete(tx, account_id, id).await
        });
        if may_be_made(&deleted) {
            context.images.purge_file(id).await;
        }
        deleted?;
        Ok(())
    })
    .await
}

/// Returns whether images of the file must be purged: also when it is not known whether the change was made, since those of an
/// unchanged file are rendered again.
fn may_be_made<T>(change: &Result<T, Error>) -> bool {
    matches!(change, Ok(_) | Err(Error::Unknown))
}
