//! Work on one recording: its media become stored MP4 files with names, video streams and events; waits while disk or
//! storage is full.
//!
//! ```text
//! for each file: cut ─► blob ─► file, stream and event (one transaction) ─► … ─► stored
//! ```
//!
//! Segments that are lost are waited for first, since an operator may bring them back. Then they are gaps, which the row names.
//!
//! Nothing survives a restart but the row, the files it has so far, and the folder. While the disk or the account's storage
//! is full the work waits, and the row has the reason.

use std::sync::Arc;

use jiff::Timestamp;
use sluice_store::{
    Error as StoreError, Store, Tx, accounts,
    blob::Sealed,
    blobs,
    jobs::Allowance,
    live_inputs, now_ms,
    recordings::{self, Failure, Recording, RecordingFile},
    video::{self, Access, CustomRendition, NewStream, Stream, StreamSource, Submitted},
    work::Lease,
};
use tracing::{info, warn};

use super::{
    RecordingServices,
    segment_list::{MovieFile, SegmentList},
    stored_media,
    storing::{new_file, sealed},
};
use crate::{
    durable::{
        owner::{RowOwner, RowServices, RowTask, begin},
        step_error::{OwnerError, with_patience},
        stored::{UnstoredResult, keep},
    },
    events::recording_ready,
    live::recorded_media::blocking,
    video::SEGMENT_DURATION_S,
};

/// The actor of one recording.
pub(crate) type RecordingOwner = RowOwner<RecordingServices>;

/// Bits per second of the rendition of a recording's own size.
const BITRATES: std::ops::RangeInclusive<u64> = 50_000..=80_000_000;
/// Pixels of the short edge of that rendition.
const HEIGHTS: std::ops::RangeInclusive<u32> = 90..=4_320;
/// Code of a recording that waits for segments which are lost, or lacks them.
const LOST: &str = "segments_lost";

