//! `SegmentList`: recorded segments as the fragments of an MP4 file: where a file ends (change of codecs, size), gaps, start
//! of a clip at a key frame.
//!
//! Its functions block, and fetch segments that are in the object store only: they run on the threads that tokio has for such
//! work. A file holds whole fragments only: a fragment that a crash or a power loss broke is left out, and missing ones are a gap.
//! So are segments whose bytes are lost, which the list notes.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::File,
    io,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use sluice_media::hls::{
    StreamInfo, names,
    record::{
        self, BoxHeader, Described, Entry, Fragment, MOST_HEADER_BYTES, Movie, MovieHeader,
        SegmentEntry, TrackKind, signature,
    },
};
use sluice_store::{
    Error as StoreError,
    blob::{PiecesReader, Source},
};
use tokio::runtime::Handle;
use tracing::{debug, warn};

use crate::live::recorded_media::{RECORDING_INDEX, RecordedMedia, is_disk_failure};

/// Largest box before the media of a fragment, which holds some 16 bytes for each frame.
const MOST_MOOF_BYTES: u64 = 4 << 20;
/// Most bytes that are copied at a time.
const BATCH: usize = 1 << 20;
/// Most segments before its start in which a clip's first key frame is looked for.
const MOST_LOOK_BACK: usize = 16;

/// Place of a segment's bytes.
#[derive(Clone, Debug)]
pub(crate) enum Medium {
    File(PathBuf),
    Memory(Bytes),
    /// On the disk, or in the object store.
    Recorded(RecordedMedia),
}

#[derive(Clone, Debug)]
pub(crate) struct StoredSegment {
    pub segment: SegmentEntry,
    pub medium: Medium,
}

/// An init section, and the facts of its streams.
#[derive(Clone, Debug)]
pub(crate) struct InitBytes {
    pub info: Arc<StreamInfo>,
    pub bytes: Bytes,
}

/// See the module documentation.
#[derive(Debug, Default)]
pub(crate) struct SegmentList {
    pub inits: BTreeMap<u32, InitBytes>,
    /// Numbers of the init sections whose bytes are lost.
    pub lost_inits: BTreeSet<u32>,
    /// In order.
    pub takes: Vec<StoredSegment>,
    /// Media sequence numbers of the segments whose bytes turned out to be lost.
    lost: Mutex<BTreeSet<u64>>,
}

/// A stretch of a segment that is copied.
#[derive(Clone, Copy, Debug)]
struct Piece {
    take: usize,
    offset: u64,
    len: u64,
}

/// A file that can be made.
pub(crate) struct MovieFile {
    pub header: MovieHeader,
    /// On the broadcast's timeline.
    pub start_90k: i64,
    pub end_90k: i64,
    pieces: Vec<Piece>,
    /// The segment that the next file begins with.
    pub next: Option<usize>,
}

/// A whole fragment of a segment.
struct FoundFragment {
    fragment: Fragment,
    moof_bytes: u64,
    payload: Piece,
    start_90k: i64,
    end_90k: i64,
    /// A decoder can start here.
    independent: bool,
}

impl SegmentList {
    /// Opens the segments of a folder. `NotFound` when there is no index in it.
    pub(crate) fn open(folder: &Path) -> io::Result<Self> {
        let index = std::fs::read(folder.join(RECORDING_INDEX))?;
        let mut list = Self::default();
        let mut segments = BTreeMap::new();
        for entry in record::decode(&index) {
            match entry {
                Entry::Init { number, info } => {
                    if let Ok(bytes) = std::fs::read(folder.join(names::init_name(number))) {
                        let init = InitBytes {
                            info: Arc::new(info),
                            bytes: bytes.into(),
                        };
                        list.inits.insert(number, init);
                    }
                }
                Entry::Segment(segment) => drop(segments.insert(segment.msn, segment)),
                Entry::Begun { .. } | Entry::Stopped { .. } | Entry::Ended => {}
            }
        }
        let take = |segment: SegmentEntry| StoredSegment {
            medium: Medium::File(folder.join(names::segment_name(segment.msn))),
            segment,
        };
        list.takes = segments.into_values().map(take).collect();
        Ok(list)
    }

