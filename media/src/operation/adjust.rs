//! Light and colour.

use serde::{Deserialize, Serialize};

use super::{
    Operation,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    table::Row,
    writable,
};
use crate::{
    format::{Class, Format},
    task::{Adjust, Encode, Render, Task},
};

const FACTOR: Kind = Kind::Number {
    min: 0.0,
    max: 10.0,
};

pub(super) const ADJUST: Row = Row {
    tool: "adjust",
    node: Some("adjust"),
    fields: &[
        Field::new(
            "brightness",
            FACTOR,
            Some("1"),
            "a factor, 1 changes nothing",
        ),
        Field::new(
            "saturation",
            FACTOR,
            Some("1"),
            "a factor, 1 changes nothing",
        ),
        Field::new("contrast", FACTOR, Some("1"), "a factor, 1 changes nothing"),
        Field::new(
            "hue",
            Kind::Number {
                min: -360.0,
                max: 360.0,
            },
            Some("0"),
            "degrees around the colour wheel",
        ),
        Field::flag("grayscale", "false", "drop the colour"),
        Field::flag("invert", "false", "make a negative"),
        Field::new("sharpen", FACTOR, Some("0"), "sigma in pixels, 0 is off"),
    ],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster, Class::Vector],
    summary: "Changes light and colour of an image",
    read: |fields| AdjustImage::read(fields).map(Operation::Adjust),
};

/// Keeps the format where it can be written, else makes a PNG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdjustImage {
    pub adjust: Adjust,
}

impl AdjustImage {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            adjust: Adjust {
                blur: 0.0,
                sharpen: fields.number("sharpen")?,
                brightness: fields.number("brightness")?,
                contrast: fields.number("contrast")?,
                saturation: fields.number("saturation")?,
                hue: fields.number("hue")?,
                grayscale: fields.flag("grayscale")?,
                invert: fields.flag("invert")?,
            },
        })
    }

    pub(super) fn task(&self, source: Format) -> Task {
        const QUALITY: u8 = 86;
        Task::Render(Box::new(Render {
            adjust: self.adjust,
            ..Render::new(source, Encode::new(writable(source), QUALITY))
        }))
    }
}
