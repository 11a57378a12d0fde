//! Decides when parts and segments of a live input end: key frames, target duration, late audio, stalled video, clock
//! jumps.
//!
//! Video sets the pace. A frame is *held* until the next one gives its duration; then it joins the open part, and cuts
//! are made at the next frame's time. Audio follows by its own times, and joins the open part if it is late. Without
//! video, or when video stalls while audio continues, audio sets the pace.

use std::sync::Arc;

use bytes::Bytes;

use super::{
    audio::AudioTrack,
    cadence::Cadence,
    fragment::VideoSample,
    packager::BroadcastPackager,
    segmenter::{Pace, Tracks},
    timeline::{Timeline, Track},
    track_wait::{ArrivedUnit, Start},
};
use crate::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, CLOCK_90K, Unit, VideoUnit},
};

/// A key frame may come this much after the target duration, for rounded timestamps.
const LATE_KEY_90K: i64 = CLOCK_90K / 10;
/// EXTINF is rounded to whole seconds before it is compared with TARGETDURATION.
const ROUNDING_90K: i64 = CLOCK_90K * 45 / 100;
/// Lead of audio at which video counts as stalled, and parts are written without it.
const STALL_90K: i64 = CLOCK_90K;
/// Time within which a second jump counts as part of the first.
const SAME_BREAK_90K: i64 = CLOCK_90K / 10;
/// Duration of a frame, until two came and nothing was declared.
const UNKNOWN_FRAME_90K: i64 = CLOCK_90K / 30;
/// Payload that may wait for its part: 640 Mbit/s at 200 ms.
const MAX_WAITING_BYTES: usize = 16 << 20;

/// The running part of a publisher session.
#[derive(Debug)]
pub(super) struct SessionPackager {
    timeline: Timeline,
    video: Option<VideoTrack>,
    audio: Option<AudioTrack>,
    /// The newest configurations; a track changes to its own where it can.
    video_config: Option<Arc<VideoConfig>>,
    audio_config: Option<Arc<AudioConfig>>,
    /// Audio appeared late and joins with the next segment.
    audio_joins: bool,
    /// True when audio sets the pace although there is video.
    stalled: bool,
    last_break_90k: Option<i64>,
}

#[derive(Debug)]
struct VideoTrack {
    config: Arc<VideoConfig>,
    held: Option<HeldFrame>,
    /// End of the last frame before the held one.
    end_90k: i64,
    /// A frame was left out: no other one can be decoded.
    needs_key: bool,
    cadence: Cadence,
}

/// A frame of unknown duration.
#[derive(Debug)]
struct HeldFrame {
    at_90k: i64,
    cts_90k: i32,
    key: bool,
    data: Bytes,
}

impl VideoTrack {
    fn new(config: Arc<VideoConfig>, start_90k: i64) -> Self {
        let declared = config
            .frame_rate
            .filter(|rate| (0.1..=1_000.0).contains(rate));
        let expected = declared.map_or(UNKNOWN_FRAME_90K, |rate| (CLOCK_90K as f64 / rate) as i64);
        Self {
            config,
            held: None,
            end_90k: start_90k,
            needs_key: true,
            cadence: Cadence::new(expected),
        }
    }

    /// Returns the end of all frames, if the held one lasts as long as the one before.
    fn assumed_end_90k(&self) -> i64 {
        self.held
            .as_ref()
            .map_or(self.end_90k, |held| held.at_90k + self.cadence.last())
    }
}

impl SessionPackager {
    /// Maps the session's first usable unit to the end of the timeline. `None` when there is no such unit.
    pub(super) fn start(
        start: Start,
        units: &[ArrivedUnit],
        broadcast: &mut BroadcastPackager,
    ) -> Option<Self> {
        let first = units.iter().find_map(|arrived| match &arrived.unit {
            Unit::Video(video_frame) if start.video.ready => {
                Some((Track::Video, video_frame.dts_90k, arrived.at_ms))
            }
            Unit::Audio(frame) if !start.video.ready => {
                Some((Track::Audio, frame.pts_90k, arrived.at_ms))
            }
            _ => None,
        });
        let (track, raw_90k, at_ms) = first?;
        let start_90k = broadcast.end_90k;
        let video = start.video.config.as_ref().filter(|_| start.video.ready);
        let audio = start.audio.config.as_ref().filter(|_| start.audio.ready);
        let session = Self {
            timeline: Timeline::new(track, raw_90k, start_90k),
            video: video.map(|config| VideoTrack::new(Arc::clone(config), start_90k)),
            audio: audio.map(|config| AudioTrack::new(Arc::clone(config), start_90k)),
            video_config: start.video.config,
            audio_config: start.audio.config,
            audio_joins: false,
            stalled: false,
            last_break_90k: None,
        };
        broadcast.segmenter.start_at(start_90k);
        broadcast.segmenter.anchor(start_90k, at_ms);
        broadcast.segmenter.describe(session.tracks());
        Some(session)
    }

