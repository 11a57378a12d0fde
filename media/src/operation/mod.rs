//! The operation table (decisions.md §3): one row is one operation, for HTTP tools, workflow nodes and agents alike.
//!
//! A [`Row`] names an operation's fields with ranges and defaults; [`parse`] reads them into an [`Operation`], and an
//! operation becomes a worker's [`Task`] once the format of its source is known. Rows that this version cannot perform
//! are absent. Each file of this module holds a group of operations: rows, values, tasks.

mod adjust;
mod convert;
mod document;
mod facts;
mod field;
mod filename;
mod params;
mod reader;
mod sizing;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod transform;
mod watermark;

pub use adjust::AdjustImage;
pub use convert::{Compress, Convert, ResizeImage};
pub use document::{ImageToPdf, PdfPreview};
pub use field::{Field, Kind};
pub use filename::renamed;
pub use params::{FieldError, Params};
pub use sizing::Sizing;
pub use table::{Row, TABLE, row};
pub use trace::Vectorize;
pub use transform::{Thumbnail, Transform};
pub use watermark::WatermarkImage;

use serde::{Deserialize, Serialize};

use crate::{
    format::{Class, Format},
    task::{Failure, FailureCode, Task},
};
pub(crate) use params::shorten;
use reader::Reader;
pub(crate) use table::later;

/// One operation with its values, checked. Job rows store it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "tool", rename_all = "kebab-case")]
pub enum Operation {
    Convert(Convert),
    Compress(Compress),
    Resize(ResizeImage),
    Thumbnail(Thumbnail),
    Transform(Transform),
    Adjust(AdjustImage),
    Watermark(WatermarkImage),
    StripMetadata,
    Inspect,
    PdfPreview(PdfPreview),
    ImageToPdf(ImageToPdf),
    Vectorize(Vectorize),
}

/// A file that an operation is done on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// By its bytes.
    pub format: Format,
    pub filename: String,
}

impl Source {
    pub fn new(format: Format, filename: impl Into<String>) -> Self {
        Self {
            format,
            filename: filename.into(),
        }
    }
}

/// Reads the fields of a tool's row; unknown fields are ignored.
pub fn parse(tool: &str, params: &Params) -> Result<Operation, FieldError> {
    let row = known(tool)?;
    (row.read)(&Reader::new(row, params))
}

/// Reads one operation for each of `file_count` files: a list under a field's plural (`formats`, `qualities`) gives one
/// value per file, the other fields count for all. Lengths are checked before anything else.
pub fn parse_each(
    tool: &str,
    params: &Params,
    file_count: usize,
) -> Result<Vec<Operation>, FieldError> {
    let row = known(tool)?;
    let lists = row.lists(params, file_count)?;
    let one = |index: usize| {
        let mut own = params.clone();
        for (field, values) in &lists {
            if !values[index].is_null() {
                own.set(field.name, values[index].clone());
            }
        }
        (row.read)(&Reader::new(row, &own))
    };
    if lists.is_empty() {
        return Ok(vec![one(0)?; file_count]);
    }
    (0..file_count).map(one).collect()
}

fn known(tool: &str) -> Result<&'static Row, FieldError> {
    row(tool).ok_or_else(|| {
        let tools: Vec<&str> = TABLE.iter().map(|row| row.tool).collect();
        FieldError::new(
            "tool",
            format!(
                "tool must be one of {}, got `{}`",
                tools.join(", "),
                shorten(tool)
            ),
        )
    })
}

impl Operation {
    /// The name of its row.
    pub fn tool(&self) -> &'static str {
        match self {
            Self::Convert(_) => "convert",
            Self::Compress(_) => "compress",
            Self::Resize(_) => "resize",
            Self::Thumbnail(_) => "thumbnail",
            Self::Transform(_) => "transform",
            Self::Adjust(_) => "adjust",
            Self::Watermark(_) => "watermark",
            Self::StripMetadata => "strip-metadata",
            Self::Inspect => "inspect",
            Self::PdfPreview(_) => "pdf-preview",
            Self::ImageToPdf(_) => "image-to-pdf",
            Self::Vectorize(_) => "vectorize",
        }
    }

    /// Its row.
    pub fn row(&self) -> &'static Row {
        row(self.tool()).expect("every operation has a row")
    }

    /// Whether its result is an archive of the inputs as they are, which is packed by the service and no worker's task.
    pub fn is_packing(&self) -> bool {
        matches!(self, Self::Convert(convert) if convert.format == Format::Zip)
    }

    /// Whether a ZIP as input means its members, each by itself.
    pub fn opens_archives(&self) -> bool {
        match self {
            Self::Convert(convert) => convert.format.class() != Class::Archive,
            Self::Compress(_) => true,
            _ => false,
        }
    }

    /// What a worker has to do. `sources` are the inputs in the worker's order: one, or for image-to-pdf any number, or
    /// for a watermark the image and then the mark's image if there is one.
    ///
    /// Fails with `UnsupportedType` where the operation does not read or write such files, and with `Impossible` where
    /// it makes no sense on them.
    pub fn task(&self, sources: &[Source]) -> Result<Task, Failure> {
        let source = sources.first().ok_or_else(|| {
            Failure::new(FailureCode::Internal, "an operation came without a file")
        })?;
        for source in sources {
            self.row().check(source.format)?;
        }
        match self {
            Self::Convert(convert) => convert.task(source.format),
            Self::Compress(compress) => compress.task(source.format),
            Self::Resize(resize) => Ok(resize.task(source.format)),
            Self::Thumbnail(thumbnail) => Ok(thumbnail.task(source.format)),
            Self::Transform(transform) => Ok(transform.task(source.format)),
            Self::Adjust(adjust) => Ok(adjust.task(source.format)),
            Self::Watermark(watermark) => {
                watermark.task(source.format, sources.get(1).map(|mark| mark.format))
            }
            Self::StripMetadata => facts::strip(source.format),
            Self::Inspect => Ok(Task::Inspect {
                format: source.format,
            }),
            Self::PdfPreview(preview) => Ok(preview.task(source.format)),
            Self::ImageToPdf(images) => Ok(images.task(sources)),
            Self::Vectorize(vectorize) => Ok(vectorize.task(source.format)),
        }
    }

    /// The format of the result for a source of that format; `None` for an inspection, which has no file.
    pub fn output_format(&self, source: Format) -> Option<Format> {
        Some(match self {
            Self::Convert(convert) => convert.format,
            Self::Compress(_) | Self::StripMetadata => source,
            Self::Resize(_) | Self::Adjust(_) | Self::Watermark(_) => writable(source),
            Self::Transform(transform) => transform.format.unwrap_or_else(|| writable(source)),
            Self::Thumbnail(thumbnail) => thumbnail.format,
            Self::PdfPreview(preview) => preview.format,
            Self::ImageToPdf(_) => Format::Pdf,
            Self::Vectorize(_) => Format::Svg,
            Self::Inspect => return None,
        })
    }

    /// Name and format of the result: the source's name with the extension of the result's format.
    pub fn output(&self, source: &Source) -> (String, Format) {
        let format = self.output_format(source.format).unwrap_or(source.format);
        (renamed(&source.filename, format), format)
    }
}

/// The format that a result keeps: the source's own where it can be written, else PNG, which loses nothing.
fn writable(source: Format) -> Format {
    if source.is_image_target() {
        source
    } else {
        Format::Png
    }
}