    /// Cuts the file that begins with the segment `from`, up to a change of codecs or tracks. `None` without any media.
    pub(crate) fn cut(&self, from: usize) -> io::Result<Option<MovieFile>> {
        let mut splice = Splice::new(self);
        let mut next = None;
        let mut is_behind_lost = false;
        for (index, take) in self.takes.iter().enumerate().skip(from) {
            let found = self.fragments(index)?;
            let Some(first) = found.first() else {
                is_behind_lost |= self.is_lost(index);
                continue;
            };
            if !splice.takes(take.segment.init, first.independent) {
                next = Some(index);
                break;
            }
            if std::mem::take(&mut is_behind_lost) || take.segment.discontinuity {
                splice.movie.join();
            }
            found.into_iter().for_each(|found| splice.add(found));
        }
        Ok(splice.finish(next))
    }

    /// Cuts a file from the last frame that a decoder can start with at or before `start_90k` to the part that holds
    /// `end_90k`. `None` without any media there; `Err` names codecs that changed in between.
    pub(crate) fn clip(
        &self,
        start_90k: i64,
        end_90k: i64,
    ) -> io::Result<Result<Option<MovieFile>, CodecChange>> {
        let mut all: Vec<(u32, FoundFragment)> = Vec::new();
        let first = self
            .takes
            .partition_point(|take| take.segment.start_90k <= start_90k)
            .saturating_sub(1);
        // Back to where a decoder can start: with key frames far apart that is some segments earlier.
        let mut from = first;
        let mut ahead = self.fragments_of(from)?;
        while from > 0 && first - from < MOST_LOOK_BACK && !begins(&ahead, start_90k) {
            from -= 1;
            ahead = self.fragments_of(from)?;
        }
        for index in from..self.takes.len() {
            let segment = &self.takes[index].segment;
            if segment.start_90k >= end_90k {
                break;
            }
            let found = self.fragments_of(index)?;
            all.extend(found.into_iter().map(|found| (segment.init, found)));
        }
        let begins_at = all
            .iter()
            .rposition(|(_, found)| found.independent && found.start_90k <= start_90k)
            .or_else(|| all.iter().position(|(_, found)| found.independent));
        let Some(begins_at) = begins_at else {
            return Ok(Ok(None));
        };
        let mut splice = Splice::new(self);
        let mut joined = 0;
        for (init, found) in all.into_iter().skip(begins_at) {
            if found.start_90k >= end_90k && !splice.movie.is_empty() {
                break;
            }
            if !splice.takes(init, found.independent) {
                return Ok(Err(CodecChange));
            }
            let segment = &self.takes[found.payload.take].segment;
            if segment.discontinuity && std::mem::replace(&mut joined, segment.msn) != segment.msn {
                splice.movie.join();
            }
            splice.add(found);
        }
        Ok(Ok(splice.finish(None)))
    }

    fn fragments_of(&self, index: usize) -> io::Result<Vec<FoundFragment>> {
        match index < self.takes.len() {
            true => self.fragments(index),
            false => Ok(Vec::new()),
        }
    }

    /// Returns how many segments are left out because their bytes are lost, as far as they were read.
    pub(crate) fn lost_count(&self) -> usize {
        self.lost.lock().len()
    }

    fn is_lost(&self, index: usize) -> bool {
        self.lost.lock().contains(&self.takes[index].segment.msn)
    }

    /// Notes that the bytes of a segment are lost.
    fn note_lost(&self, index: usize, error: &io::Error) {
        let msn = self.takes[index].segment.msn;
        if self.lost.lock().insert(msn) {
            warn!(msn, %error, "a recorded segment is lost and left out");
        }
    }

