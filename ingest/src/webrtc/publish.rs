//! A WebRTC publisher's frames to units: configurations from parameter sets, the wait for a key frame (`MAX_AUDIO_BYTES`,
//! `MAX_TIME_90K`).
//!
//! Pure. Frames that follow on one that was lost or is corrupt are left out up to the next key frame. WebRTC sends frames in the
//! order in which they are shown, so decode and presentation time are one.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig, check_payload},
    unit::{AudioUnit, CLOCK_90K, Unit, VideoUnit},
};

use super::{
    message::{AudioFrame, VideoFrame},
    payload::{depacketized, nal},
};
use crate::{
    corruption::Corruption,
    publish::SessionReport,
    ts::video::{FrameTime, MAX_NAL_UNITS, VideoTrack},
};

/// Most bytes of an audio packet: Opus has at most 48 frames of 1 275 bytes, and what is sent in one RTP packet has far less.
const MAX_AUDIO_BYTES: usize = 8 << 10;
/// Greatest time, either way; later arithmetic cannot overflow.
const MAX_TIME_90K: u64 = 1 << 53;
/// Step back of a track's time from which on it is a new clock, as the packager sees it.
const JUMP_90K: i64 = CLOCK_90K;
/// Identification header of stereo Opus without pre-skip. Every WebRTC stream is stereo (RFC 7587 §7); its packets say themselves
/// whether they are mono, and may change that at any time.
const OPUS_HEAD: &[u8] = b"OpusHead\x01\x02\0\0\x80\xbb\0\0\0\0\0";
const VIDEO: &str = "video frame";
const AUDIO: &str = "audio frame";

/// Tracks of one publisher; see the module documentation.
#[derive(Debug)]
pub struct PublishedTracks {
    video: Option<Video>,
    video_time: RisingTime,
    audio_time: RisingTime,
    has_audio_config: bool,
    /// Frames are left out up to the next key frame.
    awaits_key: bool,
    report: SessionReport,
}

#[derive(Debug)]
enum Video {
    /// H.264 or HEVC.
    Nal(VideoTrack),
    Av1(Option<Arc<VideoConfig>>),
}

impl Default for PublishedTracks {
    fn default() -> Self {
        Self {
            video: None,
            video_time: RisingTime::default(),
            audio_time: RisingTime::default(),
            has_audio_config: false,
            awaits_key: true,
            report: SessionReport::default(),
        }
    }
}

impl PublishedTracks {
    pub fn new() -> Self {
        Self::default()
    }

    /// Notes that video was lost before the next frame.
    pub fn lost(&mut self) {
        self.awaits_key = true;
        self.note(&Corruption::Lost { what: VIDEO });
    }

    /// Appends the units of a video frame, or counts it as damaged.
    pub fn video(&mut self, frame: VideoFrame, units: &mut Vec<Unit>) {
        self.report.bytes_received += frame.data.len() as u64;
        // No frame that is sent follows on one that comes too late, so the next ones are taken.
        if let Err(corruption) = self.video_time.check(frame.pts_90k, VIDEO) {
            return self.note(&corruption);
        }
        let is_delta_of_nothing = self.awaits_key && !frame.key;
        match self.try_video(&frame, units) {
            Ok(()) => {}
            // What came before the first key frame is no damage.
            Err(_) if is_delta_of_nothing => {}
            Err(corruption) => {
                self.awaits_key = true;
                self.note(&corruption);
            }
        }
    }

    /// Appends the units of an Opus packet, or counts it as damaged.
    pub fn audio(&mut self, frame: AudioFrame, units: &mut Vec<Unit>) {
        self.report.bytes_received += frame.data.len() as u64;
        if let Err(corruption) = self.try_audio(frame, units) {
            self.note(&corruption);
        }
    }

    /// Returns what health shows of the session so far.
    pub fn report(&self) -> &SessionReport {
        &self.report
    }

    fn note(&mut self, corruption: &Corruption) {
        self.report.damaged += 1;
        self.report.last_damage = Some(corruption.to_string());
    }

    fn try_video(&mut self, frame: &VideoFrame, units: &mut Vec<Unit>) -> Result<(), Corruption> {
        let is_of_codec = |video: &Video| match video {
            Video::Nal(track) => track.codec() == frame.codec,
            Video::Av1(_) => frame.codec == VideoCodec::Av1,
        };
        if !self.video.as_ref().is_some_and(is_of_codec) {
            self.video = Some(match frame.codec {
                VideoCodec::Av1 => Video::Av1(None),
                codec => Video::Nal(VideoTrack::new(codec)),
            });
            self.awaits_key = true;
        }
        let before = units.len();
        let pushed = match self.video.as_mut().expect("set above") {
            Video::Nal(track) => push_nal_units(track, frame, units),
            Video::Av1(config) => push_av1(config, frame, units),
        };
        self.leave_out_deltas(before, units);
        pushed?;
        if units.len() > before {
            self.video_time.0 = Some(frame.pts_90k);
        }
        Ok(())
    }

