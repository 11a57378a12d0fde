//! Another format, fewer bytes, another size.

use serde::{Deserialize, Serialize};

use super::{
    Operation,
    field::{Field, Kind},
    params::FieldError,
    reader::Reader,
    sizing::{self, Sizing},
    table::{Row, later},
    writable,
};
use crate::{
    format::{Class, Format},
    task::{Encode, Failure, FailureCode, PageSize, Render, Task},
};

/// Everything that can be asked for; what this version cannot make yet is refused once the source is known.
const TARGETS: &[Format] = &[
    Format::Jpg,
    Format::Png,
    Format::Webp,
    Format::Avif,
    Format::Tiff,
    Format::Gif,
    Format::Heif,
    Format::Jxl,
    Format::Svg,
    Format::Pdf,
    Format::Mp4,
    Format::Webm,
    Format::Mov,
    Format::Mp3,
    Format::Wav,
    Format::Ogg,
    Format::M4a,
    Format::Flac,
    Format::Zip,
];

pub(super) const CONVERT: Row = Row {
    tool: "convert",
    node: Some("convert"),
    fields: &[
        Field {
            alias: Some("outputFormat"),
            ..Field::new("format", Kind::Format(TARGETS), None, "the format to make")
        },
        sizing::PRESET,
        sizing::WIDTH,
        sizing::HEIGHT,
        Field::integer(
            "compression",
            1,
            100,
            Some("82"),
            "the encoder's quality, higher is better",
        ),
        Field::flag("autoOrient", "true", "turn by the camera's orientation"),
        Field::flag("mono", "false", "trace to SVG as a silhouette"),
    ],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster, Class::Vector, Class::Document],
    summary: "Converts a file into another format",
    read: |fields| Convert::read(fields).map(Operation::Convert),
};

/// `POST /api/convert`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Convert {
    pub format: Format,
    /// Not used for SVG and PDF, which keep the image's own size.
    pub sizing: Sizing,
    pub quality: u8,
    pub auto_orient: bool,
    pub mono: bool,
}

impl Convert {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        Ok(Self {
            format: fields.format("format")?,
            sizing: Sizing::read(fields)?,
            quality: fields.integer("compression")?,
            auto_orient: fields.flag("autoOrient")?,
            mono: fields.flag("mono")?,
        })
    }

    pub(super) fn task(&self, source: Format) -> Result<Task, Failure> {
        match self.format.class() {
            Class::Raster => {
                let render = Render {
                    auto_orient: self.auto_orient,
                    ..Render::new(source, Encode::new(self.format, self.quality))
                };
                Ok(Task::Render(Box::new(self.sizing.apply(render))))
            }
            Class::Vector => self.trace(source),
            Class::Document if source.is_image() => Ok(Task::ImagesToPdf {
                sources: vec![source],
                page_size: PageSize::Auto,
            }),
            Class::Document => Err(already(source)),
            Class::Video | Class::Audio => Err(Failure::new(
                FailureCode::UnsupportedType,
                later(self.format),
            )),
            Class::Archive => Err(Failure::new(
                FailureCode::Internal,
                "an archive is packed by the service and no worker's task",
            )),
        }
    }

    fn trace(&self, source: Format) -> Result<Task, Failure> {
        match source.class() {
            Class::Raster => Ok(Task::Vectorize {
                source,
                mono: self.mono,
            }),
            Class::Vector => Err(already(source)),
            class => Err(Failure::new(
                FailureCode::Impossible,
                format!(
                    "svg is traced from a raster image, and this is {}: convert it to png first",
                    class.noun()
                ),
            )),
        }
    }
}

fn already(source: Format) -> Failure {
    Failure::new(
        FailureCode::Impossible,
        format!(
            "the file is {} already: choose another format",
            source.name()
        ),
    )
}

