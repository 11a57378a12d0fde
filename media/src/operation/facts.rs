//! What is written inside a file besides what is seen and heard: telling it, dropping it.

use super::{Operation, convert::check_written, row::Row, timed};
use crate::{
    av::{AudioWork, AvTask, Transcode, VideoWork},
    format::{Class, Format},
    task::{Encode, Failure, Render, Task},
};

pub(super) const STRIP_METADATA: Row = Row {
    tool: "strip-metadata",
    node: Some("strip_metadata"),
    fields: &[],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster, Class::Video, Class::Audio],
    summary: "Drops EXIF, XMP and IPTC of an image, its orientation applied first, and the tags of video and audio, which are copied",
    read: |_| Ok(Operation::StripMetadata),
};

pub(super) const INSPECT: Row = Row {
    tool: "inspect",
    node: Some("inspect"),
    fields: &[],
    min_files: 1,
    max_files: 1,
    accepts: &[
        Class::Raster,
        Class::Vector,
        Class::Document,
        Class::Video,
        Class::Audio,
    ],
    summary: "Tells size, format, colour and metadata of an image, and container, tracks and duration of video and audio; a workflow passes the file on as it is",
    read: |_| Ok(Operation::Inspect),
};

pub(super) fn inspection(source: Format) -> Task {
    match source.class().is_timed() {
        true => timed::task(AvTask::Probe),
        false => Task::Inspect { format: source },
    }
}

/// The same image, written again at a quality at which the loss is not seen; of video and audio a copy.
pub(super) fn strip(source: Format) -> Result<Task, Failure> {
    const QUALITY: u8 = 92;
    check_written("strip-metadata", source)?;
    if source.class().is_timed() {
        return Ok(timed::task(AvTask::Transcode(Transcode {
            keep_tags: false,
            ..timed::transcode(source, VideoWork::default(), AudioWork::default())
        })));
    }
    let render = Render::new(source, Encode::new(source, QUALITY));
    Ok(Task::Render(Box::new(render)))
}
