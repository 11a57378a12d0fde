//! Open part and open segment of a live broadcast: numbers, discontinuities, init sections, EXT-X-PROGRAM-DATE-TIME. It
//! collects samples, and writes a part when its end is known.
//!
//! The packager decides when parts and segments end; this module keeps them well formed: no empty part, a new init
//! section before the segment that needs it, one discontinuity per cause, times that only grow.

use std::sync::Arc;

use super::{
    Continuation, FIRST_MSN, InitSection, Output, Part, SegmentStart,
    audio::AudioTrack,
    cadence::Cadence,
    fragment::{self, VideoSample},
    init,
};
use crate::codec::{AudioConfig, VideoConfig};

/// The pacing track, and the basis of PART-TARGET.
#[derive(Debug)]
pub(super) struct Pace<'a> {
    pub(super) cadence: &'a Cadence,
    pub(super) frame_rate: Option<f64>,
}

/// The tracks that the next segment's init section describes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tracks {
    pub(super) video: Option<Arc<VideoConfig>>,
    pub(super) audio: Option<Arc<AudioConfig>>,
}

/// Wall-clock time of a point of the timeline.
#[derive(Clone, Copy, Debug)]
struct Anchor {
    at_90k: i64,
    wall_ms: i64,
}

/// Numbers and bytes of what is being written.
#[derive(Debug)]
pub(super) struct Segmenter {
    wanted_part_90k: i64,
    part_target_90k: Option<u32>,
    next_msn: u64,
    next_init: u32,
    next_fragment: u32,
    tracks: Tracks,
    /// The tracks of the newest init section that went out, and its number.
    described: Option<(Tracks, u32)>,
    anchor: Anchor,
    /// The next segment opens with a discontinuity.
    discontinuity: bool,
    /// Parts of the open segment that went out; 0 when none is open.
    parts: u32,
    segment_start_90k: i64,
    part_start_90k: i64,
    video: Vec<VideoSample>,
    video_bytes: usize,
    /// A part of this broadcast went out, now or before a restart.
    begun: bool,
    /// Output that the packager has not handed over yet.
    pub(super) out: Vec<Output>,
}

impl Segmenter {
    pub(super) fn new(wanted_part_90k: i64, from: Option<Continuation>) -> Self {
        let from = from.unwrap_or_else(|| Continuation {
            next_msn: FIRST_MSN,
            ..Continuation::default()
        });
        Self {
            wanted_part_90k,
            part_target_90k: from.part_target_90k,
            next_msn: from.next_msn,
            next_init: from.next_init,
            next_fragment: from.next_fragment,
            tracks: Tracks::default(),
            described: None,
            anchor: Anchor {
                at_90k: 0,
                wall_ms: i64::MIN,
            },
            discontinuity: false,
            parts: 0,
            segment_start_90k: from.end_90k,
            part_start_90k: from.end_90k,
            video: Vec::new(),
            video_bytes: 0,
            begun: from.next_msn > FIRST_MSN,
            out: Vec::new(),
        }
    }

    /// Continues the timeline at `at_90k`, at wall-clock time `wall_ms`. The programme's time never goes back, whatever
    /// that clock does.
    pub(super) fn anchor(&mut self, at_90k: i64, wall_ms: i64) {
        let wall_ms = match self.anchor.wall_ms {
            i64::MIN => wall_ms,
            _ => wall_ms.max(self.wall_ms(at_90k)),
        };
        self.anchor = Anchor { at_90k, wall_ms };
    }

    /// Opens the next segment with a discontinuity, unless it is the broadcast's first.
    pub(super) fn discontinue(&mut self) {
        self.discontinuity = self.begun;
    }

    /// Sets the tracks of the next segment's init section. Other tracks than before are a discontinuity.
    pub(super) fn describe(&mut self, tracks: Tracks) {
        if self
            .described
            .as_ref()
            .is_some_and(|(described, _)| *described != tracks)
        {
            self.discontinue();
        }
        self.tracks = tracks;
    }

    pub(super) fn part_target_90k(&self) -> Option<i64> {
        self.part_target_90k.map(i64::from)
    }

    pub(super) fn wanted_part_90k(&self) -> i64 {
        self.wanted_part_90k
    }

    pub(super) fn part_start_90k(&self) -> i64 {
        self.part_start_90k
    }

    pub(super) fn segment_start_90k(&self) -> i64 {
        self.segment_start_90k
    }

    /// Returns whether no frame waits in the open part.
    pub(super) fn has_no_video_frame(&self) -> bool {
        self.video.is_empty()
    }

    /// Returns whether neither a part of the open segment was written nor a frame waits.
    pub(super) fn segment_is_empty(&self) -> bool {
        self.parts == 0 && self.video.is_empty()
    }

    pub(super) fn video_bytes(&self) -> usize {
        self.video_bytes
    }

    /// Begins the open part at `at_90k`.
    pub(super) fn start_at(&mut self, at_90k: i64) {
        self.part_start_90k = at_90k;
        if self.parts == 0 {
            self.segment_start_90k = at_90k;
        }
    }

