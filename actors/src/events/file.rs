//! Payload of `file.uploaded`.

use serde::Serialize;
use sluice_store::files::File;
use uuid::Uuid;

/// `file.uploaded`: a file is stored, whether a user sent it or the service made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileUploaded {
    pub file_id: Uuid,
    pub filename: String,
    pub mime_type: String,
    pub size_bytes: u64,
    /// `None`: at the top.
    pub folder_id: Option<Uuid>,
    /// `uploaded`, `converted` or `recording`.
    pub role: &'static str,
}

impl From<&File> for FileUploaded {
    fn from(file: &File) -> Self {
        Self {
            file_id: file.id,
            filename: file.filename.clone(),
            mime_type: file.mime_type.clone(),
            size_bytes: file.size_bytes.unsigned_abs(),
            folder_id: file.folder_id,
            role: file.role.as_str(),
        }
    }
}
