//! The table of operations: what is not in it, the service cannot do.

use super::{
    adjust, audio, clip, convert, document, facts, frame, row::Row, trace, transform, watermark,
};

/// Every operation that this version performs.
pub static TABLE: &[Row] = &[
    convert::CONVERT,
    convert::COMPRESS,
    convert::RESIZE,
    audio::AUDIO,
    trace::VECTORIZE,
    transform::THUMBNAIL,
    frame::POSTER_FRAME,
    frame::STORYBOARD,
    clip::GIF,
    clip::TRIM,
    audio::EXTRACT_AUDIO,
    watermark::WATERMARK,
    document::PDF_PREVIEW,
    document::IMAGE_TO_PDF,
    facts::STRIP_METADATA,
    facts::INSPECT,
    transform::TRANSFORM,
    adjust::ADJUST,
    audio::WAVEFORM,
    audio::CONCAT_AUDIO,
];

/// The row of a tool, by either of its spellings.
pub fn row(tool: &str) -> Option<&'static Row> {
    TABLE
        .iter()
        .find(|row| row.tool == tool || row.node == Some(tool))
}