    /// Finds the whole fragments of a segment; a missing one has none, nor has one that is lost, which is noted.
    fn fragments(&self, index: usize) -> io::Result<Vec<FoundFragment>> {
        if self.is_lost(index) {
            return Ok(Vec::new());
        }
        match self.read_fragments(index) {
            Err(error) if is_loss(&error) => {
                self.note_lost(index, &error);
                Ok(Vec::new())
            }
            read => read,
        }
    }

    fn read_fragments(&self, index: usize) -> io::Result<Vec<FoundFragment>> {
        let take = &self.takes[index];
        if self.lost_inits.contains(&take.segment.init) {
            let what = format!("init section {} is lost", take.segment.init);
            return Err(io::Error::other(StoreError::Lost(what)));
        }
        let Some(scales) = self.scales(take.segment.init) else {
            return Ok(Vec::new());
        };
        let Some(mut source) = OpenSegment::open(&take.medium)? else {
            return Ok(Vec::new());
        };
        let mut end = source.len()?;
        if take.segment.is_closed() {
            end = end.min(take.segment.len);
        }
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((fragment, moof_bytes, payload_bytes)) = source.fragment(at, end)? {
            let payload_at = at + moof_bytes + 8;
            if let Some((start_90k, end_90k, independent)) = scales.place(&fragment) {
                found.push(FoundFragment {
                    fragment,
                    moof_bytes,
                    payload: Piece {
                        take: index,
                        offset: payload_at,
                        len: payload_bytes,
                    },
                    start_90k,
                    end_90k,
                    independent,
                });
            }
            at = payload_at + payload_bytes;
        }
        if at < end {
            debug!(
                msn = take.segment.msn,
                at, end, "the rest of a segment is damaged and left out"
            );
        }
        Ok(found)
    }

    fn scales(&self, init: u32) -> Option<Scales> {
        let described = Described::parse(&self.inits.get(&init)?.bytes).ok()?;
        let tracks = described.tracks.iter();
        Some(Scales(
            tracks
                .map(|track| (track.track, track.kind, track.timescale))
                .collect(),
        ))
    }
}

/// Returns whether bytes cannot be read any more: the object store has lost or damaged them, or the disk fails.
fn is_loss(error: &io::Error) -> bool {
    let stored = error
        .get_ref()
        .and_then(|inner| inner.downcast_ref::<StoreError>());
    matches!(stored, Some(StoreError::Lost(_))) || is_disk_failure(error)
}

/// The codecs change within the requested range.
#[derive(Debug)]
pub(crate) struct CodecChange;

fn begins(found: &[FoundFragment], start_90k: i64) -> bool {
    found
        .iter()
        .any(|found| found.independent && found.start_90k <= start_90k)
}

/// Track, kind and ticks per second.
struct Scales(Vec<(u32, TrackKind, u32)>);

impl Scales {
    /// Returns begin and end of a fragment, and whether a decoder can start with it; `None` for an empty one.
    fn place(&self, fragment: &Fragment) -> Option<(i64, i64, bool)> {
        let (mut start, mut end) = (i64::MAX, i64::MIN);
        let has_video = self.0.iter().any(|it| it.1 == TrackKind::Video);
        let mut independent = !has_video;
        for run in &fragment.runs {
            let Some((_, kind, timescale)) = self.0.iter().find(|it| it.0 == run.track) else {
                continue;
            };
            let to_90k = |ticks: u64| {
                let scaled = u128::from(ticks) * 90_000 / u128::from((*timescale).max(1));
                i64::try_from(scaled).unwrap_or(i64::MAX)
            };
            if *kind == TrackKind::Video {
                independent = run.samples.first().is_some_and(|sample| sample.key);
                // The times of a fragment are those of its video.
                start = to_90k(run.start);
                end = to_90k(run.start.saturating_add(run.duration()));
                break;
            }
            start = start.min(to_90k(run.start));
            end = end.max(to_90k(run.start.saturating_add(run.duration())));
        }
        (start <= end).then_some((start, end, independent))
    }
}

