//! Clips of what is on air (`POST /api/live/inputs/{id}/clips`): `start`, `end`, `recordings.max_clip`, file name; cut from
//! stored fragments.
//!
//! Nothing is encoded again. A clip begins with the last frame at or before its start that a decoder can start with, and
//! ends with the part that holds its end. It reaches back to the beginning of a broadcast that is recorded, else as far as
//! the playlist does.

use std::{collections::BTreeMap, sync::Arc};

use bytes::Bytes;
use sluice_media::hls::{Segment, names, record::SegmentEntry};
use sluice_store::{
    Error as StoreError, accounts, blobs, files::File, live_inputs::LiveInput, now_ms,
};

use super::{
    Recordings,
    segment_list::{CodecChange, InitBytes, Medium, SegmentList, StoredSegment},
    storing::{new_file, sealed},
};
use crate::{
    durable::{
        step_error::with_patience,
        stored::{UnstoredResult, keep},
    },
    live::{Body, Playback, View, recorded_media::blocking},
};

/// A point of a broadcast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Moment {
    /// Seconds from the broadcast's beginning; negative ones from its live edge.
    Seconds(f64),
    /// Unix milliseconds of the programme's time.
    Wall(i64),
}

/// A clip to be made.
#[derive(Clone, Debug)]
pub struct NewClip {
    pub start: Moment,
    /// `None`: the live edge.
    pub end: Option<Moment>,
    /// Without one: the input's name and the clip's place.
    pub filename: Option<String>,
}

/// A clip that is stored.
#[derive(Clone, Debug)]
pub struct Clip {
    pub file: File,
    /// Seconds from the broadcast's beginning.
    pub start_s: f64,
    pub end_s: f64,
}

/// Reason why there is no clip.
#[derive(Debug, thiserror::Error)]
pub enum ClipError {
    #[error(
        "nothing is on air: a clip is cut from a broadcast that is live, reconnecting or has just ended"
    )]
    Idle,
    #[error("{0}")]
    Range(String),
    #[error("the codecs or tracks changed between start and end: make a clip of each side")]
    CodecChange,
    #[error("recordings.max_clips clips are being cut: try again shortly")]
    Busy,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Recordings {
    /// Cuts a clip of what the input has on air and stores it.
    pub async fn clip(
        &self,
        input: &LiveInput,
        playback: &Playback,
        new: NewClip,
    ) -> Result<Clip, ClipError> {
        let services = &self.services;
        let _permit = services.clips.try_acquire().map_err(|_| ClipError::Busy)?;
        let view = playback.now().view.clone().ok_or(ClipError::Idle)?;
        let gathering = view.clone();
        let segments = blocking(move || Ok(gather(&gathering))).await?;
        let newest = view.window.segments().next_back();
        let edge_90k = newest.map_or(0, |it| it.start_90k + i64::from(it.duration_90k));
        let most_s = services.settings.max_clip.as_secs();
        let (start_90k, end_90k) = range(&segments, edge_90k, &new, most_s)?;
        let segments = Arc::new(segments);
        let source = segments.clone();
        let cut = blocking(move || source.clip(start_90k, end_90k)).await?;
        let cut = cut.map_err(|CodecChange| ClipError::CodecChange)?;
        let mut cut = cut.ok_or_else(|| {
            ClipError::Range("there is no frame to start with in this range yet".into())
        })?;
        let plan = accounts::get(&mut services.store.read().await?, input.account_id)
            .await?
            .plan;
        let limit_bytes = (services.allowances)(&plan).storage_bytes;
        let blob = sealed(&services.store, segments, &mut cut).await?;
        let (start_s, end_s) = (cut.start_90k as f64 / 90e3, cut.end_90k as f64 / 90e3);
        let wanted = new
            .filename
            .unwrap_or_else(|| format!("{} {}-{}.mp4", input.name, clock(start_s), clock(end_s)));
        let keeping = UnstoredResult {
            account_id: input.account_id,
            file: new_file((services.clean)(&wanted), &cut, &blob),
            limit_bytes,
            source_file_id: None,
            operation: serde_json::json!({
                "tool": "clip", "broadcast": view.window.header().broadcast,
                "start": start_s, "end": end_s,
            }),
        };
        let blob = Arc::new(blob);
        let stored = with_patience(|| {
            let (keeping, blob) = (keeping.clone(), blob.clone());
            services.store.write_for(keeping.account_id, move |tx| {
                Box::pin(async move {
                    blobs::record(tx, &blob, now_ms()).await?;
                    keep(tx, keeping, now_ms()).await
                })
            })
        });
        Ok(Clip {
            file: stored.await?,
            start_s,
            end_s,
        })
    }
}

