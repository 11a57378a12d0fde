//! Raster to shapes.

use serde::{Deserialize, Serialize};

use super::{Operation, field::Field, row::Row};
use crate::{
    format::{Class, Format},
    task::Task,
};

pub(super) const VECTORIZE: Row = Row {
    tool: "vectorize",
    node: Some("vectorize"),
    fields: &[Field::flag("mono", "false", "a silhouette in one colour")],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster],
    summary: "Traces an image into an SVG",
    read: |fields| {
        let mono = fields.flag("mono")?;
        Ok(Operation::Vectorize(Vectorize { mono }))
    },
};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Vectorize {
    pub mono: bool,
}

impl Vectorize {
    pub(super) fn task(&self, source: Format) -> Task {
        Task::Vectorize {
            source,
            mono: self.mono,
        }
    }
}
