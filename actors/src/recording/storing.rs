//! Writes the MP4 of a recording or clip as a blob: header, then the media of its fragments, in batches.

use std::sync::Arc;

use sluice_store::{
    Error as StoreError, Store,
    blob::Sealed,
    files::{NewFile, Role},
};

use super::segment_list::{MovieFile, Payload, SegmentList};
use crate::live::recorded_media::blocking;

/// Returns the file of a cut that was [`sealed`].
pub(crate) fn new_file(filename: String, cut: &MovieFile, blob: &Sealed) -> NewFile {
    let (width, height) = cut.header.size.unzip();
    NewFile {
        folder_id: None,
        filename,
        mime_type: "video/mp4".to_owned(),
        size_bytes: blob.blob().size,
        blob: blob.blob().hash,
        role: Role::Recording,
        width,
        height,
        duration_ms: Some(cut.header.duration_ms),
        generation: 0,
    }
}

/// Writes the file of a cut; the cut cannot be used again.
pub(crate) async fn sealed(
    store: &Store,
    segments: Arc<SegmentList>,
    cut: &mut MovieFile,
) -> Result<Sealed, StoreError> {
    let mut spool = store.blobs().spool().await?;
    let header = std::mem::take(&mut cut.header.bytes);
    spool.write(header.into()).await?;
    let mut payload = Payload::new(segments, cut);
    loop {
        let (returned, batch) = blocking(move || {
            let batch = payload.batch()?;
            Ok((payload, batch))
        })
        .await?;
        if batch.is_empty() {
            return spool.seal().await;
        }
        payload = returned;
        spool.write(batch).await?;
    }
}