    pub(super) fn push(&mut self, unit: Unit, broadcast: &mut BroadcastPackager) {
        let taken = match unit {
            Unit::VideoConfig(config) => {
                self.video_config = Some(config);
                true
            }
            Unit::AudioConfig(config) => {
                self.audio_config = Some(config);
                true
            }
            Unit::Video(video_frame) => self.push_video(video_frame, broadcast),
            Unit::Audio(frame) => self.push_audio(frame, broadcast),
        };
        if !taken {
            broadcast.dropped += 1;
        }
    }

    /// Sends out everything and closes the segment.
    pub(super) fn finish(&mut self, broadcast: &mut BroadcastPackager) {
        self.flush(broadcast);
        broadcast.end_90k = broadcast.segmenter.part_start_90k();
    }

    fn tracks(&self) -> Tracks {
        Tracks {
            video: self.video.as_ref().map(|track| Arc::clone(&track.config)),
            audio: self.audio.as_ref().map(|track| Arc::clone(&track.config)),
        }
    }

    /// Returns the end of all media so far.
    fn end_90k(&self, broadcast: &BroadcastPackager) -> i64 {
        let video = self.video.as_ref().map(VideoTrack::assumed_end_90k);
        let audio = self.audio.as_ref().and_then(AudioTrack::end_90k);
        let placed = video.max(audio).unwrap_or(broadcast.end_90k);
        placed.max(broadcast.segmenter.part_start_90k())
    }

    fn waiting_bytes(&self, broadcast: &BroadcastPackager) -> usize {
        let held = self.video.as_ref().and_then(|track| track.held.as_ref());
        broadcast.segmenter.video_bytes()
            + held.map_or(0, |held| held.data.len())
            + self.audio.as_ref().map_or(0, AudioTrack::waiting_bytes)
    }
}

/// Video.
impl SessionPackager {
    /// Takes a video frame; `false` when it is left out.
    fn push_video(&mut self, video_frame: VideoUnit, broadcast: &mut BroadcastPackager) -> bool {
        let fits = self.waiting_bytes(broadcast) + video_frame.data.len() <= MAX_WAITING_BYTES;
        let Some(track) = &mut self.video else {
            return self.join_video(video_frame, broadcast);
        };
        if (track.needs_key && !video_frame.key) || !fits {
            track.needs_key = true;
            return false;
        }
        let end_90k = self.end_90k(broadcast);
        let placement = self
            .timeline
            .place(Track::Video, video_frame.dts_90k, end_90k);
        if placement.jumped {
            self.break_off(end_90k, broadcast);
        }
        let track = self.video.as_mut().expect("was there above");
        track.needs_key = false;
        let after_held = track
            .held
            .as_ref()
            .map_or(track.end_90k, |held| held.at_90k + 1);
        let at_90k = placement.at_90k.max(after_held);
        // A decode time that was moved leaves the presentation time where it was.
        let cts_90k = i64::from(video_frame.cts_90k).saturating_add(placement.mapped_90k - at_90k);

        self.settle_held(at_90k, broadcast);
        self.cut_segment_before(at_90k, video_frame.key, broadcast);
        self.stalled = false;
        broadcast.key_frames.observe(at_90k, video_frame.key);
        let track = self.video.as_mut().expect("was there above");
        track.held = Some(HeldFrame {
            at_90k,
            cts_90k: cts_90k.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32,
            key: video_frame.key,
            data: video_frame.data,
        });
        true
    }

    /// Sets the held frame's duration, up to `next_at_90k`, and ends the parts that it fills.
    fn settle_held(&mut self, next_at_90k: i64, broadcast: &mut BroadcastPackager) {
        let Some(track) = &mut self.video else { return };
        let Some(held) = track.held.take() else {
            return;
        };
        let mut duration = next_at_90k - held.at_90k;
        let bounded = duration <= broadcast.target_duration_90k;
        if bounded {
            track.cadence.observe(duration);
        } else {
            duration = track.cadence.last().min(broadcast.target_duration_90k);
        }
        let end_90k = held.at_90k + duration;
        track.end_90k = end_90k;
        let typical = track.cadence.typical();

        self.make_room(held.at_90k, end_90k, broadcast);
        broadcast.segmenter.add(VideoSample {
            at_90k: held.at_90k,
            duration_90k: u32::try_from(duration).expect("at most the target duration"),
            cts_90k: held.cts_90k,
            key: held.key,
            data: held.data,
        });
        self.close_audio_parts(end_90k, broadcast);
        if !bounded || self.is_part_full(end_90k, typical, broadcast) {
            self.close_part(end_90k, end_90k, broadcast);
        }
        if !bounded && broadcast.segmenter.has_no_video_frame() {
            broadcast
                .segmenter
                .start_at(next_at_90k.max(broadcast.segmenter.part_start_90k()));
        }
    }

