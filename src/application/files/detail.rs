//! `GET /api/files/{id}`: one file with its folder path, SHA-256 and media facts.

use serde::Serialize;
use serde_json::Value;
use sluice_store::{files::File, folder_list};
use utoipa::ToSchema;

use super::{
    facts,
    record::{FileRecord, Record},
};
use crate::application::{
    answer::Timestamp, context::FileContext, error::ApiError, folders::record::FolderRef,
    reached::Reached,
};

/// A stored file with its place and what its bytes hold.
#[derive(Serialize, ToSchema)]
pub struct FileDetail {
    #[serde(flatten)]
    file: FileRecord,
    updated_at: Timestamp,
    /// SHA-256 of the bytes, hexadecimal.
    sha256: String,
    /// Path of its folder, outermost first; empty at the top.
    folder_path: Vec<FolderRef>,
    /// Its sources, and what was made of it.
    lineage_url: String,
    /// Codecs, tracks and tags of an image, video or audio, as the tool `inspect` answers them. Null for other files, for bytes
    /// that cannot be read, and while no worker is free to read them.
    #[schema(value_type = Option<Object>)]
    media: Option<Value>,
}

#[derive(Serialize, ToSchema)]
pub struct FileDetailAnswer {
    file: FileDetail,
}

/// Shows a file with all that is known of it.
pub(crate) async fn detailed(
    context: &FileContext,
    reached: &Reached,
    file: File,
) -> Result<FileDetailAnswer, ApiError> {
    let media = facts::of_file(context, &file).await?;
    let mut db = context.store.read().await?;
    let path = match file.folder_id {
        Some(folder_id) => folder_list::path(&mut db, file.account_id, folder_id).await?,
        None => Vec::new(),
    };
    let record = Record::of_all(&mut db, context, reached, std::slice::from_ref(&file)).await?;
    let base = &reached.address.base;
    Ok(FileDetailAnswer {
        file: FileDetail {
            updated_at: Timestamp(file.updated_at),
            sha256: file.blob.to_string(),
            folder_path: path.into_iter().map(FolderRef::from).collect(),
            lineage_url: format!("{base}/api/files/{}/lineage", file.id),
            media,
            file: record.of(file),
        },
    })
}
