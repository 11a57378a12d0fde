//! Units for an output's target: configurations first, then from a key frame on, with rising times; units that are left out
//! (`droppedUnits`).
//!
//! Pure. There is one feed for each connection to a target; the encoder behind it may change.

use std::sync::Arc;

use sluice_media::{
    codec::{AudioConfig, VideoConfig},
    unit::{AudioUnit, CLOCK_90K, Unit, VideoUnit},
};

use super::{
    timeline::{Kind, Timeline},
    unit_window::{Tracks, WindowUnit},
};

/// Longest wait of audio for the frame that may come with it.
const VIDEO_WAIT_90K: i64 = CLOCK_90K;

/// See the module documentation.
#[derive(Debug, Default)]
pub struct Feed {
    tracks: Arc<Tracks>,
    sent_video: Option<Arc<VideoConfig>>,
    sent_audio: Option<Arc<AudioConfig>>,
    timeline: Timeline,
    /// True once a decoder can start and everything is passed on.
    is_open: bool,
    /// Time of the first audio without a frame.
    waits_since_90k: Option<i64>,
    /// Time of the key frame that it was opened with, until audio has reached it.
    opened_90k: Option<i64>,
    /// Something was left out, and more is until the next key frame.
    is_behind: bool,
    dropped: u64,
}

impl Feed {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of units that were left out because the target was too slow.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Counts items that were no longer in the window, and waits for a key frame.
    pub fn miss(&mut self, items: u64) {
        if items > 0 {
            self.dropped += items;
            self.is_behind = true;
            self.close();
        }
    }

    /// Appends to `units` those that the target is to get.
    pub fn push(&mut self, item: WindowUnit, units: &mut Vec<Unit>) {
        self.follow(&item.tracks);
        let is_wanted = match &item.unit {
            Unit::Video(video_frame) => self.wants_video_frame(video_frame),
            Unit::Audio(audio) => self.wants_audio(audio),
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => return,
        };
        if !is_wanted {
            self.dropped += u64::from(self.is_behind);
            return;
        }
        self.is_behind = false;
        self.announce(units);
        units.push(match item.unit {
            Unit::Video(video_frame) => Unit::Video(self.placed(video_frame)),
            Unit::Audio(audio) => Unit::Audio(AudioUnit {
                pts_90k: self.timeline.place(Kind::Audio, audio.pts_90k, 0),
                ..audio
            }),
            configuration => configuration,
        });
    }

    fn close(&mut self) {
        self.is_open = false;
        self.waits_since_90k = None;
    }

    fn follow(&mut self, tracks: &Arc<Tracks>) {
        if Arc::ptr_eq(&self.tracks, tracks) {
            return;
        }
        if self.tracks.session != tracks.session {
            self.timeline.break_off();
            self.close();
        } else if self.tracks.video != tracks.video {
            self.close();
        }
        self.tracks = Arc::clone(tracks);
    }

    fn wants_video_frame(&mut self, video_frame: &VideoUnit) -> bool {
        if !self.is_open && video_frame.key {
            self.is_open = true;
            self.opened_90k = Some(video_frame.dts_90k);
        }
        self.is_open
    }

    /// Returns whether audio is passed on: audio from before the key frame would come before the timeline's beginning.
    fn wants_audio(&mut self, audio: &AudioUnit) -> bool {
        if !self.is_open {
            return self.tracks.video.is_none() && self.has_waited(audio.pts_90k);
        }
        let is_early = |opened: i64| (opened - VIDEO_WAIT_90K..opened).contains(&audio.pts_90k);
        if self.opened_90k.is_some_and(is_early) {
            return false;
        }
        self.opened_90k = None;
        true
    }

    fn has_waited(&mut self, pts_90k: i64) -> bool {
        let since = *self.waits_since_90k.get_or_insert(pts_90k);
        self.is_open = pts_90k.abs_diff(since) >= VIDEO_WAIT_90K as u64;
        self.is_open
    }

    /// Appends the configurations that the target does not have yet.
    fn announce(&mut self, units: &mut Vec<Unit>) {
        let Tracks { video, audio, .. } = self.tracks.as_ref();
        if let Some(video) = video
            .as_ref()
            .filter(|it| self.sent_video.as_ref() != Some(it))
        {
            self.sent_video = Some(Arc::clone(video));
            units.push(Unit::VideoConfig(Arc::clone(video)));
        }
        if let Some(audio) = audio
            .as_ref()
            .filter(|it| self.sent_audio.as_ref() != Some(it))
        {
            self.sent_audio = Some(Arc::clone(audio));
            units.push(Unit::AudioConfig(Arc::clone(audio)));
        }
    }

