//! Media that a viewer has fetched: init sections, parts, segments, and their times.

use std::{collections::BTreeMap, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use crate::support::{
    Failure,
    checker::Multivariant,
    fmp4::{self, Track},
    media::read_numbers,
};

/// Result of one segment.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    pub msn: u64,
    /// Name of its init section.
    pub map: String,
    /// Discontinuity sequence number.
    pub range: u64,
    /// By index; a viewer that came late may lack the first ones.
    pub parts: BTreeMap<usize, Bytes>,
    /// Once the segment was listed whole and fetched.
    pub whole: Option<Bytes>,
}

/// Segments between two discontinuities.
#[derive(Clone, Debug)]
pub struct Range {
    pub number: u64,
    pub init: Bytes,
    pub segments: Vec<Bytes>,
}

/// A time without answers.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    pub from: Instant,
    pub until: Instant,
}

/// Everything that a viewer has seen. A snapshot: cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Collection {
    /// The newest.
    pub multivariant: Option<Multivariant>,
    pub pieces: BTreeMap<u64, Piece>,
    pub inits: BTreeMap<String, Bytes>,
    pub tracks: BTreeMap<String, Vec<Track>>,
    /// Time at which the multivariant playlist existed.
    pub on_air_at: Option<Instant>,
    /// Time of the first media.
    pub first_media_at: Option<Instant>,
    pub last_media_at: Option<Instant>,
    pub outages: Vec<Outage>,
    pub playlists: usize,
    pub deltas: usize,
    /// Parts that were asked for by their hint and came that way.
    pub hinted_parts: usize,
    pub ended: bool,
    /// PROGRAM-DATE-TIME of the last segment.
    pub last_date_ms: Option<i64>,
    video_frames: BTreeMap<u64, usize>,
}

impl Collection {
    /// Frames fetched, over all ranges.
    pub fn video_frames(&self) -> usize {
        self.video_frames.values().sum()
    }

    /// The newest segment's number.
    pub fn last_msn(&self) -> Option<u64> {
        self.pieces.keys().next_back().copied()
    }

    /// The longest time without answers.
    pub fn longest_outage(&self) -> Duration {
        let lengths = self.outages.iter().map(|outage| outage.until - outage.from);
        lengths.max().unwrap_or_default()
    }

    /// The bytes that were collected, per range; the last segment may consist of the parts fetched so far.
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges: Vec<Range> = Vec::new();
        for piece in self.pieces.values() {
            if ranges
                .last()
                .is_none_or(|range| range.number != piece.range)
            {
                ranges.push(Range {
                    number: piece.range,
                    init: self.inits.get(&piece.map).cloned().unwrap_or_default(),
                    segments: Vec::new(),
                });
            }
            let range = ranges.last_mut().expect("pushed above");
            range.segments.push(piece.bytes());
        }
        ranges
    }

    /// The numbers in the frames of each range, in order of presentation.
    pub fn numbers(&self) -> Result<Vec<Vec<u32>>, Failure> {
        self.ranges().iter().map(Range::numbers).collect()
    }

    pub fn summary(&self) -> String {
        format!(
            "{} playlists ({} deltas), segments {:?}..={:?}, {} frames in {} ranges, {} hinted parts, {} outages",
            self.playlists,
            self.deltas,
            self.pieces.keys().next(),
            self.last_msn(),
            self.video_frames(),
            self.ranges().len(),
            self.hinted_parts,
            self.outages.len(),
        )
    }

    /// Keeps a part, and checks it: whole fragments, decode times that continue where the part before ended.
    pub(super) fn add_part(&mut self, msn: u64, index: usize, bytes: Bytes) -> Result<(), Failure> {
        let piece = self.pieces.get(&msn).ok_or("a part without its segment")?;
        let runs = fmp4::runs(&bytes)?;
        let before = match index.checked_sub(1) {
            Some(before) => piece.parts.get(&before),
            None => {
                let previous = self.pieces.range(..msn).next_back().map(|(_, piece)| piece);
                previous
                    .filter(|previous| previous.msn + 1 == msn && previous.range == piece.range)
                    .and_then(|previous| previous.parts.values().next_back())
            }
        };
        if let Some(before) = before {
            check_decode_times(&fmp4::runs(before)?, &runs)?;
        }
        let video = self
            .tracks
            .get(&piece.map)
            .and_then(|tracks| tracks.iter().find(|track| track.is_video));
        let video_frames = runs
            .iter()
            .filter(|run| video.is_some_and(|video| video.id == run.track));
        let video_frames: usize = video_frames.map(|run| run.samples as usize).sum();
        *self.video_frames.entry(msn).or_default() += video_frames;
        let piece = self.pieces.get_mut(&msn).expect("looked up above");
        piece.parts.insert(index, bytes);
        self.note_media();
        Ok(())
    }

    /// Keeps a whole segment, which must be what its parts were.
    pub(super) fn add_whole(
        &mut self,
        msn: u64,
        parts: usize,
        bytes: Bytes,
    ) -> Result<(), Failure> {
        let piece = self
            .pieces
            .get_mut(&msn)
            .ok_or("a segment that was not listed")?;
        if parts > 0 && piece.parts.len() == parts && piece.bytes() != bytes {
            return Err(
                format!("segment {msn} is not the concatenation of its {parts} parts").into(),
            );
        }
        let runs = fmp4::runs(&bytes)?;
        let video = self
            .tracks
            .get(&piece.map)
            .and_then(|tracks| tracks.iter().find(|track| track.is_video));
        let video_frames = runs
            .iter()
            .filter(|run| video.is_some_and(|video| video.id == run.track));
        let video_frames = video_frames.map(|run| run.samples as usize).sum();
        self.video_frames.insert(msn, video_frames);
        piece.whole = Some(bytes);
        self.note_media();
        Ok(())
    }

    fn note_media(&mut self) {
        let now = Instant::now();
        self.first_media_at.get_or_insert(now);
        self.last_media_at = Some(now);
    }
}

impl Piece {
    /// The whole segment, or its parts so far.
    pub fn bytes(&self) -> Bytes {
        match &self.whole {
            Some(whole) => whole.clone(),
            None => self.parts.values().flatten().copied().collect(),
        }
    }
}

impl Range {
    /// Init section and all segments.
    pub fn bytes(&self) -> Vec<u8> {
        [&self.init]
            .into_iter()
            .chain(&self.segments)
            .flatten()
            .copied()
            .collect()
    }

    /// The numbers in its frames, in order of presentation.
    pub fn numbers(&self) -> Result<Vec<u32>, Failure> {
        read_numbers(&self.bytes())
            .map_err(|failure| format!("range {}: {failure}", self.number).into())
    }
}

/// Checks that a track's decode time continues where its last run ended, to a tick.
fn check_decode_times(before: &[fmp4::Run], now: &[fmp4::Run]) -> Result<(), Failure> {
    for run in now {
        let previous = before.iter().rfind(|previous| previous.track == run.track);
        let Some(previous) = previous else {
            continue;
        };
        let end = previous.decode_time + previous.duration;
        if run.decode_time.abs_diff(end) > 1 {
            let (track, at) = (run.track, run.decode_time);
            return Err(
                format!("track {track} continues at {at}, its last part ended at {end}").into(),
            );
        }
    }
    Ok(())
}
