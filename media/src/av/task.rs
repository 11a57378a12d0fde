//! Tasks on clips: still, storyboard, animation, waveform, transcode, concatenation, ladder, live. Inputs are numbered
//! descriptors; outputs come back in order.

use serde::{Deserialize, Serialize};

use crate::{
    format::Format,
    task::{Adjust, Encode, Failure, FailureCode, Render, Resize, Watermark},
};

/// A task for a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "work", rename_all = "snake_case")]
pub enum AvTask {
    /// Facts (`media`) of input 0; no output.
    Probe,
    /// A frame of input 0 → output 0, an image.
    Still(Still),
    /// A storyboard of input 0 → output 0, one image of many, and output 1, its WebVTT map.
    Sheet(Sheet),
    /// A part of input 0 → output 0, a moving image without audio.
    Animation(Animation),
    /// The waveform of input 0 → output 0, a drawing.
    Waveform(Waveform),
    /// Input 0 (and, for a watermark's image, input 1) → output 0.
    Transcode(Transcode),
    /// All inputs, one after the other → output 0, audio.
    Concat(Concat),
    /// Input 0 → one file for each rendition, video first, then audio. Files are written from where they end.
    Ladder(Ladder),
    /// A live stream, until the service closes it: input 0 is a socket for the messages of [`live`](super::live); no output.
    Live,
}

impl AvTask {
    /// Returns the name in logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Still(_) => "still",
            Self::Sheet(_) => "sheet",
            Self::Animation(_) => "animation",
            Self::Waveform(_) => "waveform",
            Self::Transcode(_) => "transcode",
            Self::Concat(_) => "concat",
            Self::Ladder(_) => "ladder",
            Self::Live => "live",
        }
    }

    /// Number of results.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Probe | Self::Live => 0,
            Self::Sheet(_) => 2,
            Self::Ladder(ladder) => {
                let sheet = if ladder.sheet.is_some() { 2 } else { 0 };
                ladder.renditions() + sheet
            }
            _ => 1,
        }
    }

    /// Returns whether it is short, so that it has a place of its own beside long work.
    pub fn is_short(&self) -> bool {
        /// Seconds of a part below which a transcode is short.
        const SHORT_CUT: f64 = 30.0;
        /// Frames up to which a storyboard is short: as many as the tool makes by default.
        const SHORT_SHEET: u32 = 12;
        match self {
            Self::Probe | Self::Still(_) => true,
            Self::Sheet(sheet) => sheet.frames <= SHORT_SHEET,
            Self::Transcode(Transcode {
                range: Some(range), ..
            }) => range.duration_s.is_some_and(|seconds| seconds < SHORT_CUT),
            _ => false,
        }
    }
}

/// A part of a clip, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Range {
    pub start_s: f64,
    /// `None`: to the end.
    pub duration_s: Option<f64>,
    /// Exactly there, re-encoded; else from the key frame at or before the start, copied where the container allows it.
    pub accurate: bool,
}

impl Range {
    /// Returns the length in seconds of the part of a clip that lasts `whole_s`; `None`: to an unknown end.
    pub fn span_s(&self, whole_s: Option<f64>) -> Option<f64> {
        let rest_s = whole_s.map(|whole_s| (whole_s - self.start_s).max(0.0));
        match (self.duration_s, rest_s) {
            (Some(asked_s), Some(rest_s)) => Some(asked_s.min(rest_s)),
            (asked_s, rest_s) => asked_s.or(rest_s),
        }
    }