impl RowServices for RecordingServices {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn work(task: &RowTask<Self>) -> Result<(), OwnerError> {
        let worked = tokio::select! {
            biased;
            worked = work(&task.services, &task.lease) => worked,
            () = task.guard.drained() => return Err(OwnerError::Drained),
        };
        let error = match worked {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        if let Some(reason) = waited_for(&error) {
            note_wait(&task.services, &task.lease, reason).await;
            return Err(OwnerError::Later(error.to_string()));
        }
        if let StoreError::Lost(_) = &error {
            let reason = Failure {
                code: LOST.to_owned(),
                message: "recorded media are lost or cannot be read: it is tried again for half an hour, then they are left out"
                    .to_owned(),
            };
            note_wait(&task.services, &task.lease, reason).await;
        }
        Err(error.into())
    }
}

async fn note_wait(services: &RecordingServices, lease: &Lease, reason: Failure) {
    let (id, lease) = (lease.id, lease.clone());
    let noted = services.store.write_for(lease.account_id, move |tx| {
        Box::pin(async move { recordings::waits(tx, &lease, Some(&reason), now_ms()).await })
    });
    if let Err(error) = noted.await {
        warn!(recording = %id, %error, "what it waits for is not noted");
    }
}

/// Returns the failure that passes when room is made; the media are kept until then.
fn waited_for(error: &StoreError) -> Option<Failure> {
    let code = match error {
        StoreError::OverQuota { .. } => "storage_used_up",
        StoreError::Full => "disk_full",
        _ => return None,
    };
    Some(Failure {
        code: code.to_owned(),
        message: format!("{error}: the recording is kept and stored once there is room"),
    })
}

async fn work(services: &RecordingServices, lease: &Lease) -> Result<(), StoreError> {
    let mut reader = services.store.read().await?;
    let recording = recordings::by_id(&mut reader, lease.id).await?;
    let done = recordings::files(&mut reader, lease.id).await?.len();
    drop(reader);
    let segments =
        stored_media::segments(&services.store, &services.folder, &recording.broadcast).await?;
    begin().await?;
    let lost = match segments {
        Some(segments) => match store_files(services, lease, &recording, done, segments).await? {
            Stored { files: 0, lost } if lost > 0 => {
                return fail(services, lease, "all recorded media are lost").await;
            }
            stored => stored.lost,
        },
        None if done == 0 => return fail(services, lease, "the recorded media are missing").await,
        None => 0,
    };
    let lack = (lost > 0).then(|| Failure {
        code: LOST.to_owned(),
        message: format!("{lost} recorded segments are lost: the recording has gaps"),
    });
    let lease = lease.clone();
    let finished = with_patience(|| {
        let (lease, lack) = (lease.clone(), lack.clone());
        services.store.write_for(lease.account_id, move |tx| {
            Box::pin(async move { recordings::finish(tx, &lease, lack.as_ref(), now_ms()).await })
        })
    });
    match finished.await? {
        Some(_) if lost > 0 => {
            warn!(recording = %lease.id, lost, "the recording is stored without segments that are lost");
        }
        Some(_) => info!(recording = %lease.id, "the recording is stored"),
        None => info!(recording = %lease.id, "nothing was recorded"),
    }
    Ok(())
}

async fn fail(
    services: &RecordingServices,
    lease: &Lease,
    message: &str,
) -> Result<(), StoreError> {
    let lease = lease.clone();
    let failure = Failure {
        code: "media_missing".to_owned(),
        message: message.to_owned(),
    };
    services
        .store
        .write_for(lease.account_id, move |tx| {
            Box::pin(async move { recordings::fail(tx, &lease, &failure, now_ms()).await })
        })
        .await
}

/// Result of [`store_files`].
struct Stored {
    /// Number of all files, also those of earlier owners.
    files: usize,
    /// Segments that are left out because they are lost.
    lost: usize,
}

/// Stores all files but the first `done`, which an earlier owner stored. `Error::Lost` while segments that are lost may still be
/// brought back.
async fn store_files(
    services: &RecordingServices,
    lease: &Lease,
    recording: &Recording,
    done: usize,
    segments: SegmentList,
) -> Result<Stored, StoreError> {
    let segments = Arc::new(segments);
    let (mut from, mut number) = (Some(0), 0);
    while let Some(first) = from {
        let source = segments.clone();
        let Some(mut cut) = blocking(move || source.cut(first)).await? else {
            break;
        };
        let next = cut.next;
        if number >= done {
            let lost = segments.lost_count();
            may_lack(lease, lost)?;
            let blob = match sealed(&services.store, segments.clone(), &mut cut).await {
                // Only when all of a segment was read its loss may show: the file is cut again without it.
                Err(_) if segments.lost_count() > lost => continue,
                made => made?,
            };
            store_file(services, lease, recording, number, cut, blob).await?;
        }
        from = next;
        number += 1;
    }
    let lost = segments.lost_count();
    may_lack(lease, lost)?;
    Ok(Stored {
        files: number,
        lost,
    })
}

/// Checks whether so many segments may be left out: not before earlier attempts found them lost, which count as begins once an
/// operator had time to bring them back.
fn may_lack(lease: &Lease, lost: usize) -> Result<(), StoreError> {
    match lost > 0 && lease.begins == 0 {
        true => Err(StoreError::Lost(format!(
            "{lost} recorded segments are lost or cannot be read"
        ))),
        false => Ok(()),
    }
}

/// Stores in one transaction: the file, its event, its stream, and the reference in the recording.
async fn store_file(
    services: &RecordingServices,
    lease: &Lease,
    recording: &Recording,
    number: usize,
    cut: MovieFile,
    blob: Sealed,
) -> Result<(), StoreError> {
    let plan = accounts::get(&mut services.store.read().await?, recording.account_id)
        .await?
        .plan;
    let part = Arc::new(Part {
        recording: recording.clone(),
        lease: lease.clone(),
        number: u32::try_from(number).unwrap_or(u32::MAX),
        filename: (services.clean)(&filename(recording, number)),
        allowance: (services.allowances)(&plan),
        cut,
        blob,
    });
    with_patience(|| {
        let part = part.clone();
        services.store.write_for(recording.account_id, move |tx| {
            Box::pin(async move { part.store(tx, now_ms()).await })
        })
    })
    .await?;
    services.streams.announce();
    Ok(())
}

/// Makes the file name of the input's name and the beginning of the broadcast, in UTC.
fn filename(recording: &Recording, number: usize) -> String {
    let began = Timestamp::from_millisecond(recording.started_at).unwrap_or_default();
    let began = began.strftime("%Y-%m-%d %H.%M");
    let further = match number {
        0 => String::new(),
        number => format!(" ({})", number + 1),
    };
    format!("{} {began}{further}.mp4", recording.input_name)
}

/// A file of a recording, whose bytes are a blob.
struct Part {
    recording: Recording,
    lease: Lease,
    number: u32,
    filename: String,
    allowance: Allowance,
    cut: MovieFile,
    blob: Sealed,
}

impl Part {
    async fn store(&self, tx: &mut Tx<'_>, now_ms: i64) -> Result<(), StoreError> {
        let recording = &self.recording;
        blobs::record(tx, &self.blob, now_ms).await?;
        let keeping = UnstoredResult {
            account_id: recording.account_id,
            file: new_file(self.filename.clone(), &self.cut, &self.blob),
            limit_bytes: self.allowance.storage_bytes,
            source_file_id: None,
            operation: serde_json::json!({"tool": "recording", "broadcast": recording.broadcast}),
        };
        let file = keep(tx, keeping, now_ms).await?;
        let stream = self.stream(tx, file.id, now_ms).await?;
        let stored = RecordingFile {
            recording_id: recording.id,
            number: self.number,
            file_id: Some(file.id),
            stream_id: stream.as_ref().map(|stream| stream.id),
            filename: file.filename,
            size_bytes: file.size_bytes,
            duration_ms: self.cut.header.duration_ms,
            width: file.width,
            height: file.height,
            is_settled: stream.is_none(),
        };
        recordings::stored(tx, &self.lease, &stored).await?;
        match stored.is_settled {
            true => recording_ready::ready(tx, recording, &stored, now_ms).await,
            false => Ok(()),
        }
    }

