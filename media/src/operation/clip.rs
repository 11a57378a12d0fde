//! Operations `trim` and `gif`: start, duration, mode; bounds of animations made of videos.

use serde::{Deserialize, Serialize};

use super::{
    OperationInput,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    row::Row,
    timed,
    values::Values,
    writable,
};
use crate::{
    av::{Animation, AudioWork, AvTask, Range, Transcode},
    format::{Class, Format},
    task::{Encode, Failure, Fit, Resize, Task},
};

/// Longest GIF, in seconds.
const LONGEST_GIF_S: f64 = 60.0;
/// Most frames per second of a GIF.
const MOST_FPS: f64 = 50.0;

const START: Field = Field::seconds("start", "0", "seconds");

pub(super) const TRIM: Row = Row {
    node: Some("trim"),
    fields: &[
        START,
        Field::number(
            "duration",
            0.1,
            360_000.0,
            Some("10"),
            "seconds; at most to the end",
        ),
        Field::new(
            "format",
            Kind::Format(timed::TARGETS),
            None,
            "the source's own where it can be written, else mp4, m4a, wav or mp3",
        ),
        Field::new(
            "mode",
            Kind::Choice(&["accurate", "fast"]),
            Some("accurate"),
            "fast copies from the key frame before the start on, without encoding",
        ),
    ],
    ..Row::of_one_file(
        "trim",
        &[Class::Video, Class::Audio],
        "Cuts a part out of a video or of audio",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trim {
    /// Start of the part, in seconds.
    pub start: f64,
    pub duration: f64,
    /// `None`: the source's own where it can be written.
    pub format: Option<Format>,
    pub accurate: bool,
}

impl Values for Trim {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            start: fields.number("start")?,
            duration: fields.number("duration")?,
            format: fields.format_if_given("format")?,
            accurate: fields.choice("mode")? == "accurate",
        })
    }

    fn output_format(&self, source: Format) -> Option<Format> {
        Some(self.output(source))
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let format = self.output(source.format);
        let whole = timed::transcode(format, timed::edited(), AudioWork::default());
        Ok(timed::task(AvTask::Transcode(Transcode {
            range: Some(Range {
                start_s: self.start,
                duration_s: Some(self.duration),
                accurate: self.accurate,
            }),
            ..whole
        })))
    }
}

impl Trim {
    fn output(&self, source: Format) -> Format {
        self.format.unwrap_or_else(|| writable(source))
    }
}

pub(super) const GIF: Row = Row {
    node: Some("gif"),
    fields: &[
        START,
        Field::number("duration", 0.1, LONGEST_GIF_S, Some("4"), "seconds"),
        Field::integer(
            "width",
            16,
            2048,
            Some("480"),
            "pixels; never more than the video has",
        ),
        Field::number("fps", 1.0, MOST_FPS, Some("12"), "frames per second"),
    ],
    ..Row::of_one_file(
        "gif",
        &[Class::Video],
        "Makes an animated GIF of a part of a video",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gif {
    /// Start of the part, in seconds.
    pub start: f64,
    pub duration: f64,
    pub width: u32,
    pub frames_per_second: f32,
}

impl Values for Gif {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            start: fields.number("start")?,
            duration: fields.number("duration")?,
            width: fields.integer("width")?,
            frames_per_second: fields.number("fps")? as f32,
        })
    }

    fn task(&self, _: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        const QUALITY: u8 = 86;
        Ok(timed::task(AvTask::Animation(Animation {
            range: Range {
                start_s: self.start,
                duration_s: Some(self.duration),
                accurate: true,
            },
            resize: Some(Resize::new(Some(self.width), None, Fit::Inside)),
            frames_per_second: self.frames_per_second,
            output: Encode::new(Format::Gif, QUALITY),
        })))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(Format::Gif)
    }
}

/// Converts a whole video to a moving image, within bounds that a request cannot lift, since such files grow without
/// end. `gif` makes others.
pub(super) fn moving_image(resize: Option<Resize>, output: Encode) -> Task {
    const LONGEST_S: f64 = 30.0;
    const WIDTH: u32 = 480;
    const FRAMES_PER_SECOND: f32 = 12.0;
    timed::task(AvTask::Animation(Animation {
        range: Range {
            start_s: 0.0,
            duration_s: Some(LONGEST_S),
            accurate: true,
        },
        resize: resize.or(Some(Resize::new(Some(WIDTH), None, Fit::Inside))),
        frames_per_second: FRAMES_PER_SECOND,
        output,
    }))
}
