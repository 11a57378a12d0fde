//! The formats of files: names, media types, what can be read and written, and how each is recognised by its bytes.

use serde::{Deserialize, Serialize};

/// A file format, by the name that requests and answers use for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    Jpg,
    Png,
    Webp,
    Avif,
    Tiff,
    Gif,
    Heif,
    Jxl,
    Bmp,
    Ico,
    Tga,
    Svg,
    Pdf,
    Mp4,
    Webm,
    Mov,
    Mkv,
    Avi,
    Mp3,
    Wav,
    Ogg,
    M4a,
    Flac,
    Zip,
}
