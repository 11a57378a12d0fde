//! A file as the API shows it: snake_case, for the sake of existing clients.

use serde::Serialize;
use sluice_store::files::File;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Time,
    context::Platform,
    downloads::{DownloadGrant, download_url},
    reached::Reached,
    signing::Signer,
};

/// A stored file.
#[derive(Serialize, ToSchema)]
pub struct FileRecord {
    id: Uuid,
    filename: String,
    mime_type: String,
    size_bytes: i64,
    /// Null: at the top.
    folder_id: Option<Uuid>,
    /// `uploaded`, `converted` or `recording`.
    role: &'static str,
    /// Width in pixels as shown; null where it has none or it is not known.
    width: Option<u32>,
    height: Option<u32>,
    /// Duration in seconds.
    duration: Option<f64>,
    focal_point: Option<FocalPoint>,
    description: Option<String>,
    tags: Vec<String>,
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Works without a credential for five minutes (`uploads.link_lifetime`).
    download_url: String,
}

/// The point that matters in an image, as shares of its width and height.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, serde::Deserialize, ToSchema)]
pub struct FocalPoint {
    /// 0 (left) to 1 (right).
    pub x: f64,
    /// 0 (top) to 1 (bottom).
    pub y: f64,
}

#[derive(Serialize, ToSchema)]
pub struct FileAnswer {
    pub file: FileRecord,
}

/// Everything that a record needs besides its row.
pub(crate) struct Record<'a> {
    pub platform: &'a Platform,
    pub reached: &'a Reached,
    pub signer: Signer,
}

impl Record<'_> {
    pub(crate) fn of(&self, file: File) -> FileRecord {
        let grant = DownloadGrant::for_file(file.id, self.platform);
        FileRecord {
            focal_point: file.focal_point().map(|(x, y)| FocalPoint { x, y }),
            download_url: download_url(&self.signer, &self.reached.address.base, grant),
            id: file.id,
            filename: file.filename,
            mime_type: file.mime_type,
            size_bytes: file.size_bytes,
            folder_id: file.folder_id,
            role: file.role.as_str(),
            width: file.width,
            height: file.height,
            duration: file.duration_ms.map(|ms| ms as f64 / 1000.0),
            description: file.description,
            tags: file.tags,
            created_at: Time(file.created_at),
        }
    }
}
