//! Resize presets (`resizePreset`: `website`, `instagram`, `square` …), `resizeWidth` and `resizeHeight`
//! (`docs/guide/conversions.md`).

use serde::{Deserialize, Serialize};

use super::{
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
};
use crate::task::{Fit, Render, Resize};

/// A size as a request asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "preset", rename_all = "kebab-case")]
pub enum Sizing {
    /// Unchanged; an SVG with a long edge of 1024.
    Original,
    /// Inside the sides given.
    Inside {
        width: Option<u32>,
        height: Option<u32>,
    },
    /// Fills the box, crops what is outside of it.
    Cover { width: u32, height: u32 },
    /// Fits on a canvas of exactly that size, white where the format has no alpha.
    Canvas { width: u32, height: u32 },
}

/// A named size.
#[derive(Debug)]
pub struct SizePreset {
    pub name: &'static str,
    pub shape: Shape,
    /// Pixels; `None`: as it comes, or from the field.
    pub width: Option<u32>,
    pub height: Option<u32>,
    /// Fields without which it is rejected.
    pub needs: &'static [&'static str],
    /// Fields that change its sides.
    pub takes: &'static [&'static str],
}

words! {
    /// Fit of an image into the sides of a preset.
    pub enum Shape {
        Original = "original",
        Inside = "inside",
        Cover = "cover",
        Canvas = "canvas",
    }
}

/// A preset of that shape and sides that no field changes.
const fn preset(
    name: &'static str,
    shape: Shape,
    width: Option<u32>,
    height: Option<u32>,
) -> SizePreset {
    SizePreset {
        name,
        shape,
        width,
        height,
        needs: &[],
        takes: &[],
    }
}

/// Every named size.
pub const PRESETS: &[SizePreset] = &[
    preset("original", Shape::Original, None, None),
    preset("website", Shape::Inside, Some(1920), None),
    preset("email", Shape::Inside, Some(1200), None),
    preset("instagram", Shape::Cover, Some(1080), Some(1080)),
    preset("linkedin", Shape::Cover, Some(1200), Some(627)),
    preset("ecommerce", Shape::Canvas, Some(2048), Some(2048)),
    SizePreset {
        takes: &["resizeWidth"],
        ..preset("square", Shape::Cover, Some(1080), Some(1080))
    },
    SizePreset {
        needs: &["resizeWidth"],
        takes: &["resizeWidth"],
        ..preset("width", Shape::Inside, None, None)
    },
    SizePreset {
        needs: &["resizeHeight"],
        takes: &["resizeHeight"],
        ..preset("height", Shape::Inside, None, None)
    },
];

const NAMES: &[&str] = &{
    let mut names = [""; PRESETS.len()];
    let mut index = 0;
    while index < PRESETS.len() {
        names[index] = PRESETS[index].name;
        index += 1;
    }
    names
};

pub(super) const PRESET: Field = Field {
    alias: Some("resize"),
    ..Field::new(
        "resizePreset",
        Kind::Choice(NAMES),
        None,
        "a named size; without one: inside the sides given, else as it is",
    )
};
pub(super) const WIDTH: Field = Field::side("resizeWidth", "pixels");
pub(super) const HEIGHT: Field = Field::side("resizeHeight", "pixels");

impl Sizing {
    pub(super) fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let width = fields.integer_if_given("resizeWidth")?;
        let height = fields.integer_if_given("resizeHeight")?;
        let Some(name) = fields.choice_if_given("resizePreset")? else {
            return Ok(match (width, height) {
                (None, None) => Self::Original,
                _ => Self::Inside { width, height },
            });
        };
        let preset = PRESETS
            .iter()
            .find(|preset| preset.name == name)
            .expect("the choice is among the names of the presets");
        preset.sized(fields, width, height)
    }

    /// The size for a worker; `None`: as it is.
    pub fn resize(self) -> Option<Resize> {
        let (width, height, fit) = match self {
            Self::Original => return None,
            Self::Inside { width, height } => (width, height, Fit::Inside),
            Self::Cover { width, height } => (Some(width), Some(height), Fit::Cover),
            Self::Canvas { width, height } => (Some(width), Some(height), Fit::Contain),
        };
        Some(Resize {
            exact_canvas: matches!(self, Self::Canvas { .. }),
            ..Resize::new(width, height, fit)
        })
    }

    pub(super) fn apply(self, render: Render) -> Render {
        Render {
            resize: self.resize(),
            ..render
        }
    }
}

impl SizePreset {
    /// The size with the sides that a request gives beside the preset.
    fn sized(
        &self,
        fields: &Reader<'_>,
        width: Option<u32>,
        height: Option<u32>,
    ) -> Result<Sizing, FieldError> {
        for (field, side) in [("resizeWidth", width), ("resizeHeight", height)] {
            if side.is_none() && self.needs.contains(&field) {
                let needed = format!(
                    "resizePreset {} needs {field}: give it in pixels",
                    self.name
                );
                return Err(fields.error(field, needed));
            }
        }
        let taken = |field: &str, side: Option<u32>| side.filter(|_| self.takes.contains(&field));
        let (width, height) = (taken("resizeWidth", width), taken("resizeHeight", height));
        Ok(match self.shape {
            Shape::Original => Sizing::Original,
            Shape::Inside => Sizing::Inside {
                width: width.or(self.width),
                height: height.or(self.height),
            },
            Shape::Cover => self.boxed(width, |width, height| Sizing::Cover { width, height }),
            Shape::Canvas => self.boxed(width, |width, height| Sizing::Canvas { width, height }),
        })
    }

    /// A box of the preset's sides; of equal sides when a request gives one.
    fn boxed(&self, side: Option<u32>, shaped: impl Fn(u32, u32) -> Sizing) -> Sizing {
        match (side, self.width, self.height) {
            (Some(side), ..) => shaped(side, side),
            (None, Some(width), Some(height)) => shaped(width, height),
            (None, ..) => Sizing::Original,
        }
    }
}