/// A file as it grows.
struct Splice<'r> {
    segments: &'r SegmentList,
    movie: Movie,
    pieces: Vec<Piece>,
    signature: Option<String>,
    described: Option<u32>,
    start_90k: i64,
    end_90k: i64,
}

impl<'r> Splice<'r> {
    fn new(segments: &'r SegmentList) -> Self {
        Self {
            segments,
            movie: Movie::new(),
            pieces: Vec::new(),
            signature: None,
            described: None,
            start_90k: i64::MAX,
            end_90k: 0,
        }
    }

    /// Returns whether a segment with this init section still belongs to this file; if so the file is prepared for it.
    fn takes(&mut self, init: u32, independent: bool) -> bool {
        if self.movie.is_overfull() || self.movie.is_full() && independent {
            return false;
        }
        if self.described == Some(init) {
            return true;
        }
        let Some(InitBytes { info, bytes }) = self.segments.inits.get(&init) else {
            return true;
        };
        let new = signature(&info.codecs);
        if self.signature.as_ref().is_some_and(|old| *old != new) {
            return false;
        }
        if let Ok(described) = Described::parse(bytes) {
            self.movie.describe(&described);
        }
        self.signature = Some(new);
        self.described = Some(init);
        true
    }

    fn add(&mut self, found: FoundFragment) {
        self.movie
            .push(&found.fragment, found.moof_bytes, found.payload.len);
        self.pieces.push(found.payload);
        self.start_90k = self.start_90k.min(found.start_90k);
        self.end_90k = self.end_90k.max(found.end_90k);
    }

    fn finish(self, next: Option<usize>) -> Option<MovieFile> {
        (!self.movie.is_empty()).then(|| MovieFile {
            header: self.movie.finish(),
            start_90k: self.start_90k,
            end_90k: self.end_90k,
            pieces: self.pieces,
            next,
        })
    }
}

/// An open segment.
enum OpenSegment {
    File(Arc<File>),
    Memory(Bytes),
    Objects(Box<SegmentObjects>),
}

/// Segment in the object store.
struct SegmentObjects {
    reader: PiecesReader,
    len: u64,
    runtime: Handle,
}

impl SegmentObjects {
    fn read(&mut self, mut at: u64, mut into: &mut [u8]) -> io::Result<()> {
        while !into.is_empty() {
            let reading = self.reader.read(at, into.len());
            let bytes = self.runtime.block_on(reading).map_err(io::Error::other)?;
            let (read, rest) = std::mem::take(&mut into).split_at_mut(bytes.len());
            read.copy_from_slice(&bytes);
            at += bytes.len() as u64;
            into = rest;
        }
        Ok(())
    }
}

impl OpenSegment {
    /// Opens a segment; `None` when its file is not there.
    fn open(medium: &Medium) -> io::Result<Option<Self>> {
        match medium {
            Medium::Memory(bytes) => Ok(Some(Self::Memory(bytes.clone()))),
            Medium::File(path) => match File::open(path) {
                Ok(file) => Ok(Some(Self::File(Arc::new(file)))),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            },
            Medium::Recorded(media) => {
                let runtime = Handle::current();
                let source = match runtime.block_on(media.open()) {
                    Err(StoreError::NotFound(_)) => return Ok(None),
                    opened => opened.map_err(io::Error::other)?,
                };
                let len = source.size()?;
                Ok(Some(match source {
                    Source::File(file) => Self::File(file),
                    Source::Pieces(reader) => Self::Objects(Box::new(SegmentObjects {
                        reader,
                        len,
                        runtime,
                    })),
                }))
            }
        }
    }

    fn len(&self) -> io::Result<u64> {
        match self {
            Self::File(file) => Ok(file.metadata()?.len()),
            Self::Memory(bytes) => Ok(bytes.len() as u64),
            Self::Objects(objects) => Ok(objects.len),
        }
    }