    /// Ends the part before a frame at `at_90k` whose end would make it too long.
    fn make_room(&mut self, at_90k: i64, end_90k: i64, broadcast: &mut BroadcastPackager) {
        let segmenter = &broadcast.segmenter;
        let unsettled = segmenter.wanted_part_90k() * 3 / 2;
        let limit = segmenter.part_target_90k().unwrap_or(unsettled);
        let start_90k = segmenter.part_start_90k();
        if segmenter.has_no_video_frame() || end_90k - start_90k <= limit {
            return;
        }
        // After a stall there is a gap before the frame.
        self.close_part(at_90k.min(start_90k + limit), at_90k, broadcast);
        if broadcast.segmenter.has_no_video_frame() {
            broadcast
                .segmenter
                .start_at(at_90k.max(broadcast.segmenter.part_start_90k()));
        }
    }

    /// Returns whether one more frame of `typical` duration would not fit into the part that now reaches to `end_90k`.
    fn is_part_full(&self, end_90k: i64, typical: i64, broadcast: &BroadcastPackager) -> bool {
        let segmenter = &broadcast.segmenter;
        let elapsed = end_90k - segmenter.part_start_90k();
        match segmenter.part_target_90k() {
            Some(part_target) => elapsed + typical > part_target,
            None => elapsed + typical / 2 >= segmenter.wanted_part_90k(),
        }
    }

    /// Ends the segment before a frame at `at_90k`: at a key frame from the minimum on, or at the target duration,
    /// and wherever the frame needs another init section.
    fn cut_segment_before(&mut self, at_90k: i64, key: bool, broadcast: &mut BroadcastPackager) {
        let Some(track) = &mut self.video else { return };
        let elapsed = at_90k - broadcast.segmenter.segment_start_90k();
        let limit = broadcast.target_duration_90k + LATE_KEY_90K;
        let changed = key
            && self
                .video_config
                .as_ref()
                .is_some_and(|new| *new != track.config);
        let due = key && elapsed >= broadcast.segment_min_90k;
        // One frame more would exceed the target duration, which a player may take as an error.
        let overdue = elapsed + track.cadence.typical() > limit;
        let empty = broadcast.segmenter.segment_is_empty();
        if !changed && !due && (!overdue || empty) {
            return;
        }
        self.cut(at_90k, at_90k, broadcast);
        self.renew_tracks(at_90k, changed, broadcast);
    }

    /// Applies a new video configuration and adds late audio, between two segments.
    fn renew_tracks(
        &mut self,
        at_90k: i64,
        video_changed: bool,
        broadcast: &mut BroadcastPackager,
    ) {
        if video_changed && let (Some(track), Some(config)) = (&mut self.video, &self.video_config)
        {
            track.config = Arc::clone(config);
        }
        if std::mem::take(&mut self.audio_joins) {
            let config = self.audio_config.as_ref();
            self.audio = config.map(|config| AudioTrack::new(Arc::clone(config), at_90k));
        }
        broadcast.segmenter.describe(self.tracks());
    }

    /// Adds video to a session that started without it: a new segment from its first key frame on.
    fn join_video(&mut self, video_frame: VideoUnit, broadcast: &mut BroadcastPackager) -> bool {
        let Some(config) = self.video_config.clone().filter(|_| video_frame.key) else {
            return false;
        };
        let end_90k = self.end_90k(broadcast);
        let placement = self
            .timeline
            .place(Track::Video, video_frame.dts_90k, end_90k);
        let part_start_90k = broadcast.segmenter.part_start_90k();
        let at_90k = placement.at_90k.max(part_start_90k);
        self.cut(at_90k.min(end_90k), at_90k, broadcast);
        let at_90k = at_90k.max(broadcast.segmenter.part_start_90k());
        broadcast.segmenter.start_at(at_90k);

        let mut track = VideoTrack::new(config, at_90k);
        track.needs_key = false;
        track.held = Some(HeldFrame {
            at_90k,
            cts_90k: video_frame.cts_90k,
            key: true,
            data: video_frame.data,
        });
        self.video = Some(track);
        self.stalled = false;
        broadcast.key_frames.observe(at_90k, true);
        broadcast.segmenter.describe(self.tracks());
        true
    }
}

