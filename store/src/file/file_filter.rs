//! Filter of file lists: folder, text in the name, media type, families of types (`image`, `document` …), tags, times.

use crate::statement::Builder;
use uuid::Uuid;

/// Folder whose files are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// All files of the account.
    #[default]
    Anywhere,
    /// Those in a folder, `None` being the top.
    In(Option<Uuid>),
    /// Those in a folder and everything below it.
    Below(Uuid),
}

text_enum! {
    /// A family of media types.
    pub enum FileType {
        Image = "image",
        Video = "video",
        Audio = "audio",
        /// PDF, texts, office documents, books.
        Document = "document",
        Archive = "archive",
        /// None of the others.
        Other = "other",
    }
}

impl FileType {
    /// Returns the family of a media type.
    pub(crate) fn of(mime_type: &str) -> Self {
        let mime_type = mime_type.to_ascii_lowercase();
        let known = Self::ALL.into_iter().find(|family| {
            family.types().contains(&mime_type.as_str())
                || family.begins().iter().any(|it| mime_type.starts_with(it))
        });
        known.unwrap_or(Self::Other)
    }

    /// The media types of a family, beside those of [`FileType::begins`]. A change needs a migration that writes the column
    /// `file_type` of earlier files again.
    fn types(self) -> &'static [&'static str] {
        match self {
            Self::Image | Self::Video | Self::Audio | Self::Other => &[],
            Self::Document => &[
                "application/pdf",
                "application/json",
                "application/xml",
                "application/yaml",
                "application/rtf",
                "application/msword",
                "application/epub+zip",
                "application/x-subrip",
            ],
            Self::Archive => &[
                "application/zip",
                "application/gzip",
                "application/x-tar",
                "application/x-7z-compressed",
            ],
        }
    }

    /// Beginnings of a family's media types.
    fn begins(self) -> &'static [&'static str] {
        match self {
            Self::Image => &["image/"],
            Self::Video => &["video/"],
            Self::Audio => &["audio/"],
            Self::Document => &[
                "text/",
                "application/vnd.openxmlformats-officedocument.",
                "application/vnd.oasis.opendocument.",
                "application/vnd.ms-",
            ],
            Self::Archive | Self::Other => &[],
        }
    }
}

/// Filter of an account's files; every file by default.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub place: Place,
    /// The name contains this, in any case.
    pub text: Option<String>,
    /// The media type begins so, in any case.
    pub mime_prefix: Option<String>,
    /// The media type is of one of these; of any when there are none.
    pub types: Vec<FileType>,
    /// The file has all of these tags.
    pub tags: Vec<String>,
    /// Stored at this time or later.
    pub created_from: Option<i64>,
    /// Stored before this time.
    pub created_before: Option<i64>,
}

impl Filter {
    pub fn at(place: Place) -> Self {
        Self {
            place,
            ..Self::default()
        }
    }

    /// The one folder whose files are listed.
    pub(super) fn folder(&self) -> Option<Option<Uuid>> {
        match self.place {
            Place::In(folder) => Some(folder),
            Place::Anywhere | Place::Below(_) => None,
        }
    }

    /// The folder that is listed with everything below.
    pub(super) fn tree(&self) -> Option<Uuid> {
        match self.place {
            Place::Below(root) => Some(root),
            Place::Anywhere | Place::In(_) => None,
        }
    }

    /// Returns whether files are left out for another reason than their place.
    pub(super) fn has_conditions(&self) -> bool {
        self.text.is_some()
            || self.mime_prefix.is_some()
            || !self.types.is_empty()
            || !self.tags.is_empty()
            || self.created_from.is_some()
            || self.created_before.is_some()
    }

    /// Adds the conditions but for the place and the tags to a statement about files `f`. `alias` is the table with a file's time
    /// and type, which may be another one than `f`.
    pub(super) fn push_conditions(&self, statement: &mut Builder, alias: &'static str) {
        if !self.types.is_empty() {
            let types = self.types.iter().map(|it| format!("'{}'", it.as_str()));
            let types: Vec<String> = types.collect();
            let types = types.join(", ");
            statement.push(format!(" AND {alias}.file_type IN ({types})"));
        }
        if let Some(from) = self.created_from {
            statement.push(format!(" AND {alias}.created_at >= "));
            statement.push_bind(from);
        }
        if let Some(before) = self.created_before {
            statement.push(format!(" AND {alias}.created_at < "));
            statement.push_bind(before);
        }
        if let Some(text) = &self.text {
            statement.push(" AND instr(f.search_name, ");
            statement.push_bind(text.to_lowercase()).push(") > 0");
        }
        if let Some(prefix) = &self.mime_prefix {
            let prefix = prefix.to_ascii_lowercase();
            statement.push(" AND substr(f.mime_type, 1, ");
            statement.push_bind(prefix.chars().count() as i64);
            statement.push(") = ").push_bind(prefix);
        }
    }

    /// Returns whether a file's name or exact media type decides.
    pub(super) fn reads_rows(&self) -> bool {
        self.text.is_some() || self.mime_prefix.is_some()
    }
}
