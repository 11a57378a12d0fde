//! The resize presets (`docs/guide/conversions.md`) and the sides that go with them.

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
    /// Fill the box, cut what hangs over.
    Cover { width: u32, height: u32 },
    /// On a canvas of exactly that size, white where the format has no alpha.
    Canvas { width: u32, height: u32 },
}

pub(super) const PRESET: Field = Field {
    alias: Some("resize"),
    ..Field::new(
        "resizePreset",
        Kind::Choice(&[
            "original",
            "website",
            "email",
            "instagram",
            "linkedin",
            "ecommerce",
            "square",
            "width",
            "height",
        ]),
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
        let needed = |side: Option<u32>, name: &str, preset: &str| {
            side.ok_or_else(|| {
                fields.error(
                    name,
                    format!("resizePreset {preset} needs {name}: give it in pixels"),
                )
            })
        };
        Ok(match fields.choice_if_given("resizePreset")? {
            None if width.is_none() && height.is_none() => Self::Original,
            None => Self::Inside { width, height },
            Some("website") => Self::wide(1920),
            Some("email") => Self::wide(1200),
            Some("instagram") => Self::cover(1080, 1080),
            Some("linkedin") => Self::cover(1200, 627),
            Some("ecommerce") => Self::Canvas {
                width: 2048,
                height: 2048,
            },
            Some("square") => {
                let side = width.unwrap_or(1080);
                Self::cover(side, side)
            }
            Some("width") => Self::wide(needed(width, "resizeWidth", "width")?),
            Some("height") => Self::Inside {
                width: None,
                height: Some(needed(height, "resizeHeight", "height")?),
            },
            Some(_) => Self::Original,
        })
    }

    fn wide(width: u32) -> Self {
        Self::Inside {
            width: Some(width),
            height: None,
        }
    }

    fn cover(width: u32, height: u32) -> Self {
        Self::Cover { width, height }
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
