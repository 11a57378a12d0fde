//! Operations `poster-frame` and `storyboard` (frames, columns, WebVTT map) on videos.

use serde::{Deserialize, Serialize};

use super::{
    OperationInput, TextOutput,
    field::Field,
    filename::{renamed, with_extension},
    params::FieldError,
    reader::Reader,
    row::Row,
    timed,
    transform::PREVIEW_FORMAT,
    values::Values,
};
use crate::{
    av::{AvTask, Sheet},
    format::{Class, Format},
    geometry::MAX_SIDE,
    task::{Encode, Failure, Fit, Render, Resize, Task},
};

/// Most frames of a storyboard.
const MOST_FRAMES: i64 = 400;
/// Most frames of a storyboard side by side.
const MOST_COLUMNS: i64 = 50;

const QUALITY: Field = Field::integer("quality", 1, 100, Some("86"), "higher is better");

pub(super) const POSTER_FRAME: Row = Row {
    node: Some("poster_frame"),
    fields: &[
        timed::TIMESTAMP,
        Field {
            default: Some("1280"),
            ..Field::side("width", "pixels; never more than the video has")
        },
        PREVIEW_FORMAT,
        QUALITY,
    ],
    ..Row::of_one_file(
        "poster-frame",
        &[Class::Video],
        "Takes one frame out of a video",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PosterFrame {
    /// Time of the frame, in seconds.
    pub timestamp: f64,
    pub width: u32,
    pub format: Format,
    pub quality: u8,
}

impl Values for PosterFrame {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            timestamp: fields.number("timestamp")?,
            width: fields.integer("width")?,
            format: fields.format("format")?,
            quality: fields.integer("quality")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        let render = Render {
            resize: Some(Resize::new(Some(self.width), None, Fit::Inside)),
            ..Render::new(source, Encode::new(self.format, self.quality))
        };
        Ok(timed::still(source, self.timestamp, render))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }
}

pub(super) const STORYBOARD: Row = Row {
    node: Some("storyboard"),
    fields: &[
        Field::integer(
            "frames",
            1,
            MOST_FRAMES,
            Some("12"),
            "frames, at even distances",
        ),
        Field::integer("columns", 1, MOST_COLUMNS, Some("4"), "frames side by side"),
        Field::integer("width", 32, 1280, Some("240"), "pixels of one frame"),
        PREVIEW_FORMAT,
        QUALITY,
    ],
    ..Row::of_one_file(
        "storyboard",
        &[Class::Video],
        "Puts frames of a whole video on one image, with a WebVTT map that says where each is",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Storyboard {
    pub frames: u32,
    /// Frames side by side, at most as many as frames.
    pub columns: u32,
    /// Width of one frame.
    pub width: u32,
    pub format: Format,
    pub quality: u8,
}

impl Values for Storyboard {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let frames = fields.integer("frames")?;
        let columns = fields.integer::<u32>("columns")?.min(frames);
        let width = fields.integer("width")?;
        if columns * width > MAX_SIDE {
            return Err(fields.error(
                "width",
                format!(
                    "width must be at most {} with {columns} columns: an image has at most {MAX_SIDE} pixels a side",
                    MAX_SIDE / columns
                ),
            ));
        }
        Ok(Self {
            frames,
            columns,
            width,
            format: fields.format("format")?,
            quality: fields.integer("quality")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        Ok(timed::task(AvTask::Sheet(Sheet {
            frames: self.frames,
            columns: self.columns,
            width: self.width,
            output: Encode::new(self.format, self.quality),
            image_name: reference(&renamed(&source.filename, self.format)),
        })))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }

    /// The WebVTT map.
    fn text_output(&self, source: &OperationInput) -> Option<TextOutput> {
        Some(TextOutput {
            filename: with_extension(&source.filename, "vtt"),
            mime: "text/vtt",
        })
    }
}

/// A file's name as a relative reference: all but unreserved characters as octets (RFC 3986 §2.1).
fn reference(filename: &str) -> String {
    let mut reference = String::with_capacity(filename.len());
    for byte in filename.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                reference.push(char::from(byte));
            }
            _ => reference.push_str(&format!("%{byte:02X}")),
        }
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_so_that_no_map_can_break() {
        for (filename, expected) in [
            ("clip.jpg", "clip.jpg"),
            ("my clip.jpg", "my%20clip.jpg"),
            ("a\n\nb-->c#xywh=1.jpg", "a%0A%0Ab--%3Ec%23xywh%3D1.jpg"),
            ("é.jpg", "%C3%A9.jpg"),
        ] {
            assert_eq!(reference(filename), expected);
        }
    }
}