/// Audio.
impl SessionPackager {
    /// Takes an audio frame; `false` when it is left out.
    fn push_audio(&mut self, frame: AudioUnit, broadcast: &mut BroadcastPackager) -> bool {
        if self.waiting_bytes(broadcast) + frame.data.len() > MAX_WAITING_BYTES {
            return false;
        }
        let Some(track) = &self.audio else {
            self.audio_joins = self.audio_config.is_some();
            return false;
        };
        if self
            .audio_config
            .as_ref()
            .is_some_and(|new| *new != track.config)
        {
            self.change_audio(broadcast);
        }
        let end_90k = self.end_90k(broadcast);
        let placement = self.timeline.place(Track::Audio, frame.pts_90k, end_90k);
        if placement.jumped {
            self.break_off(end_90k, broadcast);
        }
        let Some(track) = &mut self.audio else {
            return false;
        };
        let taken = track.push(placement.at_90k, placement.realigned, frame.data);
        self.follow_audio(broadcast);
        taken
    }

    /// Changes the audio configuration: writes all that needs the old one, then begins a new segment.
    fn change_audio(&mut self, broadcast: &mut BroadcastPackager) {
        let Some(config) = self.audio_config.clone() else {
            return;
        };
        let Some(track) = &self.audio else { return };
        let floor_90k = track.successor_from_90k();
        let at_90k = self.video.as_ref().map_or(floor_90k, |track| {
            track
                .held
                .as_ref()
                .map_or(track.end_90k, |held| held.at_90k)
        });
        self.cut(at_90k, i64::MAX, broadcast);
        self.audio = Some(AudioTrack::new(config, floor_90k));
        broadcast.segmenter.describe(self.tracks());
    }

    /// Ends parts and segments by audio where video does not set the pace.
    fn follow_audio(&mut self, broadcast: &mut BroadcastPackager) {
        let Some(audio_end_90k) = self.audio.as_ref().and_then(AudioTrack::end_90k) else {
            return;
        };
        if let Some(video) = &self.video {
            let assumed_end_90k = video.assumed_end_90k();
            if audio_end_90k - assumed_end_90k > STALL_90K {
                self.settle_held(assumed_end_90k, broadcast);
                self.stalled = true;
            }
            if !self.stalled {
                return;
            }
        }
        self.pace_by_audio(audio_end_90k, broadcast);
    }

    /// Closes every part that audio up to `end_90k` fills, and the segments that are long enough.
    fn pace_by_audio(&mut self, end_90k: i64, broadcast: &mut BroadcastPackager) {
        let frame_90k = self.audio.as_ref().map_or(1, AudioTrack::frame_90k);
        while self.is_part_full(end_90k, frame_90k, broadcast) {
            let start_90k = broadcast.segmenter.part_start_90k();
            let part_target = self.settle_part_target(broadcast);
            let part_end_90k = end_90k.min(start_90k + part_target);
            self.close_part(part_end_90k, part_end_90k, broadcast);
            if broadcast.segmenter.part_start_90k() == start_90k && !self.skip_gap(broadcast) {
                return;
            }
            self.cut_long_segment(part_target, broadcast);
        }
    }

    /// Skips a gap without media: the open part begins with the next frame. `false` when there is none.
    fn skip_gap(&mut self, broadcast: &mut BroadcastPackager) -> bool {
        let start_90k = broadcast.segmenter.part_start_90k();
        let next = self.audio.as_ref().and_then(AudioTrack::waiting_from_90k);
        let Some(next) = next.filter(|&next| next > start_90k) else {
            return false;
        };
        broadcast.segmenter.start_at(next);
        true
    }

    /// Closes parts of audio alone up to `end_90k` while video is missing, each within the part target.
    fn close_audio_parts(&mut self, end_90k: i64, broadcast: &mut BroadcastPackager) {
        loop {
            let start_90k = broadcast.segmenter.part_start_90k();
            let unsettled = broadcast.segmenter.part_target_90k().is_none();
            if unsettled && end_90k - start_90k <= 2 * broadcast.segmenter.wanted_part_90k() {
                return;
            }
            let part_target = self.settle_part_target(broadcast);
            let part_end_90k = start_90k + part_target;
            let audio = self.audio.as_ref();
            if !audio.is_some_and(|track| track.waits_within(part_end_90k, end_90k)) {
                return;
            }
            self.close_part(part_end_90k, part_end_90k, broadcast);
            if broadcast.segmenter.part_start_90k() == start_90k && !self.skip_gap(broadcast) {
                return;
            }
            self.cut_long_segment(part_target, broadcast);
        }
    }

