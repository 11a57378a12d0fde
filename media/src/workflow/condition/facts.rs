//! Facts of a file that conditions compare: MIME type, name, extension, size, dimensions, duration, upload source.

use serde_json::Value;

use super::{Field, Group, field::Property};
use crate::operation::shorten;

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

    /// Returns a name without its extension.
    pub fn stem(filename: &str) -> &str {
        match extension(filename) {
            Some(_) => filename.rsplit_once('.').map_or(filename, |(stem, _)| stem),
            None => filename,
        }
    }

    /// Returns the value of a property in words: `width is 4032`, `there is no width`.
    pub fn in_words(&self, field: Field) -> String {
        match field.of(self) {
            Some(property) => format!("{} is {}", field.name(), shorten(&property.text())),
            None => format!("there is no {}", field.name()),
        }
    }

    /// Returns the values of the properties that a condition uses, by their names; null for one that is missing.
    pub fn of(&self, group: &Group) -> Value {
        let value = |field: Field| match field.of(self) {
            None => Value::Null,
            Some(Property::Text(text)) => text.into(),
            // Whole numbers are written without a fraction.
            Some(Property::Number(number)) if number.fract() == 0.0 => (number as i64).into(),
            Some(Property::Number(number)) => number.into(),
        };
        let fields = group.fields().into_iter();
        fields
            .map(|field| (field.name().to_owned(), value(field)))
            .collect()
    }

    /// Returns whether both have the same value of a property, or both none.
    pub fn agree(&self, other: &Self, field: Field) -> bool {
        field.of(self) == field.of(other)
    }

    /// Takes a property away.
    pub fn clear(&mut self, field: Field) {
        match field {
            Field::Mime => self.mime = None,
            Field::Filename => self.filename = None,
            Field::Extension => self.extension = None,
            Field::SizeBytes => self.size_bytes = None,
            Field::Width => self.width = None,
            Field::Height => self.height = None,
            Field::Duration => self.duration_s = None,
            Field::UploadSource => self.upload_source = None,
        }
    }
}

/// Returns the text behind the last dot of a name, in lower case; nothing for `photo`, `photo.` and `.profile`.
fn extension(filename: &str) -> Option<String> {
    let (stem, extension) = filename.rsplit_once('.')?;
    (!stem.is_empty() && !extension.is_empty()).then(|| extension.to_lowercase())
}
