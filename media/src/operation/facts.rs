//! What is written inside an image besides its pixels: telling it, dropping it.

use super::{Operation, convert::check_written, table::Row};
use crate::{
    format::{Class, Format},
    task::{Encode, Failure, Render, Task},
};

pub(super) const STRIP_METADATA: Row = Row {
    tool: "strip-metadata",
    node: Some("strip_metadata"),
    fields: &[],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster],
    summary: "Drops EXIF, XMP and IPTC, position and camera among them; the orientation is applied first",
    read: |_| Ok(Operation::StripMetadata),
};

pub(super) const INSPECT: Row = Row {
    tool: "inspect",
    node: Some("inspect"),
    fields: &[],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster, Class::Vector, Class::Document],
    summary: "Tells size, format, colour and metadata of an image; a workflow passes the file on as it is",
    read: |_| Ok(Operation::Inspect),
};

/// The same image, written anew at a quality at which the loss is not seen.
pub(super) fn strip(source: Format) -> Result<Task, Failure> {
    const QUALITY: u8 = 92;
    check_written("strip-metadata", source)?;
    let render = Render::new(source, Encode::new(source, QUALITY));
    Ok(Task::Render(Box::new(render)))
}
