//! Facts of a clip as `inspect` shows them: container, duration, video, audio and subtitle tracks, tags. Nothing is
//! decoded for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::format::Format;

/// A clip as its container and its codecs' headers describe it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MediaFacts {
    pub format: Option<Format>,
    /// The container in the words of the field: `MP4`, `Matroska`, `MPEG-TS` …
    pub container: String,
    pub duration_ms: Option<u64>,
    /// Bit rate of the whole file, in bits per second.
    pub bitrate: Option<u64>,
    /// True when it can be sought.
    pub seekable: bool,
    pub video: Vec<VideoTrack>,
    pub audio: Vec<AudioTrack>,
    pub subtitles: Vec<SubtitleTrack>,
    /// Number of recordings that follow one another in a chained Ogg file, whose tracks are those of the first; `None`:
    /// it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts: Option<u32>,
    /// Title, artist, encoder …: bounded in number and length; never a position.
    pub tags: BTreeMap<String, String>,
}

impl MediaFacts {
    /// The video track that is shown: the first that is no cover image.
    pub fn video_track(&self) -> Option<&VideoTrack> {
        self.video.iter().find(|track| !track.is_cover)
    }

    /// Returns the track that is played.
    pub fn audio_track(&self) -> Option<&AudioTrack> {
        self.audio.first()
    }

    pub fn duration_s(&self) -> Option<f64> {
        self.duration_ms
            .map(|milliseconds| milliseconds as f64 / 1_000.0)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VideoTrack {
    /// `h264`, `hevc`, `av1`, `vp8`, `vp9`, `mpeg4`, `mpeg2`, `prores`, `wmv3` …
    pub codec: String,
    pub profile: Option<String>,
    pub level: Option<String>,
    /// Coded size, in pixels.
    pub width: u32,
    pub height: u32,
    /// Degrees clockwise by which a player turns it: 0, 90, 180 or 270.
    pub rotation: u16,
    /// Width of a pixel over its height, as a fraction.
    pub pixel_aspect: (u32, u32),
    /// Frames per second as a fraction; 0/1: variable or unknown.
    pub frame_rate: (u32, u32),
    pub interlaced: bool,
    pub bits_per_sample: Option<u32>,
    /// `4:2:0` …
    pub chroma: Option<String>,
    pub colour: Option<Colour>,
    /// `HDR10`, `HLG` …; `None`: standard dynamic range.
    pub hdr: Option<String>,
    pub bitrate: Option<u64>,
    /// A cover image, no moving frame.
    pub is_cover: bool,
}

impl VideoTrack {
    /// Width and height as shown: square pixels, turned upright.
    pub fn shown_size(&self) -> (u32, u32) {
        let (across, down) = self.pixel_aspect;
        let wide = match (across, down) {
            (0, _) | (_, 0) => u64::from(self.width),
            _ => {
                (u64::from(self.width) * u64::from(across) + u64::from(down) / 2) / u64::from(down)
            }
        };
        let wide = u32::try_from(wide.max(1)).unwrap_or(u32::MAX);
        match self.rotation {
            90 | 270 => (self.height, wide),
            _ => (wide, self.height),
        }
    }

    /// Frames per second; `None`: unknown.
    pub fn frames_per_second(&self) -> Option<f64> {
        let (video_frames, seconds) = self.frame_rate;
        (video_frames > 0 && seconds > 0).then(|| f64::from(video_frames) / f64::from(seconds))
    }
}

/// ITU-T H.273 in words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Colour {
    pub primaries: String,
    pub transfer: String,
    pub matrix: String,
    /// `full` or `limited`.
    pub range: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AudioTrack {
    /// `aac`, `mp3`, `opus`, `vorbis`, `flac`, `pcm`, `ac3`, `wma` …
    pub codec: String,
    pub profile: Option<String>,
    pub channels: u32,
    /// Hertz.
    pub sample_rate: u32,
    pub bits_per_sample: Option<u32>,
    pub bitrate: Option<u64>,
    /// ISO 639.
    pub language: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SubtitleTrack {
    pub codec: String,
    pub language: Option<String>,
}
