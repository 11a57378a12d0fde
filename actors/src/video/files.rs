//! Files of a video stream, opened, measured and flushed on the blocking pool.

use std::fs::File;

use sluice_store::{
    Error,
    video::{Folder, MediaFile},
};

/// Runs blocking work on tokio's blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::Internal(format!("work on files of a stream: {error}")))?
}

/// Makes the folder, and opens an empty file.
pub(super) async fn open_empty(folder: &Folder, file: MediaFile) -> Result<File, Error> {
    open_at(folder, vec![(file, 0)])
        .await?
        .pop()
        .ok_or_else(|| Error::Internal("a file was to be opened".into()))
}

/// Makes the folder, and opens files that are truncated to those lengths, with their ends as their positions.
pub(super) async fn open_at(
    folder: &Folder,
    wanted: Vec<(MediaFile, u64)>,
) -> Result<Vec<File>, Error> {
    let folder = folder.clone();
    blocking(move || {
        folder.make()?;
        let mut opened = Vec::with_capacity(wanted.len());
        for (file, length) in wanted {
            opened.push(folder.open_at(&file, length)?);
        }
        folder.sync()?;
        Ok(opened)
    })
    .await
}

/// Returns the lengths of files, 0 for those that are not there.
pub(super) async fn lengths(folder: &Folder, files: Vec<MediaFile>) -> Result<Vec<u64>, Error> {
    let folder = folder.clone();
    blocking(move || files.iter().map(|file| folder.length(file)).collect()).await
}

/// Makes a file durable, and returns its length.
pub(super) async fn flushed(folder: &Folder, file: MediaFile) -> Result<u64, Error> {
    let folder = folder.clone();
    blocking(move || folder.flush(&file)).await
}
