//! Fields of conditions (`mime`, `filename`, `extension`, `size_bytes`, `width`, `duration`, `upload_source`) and their
//! other spellings.

use super::{
    Facts,
    operator::{is_spelled, letters},
};

words! {
    /// A property by its name on the wire.
    #[derive(PartialOrd, Ord)]
    pub enum Field {
        Mime = "mime",
        Filename = "filename",
        Extension = "extension",
        SizeBytes = "size_bytes",
        Width = "width",
        Height = "height",
        Duration = "duration",
        UploadSource = "upload_source",
    }
}

/// Value of a file for a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Property<'a> {
    Text(&'a str),
    Number(f64),
}

impl Field {
    pub fn summary(self) -> &'static str {
        match self {
            Self::Mime => "media type, such as image/png",
            Self::Filename => "name with its extension",
            Self::Extension => "extension without the dot",
            Self::SizeBytes => "size in bytes",
            Self::Width => "width in pixels",
            Self::Height => "height in pixels",
            Self::Duration => "duration in seconds, of audio and video",
            Self::UploadSource => "where the file came from, such as api or dashboard",
        }
    }

    /// Other names that definitions use, without regard to case, hyphens, underscores and blanks.
    pub fn spellings(self) -> &'static [&'static str] {
        match self {
            Self::Mime => &["mime_type", "content_type"],
            Self::Filename => &["file_name", "name"],
            Self::Extension => &["ext", "file_extension"],
            Self::SizeBytes => &["size", "file_size"],
            Self::Width => &["image_width"],
            Self::Height => &["image_height"],
            Self::Duration => &["duration_seconds"],
            Self::UploadSource => &["source"],
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        let word = letters(text);
        let is_called = |field: &&Self| {
            std::iter::once(&field.name())
                .chain(field.spellings())
                .any(|name| is_spelled(name, &word))
        };
        Self::ALL.iter().find(is_called).copied()
    }

    /// Returns whether it is a number: bytes, pixels or seconds.
    pub fn is_number(self) -> bool {
        matches!(self, Self::SizeBytes) || self.is_dimension()
    }

    /// Returns whether only an inspection of the file finds it.
    pub fn is_dimension(self) -> bool {
        matches!(self, Self::Width | Self::Height | Self::Duration)
    }

    /// Returns the file's value; `None` when it lacks the property. Empty text is none.
    pub(super) fn of(self, facts: &Facts) -> Option<Property<'_>> {
        match self {
            Self::Mime => given(&facts.mime),
            Self::Filename => given(&facts.filename),
            Self::Extension => given(&facts.extension),
            Self::UploadSource => given(&facts.upload_source),
            Self::SizeBytes => facts.size_bytes.map(|bytes| Property::Number(bytes as f64)),
            Self::Width => facts.width.map(|side| Property::Number(side.into())),
            Self::Height => facts.height.map(|side| Property::Number(side.into())),
            Self::Duration => facts.duration_s.map(Property::Number),
        }
    }
}

fn given(text: &Option<String>) -> Option<Property<'_>> {
    text.as_deref()
        .filter(|text| !text.is_empty())
        .map(Property::Text)
}
