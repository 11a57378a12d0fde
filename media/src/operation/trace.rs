//! Operation `vectorize`: traces an image into an SVG.

use serde::{Deserialize, Serialize};

use super::{
    OperationInput, field::Field, params::FieldError, reader::Reader, row::Row, values::Values,
};
use crate::{
    format::{Class, Format},
    task::{Failure, Task},
};

pub(super) const VECTORIZE: Row = Row {
    node: Some("vectorize"),
    fields: &[Field::flag("mono", "false", "a silhouette in one colour")],
    ..Row::of_one_file("vectorize", &[Class::Raster], "Traces an image into an SVG")
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vectorize {
    pub mono: bool,
}

impl Values for Vectorize {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let mono = fields.flag("mono")?;
        Ok(Self { mono })
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        Ok(Task::Vectorize {
            source: source.format,
            mono: self.mono,
        })
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        Some(Format::Svg)
    }
}
