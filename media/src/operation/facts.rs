//! Operations `inspect` (facts of a file) and `strip-metadata` (EXIF, XMP, IPTC, tags).

use serde::{Deserialize, Serialize};

use super::{
    OperationInput, convert::check_written, params::FieldError, reader::Reader, row::Row, timed,
    values::Values,
};
use crate::{
    av::{AudioWork, AvTask, Transcode, VideoWork},
    format::{Class, Format},
    task::{Encode, Failure, Render, Task},
};

pub(super) const STRIP_METADATA: Row = Row {
    node: Some("strip_metadata"),
    fields: &[],
    ..Row::of_one_file(
        "strip-metadata",
        &[Class::Raster, Class::Video, Class::Audio],
        "Drops EXIF, XMP and IPTC of an image, its orientation applied first, and the tags of video and audio, which are copied",
    )
};

pub(super) const INSPECT: Row = Row {
    node: Some("inspect"),
    fields: &[],
    ..Row::of_one_file(
        "inspect",
        &[
            Class::Raster,
            Class::Vector,
            Class::Document,
            Class::Video,
            Class::Audio,
        ],
        "Shows size, format, colour and metadata of an image, and container, tracks and duration of video and audio; a workflow passes the file on as it is",
    )
};

/// No fields.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Inspect;

impl Values for Inspect {
    fn read(_: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self)
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        let format = source.format;
        Ok(match format.class().is_timed() {
            true => timed::task(AvTask::Probe),
            false => Task::Inspect { format },
        })
    }

    fn output_format(&self, _: Format) -> Option<Format> {
        None
    }
}

/// The same image, written again at a quality at which the loss is not seen; of video and audio a copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StripMetadata;

impl Values for StripMetadata {
    fn read(_: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self)
    }

    fn task(&self, source: &OperationInput, _: &[OperationInput]) -> Result<Task, Failure> {
        const QUALITY: u8 = 92;
        let source = source.format;
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

    fn output_format(&self, source: Format) -> Option<Format> {
        Some(source)
    }
}