/// Shows a time as `1.02.03`.
fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    format!("{}.{:02}.{:02}", whole / 3_600, whole / 60 % 60, whole % 60)
}

/// Gathers the segments that can be cut: the recorded ones, and behind them the listed ones.
fn gather(view: &View) -> SegmentList {
    let mut segments = SegmentList::default();
    let mut takes = BTreeMap::new();
    if let Some(recording_writer) = view.segment_store.recording_writer() {
        for segment in recording_writer.segments() {
            let name = names::segment_name(segment.msn);
            let medium = match recording_writer.media(&segment) {
                Some(media) => Medium::Recorded(media),
                None => Medium::File(recording_writer.folder().join(name)),
            };
            takes.insert(segment.msn, (segment, medium));
        }
        for number in takes.values().map(|(segment, _)| segment.init) {
            if !segments.inits.contains_key(&number)
                && let Some(info) = recording_writer.info(number)
                && let Ok(bytes) =
                    std::fs::read(recording_writer.folder().join(names::init_name(number)))
            {
                let bytes = bytes.into();
                segments.inits.insert(number, InitBytes { info, bytes });
            }
        }
    }
    for init in view.window.inits() {
        if let Some(bytes) = view.segment_store.init(init.number) {
            let info = init.info.clone();
            segments
                .inits
                .insert(init.number, InitBytes { info, bytes });
        }
    }
    for segment in view.window.segments() {
        if let Some(medium) = listed(view, segment) {
            takes
                .entry(segment.msn)
                .or_insert_with(|| (SegmentEntry::from(segment), medium));
        }
    }
    segments.takes = takes
        .into_values()
        .map(|(segment, medium)| StoredSegment { segment, medium })
        .collect();
    segments
}

/// Returns the bytes of a listed segment, of an open one those so far.
fn listed(view: &View, segment: &Segment) -> Option<Medium> {
    if segment.closed
        && let Some(Body::File { path, .. }) = view.segment_store.segment(segment.msn)
    {
        return Some(Medium::File(path));
    }
    let mut whole = Vec::with_capacity(usize::try_from(segment.len).ok()?);
    for index in 0..segment.parts.len() {
        match view
            .segment_store
            .part(segment.msn, u32::try_from(index).ok()?)?
        {
            Body::Memory(pieces) => pieces.iter().for_each(|it| whole.extend_from_slice(it)),
            Body::File { path, .. } => return Some(Medium::File(path)),
            Body::Recorded(media) => return Some(Medium::Recorded(media)),
        }
    }
    Some(Medium::Memory(Bytes::from(whole)))
}

/// Returns start and end on the broadcast's timeline, checked.
fn range(
    segments: &SegmentList,
    edge_90k: i64,
    new: &NewClip,
    most_s: u64,
) -> Result<(i64, i64), ClipError> {
    let first = segments.takes.first().ok_or(ClipError::Idle)?;
    let place = |moment: Moment| match moment {
        Moment::Seconds(seconds) if seconds < 0.0 => edge_90k + (seconds * 90e3) as i64,
        Moment::Seconds(seconds) => (seconds * 90e3) as i64,
        Moment::Wall(unix_ms) => on_timeline(segments, unix_ms),
    };
    let start_90k = place(new.start);
    let end_90k = new.end.map_or(i64::MAX, place);
    let bad = |text: String| Err(ClipError::Range(text));
    if start_90k >= end_90k {
        return bad("start must lie before end".into());
    }
    if end_90k <= first.segment.start_90k {
        let from = first.segment.start_90k as f64 / 90e3;
        return bad(format!(
            "the range is no longer there: it begins at {from:.1} s"
        ));
    }
    if start_90k >= edge_90k {
        let to = edge_90k as f64 / 90e3;
        return bad(format!(
            "start lies ahead of the broadcast, which has come to {to:.1} s"
        ));
    }
    let most_90k = i64::try_from(most_s).unwrap_or(i64::MAX / 90_000) * 90_000;
    if end_90k.min(edge_90k) - start_90k.max(first.segment.start_90k) > most_90k {
        return bad(format!(
            "a clip lasts at most {most_s} s (recordings.max_clip)"
        ));
    }
    Ok((start_90k, end_90k))
}

/// Maps wall-clock time to the recording's timeline.
fn on_timeline(segments: &SegmentList, unix_ms: i64) -> i64 {
    let after = segments
        .takes
        .partition_point(|take| take.segment.program_date_time_ms <= unix_ms);
    let segment = &segments.takes[after.saturating_sub(1)].segment;
    segment.start_90k + (unix_ms - segment.program_date_time_ms) * 90
}
