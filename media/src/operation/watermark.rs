//! Operation `watermark`: text or image (`watermarkFile`) over an image or a video, position, opacity, margin.

use serde::{Deserialize, Serialize};

use super::{
    EDIT_QUALITY, OperationInput,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    row::Row,
    timed,
    values::Values,
    writable,
};
use crate::{
    av::{AudioWork, VideoWork},
    format::Class,
    task::{Encode, Failure, FailureCode, Render, Task, Watermark},
};

/// Characters of a watermark's text.
const MAX_TEXT_CHARS: usize = 500;

pub(super) const WATERMARK: Row = Row {
    node: Some("watermark"),
    fields: &[
        Field::new(
            "text",
            Kind::Text {
                max_chars: MAX_TEXT_CHARS,
            },
            None,
            "plain text",
        ),
        Field::new(
            "watermarkFile",
            Kind::File,
            None,
            "an image; over the text when both are given",
        ),
        Field::new(
            "position",
            Kind::Position,
            Some("center"),
            "numbers count in reading order: 1 is top-left, 5 is center, 9 is bottom-right",
        ),
        Field::number("opacity", 0.0, 1.0, Some("0.72"), "0 is invisible"),
        Field::integer("margin", 0, 4096, Some("32"), "pixels from the edges"),
        Field::side(
            "watermarkWidth",
            "pixels; a fifth of the image's width without it",
        ),
    ],
    max_files: 2,
    ..Row::of_one_file(
        "watermark",
        &[Class::Raster, Class::Vector, Class::Video],
        "Lays a text or an image over an image or a video",
    )
};

/// Keeps the format where it can be written, else makes a PNG or an MP4.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WatermarkImage {
    pub text: Option<String>,
    pub position: u8,
    pub opacity: f32,
    pub margin: u32,
    pub width: Option<u32>,
}

impl Values for WatermarkImage {
    /// A request that came with a `watermarkFile` says so by any value of that field, see [`Params::set`].
    ///
    /// [`Params::set`]: super::Params::set
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let text = fields.text_if_given("text")?;
        if text.is_none() && !fields.is_given("watermarkFile") {
            return Err(fields.error("text", "a watermark needs text or watermarkFile"));
        }
        Ok(Self {
            text,
            position: fields.position("position")?,
            opacity: fields.number("opacity")? as f32,
            margin: fields.integer("margin")?,
            width: fields.integer_if_given("watermarkWidth")?,
        })
    }

    fn task(&self, source: &OperationInput, others: &[OperationInput]) -> Result<Task, Failure> {
        let (source, image) = (source.format, others.first().map(|it| it.format));
        if self.text.is_none() && image.is_none() {
            return Err(Failure::new(
                FailureCode::Impossible,
                "a watermark needs text or watermarkFile",
            ));
        }
        if let Some(other) = image.filter(|image| !image.is_image()) {
            return Err(Failure::new(
                FailureCode::UnsupportedType,
                format!(
                    "watermarkFile takes an image, and {} is {}",
                    other.name(),
                    other.class().noun()
                ),
            ));
        }
        let watermark = Some(Watermark {
            text: self.text.clone(),
            image,
            position: self.position,
            opacity: self.opacity,
            margin: self.margin,
            width: self.width,
        });
        if source.class().is_timed() {
            let video = VideoWork {
                watermark,
                ..timed::edited()
            };
            return Ok(timed::same(source, video, AudioWork::default()));
        }
        Ok(Task::Render(Box::new(Render {
            watermark,
            ..Render::new(source, Encode::new(writable(source), EDIT_QUALITY))
        })))
    }

    /// All but the watermark's own image.
    fn worked_on<'a>(&self, sources: &'a [OperationInput]) -> &'a [OperationInput] {
        &sources[..sources.len().min(1)]
    }
}
