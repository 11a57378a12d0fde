//! Operations on audio: `audio`, `extract-audio`, `concat-audio` (`gapMs`), `waveform`.

use serde::{Deserialize, Serialize};

use super::{
    OperationInput,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    row::Row,
    timed::{self, AUDIO_TARGETS},
    values::Values,
    writable,
};
use crate::{
    av::{AvTask, Concat, Waveform},
    format::{Class, Format},
    task::{Colour, Encode, Failure, Task},
};

const FORMAT: Field = Field::new(
    "format",
    Kind::Format(AUDIO_TARGETS),
    Some("mp3"),
    "the format to make",
);

/// Most files that `concat-audio` joins.
const MOST_JOINED: usize = 100;
/// Longest silence between joined files (`gapMs`).
const LONGEST_GAP_MS: i64 = 60_000;

const WITH_AUDIO: &[Class] = &[Class::Audio, Class::Video];

pub(super) const AUDIO: Row = Row {
    node: Some("audio"),
    fields: &[FORMAT, timed::BITRATE],
    ..Row::of_one_file(
        "audio",
        WITH_AUDIO,
        "Converts audio, or the audio of a video, into another format",
    )
};

pub(super) const EXTRACT_AUDIO: Row = Row {
    node: Some("extract_audio"),
    fields: &[FORMAT, timed::BITRATE],
    ..Row::of_one_file(
        "extract-audio",
        &[Class::Video, Class::Audio],
        "Takes the audio out of a video",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AudioSettings {
    pub format: Format,
    pub bitrate_kbps: u32,
    /// The bit rate was asked for: what could be copied is encoded too.
    pub again: bool,
}

impl Values for AudioSettings {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            format: fields.format("format")?,
            bitrate_kbps: fields.integer("bitrateKbps")?,
            again: fields.is_given("bitrateKbps"),
        })
    }

    fn task(&self, _: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        Ok(timed::audio(
            self.format,
            timed::nearest_bitrate(self.bitrate_kbps),
            self.again,
        ))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }
}

pub(super) const CONCAT_AUDIO: Row = Row {
    tool: "concat-audio",
    node: None,
    fields: &[
        Field {
            default: None,
            summary: "the first file's own where it can be written, else mp3",
            ..FORMAT
        },
        Field::integer(
            "gapMs",
            0,
            LONGEST_GAP_MS,
            Some("0"),
            "milliseconds of silence between two files",
        ),
    ],
    effects: &[],
    min_files: 2,
    max_files: MOST_JOINED,
    accepts: WITH_AUDIO,
    summary: "Joins audio, or the audio of videos, in the order given",
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConcatAudio {
    /// `None`: the first file's own where it can be written.
    pub format: Option<Format>,
    pub gap_ms: u32,
}

impl Values for ConcatAudio {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            format: fields.format_if_given("format")?,
            gap_ms: fields.integer("gapMs")?,
        })
    }

    fn task(&self, first: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let format = self.output(first.format);
        Ok(timed::task(AvTask::Concat(Concat {
            format,
            bitrate_kbps: (!timed::is_lossless(format)).then_some(timed::USUAL_KBPS),
            gap_ms: self.gap_ms,
        })))
    }

    fn output_format(&self, first: Format) -> Option<Format> {
        Some(self.output(first))
    }

    fn joins(&self) -> bool {
        true
    }
}

impl ConcatAudio {
    fn output(&self, first: Format) -> Format {
        self.format.unwrap_or(match first.class() {
            Class::Audio => writable(first),
            _ => Format::Mp3,
        })
    }
}

pub(super) const WAVEFORM: Row = Row {
    node: Some("waveform"),
    fields: &[
        Field::integer("width", 16, 8192, Some("1200"), "pixels"),
        Field::integer("height", 16, 2048, Some("240"), "pixels"),
        Field {
            alias: Some("color"),
            ..Field::new(
                "colour",
                Kind::Text { max_chars: 7 },
                Some("2563eb"),
                "six hexadecimal digits",
            )
        },
    ],
    ..Row::of_one_file(
        "waveform",
        WITH_AUDIO,
        "Draws what audio, or the audio of a video, looks like, as a PNG",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DrawnWaveform {
    pub width: u32,
    pub height: u32,
    pub colour: Colour,
}

impl DrawnWaveform {
    const FORMAT: Format = Format::Png;
}

impl Values for DrawnWaveform {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let text = fields.text_if_given("colour")?.unwrap_or_default();
        let colour = Colour::parse(text.trim()).ok_or_else(|| {
            fields.error(
                "colour",
                format!("colour must be six hexadecimal digits such as 2563eb, got `{text}`"),
            )
        })?;
        Ok(Self {
            width: fields.integer("width")?,
            height: fields.integer("height")?,
            colour,
        })
    }

    fn task(&self, _: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        const QUALITY: u8 = 90;
        Ok(timed::task(AvTask::Waveform(Waveform {
            width: self.width,
            height: self.height,
            colour: self.colour,
            output: Encode::new(Self::FORMAT, QUALITY),
        })))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(Self::FORMAT)
    }
}