    /// Removes the frame among the units from `from` on, while a key frame is awaited and this is none.
    fn leave_out_deltas(&mut self, from: usize, units: &mut Vec<Unit>) {
        let Some(Unit::Video(video)) = units.get(from..).and_then(<[Unit]>::last) else {
            return;
        };
        self.awaits_key &= !video.key;
        if self.awaits_key {
            units.pop();
        }
    }

    fn try_audio(&mut self, frame: AudioFrame, units: &mut Vec<Unit>) -> Result<(), Corruption> {
        if frame.data.is_empty() {
            return Err(Corruption::Truncated { what: AUDIO });
        }
        if frame.data.len() > MAX_AUDIO_BYTES {
            let (what, limit) = (AUDIO, MAX_AUDIO_BYTES);
            return Err(Corruption::TooLarge { what, limit });
        }
        self.audio_time.check(frame.pts_90k, AUDIO)?;
        self.audio_time.0 = Some(frame.pts_90k);
        if !self.has_audio_config {
            let config = AudioConfig::parse(AudioCodec::Opus, Bytes::from_static(OPUS_HEAD));
            let config = config.map_err(Corruption::Media)?;
            units.push(Unit::AudioConfig(Arc::new(config)));
            self.has_audio_config = true;
        }
        units.push(Unit::Audio(AudioUnit {
            pts_90k: frame.pts_90k,
            data: frame.data,
        }));
        Ok(())
    }
}

fn push_nal_units(
    track: &mut VideoTrack,
    frame: &VideoFrame,
    units: &mut Vec<Unit>,
) -> Result<(), Corruption> {
    let positions = nal::positions(&frame.data).take(MAX_NAL_UNITS + 1);
    let positions: Result<Vec<Range<usize>>, _> = positions.collect();
    let positions = positions.map_err(|_| Corruption::Truncated { what: VIDEO })?;
    let time = FrameTime {
        dts_90k: frame.pts_90k,
        cts_90k: 0,
        random_access: frame.key,
    };
    track.push_nal_units(time, &frame.data, positions.into_iter(), units)
}

fn push_av1(
    config: &mut Option<Arc<VideoConfig>>,
    frame: &VideoFrame,
    units: &mut Vec<Unit>,
) -> Result<(), Corruption> {
    let unit = depacketized(VideoCodec::Av1, &frame.data);
    let unit = unit.map_err(|_| Corruption::Truncated { what: VIDEO })?;
    let Some(unit) = unit else {
        return Ok(());
    };
    // With a sequence header: only a key frame may change it.
    if unit.key {
        let fresh = VideoConfig::from_av1_key_frame(&unit.data).map_err(Corruption::Media)?;
        if config.as_deref() != Some(&fresh) {
            let fresh = Arc::new(fresh);
            units.push(Unit::VideoConfig(Arc::clone(&fresh)));
            *config = Some(fresh);
        }
    }
    let Some(config) = config else {
        return Err(Corruption::NoConfiguration { what: "video" });
    };
    let facts = check_payload(config, &unit.data).map_err(Corruption::Media)?;
    if facts.has_slice {
        units.push(Unit::Video(VideoUnit {
            dts_90k: frame.pts_90k,
            cts_90k: 0,
            key: facts.has_idr,
            data: unit.data,
        }));
    }
    Ok(())
}

/// Last time of a track.
#[derive(Clone, Copy, Debug, Default)]
struct RisingTime(Option<i64>);

