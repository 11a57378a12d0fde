//! Operations `thumbnail` and `transform`: crop (`cropLeft` …), resize, `fit`, rotate, flip, flop.

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
    format::{Class, Format},
    task::{Crop, Encode, Failure, Fit, Render, Resize, Task},
};

const IMAGES: &[Class] = &[Class::Raster, Class::Vector, Class::Document];

/// The field `format` of small images for pages.
pub(super) const PREVIEW_FORMAT: Field = Field::new(
    "format",
    Kind::Format(&[Format::Jpg, Format::Png, Format::Webp, Format::Avif]),
    Some("jpg"),
    "the format to make",
);

pub(super) const THUMBNAIL: Row = Row {
    node: Some("thumbnail"),
    fields: &[
        Field {
            default: Some("512"),
            ..Field::side("width", "pixels")
        },
        Field {
            default: Some("512"),
            ..Field::side("height", "pixels")
        },
        Field::new(
            "fit",
            Kind::Choice(&["cover", "contain", "inside"]),
            Some("cover"),
            "how the image meets the box",
        ),
        PREVIEW_FORMAT,
        Field::integer("quality", 1, 100, Some("82"), "higher is better"),
        timed::TIMESTAMP,
    ],
    ..Row::of_one_file(
        "thumbnail",
        &[Class::Raster, Class::Vector, Class::Document, Class::Video],
        "Makes a thumbnail of an image, of a document's first page or of a video",
    )
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thumbnail {
    pub width: u32,
    pub height: u32,
    pub fit: Fit,
    pub format: Format,
    pub quality: u8,
    /// Position in a video, in seconds.
    #[serde(default = "timed::default_timestamp")]
    pub timestamp: f64,
}

impl Values for Thumbnail {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            width: fields.integer("width")?,
            height: fields.integer("height")?,
            fit: fit(fields.choice("fit")?),
            format: fields.format("format")?,
            quality: fields.integer("quality")?,
            timestamp: fields.number("timestamp")?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        Ok(timed::still(
            source,
            self.timestamp,
            Render {
                resize: Some(Resize::new(Some(self.width), Some(self.height), self.fit)),
                ..Render::new(source, Encode::new(self.format, self.quality))
            },
        ))
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(self.format)
    }
}

pub(super) const TRANSFORM: Row = Row {
    node: Some("transform"),
    fields: &[
        Field::new(
            "format",
            Kind::Format(&[
                Format::Jpg,
                Format::Png,
                Format::Webp,
                Format::Avif,
                Format::Tiff,
                Format::Gif,
                Format::Heif,
                Format::Jxl,
            ]),
            None,
            "the source's own where it can be written, else png",
        ),
        Field::side("width", "pixels"),
        Field::side("height", "pixels"),
        Field::new(
            "fit",
            Kind::Choice(&["cover", "contain", "fill", "inside", "outside"]),
            Some("cover"),
            "how the image meets the box; with one side given it is scaled",
        ),
        Field::integer(
            "rotate",
            -360,
            360,
            Some("0"),
            "degrees clockwise, after cropping and resizing",
        ),
        Field::flag("flip", "false", "upside down"),
        Field::flag("flop", "false", "left to right"),
        Field::integer("quality", 1, 100, Some("86"), "higher is better"),
        Field::integer(
            "cropLeft",
            0,
            MAX_CROP,
            Some("0"),
            "pixels of the oriented image",
        ),
        Field::integer(
            "cropTop",
            0,
            MAX_CROP,
            Some("0"),
            "pixels of the oriented image",
        ),
        Field::integer("cropWidth", 1, MAX_CROP, None, "pixels; with cropHeight"),
        Field::integer("cropHeight", 1, MAX_CROP, None, "pixels; with cropWidth"),
    ],
    ..Row::of_one_file(
        "transform",
        IMAGES,
        "Crops, resizes, turns and mirrors an image",
    )
};

/// Largest offset and side of a crop, which counts in the source: that may be larger than any result.
const MAX_CROP: i64 = 1_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transform {
    /// `None`: the source's own where it can be written, else PNG.
    pub format: Option<Format>,
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub fit: Fit,
    pub rotate: i32,
    pub flip: bool,
    pub flop: bool,
    pub quality: u8,
    pub crop: Option<Crop>,
}

impl Values for Transform {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            format: fields.format_if_given("format")?,
            width: fields.integer_if_given("width")?,
            height: fields.integer_if_given("height")?,
            fit: fit(fields.choice("fit")?),
            rotate: fields.integer("rotate")?,
            flip: fields.flag("flip")?,
            flop: fields.flag("flop")?,
            quality: fields.integer("quality")?,
            crop: crop(fields)?,
        })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let source = source.format;
        let format = self.output(source);
        let is_sized = self.width.is_some() || self.height.is_some();
        Ok(Task::Render(Box::new(Render {
            crop: self.crop,
            resize: is_sized.then(|| Resize::new(self.width, self.height, self.fit)),
            rotate: self.rotate,
            flip: self.flip,
            flop: self.flop,
            ..Render::new(source, Encode::new(format, self.quality))
        })))
    }

    fn output_format(&self, source: Format) -> Option<Format> {
        Some(self.output(source))
    }
}

impl Transform {
    fn output(&self, source: Format) -> Format {
        self.format.unwrap_or_else(|| writable(source))
    }
}

/// Reads a crop, which needs both of its sides; its corner is the top left one unless given.
fn crop(fields: &Reader<'_>) -> Result<Option<Crop>, FieldError> {
    let left = fields.integer("cropLeft")?;
    let top = fields.integer("cropTop")?;
    let width = fields.integer_if_given("cropWidth")?;
    let height = fields.integer_if_given("cropHeight")?;
    match (width, height) {
        (Some(width), Some(height)) => Ok(Some(Crop {
            left,
            top,
            width,
            height,
        })),
        (None, None) if !fields.is_given("cropLeft") && !fields.is_given("cropTop") => Ok(None),
        (None, _) => Err(fields.error("cropWidth", "a crop needs cropWidth and cropHeight")),
        (_, None) => Err(fields.error("cropHeight", "a crop needs cropWidth and cropHeight")),
    }
}

fn fit(word: &str) -> Fit {
    Fit::parse(word).unwrap_or(Fit::Cover)
}