    /// Skips the time before `at_90k`: the open part begins there, unless something waits in it.
    pub(super) fn skip_to(&mut self, at_90k: i64) {
        if self.video.is_empty() && at_90k > self.part_start_90k {
            self.start_at(at_90k);
        }
    }

    /// Returns the end of the open part if it should reach to `end_90k`: within the part target, or with the only
    /// frame.
    pub(super) fn fitting_end_90k(&mut self, end_90k: i64, pace: &Pace<'_>) -> i64 {
        let wanted = self.wanted_part_90k * 3 / 2;
        if end_90k - self.part_start_90k <= self.part_target_90k().unwrap_or(wanted) {
            return end_90k;
        }
        let limit = self.part_start_90k + self.settle_part_target(pace);
        let only_video_frame_end = match self.video.as_slice() {
            [only] => only.at_90k + i64::from(only.duration_90k),
            _ => limit,
        };
        end_90k.min(limit.max(only_video_frame_end))
    }

    pub(super) fn add(&mut self, sample: VideoSample) {
        self.video_bytes += sample.data.len();
        self.video.push(sample);
    }

    /// Settles PART-TARGET, which then holds for the broadcast.
    pub(super) fn settle_part_target(&mut self, pace: &Pace<'_>) -> i64 {
        let wanted = self.wanted_part_90k;
        let settle = || pace.cadence.part_target(wanted, pace.frame_rate);
        i64::from(*self.part_target_90k.get_or_insert_with(settle))
    }

    /// PART-TARGET, which the broadcast's first part settles so that it fits itself.
    fn part_target_with(&mut self, duration_90k: i64, pace: &Pace<'_>) -> u32 {
        let first = self.part_target_90k.is_none();
        self.settle_part_target(pace);
        let target = self.part_target_90k.get_or_insert_default();
        if first && duration_90k <= self.wanted_part_90k * 3 / 2 {
            let room = (duration_90k + 89) / 90 * 90 + 90;
            *target = (*target).max(u32::try_from(room).unwrap_or(u32::MAX));
        }
        *target
    }

    /// Ends the open part at `end_90k`, with the frames collected and the audio that starts before `audio_until_90k`.
    /// Without either there is no part, and the open one continues.
    pub(super) fn close_part(
        &mut self,
        end_90k: i64,
        audio_until_90k: i64,
        audio: Option<&mut AudioTrack>,
        pace: &Pace<'_>,
    ) {
        let duration = end_90k - self.part_start_90k;
        if duration <= 0 {
            return;
        }
        let frames = audio
            .map(|track| track.take_before(audio_until_90k))
            .unwrap_or_default();
        if self.video.is_empty() && frames.is_empty() {
            return;
        }
        // The broadcast's first part settles it, and may last a little longer than wanted.
        let part_target_90k = self.part_target_with(duration, pace);
        let segment = (self.parts == 0).then(|| self.open_segment(pace));
        self.next_fragment = self.next_fragment.wrapping_add(1);
        let data = fragment::encode(self.next_fragment, &self.video, &frames);
        self.out.push(Output::Part(Part {
            msn: self.next_msn,
            index: self.parts,
            segment,
            start_90k: self.part_start_90k,
            duration_90k: u32::try_from(duration).unwrap_or(u32::MAX),
            independent: self.is_independent(),
            part_target_90k,
            crc32: crc32fast::hash(&data),
            data,
        }));
        self.begun = true;
        self.parts += 1;
        self.part_start_90k = end_90k;
        self.video.clear();
        self.video_bytes = 0;
    }

    /// Ends the open segment, if it has a part.
    pub(super) fn end_segment(&mut self) {
        self.segment_start_90k = self.part_start_90k;
        if self.parts == 0 {
            return;
        }
        self.out.push(Output::SegmentEnd { msn: self.next_msn });
        self.next_msn += 1;
        self.parts = 0;
    }

    fn is_independent(&self) -> bool {
        match self.video.first() {
            Some(video_frame) => video_frame.key,
            None => self.tracks.video.is_none(),
        }
    }

    fn open_segment(&mut self, pace: &Pace<'_>) -> SegmentStart {
        SegmentStart {
            init: self.describe_again(pace),
            discontinuity: std::mem::take(&mut self.discontinuity),
            program_date_time_ms: self.wall_ms(self.segment_start_90k),
        }
    }

    /// Sends an init section if the tracks are not those of the last one; its number.
    fn describe_again(&mut self, pace: &Pace<'_>) -> u32 {
        if let Some((tracks, number)) = &self.described
            && *tracks == self.tracks
        {
            return *number;
        }
        let (video, audio) = (self.tracks.video.as_deref(), self.tracks.audio.as_deref());
        let frame_rate = video.and_then(|config| pace.cadence.frame_rate(config.frame_rate));
        let number = self.next_init;
        self.next_init += 1;
        self.out.push(Output::Init(InitSection {
            number,
            data: init::encode(video, audio, 0),
            info: Arc::new(init::stream_info(video, audio, frame_rate)),
        }));
        self.described = Some((self.tracks.clone(), number));
        number
    }

    fn wall_ms(&self, at_90k: i64) -> i64 {
        self.anchor
            .wall_ms
            .saturating_add((at_90k - self.anchor.at_90k).div_euclid(90))
    }
}
