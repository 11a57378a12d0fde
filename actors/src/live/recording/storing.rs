//! From a [`SegmentList`]'s cut to a blob: the header, then the payloads as they are. Memory is bounded by a batch and the tables.

use std::{io, sync::Arc};

use sluice_store::{Error as StoreError, Store, blob::Sealed};

use super::segment_list::{MovieFile, Payload, SegmentList};

/// Writes the file of a cut; the cut is of no use for another one afterwards.
pub(super) async fn sealed(
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

/// Runs what blocks on tokio's blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| StoreError::Internal(format!("work on a recording: {error}")))?;
    done.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => StoreError::NotFound("recorded media"),
        _ => StoreError::Internal(format!("recorded media cannot be read: {error}")),
    })
}
