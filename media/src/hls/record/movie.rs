//! Writes the flat MP4 of a recording: edit lists, gaps, B-frames at joins, most samples of one file. Its header grows
//! with every fragment, and the payloads are copied behind it.
//!
//! Decode times come from the fragments. A gap makes the sample before it last longer. Edits say when a track is shown:
//! from its first frame, which with B-frames is not shown when it is decoded, to the end of its last, which readers
//! would cut off otherwise; a track that begins late begins with an empty edit, so that audio and video keep their
//! places.

use bytes::Bytes;

use super::{
    super::{
        boxes::{put_u32, put_u64, write_box, write_full_box},
        headers::{write_mdia, write_mvhd, write_tkhd},
    },
    Described, Fragment, Run, Sample, TrackKind,
    tables::{ChunkOffsets, Tables},
};

/// Samples that one file should hold: some 14 hours of 30 video frames and 47 audio frames a second. Their tables take
/// at most 20 bytes each.
pub const MOST_SAMPLES: usize = 4_000_000;
/// Time scale of `mvhd`: edits are as exact as frames.
const MOVIE_TIMESCALE: u32 = 90_000;

/// An encoder shows no frame later than this after it is decoded.
const MOST_ROOM_90K: u64 = 10 * 90_000;

/// Flat MP4 file in the making.
#[derive(Debug, Default)]
pub struct Movie {
    tracks: Vec<Track>,
    payload_bytes: u64,
    samples: usize,
    /// Delay of the following samples against their fragments.
    shift_90k: u64,
    /// Another publisher session begins with the next frame.
    is_joining: bool,
}

#[derive(Debug)]
struct Track {
    kind: TrackKind,
    timescale: u32,
    size: (u32, u32),
    /// Sample entries, no two alike.
    entries: Vec<Bytes>,
    source: Option<FragmentTrack>,
    tables: Tables,
    /// Decode time of the first sample.
    first: u64,
    /// The newest sample, whose duration is not known before the next one.
    held: Option<Held>,
    /// Presentation from the first frame to the end of the last one so far.
    shown: Option<Shown>,
}

#[derive(Clone, Copy, Debug)]
struct Shown {
    from: u64,
    until: u64,
}

/// Name of a track in the present fragments.
#[derive(Clone, Copy, Debug)]
struct FragmentTrack {
    track: u32,
    timescale: u32,
    /// Number of its sample entry, from 1.
    entry: u32,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    at: u64,
    /// Duration in its fragment.
    duration: u64,
}

/// Everything before the payload of a file, and its properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovieHeader {
    /// `ftyp`, `moov`, and the header of `mdat`.
    pub bytes: Vec<u8>,
    pub payload_bytes: u64,
    pub duration_ms: i64,
    /// Width and height in pixels as shown; `None` without frames.
    pub size: Option<(u32, u32)>,
}

impl MovieHeader {
    /// Returns the size of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.payload_bytes
    }
}

impl Movie {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the init section of the fragments that follow. The first one settles the tracks; a track that it lacks is
    /// left out.
    pub fn describe(&mut self, described: &Described) {
        if self.tracks.is_empty() {
            self.tracks = described.tracks.iter().map(Track::new).collect();
        }
        for track in &mut self.tracks {
            track.source = None;
        }
        for description in &described.tracks {
            let kind = description.kind;
            let free = |track: &&mut Track| track.kind == kind && track.source.is_none();
            if let Some(track) = self.tracks.iter_mut().find(free) {
                track.source = Some(FragmentTrack {
                    track: description.track,
                    timescale: description.timescale,
                    entry: track.entry(&description.entry),
                });
            }
        }
    }

    /// Begins the samples of another publisher session, or behind a jump. Its frames are shown after all before them:
    /// with B-frames the last ones of a session that was cut off are shown beyond its end.
    pub fn join(&mut self) {
        self.is_joining = !self.is_empty();
    }

    /// Makes room for frames that would be shown among those before them.
    fn make_room(&mut self, fragment: &Fragment) {
        for track in &self.tracks {
            let of_track = |run: &&Run| track.source.is_some_and(|it| it.track == run.track);
            let run = fragment.runs.iter().find(of_track);
            let (Some(run), TrackKind::Video) = (run, track.kind) else {
                continue;
            };
            let first = run
                .samples
                .first()
                .map_or(0, |sample| i64::from(sample.cts));
            let first = run.start.saturating_add_signed(first);
            let timescale = track.source.map_or(track.timescale, |it| it.timescale);
            let first_90k = rescaled(first, timescale, MOVIE_TIMESCALE) + self.shift_90k;
            let until = track.shown.map_or(0, |shown| shown.until);
            let until_90k = rescaled(until, track.timescale, MOVIE_TIMESCALE);
            self.shift_90k += until_90k.saturating_sub(first_90k).min(MOST_ROOM_90K);
            self.is_joining = false;
            return;
        }
    }

