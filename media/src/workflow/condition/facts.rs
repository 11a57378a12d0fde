//! Facts of a file that conditions compare: MIME type, name, extension, size, dimensions, duration, upload source.

/// The properties of a file; what is unknown is `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    pub mime: Option<String>,
    pub filename: Option<String>,
    /// Lower case, without the dot.
    pub extension: Option<String>,
    pub size_bytes: Option<u64>,
    /// Width in pixels.
    pub width: Option<u32>,
    pub height: Option<u32>,
    pub duration_s: Option<f64>,
    /// Source of the file: `api`, `dashboard`, `folder` …
    pub upload_source: Option<String>,
}

impl Facts {
    /// Name and extension of a file; the rest is unknown.
    pub fn named(filename: &str) -> Self {
        Self {
            filename: Some(filename.to_owned()),
            extension: extension(filename),
            ..Self::default()
        }
    }
}

/// Returns the text behind the last dot of a name, in lower case; nothing for `photo`, `photo.` and `.profile`.
fn extension(filename: &str) -> Option<String> {
    let (stem, extension) = filename.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
}