pub(super) const COMPRESS: Row = Row {
    tool: "compress",
    node: Some("compress"),
    fields: &[
        Field::new(
            "mode",
            Kind::Choice(&["quality", "target-size"]),
            None,
            "quality unless targetBytes is given",
        ),
        Field::integer(
            "quality",
            1,
            100,
            None,
            "82; with targetBytes the highest that is tried, 95",
        ),
        Field::integer(
            "targetBytes",
            1,
            1 << 40,
            None,
            "the best quality whose file is not larger",
        ),
        Field::flag("lossless", "false", "change no pixel"),
        Field::flag("stripMetadata", "false", "drop EXIF, XMP and IPTC"),
    ],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster],
    summary: "Makes a file smaller and keeps its format",
    read: |fields| Compress::read(fields).map(Operation::Compress),
};

/// `POST /api/compress`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Compress {
    /// With `target_bytes`, the highest quality that is tried.
    pub quality: u8,
    pub target_bytes: Option<u64>,
    pub lossless: bool,
    pub strip_metadata: bool,
}

impl Compress {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let target: Option<u64> = fields.integer_if_given("targetBytes")?;
        let target_bytes = match fields.choice_if_given("mode")? {
            Some("quality") => None,
            Some(_) if target.is_none() => {
                return Err(fields.error("targetBytes", "mode target-size needs targetBytes"));
            }
            _ => target,
        };
        let lossless = fields.flag("lossless")?;
        if lossless && target_bytes.is_some() {
            return Err(fields.error(
                "lossless",
                "lossless leaves nothing to choose a size by: give it or targetBytes",
            ));
        }
        let highest = if target_bytes.is_some() { 95 } else { 82 };
        Ok(Self {
            quality: fields.integer_if_given("quality")?.unwrap_or(highest),
            target_bytes,
            lossless,
            strip_metadata: fields.flag("stripMetadata")?,
        })
    }

    pub(super) fn task(&self, source: Format) -> Result<Task, Failure> {
        check_written("compress", source)?;
        if self.lossless && source == Format::Jpg {
            return Err(Failure::new(
                FailureCode::Impossible,
                "jpg has no lossless form: leave lossless out, or convert to webp, avif or jxl",
            ));
        }
        let output = Encode {
            lossless: self.lossless,
            target_bytes: self.target_bytes,
            ..Encode::new(source, self.quality)
        };
        Ok(Task::Render(Box::new(Render {
            keep_metadata: !self.strip_metadata,
            ..Render::new(source, output)
        })))
    }
}

/// An operation that keeps the format needs one that can be written.
pub(super) fn check_written(tool: &str, source: Format) -> Result<(), Failure> {
    if source.is_image_target() {
        return Ok(());
    }
    Err(Failure::new(
        FailureCode::UnsupportedType,
        format!(
            "{tool} keeps the format, and {} cannot be written: convert it instead",
            source.name()
        ),
    ))
}

pub(super) const RESIZE: Row = Row {
    tool: "resize",
    node: Some("resize"),
    fields: &[sizing::PRESET, sizing::WIDTH, sizing::HEIGHT],
    min_files: 1,
    max_files: 1,
    accepts: &[Class::Raster, Class::Vector, Class::Document],
    summary: "Makes an image smaller by a preset or to fit inside the sides given",
    read: |fields| ResizeImage::read(fields).map(Operation::Resize),
};

/// Keeps the format where it can be written, else makes a PNG.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ResizeImage {
    pub sizing: Sizing,
}

impl ResizeImage {
    fn read(fields: &Reader<'_>) -> Result<Self, FieldError> {
        let sizing = Sizing::read(fields)?;
        if sizing == Sizing::Original && !fields.is_given("resizePreset") {
            return Err(fields.error(
                "resizePreset",
                "resize needs resizePreset, resizeWidth or resizeHeight",
            ));
        }
        Ok(Self { sizing })
    }

    pub(super) fn task(&self, source: Format) -> Task {
        const QUALITY: u8 = 86;
        let render = Render::new(source, Encode::new(writable(source), QUALITY));
        Task::Render(Box::new(self.sizing.apply(render)))
    }
}