    /// Adds a fragment whose `moof` has `moof_bytes` and whose whole payload is copied behind those before it.
    pub fn push(&mut self, fragment: &Fragment, moof_bytes: u64, payload_bytes: u64) {
        let payload_at = moof_bytes + 8;
        if self.is_joining {
            self.make_room(fragment);
        }
        let shift_90k = self.shift_90k;
        for run in &fragment.runs {
            let of_run = |track: &&mut Track| track.source.is_some_and(|it| it.track == run.track);
            let Some(track) = self.tracks.iter_mut().find(of_run) else {
                continue;
            };
            let offset = self.payload_bytes + run.data_offset.saturating_sub(payload_at);
            track.add(offset, run.start, shift_90k, &run.samples);
            self.samples += run.samples.len();
        }
        self.payload_bytes += payload_bytes;
    }

    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// Returns whether another file should begin with the next frame that needs no other.
    pub fn is_full(&self) -> bool {
        self.samples >= MOST_SAMPLES
    }

    /// Returns whether another file must begin.
    pub fn is_overfull(&self) -> bool {
        self.samples >= MOST_SAMPLES + MOST_SAMPLES / 4
    }

    /// Writes the header.
    pub fn finish(mut self) -> MovieHeader {
        self.tracks.retain(|track| !track.tables.is_empty());
        self.tracks.iter_mut().for_each(Track::settle_last);
        let spans = || self.tracks.iter().map(Track::shown_90k);
        let base_90k = spans().map(|shown| shown.from).min().unwrap_or(0);
        let until_90k = spans().map(|shown| shown.until).max().unwrap_or(0);
        let duration_90k = until_90k.saturating_sub(base_90k);
        let mut bytes = Vec::with_capacity(self.samples * 8 + 4_096);
        let mut places = Vec::new();
        write_box(&mut bytes, b"ftyp", |out| {
            out.extend_from_slice(b"isom");
            put_u32(out, 0x200);
            out.extend_from_slice(b"isomiso6mp41");
        });
        write_box(&mut bytes, b"moov", |out| {
            let next_track = u32::try_from(self.tracks.len() + 1).unwrap_or(u32::MAX);
            write_mvhd(out, MOVIE_TIMESCALE, Some(duration_90k), next_track);
            for (number, track) in (1..).zip(&self.tracks) {
                track.write(out, number, base_90k, &mut places);
            }
        });
        put_u32(&mut bytes, 1); // the size follows in 64 bits
        bytes.extend_from_slice(b"mdat");
        put_u64(&mut bytes, self.payload_bytes + 16);
        let header_bytes = bytes.len() as u64;
        for place in places {
            place.shift(&mut bytes, header_bytes);
        }
        let video = self.tracks.iter().find(|it| it.kind == TrackKind::Video);
        MovieHeader {
            bytes,
            payload_bytes: self.payload_bytes,
            duration_ms: i64::try_from(duration_90k / 90).unwrap_or(i64::MAX),
            size: video.map(|track| (track.size.0 >> 16, track.size.1 >> 16)),
        }
    }
}

impl Track {
    fn new(description: &super::Description) -> Self {
        Self {
            kind: description.kind,
            timescale: description.timescale,
            size: description.size,
            entries: Vec::new(),
            source: None,
            tables: Tables::default(),
            first: 0,
            held: None,
            shown: None,
        }
    }

    /// The number of a sample entry, from 1.
    fn entry(&mut self, entry: &Bytes) -> u32 {
        let known = self.entries.iter().position(|it| it == entry);
        let index = known.unwrap_or_else(|| {
            self.entries.push(entry.clone());
            self.entries.len() - 1
        });
        u32::try_from(index + 1).unwrap_or(u32::MAX)
    }

