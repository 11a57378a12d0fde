//! Parses operations of tools, jobs and workflow nodes: one value or a list for each file (`formats`), name and format
//! of results. The operation table has one row for each.
//!
//! A [`Row`] names an operation's fields with ranges and defaults; [`parse`] reads them into an [`Operation`], and an
//! operation becomes a worker's [`Task`] once the format of its source is known. Each file of this module holds a group
//! of operations: rows, and types of their values, which say what becomes of a file. All else about operations is made
//! from the table.

mod adjust;
mod audio;
mod clip;
mod convert;
mod document;
mod effect;
mod facts;
#[cfg(any(test, feature = "example-operation"))]
mod fade;
mod field;
mod filename;
mod frame;
mod info;
mod params;
mod reader;
mod row;
mod sizing;
mod table;
#[cfg(test)]
mod tests;
mod timed;
mod trace;
mod transform;
mod values;
mod watermark;

pub use adjust::Adjusting;
pub use audio::{AudioSettings, ConcatAudio, DrawnWaveform};
pub use clip::{Gif, Trim};
pub use convert::{Compress, Convert, Resizing};
pub use document::{ImageToPdf, PdfPreview};
pub use effect::Effect;
pub use facts::{Inspect, StripMetadata};
pub use field::{Field, Kind, POSITIONS};
pub use filename::renamed;
pub use frame::{PosterFrame, Storyboard};
pub use info::FieldInfo;
pub use params::{FieldError, Params};
pub use row::Row;
pub use sizing::{PRESETS, Shape, SizePreset, Sizing};
pub use table::{Operation, TABLE, effects, row};
pub use trace::Vectorize;
pub use transform::{Thumbnail, Transform};
pub use watermark::WatermarkImage;

use crate::{
    format::{Class, Format},
    task::{Failure, Task},
};
pub(crate) use convert::can_compress;
pub(crate) use params::{camel_case, shorten};
use reader::Reader;

/// A second result, which is text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextOutput {
    pub filename: String,
    pub mime: &'static str,
}

/// A file that an operation is done on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationInput {
    /// Format by the file's bytes.
    pub format: Format,
    pub filename: String,
}

impl OperationInput {
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
    table::read(row, &Reader::new(row, params))
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
        table::read(row, &Reader::new(row, &own))
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
        self.row().tool
    }

    /// Returns whether its result is an archive of the inputs as they are, which is packed by the service and no
    /// worker's task.
    pub fn is_packing(&self) -> bool {
        self.values().is_packing()
    }

    /// Returns whether it makes one file of all inputs.
    pub fn joins(&self) -> bool {
        self.values().joins()
    }

    /// Returns whether a ZIP as input means its members, each by itself.
    pub fn opens_archives(&self) -> bool {
        self.values().opens_archives()
    }

    /// Returns the task of a worker. `sources` are the inputs in the worker's order: one, or for an operation that
    /// joins any number, or for a watermark the base and then the watermark's image if there is one.
    ///
    /// Fails with `UnsupportedType` where the operation does not read or write such files, with `Impossible` where it
    /// makes no sense on them, and with `Invalid` where none of its fields does.
    pub fn task(&self, sources: &[OperationInput]) -> Result<Task, Failure> {
        let (source, others) = sources
            .split_first()
            .ok_or_else(|| Failure::internal("an operation came without a file"))?;
        for source in self.values().worked_on(sources) {
            self.row().check(source.format)?;
        }
        self.values().task(source, others)
    }

    /// The format of the result for a source of that format; `None` for an inspection, which has no file.
    pub fn output_format(&self, source: Format) -> Option<Format> {
        self.values().output_format(source)
    }

    /// Name and format of the result: the source's name with the extension of the result's format.
    pub fn output(&self, source: &OperationInput) -> (String, Format) {
        let format = self.output_format(source.format).unwrap_or(source.format);
        (renamed(&source.filename, format), format)
    }

    /// The result beside [`Self::output`], which a worker writes to its second descriptor; `None` for most operations.
    pub fn text_output(&self, source: &OperationInput) -> Option<TextOutput> {
        self.values().text_output(source)
    }
}

/// Quality of what is changed and keeps its format.
const EDIT_QUALITY: u8 = 86;

/// The format that a result keeps: the source's own where it can be written, else one that loses nothing, or that plays
/// everywhere.
fn writable(source: Format) -> Format {
    match (source, source.class()) {
        _ if source.is_image_target() || source.is_timed_target() => source,
        (_, Class::Video) => Format::Mp4,
        // The same frames in a container.
        (Format::Aac, _) => Format::M4a,
        (Format::Aiff, _) => Format::Wav,
        (_, Class::Audio) => Format::Mp3,
        _ => Format::Png,
    }
}