    fn placed(&mut self, video_frame: VideoUnit) -> VideoUnit {
        let (time_90k, delay_90k) = (video_frame.dts_90k, i64::from(video_frame.cts_90k));
        VideoUnit {
            dts_90k: self.timeline.place(Kind::Video, time_90k, delay_90k),
            ..video_frame
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sluice_media::codec::AudioCodec;
    use tokio::time::Instant;

    use super::*;

    fn opus(channels: u8) -> Arc<AudioConfig> {
        let mut head = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0".to_vec();
        head[9] = channels;
        let config = AudioConfig::parse(AudioCodec::Opus, head.into());
        Arc::new(config.expect("an identification header"))
    }

    fn video(width: u16) -> Arc<VideoConfig> {
        Arc::new(VideoConfig {
            codec: sluice_media::codec::VideoCodec::Avc,
            record: Bytes::new(),
            width,
            height: 90,
            pixel_aspect: (1, 1),
            frame_rate: None,
            nal_length_size: 4,
            codecs: String::new(),
            profile: String::new(),
            level: String::new(),
            bit_depth: 8,
            may_reorder: None,
        })
    }

    /// Records a word for each unit that was passed on.
    struct Script {
        feed: Feed,
        tracks: Arc<Tracks>,
    }

    impl Script {
        fn new(tracks: Tracks) -> Self {
            Self {
                feed: Feed::new(),
                tracks: Arc::new(tracks),
            }
        }

        fn push(&mut self, unit: Unit) -> Vec<String> {
            let mut units = Vec::new();
            let item = WindowUnit {
                tracks: Arc::clone(&self.tracks),
                unit,
                arrived: Instant::now(),
            };
            self.feed.push(item, &mut units);
            let word = |unit: &Unit| match unit {
                Unit::VideoConfig(config) => format!("frame is {} wide", config.width),
                Unit::AudioConfig(config) => format!("audio has {} channels", config.channels),
                Unit::Video(video_frame) => format!("frame at {}", video_frame.dts_90k),
                Unit::Audio(audio) => format!("audio at {}", audio.pts_90k),
            };
            units.iter().map(word).collect()
        }

        fn video_frame(&mut self, dts_90k: i64, key: bool) -> Vec<String> {
            self.push(Unit::Video(VideoUnit {
                dts_90k,
                cts_90k: 0,
                key,
                data: Bytes::new(),
            }))
        }

        fn audio(&mut self, pts_90k: i64) -> Vec<String> {
            let data = Bytes::new();
            self.push(Unit::Audio(AudioUnit { pts_90k, data }))
        }
    }

    fn both(session: u64) -> Tracks {
        Tracks {
            session,
            video: Some(video(160)),
            audio: Some(opus(2)),
        }
    }

    const NOTHING: [&str; 0] = [];

    #[test]
    fn it_begins_with_configurations_and_a_key_frame() {
        let mut script = Script::new(both(1));
        assert_eq!(script.audio(9_000), NOTHING);
        assert_eq!(script.video_frame(9_000, false), NOTHING);
        assert_eq!(
            script.video_frame(12_000, true),
            ["frame is 160 wide", "audio has 2 channels", "frame at 0"]
        );
        // Audio of what was shown before it.
        assert_eq!(script.audio(11_000), NOTHING);
        assert_eq!(script.audio(12_500), ["audio at 500"]);
        assert_eq!(script.video_frame(15_000, false), ["frame at 3000"]);
        assert_eq!(script.feed.dropped(), 0);
    }

    #[test]
    fn audio_alone_waits_a_second_for_its_frame() {
        let mut script = Script::new(Tracks {
            audio: Some(opus(1)),
            ..Tracks::default()
        });
        assert_eq!(script.audio(0), NOTHING);
        assert_eq!(script.audio(89_999), NOTHING);
        assert_eq!(script.audio(90_000), ["audio has 1 channels", "audio at 0"]);
        assert_eq!(script.audio(91_000), ["audio at 1000"]);
    }

    #[test]
    fn what_was_missed_is_left_out_up_to_the_next_key_frame() {
        let mut script = Script::new(both(1));
        script.video_frame(0, true);
        script.feed.miss(5);
        assert_eq!(script.video_frame(30_000, false), NOTHING);
        assert_eq!(script.audio(30_000), NOTHING);
        assert_eq!(script.video_frame(33_000, true), ["frame at 33000"]);
        assert_eq!(script.feed.dropped(), 7);
    }

    #[test]
    fn another_encoder_continues_the_same_line() {
        let mut script = Script::new(both(1));
        script.video_frame(900_000, true);
        script.audio(900_900);
        script.tracks = Arc::new(Tracks {
            video: Some(video(320)),
            ..both(2)
        });
        assert_eq!(script.video_frame(0, false), NOTHING);
        assert_eq!(
            script.video_frame(3_000, true),
            ["frame is 320 wide", "frame at 3900"]
        );
        assert_eq!(script.audio(3_100), ["audio at 4000"]);
    }

    #[test]
    fn another_configuration_waits_for_its_key_frame() {
        let mut script = Script::new(both(1));
        script.video_frame(0, true);
        script.tracks = Arc::new(Tracks {
            video: Some(video(320)),
            ..both(1)
        });
        assert_eq!(script.video_frame(3_000, false), NOTHING);
        assert_eq!(
            script.video_frame(6_000, true),
            ["frame is 320 wide", "frame at 6000"]
        );
    }
}