impl RisingTime {
    /// Checks that a time is after the last one, or on another clock.
    fn check(self, time_90k: i64, what: &'static str) -> Result<(), Corruption> {
        if time_90k.unsigned_abs() > MAX_TIME_90K {
            let reason = "its time is out of range";
            return Err(Corruption::Invalid { what, reason });
        }
        let step_90k = self.0.map_or(1, |last| time_90k - last);
        if (-JUMP_90K..=0).contains(&step_90k) {
            let reason = "its time is not after the frame before it: turn B-frames off";
            return Err(Corruption::Invalid { what, reason });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::webrtc::payload;

    const SPS: &[u8] =
        b"\x67\x42\xc0\x1e\xda\x02\x80\xbf\xe5\xc0\x44\0\0\x0f\xa4\0\x03\xa9\x80\x3c\x58\xba\x80";
    const PPS: &[u8] = b"\x68\xce\x0f\xc8";
    /// `PPS` with another identifier of the sequence parameter set's use.
    const OTHER_PPS: &[u8] = b"\x68\xce\x0f\xc9";
    const IDR: &[u8] = b"\x65\x88\x80";
    const DELTA: &[u8] = b"\x41\x9a\x80";
    /// Sequence header of libaom for 640×360, a key frame and an inter frame.
    const AV1_SEQUENCE: &[u8] = b"\x0a\x0b\0\0\0\x0c\xc4\xff\x67\x36\xbe\x40\x10";
    const AV1_KEY: &[u8] = b"\x32\x02\x10\0";
    const AV1_DELTA: &[u8] = b"\x32\x02\x30\0";

    fn frame(pts_90k: i64, key: bool, nal_units: &[&[u8]]) -> VideoFrame {
        let mut data = Vec::new();
        for nal in nal_units {
            data.extend((nal.len() as u32).to_be_bytes());
            data.extend_from_slice(nal);
        }
        VideoFrame {
            of: 1,
            codec: VideoCodec::Avc,
            key,
            pts_90k,
            wallclock_us: 0,
            data: data.into(),
        }
    }

    fn av1(pts_90k: i64, obus: &[&[u8]]) -> VideoFrame {
        VideoFrame {
            codec: VideoCodec::Av1,
            data: obus.concat().into(),
            ..frame(pts_90k, false, &[])
        }
    }

    fn audio(pts_90k: i64, data: &'static [u8]) -> AudioFrame {
        AudioFrame {
            of: 1,
            pts_90k,
            wallclock_us: 0,
            data: Bytes::from_static(data),
        }
    }

    /// A word for each unit.
    fn words(units: &[Unit]) -> Vec<String> {
        let word = |unit: &Unit| match unit {
            Unit::VideoConfig(config) => format!("{} {}", config.codec.name(), config.width),
            Unit::AudioConfig(config) => format!("audio of {} channels", config.channels),
            Unit::Video(video) if video.key => format!("key at {}", video.dts_90k),
            Unit::Video(video) => format!("delta at {}", video.dts_90k),
            Unit::Audio(audio) => format!("audio at {}", audio.pts_90k),
        };
        units.iter().map(word).collect()
    }

    fn push(tracks: &mut PublishedTracks, frame: VideoFrame) -> Vec<String> {
        let mut units = Vec::new();
        tracks.video(frame, &mut units);
        words(&units)
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn it_begins_with_a_key_frame() {
        let mut tracks = PublishedTracks::new();
        assert_eq!(push(&mut tracks, frame(0, false, &[DELTA])), NOTHING);
        let key = frame(3_000, true, &[SPS, PPS, IDR]);
        assert_eq!(push(&mut tracks, key), ["h264 640", "key at 3000"]);
        assert_eq!(
            push(&mut tracks, frame(6_000, false, &[DELTA])),
            ["delta at 6000"]
        );
        assert_eq!(tracks.report().damaged, 0);
    }

    #[test]
    fn sets_that_change_at_a_key_frame_make_a_configuration() {
        let mut tracks = PublishedTracks::new();
        push(&mut tracks, frame(0, true, &[SPS, PPS, IDR]));
        // The same sets again, which every browser sends, and others.
        assert_eq!(
            push(&mut tracks, frame(1, true, &[SPS, PPS, IDR])),
            ["key at 1"]
        );
        let other = frame(2, true, &[SPS, OTHER_PPS, IDR]);
        assert_eq!(push(&mut tracks, other), ["h264 640", "key at 2"]);
        // Announced sets are in the configuration, not in the frames.
        let mut units = Vec::new();
        tracks.video(frame(3, true, &[SPS, OTHER_PPS, IDR]), &mut units);
        assert!(
            matches!(&units[..], [Unit::Video(it)] if it.data[..] == *b"\0\0\0\x03\x65\x88\x80")
        );
    }

    #[test]
    fn frames_behind_a_loss_wait_for_a_key_frame() {
        let mut tracks = PublishedTracks::new();
        push(&mut tracks, frame(0, true, &[SPS, PPS, IDR]));
        tracks.lost();
        assert_eq!(push(&mut tracks, frame(3_000, false, &[DELTA])), NOTHING);
        assert_eq!(
            push(&mut tracks, frame(6_000, true, &[IDR])),
            ["key at 6000"]
        );
        // A corrupt frame is lost too.
        let mut corrupt = frame(9_000, false, &[DELTA]);
        corrupt.data = Bytes::from_static(b"\0\0\0\x09\x41");
        assert_eq!(push(&mut tracks, corrupt), NOTHING);
        assert_eq!(push(&mut tracks, frame(12_000, false, &[DELTA])), NOTHING);
        assert_eq!(
            push(&mut tracks, frame(15_000, true, &[IDR])),
            ["key at 15000"]
        );
        let report = tracks.report();
        assert_eq!(report.damaged, 2);
        let expected = "video frame ends before its declared length";
        assert_eq!(report.last_damage.as_deref(), Some(expected));
    }

    #[test]
    fn a_key_frame_of_the_gateway_that_is_none_is_left_out() {
        let mut tracks = PublishedTracks::new();
        assert_eq!(push(&mut tracks, frame(0, true, &[DELTA])), NOTHING);
        assert_eq!(push(&mut tracks, frame(1, true, &[IDR])), NOTHING);
        assert_eq!(tracks.report().damaged, 2);
        assert_eq!(push(&mut tracks, frame(2, true, &[SPS, PPS])), NOTHING);
        assert_eq!(
            push(&mut tracks, frame(3, true, &[IDR])),
            ["h264 640", "key at 3"]
        );
    }

    #[test]
    fn times_rise_or_jump() {
        let mut tracks = PublishedTracks::new();
        push(&mut tracks, frame(90_000, true, &[SPS, PPS, IDR]));
        assert_eq!(push(&mut tracks, frame(90_000, false, &[DELTA])), NOTHING);
        assert_eq!(push(&mut tracks, frame(87_000, false, &[DELTA])), NOTHING);
        assert!(
            tracks
                .report()
                .last_damage
                .as_ref()
                .unwrap()
                .contains("B-frames")
        );
        assert_eq!(
            push(&mut tracks, frame(93_000, false, &[DELTA])),
            ["delta at 93000"]
        );
        assert_eq!(push(&mut tracks, frame(0, false, &[DELTA])), ["delta at 0"]);
        for out_of_range in [i64::MIN, i64::MAX] {
            assert_eq!(
                push(&mut tracks, frame(out_of_range, true, &[IDR])),
                NOTHING
            );
        }
    }

    #[test]
    fn another_codec_begins_with_its_key_frame() {
        let mut tracks = PublishedTracks::new();
        push(&mut tracks, frame(0, true, &[SPS, PPS, IDR]));
        assert_eq!(push(&mut tracks, av1(1, &[AV1_DELTA])), NOTHING);
        let key = av1(2, &[b"\x12\0", AV1_SEQUENCE, AV1_KEY]);
        let mut units = Vec::new();
        tracks.video(key, &mut units);
        assert_eq!(words(&units), ["av1 640", "key at 2"]);
        assert!(
            matches!(&units[1], Unit::Video(it) if it.data == [AV1_SEQUENCE, AV1_KEY].concat()),
            "the temporal delimiter is left out"
        );
        assert_eq!(push(&mut tracks, av1(3, &[AV1_DELTA])), ["delta at 3"]);
        assert_eq!(
            push(&mut tracks, av1(4, &[AV1_SEQUENCE, AV1_KEY])),
            ["key at 4"]
        );
    }

    #[test]
    fn opus_is_stereo_whatever_its_first_packet_is() {
        let mut tracks = PublishedTracks::new();
        let mut units = Vec::new();
        // A mono packet, one without bytes, one of the same time.
        for (pts_90k, data) in [
            (0, &[0xf8, 1][..]),
            (1_800, &[]),
            (0, &[0xf8]),
            (1_800, &[0xfc]),
        ] {
            tracks.audio(audio(pts_90k, data), &mut units);
        }
        assert_eq!(
            words(&units),
            ["audio of 2 channels", "audio at 0", "audio at 1800"]
        );
        assert_eq!(tracks.report().damaged, 2);
    }

    proptest! {
        #[test]
        fn any_frames_are_units_or_damage(
            frames in prop::collection::vec((any::<bool>(), any::<i64>(), prop::collection::vec(any::<u8>(), 0..60)), 0..20),
        ) {
            for codec in VideoCodec::ALL.iter().copied() {
                let mut tracks = PublishedTracks::new();
                let mut units = Vec::new();
                push(&mut tracks, frame(0, true, &[SPS, PPS, IDR]));
                for (key, pts_90k, data) in &frames {
                    let data = Bytes::copy_from_slice(data);
                    tracks.audio(AudioFrame { data: data.clone(), ..audio(*pts_90k, b"") }, &mut units);
                    let video = VideoFrame { codec, data, ..frame(*pts_90k, *key, &[]) };
                    let _ = payload::packetize(&video);
                    tracks.video(video, &mut units);
                }
            }
        }
    }
}
