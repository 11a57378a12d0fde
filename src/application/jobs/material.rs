//! Input files of a job, uploaded or stored (`fileIds`): format by first bytes, checks of an operation before the charge.

use std::os::unix::fs::FileExt as _;

use sluice_media::{
    format::{Class, Format},
    operation::{Operation, OperationInput},
    task::{Failure, FailureCode},
};
use sluice_store::{
    blob::{HEAD_BYTES, Sealed},
    files,
    jobs::Input,
};
use uuid::Uuid;

use crate::application::{context::Platform, error::ApiError, part::Part};

/// A file to work on.
pub(crate) enum Material {
    Uploaded(Part),
    Stored { file: files::File, head: Vec<u8> },
}

impl Material {
    /// Opens a stored file of the account; `NotFound` for another account's.
    pub(crate) async fn stored(
        platform: &Platform,
        account_id: Uuid,
        id: Uuid,
    ) -> Result<Self, ApiError> {
        let file = files::get(&mut platform.store.read().await?, account_id, id).await?;
        let blob = platform.store.blobs().open(&file.blob).await?;
        let mut head = vec![0; HEAD_BYTES];
        let length = blob.read_at(&mut head, 0).map_err(ApiError::of_disk)?;
        head.truncate(length);
        Ok(Self::Stored { file, head })
    }

    pub(crate) fn filename(&self) -> &str {
        match self {
            Self::Uploaded(part) => &part.filename,
            Self::Stored { file, .. } => &file.filename,
        }
    }

    pub(crate) fn size_bytes(&self) -> u64 {
        match self {
            Self::Uploaded(part) => part.spool.len(),
            Self::Stored { file, .. } => file.size_bytes.unsigned_abs(),
        }
    }

    /// Name, and format by its bytes.
    pub(crate) fn source(&self) -> Result<OperationInput, Failure> {
        let head = match self {
            Self::Uploaded(part) => part.spool.head(),
            Self::Stored { head, .. } => head,
        };
        let name = self.filename();
        match Format::recognise(head, name) {
            Some(format) => Ok(OperationInput::new(format, name)),
            None if head.is_empty() => Err(Failure::new(
                FailureCode::UnsupportedType,
                format!("{name} is empty: send a file with bytes in it"),
            )),
            None => Err(Failure::new(
                FailureCode::UnsupportedType,
                format!("the bytes of {name} are of no type that is known"),
            )),
        }
    }

    /// Makes a job input of the file: an upload is flushed to the disk under its hash.
    pub(crate) async fn settle(self) -> Result<Settled, ApiError> {
        Ok(match self {
            Self::Uploaded(part) => {
                let upload = part.spool.seal().await?;
                let blob = *upload.blob();
                Settled {
                    input: Input {
                        blob: blob.hash,
                        filename: part.filename,
                        size: i64::try_from(blob.size).unwrap_or(i64::MAX),
                        member: None,
                    },
                    upload: Some(upload),
                    source_file_id: None,
                }
            }
            Self::Stored { file, .. } => Settled {
                input: Input {
                    blob: file.blob,
                    filename: file.filename,
                    size: file.size_bytes,
                    member: None,
                },
                upload: None,
                source_file_id: Some(file.id),
            },
        })
    }
}

/// An input of a job, with the upload that keeps its bytes until the job names them.
pub(crate) struct Settled {
    pub input: Input,
    pub upload: Option<Sealed>,
    pub source_file_id: Option<Uuid>,
}

/// Checks whether an operation can be done on these files, before anything is charged; reads their first bytes only.
pub(crate) fn judge(operation: &Operation, files: &[&Material]) -> Result<(), Failure> {
    if operation.is_packing() {
        return Ok(());
    }
    let sources: Vec<OperationInput> = files
        .iter()
        .map(|file| file.source())
        .collect::<Result<_, _>>()?;
    if operation.opens_archives() && is_archive(&sources) {
        return Ok(());
    }
    operation.task(&sources).map(|_| ())
}

/// Returns whether an operation on a file becomes many operations.
pub(crate) fn is_many(operation: &Operation, file: &Material) -> bool {
    operation.opens_archives()
        && file
            .source()
            .is_ok_and(|source| is_archive(std::slice::from_ref(&source)))
}

fn is_archive(sources: &[OperationInput]) -> bool {
    matches!(sources, [source] if source.format.class() == Class::Archive)
}
