//! Writes the MP4 of a recording or clip as a blob: header, then the media of its fragments, in batches.

use std::sync::Arc;

use sluice_store::{Error as StoreError, Store, blob::Sealed};

use super::segment_list::{MovieFile, Payload, SegmentList};
use crate::live::recording_folders::blocking;

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