    /// [`FailureCode::Impossible`] when a clip that lasts `whole_s` ends before the part begins.
    pub fn check_start(&self, whole_s: Option<f64>) -> Result<(), Failure> {
        match whole_s {
            Some(whole_s) if self.start_s > 0.0 && self.start_s >= whole_s => Err(Failure::new(
                FailureCode::Impossible,
                format!(
                    "start is {:.3} s, and the file ends at {whole_s:.3} s",
                    self.start_s
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// A frame at a time, then everything that can be done with an image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Still {
    /// Time of the frame; behind the end, the last one.
    pub at_s: f64,
    /// Render of the frame; `source` is the lossless form ([`Format::Png`]) in which the frame is handed over.
    pub render: Render,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sheet {
    /// Frames, at even distances.
    pub frames: u32,
    pub columns: u32,
    /// Width of one frame.
    pub width: u32,
    pub output: Encode,
    /// Name of the image in the map: a relative reference (RFC 3986 §4.2), written unchanged.
    pub image_name: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Animation {
    pub range: Range,
    /// `None`: the source's size.
    pub resize: Option<Resize>,
    pub frames_per_second: f32,
    /// GIF or WebP.
    pub output: Encode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waveform {
    pub width: u32,
    pub height: u32,
    pub colour: crate::task::Colour,
    pub output: Encode,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transcode {
    /// The container, and with it the codecs: `worker/src/av` copies what fits and encodes the rest.
    pub format: Format,
    pub range: Option<Range>,
    /// `None`: without frames.
    pub video: Option<VideoWork>,
    pub audio: AudioWork,
    /// Title, artist and the like go with it; a position never does.
    pub keep_tags: bool,
}

/// Work on the frames; [`Default`] copies them where the container takes them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VideoWork {
    /// 1 to 100, higher is better.
    pub quality: u8,
    /// Encode also what could be copied.
    pub again: bool,
    pub resize: Option<Resize>,
    pub adjust: Adjust,
    pub watermark: Option<Watermark>,
}

impl Default for VideoWork {
    fn default() -> Self {
        Self {
            quality: 82,
            again: false,
            resize: None,
            adjust: Adjust::default(),
            watermark: None,
        }
    }
}

/// Work on the audio; [`Default`] copies it where the container takes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AudioWork {
    /// Encode also what could be copied.
    pub again: bool,
    /// Bit rate of encoded audio; `None`: the encoder's default.
    pub bitrate_kbps: Option<u32>,
    /// A factor, 1: unchanged.
    pub volume: f32,
    /// Bring the loudness to −16 LUFS (EBU R 128), with peaks below −1 dBTP.
    pub normalize: bool,
    /// Seconds from the beginning and to the end; 0: none.
    pub fade_in_s: f32,
    pub fade_out_s: f32,
}

impl Default for AudioWork {
    fn default() -> Self {
        Self {
            again: false,
            bitrate_kbps: None,
            volume: 1.0,
            normalize: false,
            fade_in_s: 0.0,
            fade_out_s: 0.0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Concat {
    pub format: Format,
    pub bitrate_kbps: Option<u32>,
    /// Silence between two inputs.
    pub gap_ms: u32,
}

/// The renditions of an HLS asset: one decode, key frames aligned, CMAF segments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ladder {
    /// Empty: audio alone.
    pub video: Vec<LadderVideo>,
    pub audio: Option<LadderAudio>,
    /// Seconds.
    pub segment_duration_s: u32,
    /// Position that an earlier attempt reached; its files end there.
    pub resume: Option<Resume>,
    /// A storyboard besides, drawn of the same decoded frames: image and map are the last two outputs, and the last two
    /// of the results. Where it does not come about, since frames are copied, missing or before the resume, both stay
    /// empty.
    pub sheet: Option<Sheet>,
}

impl Ladder {
    /// Renditions that it makes.
    pub fn renditions(&self) -> usize {
        self.video.len() + usize::from(self.audio.is_some())
    }
}

/// A rendition of the frames.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderVideo {
    pub width: u32,
    pub height: u32,
    /// Bits per second: the average aimed at, and the most over a second or so.
    pub bitrate: u32,
    pub max_bitrate: u32,
    /// The source's own frames, as they are coded.
    pub copy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LadderAudio {
    pub bitrate: u32,
    pub copy: bool,
}

/// The boundary from which a ladder continues. Audio always begins again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Resume {
    /// The number of the first segment to make.
    pub number: u32,
    pub at_90k: i64,
}