    /// Makes its video stream: the frames as they are, where players take them. `None` when the month's operations are used
    /// up.
    async fn stream(
        &self,
        tx: &mut Tx<'_>,
        file_id: uuid::Uuid,
        now_ms: i64,
    ) -> Result<Option<Box<Stream>>, StoreError> {
        let recording = &self.recording;
        let input = live_inputs::by_id(tx, recording.input_id).await?;
        let (is_signed, allowed_domains) = match input {
            Some(input) => (input.require_signed_playback, input.allowed_domains),
            None => (recording.is_signed, recording.allowed_domains.clone()),
        };
        let renditions: Vec<CustomRendition> = self.own_rendition().into_iter().collect();
        let profile = if renditions.is_empty() {
            "standard"
        } else {
            "custom"
        };
        let new = NewStream {
            account_id: recording.account_id,
            source: StreamSource {
                blob: self.blob.blob().hash,
                filename: self.filename.clone(),
                file_id: Some(file_id),
            },
            title: self.filename.trim_end_matches(".mp4").to_owned(),
            profile: profile.to_owned(),
            custom_renditions: renditions,
            segment_duration_s: SEGMENT_DURATION_S,
            access: if is_signed {
                Access::Signed
            } else {
                Access::Public
            },
            token_ttl_s: None,
            allowed_domains,
            allowance: self.allowance,
            idempotency: None,
        };
        match video::create(tx, &new, now_ms).await? {
            Submitted::New(stream) | Submitted::Known(stream) => Ok(Some(stream)),
            Submitted::UsedUp { .. } => {
                warn!(recording = %recording.id, "no stream is made of it: the month's operations are used up");
                Ok(None)
            }
        }
    }

    /// Returns a rendition of the recording's own size and rate, so that media that players take are not encoded again.
    fn own_rendition(&self) -> Option<CustomRendition> {
        let (width, height) = self.cut.header.size?;
        let ms = u64::try_from(self.cut.header.duration_ms)
            .unwrap_or(0)
            .max(1);
        let average = self.cut.header.payload_bytes.saturating_mul(8_000) / ms;
        let bitrate = average.clamp(*BITRATES.start(), *BITRATES.end());
        Some(CustomRendition {
            height: width.min(height).clamp(*HEIGHTS.start(), *HEIGHTS.end()),
            bitrate: u32::try_from(bitrate).ok(),
        })
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::work::Lane;

    use super::*;

    #[test]
    fn lost_segments_are_left_out_once_they_had_time_to_come_back() {
        for (begins, lost, is_waited_for) in
            [(0, 0, false), (0, 1, true), (1, 0, false), (1, 7, false)]
        {
            let lease = Lease {
                kind: recordings::KIND.to_owned(),
                id: uuid::Uuid::from_u128(1),
                account_id: uuid::Uuid::from_u128(2),
                lane: Lane::Batch,
                fence: 1,
                begins,
            };
            let checked = may_lack(&lease, lost);
            let is_lost = matches!(checked, Err(StoreError::Lost(_)));
            assert_eq!(is_lost, is_waited_for, "{begins} {lost}: {checked:?}");
        }
    }
}