    /// Ends a segment that consists of whole parts where one more would make it too long, and, without video, as soon
    /// as it has its minimum.
    fn cut_long_segment(&mut self, part_target: i64, broadcast: &mut BroadcastPackager) {
        let segmenter = &mut broadcast.segmenter;
        let elapsed = segmenter.part_start_90k() - segmenter.segment_start_90k();
        let due = self.video.is_none() && elapsed >= broadcast.segment_min_90k;
        if due || elapsed + part_target > broadcast.target_duration_90k + LATE_KEY_90K {
            segmenter.end_segment();
        }
    }
}

/// Ends of parts and segments.
impl SessionPackager {
    /// Ends the segment where the publisher's clock jumped; the next one opens with a discontinuity.
    fn break_off(&mut self, at_90k: i64, broadcast: &mut BroadcastPackager) {
        let again = self
            .last_break_90k
            .is_some_and(|last| at_90k - last < SAME_BREAK_90K);
        if again {
            return;
        }
        self.flush(broadcast);
        broadcast.segmenter.discontinue();
        broadcast.key_frames.interrupt();
        self.last_break_90k = Some(at_90k);
    }

    /// Sends out everything that waits, and ends the segment.
    fn flush(&mut self, broadcast: &mut BroadcastPackager) {
        let end_90k = self.end_90k(broadcast);
        if let Some(track) = &self.video {
            self.settle_held(track.assumed_end_90k(), broadcast);
        }
        self.close_audio_parts(end_90k, broadcast);
        self.cut(end_90k, i64::MAX, broadcast);
    }

    /// Ends part and segment at `at_90k`, with the audio that starts before `audio_until_90k`.
    fn cut(&mut self, at_90k: i64, audio_until_90k: i64, broadcast: &mut BroadcastPackager) {
        let start_90k = broadcast.segmenter.part_start_90k();
        let audio = self.audio.as_ref();
        let waits = !broadcast.segmenter.has_no_video_frame()
            || audio.is_some_and(|track| track.waits_within(i64::MIN, audio_until_90k));
        // Media wholly in the past of the open part still need one to be written with.
        let end_90k = if waits {
            at_90k.max(start_90k + 1)
        } else {
            at_90k
        };
        self.close_part(end_90k, audio_until_90k, broadcast);
        broadcast.segmenter.end_segment();
        broadcast.segmenter.start_at(end_90k.max(start_90k));
    }

    /// Ends the open part; in a new segment, should it not fit into the open one. What a gap in the media makes longer
    /// than the part target ends earlier, and the next part begins behind the gap.
    fn close_part(
        &mut self,
        end_90k: i64,
        audio_until_90k: i64,
        broadcast: &mut BroadcastPackager,
    ) {
        let audio_cadence = self.audio_cadence();
        let pace = pace(self.video.as_ref(), &audio_cadence);
        let segmenter = &mut broadcast.segmenter;
        let longest_90k = segmenter.part_start_90k() + broadcast.target_duration_90k;
        let part_end_90k = segmenter.fitting_end_90k(end_90k, &pace).min(longest_90k);
        let segment_limit = broadcast.target_duration_90k + ROUNDING_90K;
        if part_end_90k - segmenter.segment_start_90k() > segment_limit {
            segmenter.end_segment();
        }
        segmenter.close_part(part_end_90k, audio_until_90k, self.audio.as_mut(), &pace);
        if part_end_90k < end_90k {
            segmenter.skip_to(end_90k);
        }
    }

    fn settle_part_target(&self, broadcast: &mut BroadcastPackager) -> i64 {
        broadcast
            .segmenter
            .settle_part_target(&pace(self.video.as_ref(), &self.audio_cadence()))
    }

    fn audio_cadence(&self) -> Cadence {
        Cadence::new(
            self.audio
                .as_ref()
                .map_or(UNKNOWN_FRAME_90K, AudioTrack::frame_90k),
        )
    }
}

/// Returns the pace of the video, or else of the audio.
fn pace<'a>(video: Option<&'a VideoTrack>, audio: &'a Cadence) -> Pace<'a> {
    match video {
        Some(track) => Pace {
            cadence: &track.cadence,
            frame_rate: track.config.frame_rate,
        },
        None => Pace {
            cadence: audio,
            frame_rate: None,
        },
    }
}