    fn read(&mut self, at: u64, into: &mut [u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.read_exact_at(into, at),
            Self::Memory(bytes) => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let found = bytes.get(at..at.saturating_add(into.len()));
                let found = found.ok_or(io::ErrorKind::UnexpectedEof)?;
                into.copy_from_slice(found);
                Ok(())
            }
            Self::Objects(objects) => objects.read(at, into),
        }
    }

    /// Reads the whole fragment at an offset, with the lengths of its `moof` box and of its payload; `None` at the end, and
    /// where the bytes are no fragment.
    fn fragment(&mut self, at: u64, end: u64) -> io::Result<Option<(Fragment, u64, u64)>> {
        let Some(moof) = self.header(at, end)? else {
            return Ok(None);
        };
        let Some(mdat) = self.header(at.saturating_add(moof.size), end)? else {
            return Ok(None);
        };
        let whole = at.saturating_add(moof.size).saturating_add(mdat.size);
        let is_fragment = (&moof.kind, &mdat.kind) == (b"moof", b"mdat")
            && moof.size <= MOST_MOOF_BYTES
            && mdat.header_bytes == 8
            && whole <= end;
        if !is_fragment {
            return Ok(None);
        }
        let mut bytes = vec![0; moof.size as usize];
        self.read(at, &mut bytes)?;
        let payload_bytes = mdat.size - 8;
        let parsed = Fragment::parse(&bytes, payload_bytes).ok();
        Ok(parsed.map(|fragment| (fragment, moof.size, payload_bytes)))
    }

    fn header(&mut self, at: u64, end: u64) -> io::Result<Option<BoxHeader>> {
        let left = end.saturating_sub(at).min(MOST_HEADER_BYTES as u64) as usize;
        let mut bytes = [0; MOST_HEADER_BYTES];
        if left < 8 {
            return Ok(None);
        }
        self.read(at, &mut bytes[..left])?;
        Ok(BoxHeader::parse(&bytes[..left]))
    }
}

/// The bytes of a file behind its header, a batch at a time.
pub(crate) struct Payload {
    segments: Arc<SegmentList>,
    pieces: std::vec::IntoIter<Piece>,
    open: Option<(usize, OpenSegment)>,
    left: Option<Piece>,
}

impl Payload {
    pub(crate) fn new(segments: Arc<SegmentList>, cut: &mut MovieFile) -> Self {
        Self {
            segments,
            pieces: std::mem::take(&mut cut.pieces).into_iter(),
            open: None,
            left: None,
        }
    }

    /// Reads the next bytes; none at the end. `NotFound` when a segment has gone meanwhile. A segment whose bytes are lost is noted
    /// in the list: cut the file again.
    pub(crate) fn batch(&mut self) -> io::Result<Bytes> {
        let mut batch = Vec::with_capacity(BATCH);
        while batch.len() < BATCH {
            let Some(piece) = self.left.take().or_else(|| self.pieces.next()) else {
                break;
            };
            let room = (BATCH - batch.len()) as u64;
            let now = piece.len.min(room);
            let start = batch.len();
            batch.resize(start + now as usize, 0);
            let read = self.read(piece.take, piece.offset, &mut batch[start..]);
            if let Err(error) = &read
                && is_loss(error)
            {
                self.segments.note_lost(piece.take, error);
            }
            read?;
            if now < piece.len {
                self.left = Some(Piece {
                    take: piece.take,
                    offset: piece.offset + now,
                    len: piece.len - now,
                });
            }
        }
        Ok(batch.into())
    }

    fn read(&mut self, take: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        if self.open.as_ref().is_none_or(|(open, _)| *open != take) {
            let opened = OpenSegment::open(&self.segments.takes[take].medium)?;
            self.open = opened.map(|opened| (take, opened));
        }
        let (_, open) = self.open.as_mut().ok_or(io::ErrorKind::NotFound)?;
        open.read(at, into)
    }
}
