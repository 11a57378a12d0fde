//! Changes of a stored file (`PATCH` and `DELETE /api/files/{id}`), carried out to their end also when the caller goes; purge of
//! its images.

use std::sync::Arc;

use sluice_store::{
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
        let file = write_tx!(context.store, |tx| {
            files::patch(tx, account_id, id, patch, now_ms()).await
        })?;
        if is_refocused {
            context.images.purge_file(id).await;
        }
        Ok(file)
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
        write_tx!(context.store, |tx| files::delete(tx, account_id, id).await)?;
        context.images.purge_file(id).await;
        Ok(())
    })
    .await
}