    fn add(&mut self, offset: u64, start: u64, shift_90k: u64, samples: &[Sample]) {
        let Some(source) = self.source else { return };
        let shift = rescaled(shift_90k, MOVIE_TIMESCALE, self.timescale);
        self.tables.begin_chunk(offset, source.entry);
        let mut ticks = start;
        for sample in samples {
            let wanted = self.scaled(ticks, source.timescale) + shift;
            let at = self.settle(wanted);
            let cts = i64::from(sample.cts) - i64::try_from(at - wanted).unwrap_or(0);
            let cts = cts.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
            self.tables.add(sample, cts);
            ticks = ticks.saturating_add(u64::from(sample.duration));
            let end = self.scaled(ticks, source.timescale) + shift;
            let duration = end.saturating_sub(wanted).max(1);
            self.held = Some(Held { at, duration });
            let from = at.saturating_add_signed(i64::from(cts));
            let until = from + duration;
            let shown = self.shown.get_or_insert(Shown { from, until });
            shown.from = shown.from.min(from);
            shown.until = shown.until.max(until);
        }
    }

    /// Converts the source's ticks to the file's.
    fn scaled(&self, ticks: u64, timescale: u32) -> u64 {
        rescaled(ticks, timescale, self.timescale)
    }

    /// Gives the held sample its duration; returns the place of the next one, which is never before it.
    fn settle(&mut self, at: u64) -> u64 {
        let Some(held) = self.held else {
            self.first = at;
            return at;
        };
        let lasts = at.saturating_sub(held.at).clamp(1, u64::from(u32::MAX));
        self.tables.lasts(lasts as u32);
        held.at + lasts
    }

    fn settle_last(&mut self) {
        if let Some(held) = &self.held {
            let lasts = held.duration.clamp(1, u64::from(u32::MAX));
            self.tables.lasts(lasts as u32);
        }
    }

    /// Returns the presentation on the movie's timescale.
    fn shown_90k(&self) -> Shown {
        let scaled = |ticks| rescaled(ticks, self.timescale, MOVIE_TIMESCALE);
        Shown {
            from: scaled(self.shown.map_or(self.first, |shown| shown.from)),
            until: scaled(self.shown.map_or(self.end(), |shown| shown.until)),
        }
    }

    fn end(&self) -> u64 {
        self.held.map_or(self.first, |held| held.at + held.duration)
    }

    fn write(&self, out: &mut Vec<u8>, number: u32, base_90k: u64, places: &mut Vec<ChunkOffsets>) {
        let shown_90k = self.shown_90k();
        let late_90k = shown_90k.from.saturating_sub(base_90k);
        let lasts_90k = shown_90k.until.saturating_sub(shown_90k.from);
        // Of the first frame, behind where the track's decode times begin.
        let skipped = self
            .shown
            .map_or(0, |shown| shown.from.saturating_sub(self.first));
        let is_video = self.kind == TrackKind::Video;
        write_box(out, b"trak", |out| {
            let duration_90k = Some(late_90k + lasts_90k);
            write_tkhd(out, self.kind, number, duration_90k, self.size);
            if late_90k > 0 || skipped > 0 {
                write_edts(out, late_90k, lasts_90k, skipped);
            }
            let duration = Some(self.end().saturating_sub(self.first));
            write_mdia(out, self.kind, self.timescale, duration, |out| {
                write_box(out, b"stbl", |out| {
                    write_full_box(out, b"stsd", 0, 0, |out| {
                        put_u32(out, u32::try_from(self.entries.len()).unwrap_or(u32::MAX));
                        for entry in &self.entries {
                            out.extend_from_slice(entry);
                        }
                    });
                    self.tables.write(out, is_video, places);
                });
            });
        });
    }
}

/// Writes an empty edit for a late start, then the track from its first frame on (ISO/IEC 14496-12 §8.6.6). `skipped`
/// is on the track's own timescale.
fn write_edts(out: &mut Vec<u8>, late_90k: u64, lasts_90k: u64, skipped: u64) {
    let media_time = i64::try_from(skipped).unwrap_or(i64::MAX);
    let edits = [(late_90k, -1), (lasts_90k, media_time)];
    let edits = &edits[usize::from(late_90k == 0)..];
    write_box(out, b"edts", |out| {
        write_full_box(out, b"elst", 1, 0, |out| {
            put_u32(out, edits.len() as u32);
            for (duration_90k, media_time) in edits {
                put_u64(out, *duration_90k);
                out.extend_from_slice(&media_time.to_be_bytes());
                put_u32(out, 0x1_0000); // rate 1.0
            }
        });
    });
}

/// Converts ticks between timescales, to the nearest.
fn rescaled(ticks: u64, from: u32, to: u32) -> u64 {
    if from == to {
        return ticks;
    }
    let exact =
        (u128::from(ticks) * u128::from(to) + u128::from(from) / 2) / u128::from(from.max(1));
    u64::try_from(exact).unwrap_or(u64::MAX)
}
