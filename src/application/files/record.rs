//! Fields of a file in answers (snake_case): `download_url`, `preview_url`, `focal_point`, `duration`.

use std::collections::HashSet;

use serde::Serialize;
use sluice_store::{Reader, file_facts, files::File};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp,
    context::Platform,
    downloads::{DownloadGrant, download_url},
    error::ApiError,
    files::previews::{DEFAULT_WIDTH, may_have_preview},
    reached::Reached,
    signing::Signer,
};

/// Digits of the hash of a file's bytes in the address of its preview.
const VERSION_DIGITS: usize = 12;

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
    created_at: Timestamp,
    /// Works without a credential for five minutes (`uploads.link_lifetime`).
    download_url: String,
    /// An image of it, 640 pixels wide at most; `w` may be 320, 640, 1280 or 2560. Changes with the content. Null where there is
    /// none; that of audio may answer 415, where it is not known whether there is a cover.
    preview_url: Option<String>,
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

/// Everything that records need besides their rows.
pub(crate) struct Record<'a> {
    platform: &'a Platform,
    reached: &'a Reached,
    signer: Signer,
    /// Files of which no image can be made.
    without_picture: HashSet<Uuid>,
}

impl<'a> Record<'a> {
    /// Reads what the records of these files need.
    pub(crate) async fn of_all(
        db: &mut Reader,
        platform: &'a Platform,
        reached: &'a Reached,
        files: &[File],
    ) -> Result<Self, ApiError> {
        let shown = files.iter().filter(|it| may_have_preview(&it.mime_type));
        let ids: Vec<Uuid> = shown.map(|file| file.id).collect();
        Ok(Self {
            platform,
            reached,
            signer: Signer::of(db).await?,
            without_picture: file_facts::without_picture(db, &ids).await?,
        })
    }

    pub(crate) fn of(&self, file: File) -> FileRecord {
        let grant = DownloadGrant::for_file(file.id, self.platform);
        FileRecord {
            focal_point: file.focal_point().map(|(x, y)| FocalPoint { x, y }),
            download_url: download_url(&self.signer, &self.reached.address.base, grant),
            preview_url: self.preview_url(&file),
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
            created_at: Timestamp(file.created_at),
        }
    }

    fn preview_url(&self, file: &File) -> Option<String> {
        let is_shown =
            may_have_preview(&file.mime_type) && !self.without_picture.contains(&file.id);
        let (base, id) = (&self.reached.address.base, file.id);
        let version = &file.blob.to_string()[..VERSION_DIGITS];
        is_shown.then(|| format!("{base}/api/files/{id}/preview?w={DEFAULT_WIDTH}&v={version}"))
    }
}
