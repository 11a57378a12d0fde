//! List of all operations (`operations!`, `TABLE`): a new operation gets its line here.

use serde::{Deserialize, Serialize};

use super::{
    adjust, audio, clip, convert, document, effect::Effect, facts, frame, params::FieldError,
    reader::Reader, row::Row, trace, transform, values::Values, watermark,
};

/// Makes of each line, `Variant(type of its values) = row`, a variant of [`Operation`], an entry of [`TABLE`], and the
/// functions that read the variant from a request and find its row.
macro_rules! operations {
    ($($(#[$attribute:meta])* $name:ident($values:ty) = $row:path;)*) => {
        /// An operation with its values, checked. Job rows store it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "tool", rename_all = "kebab-case")]
        pub enum Operation {
            $($(#[$attribute])* $name($values),)*
        }

        /// Every operation that this version performs.
        pub static TABLE: &[Row] = &[$($(#[$attribute])* $row,)*];

        impl Operation {
            /// Returns its row.
            pub fn row(&self) -> &'static Row {
                match self {
                    $($(#[$attribute])* Self::$name(_) => &$row,)*
                }
            }

            pub(super) fn values(&self) -> &dyn Values {
                match self {
                    $($(#[$attribute])* Self::$name(values) => values,)*
                }
            }
        }

        /// Reads the fields of a row of the table.
        pub(super) fn read(row: &Row, fields: &Reader<'_>) -> Result<Operation, FieldError> {
            $(
                $(#[$attribute])*
                if row.tool == $row.tool {
                    return <$values>::read(fields).map(Operation::$name);
                }
            )*
            unreachable!("{} is no row of the table", row.tool)
        }
    };
}

operations! {
    Convert(convert::Convert) = convert::CONVERT;
    Compress(convert::Compress) = convert::COMPRESS;
    Resize(convert::Resizing) = convert::RESIZE;
    Audio(audio::AudioSettings) = audio::AUDIO;
    Vectorize(trace::Vectorize) = trace::VECTORIZE;
    Thumbnail(transform::Thumbnail) = transform::THUMBNAIL;
    PosterFrame(frame::PosterFrame) = frame::POSTER_FRAME;
    Storyboard(frame::Storyboard) = frame::STORYBOARD;
    Gif(clip::Gif) = clip::GIF;
    Trim(clip::Trim) = clip::TRIM;
    ExtractAudio(audio::AudioSettings) = audio::EXTRACT_AUDIO;
    Watermark(watermark::WatermarkImage) = watermark::WATERMARK;
    PdfPreview(document::PdfPreview) = document::PDF_PREVIEW;
    ImageToPdf(document::ImageToPdf) = document::IMAGE_TO_PDF;
    StripMetadata(facts::StripMetadata) = facts::STRIP_METADATA;
    Inspect(facts::Inspect) = facts::INSPECT;
    Transform(transform::Transform) = transform::TRANSFORM;
    Adjust(adjust::Adjusting) = adjust::ADJUST;
    Waveform(audio::DrawnWaveform) = audio::WAVEFORM;
    ConcatAudio(audio::ConcatAudio) = audio::CONCAT_AUDIO;
    #[cfg(any(test, feature = "example-operation"))] Fade(super::fade::Fade) = super::fade::FADE;
}

/// The row of a tool, by either of its spellings.
pub fn row(tool: &str) -> Option<&'static Row> {
    TABLE
        .iter()
        .find(|row| row.tool == tool || row.node == Some(tool))
}

/// Every effect of a delivery URL, in the order of its canonical text.
pub fn effects() -> impl Iterator<Item = &'static Effect> {
    TABLE.iter().flat_map(|row| row.effects)
}
