//! Fields of `PATCH /api/files/{id}` and of files to fetch: bounds of `tags`, `description`, `filename`, `focalPoint`.

use serde::Deserialize;
use sluice_store::files::FilePatch;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    error::ApiError,
    field::{self, given},
    filename,
    files::record::FocalPoint,
};

/// Longest `description`, in characters.
const MAX_DESCRIPTION: usize = 2_000;
/// Most tags of one file.
pub(crate) const MAX_TAGS: usize = 50;
/// Longest tag, in characters.
const MAX_TAG: usize = 100;

/// Parses a folder id; the word `null`, or nothing, is the top.
pub(crate) fn id_or_top(field: &str, text: &str) -> Result<Option<Uuid>, ApiError> {
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    field::id(field, "the id of a folder or null", text).map(Some)
}

/// A file to store that the service fetches.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileToFetch {
    /// http or https.
    pub(crate) source_url: String,
    /// Folder of the file; the top when missing.
    pub(crate) folder_id: Option<Uuid>,
}

/// The fields to change; null empties one.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChangeFile {
    /// 1 to 255 bytes, without path separators and control characters.
    filename: Option<String>,
    /// Null: to the top.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<Uuid>)]
    folder_id: Option<Option<Uuid>>,
    /// The point that crops keep; delivered variants are made again.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<FocalPoint>)]
    focal_point: Option<Option<FocalPoint>>,
    /// At most 2000 characters.
    #[serde(deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    description: Option<Option<String>>,
    /// At most 50 of 1 to 100 characters.
    tags: Option<Vec<String>>,
}

impl ChangeFile {
    pub(crate) fn checked(self) -> Result<FilePatch, ApiError> {
        let filename = self
            .filename
            .map(|name| filename::checked("filename", &name));
        let focal_point = match self.focal_point {
            Some(Some(point)) => Some(Some(checked_point(point)?)),
            Some(None) => Some(None),
            None => None,
        };
        Ok(FilePatch {
            filename: filename.transpose()?,
            folder_id: self.folder_id,
            focal_point,
            description: field::description(self.description, MAX_DESCRIPTION)?,
            tags: match self.tags {
                Some(tags) => Some(checked_tags("tags", tags)?),
                None => None,
            },
        })
    }
}

fn checked_point(FocalPoint { x, y }: FocalPoint) -> Result<(f64, f64), ApiError> {
    match [x, y].iter().all(|share| (0.0..=1.0).contains(share)) {
        true => Ok((x, y)),
        false => Err(invalid!(
            "focal_point must have x and y of 0 to 1, got {x} and {y}"
        )),
    }
}

/// Trims tags and drops duplicates; `name` is the field's.
pub(crate) fn checked_tags(name: &str, given: Vec<String>) -> Result<Vec<String>, ApiError> {
    if given.len() > MAX_TAGS {
        return Err(invalid!(
            "{name} must have at most {MAX_TAGS} entries, got {}",
            given.len()
        ));
    }
    let mut tags: Vec<String> = Vec::with_capacity(given.len());
    for (index, text) in given.iter().enumerate() {
        let tag = text.trim();
        let length = tag.chars().count();
        if !(1..=MAX_TAG).contains(&length) || tag.chars().any(char::is_control) {
            return Err(invalid!(
                "{name}[{index}] must have 1 to {MAX_TAG} characters and no control characters"
            ));
        }
        if !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    Ok(tags)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_distinguishes_null_from_nothing() {
        let read = |body| {
            serde_json::from_value::<ChangeFile>(body)
                .unwrap()
                .checked()
        };
        let nothing = read(json!({})).unwrap();
        assert!(nothing.folder_id.is_none() && nothing.focal_point.is_none());
        let emptied =
            read(json!({"folderId": null, "focalPoint": null, "description": null})).unwrap();
        assert_eq!(emptied.folder_id, Some(None));
        assert_eq!(emptied.focal_point, Some(None));
        assert_eq!(emptied.description, Some(None));
        let tagged =
            read(json!({"tags": [" a ", "b", "a"], "focalPoint": {"x": 0, "y": 1}})).unwrap();
        assert_eq!(tagged.tags.unwrap(), ["a", "b"]);
        assert_eq!(tagged.focal_point, Some(Some((0.0, 1.0))));
        for (body, named) in [
            (json!({"filename": "a/b"}), "filename must"),
            (
                json!({"focalPoint": {"x": 1.01, "y": 0}}),
                "focal_point must",
            ),
            (json!({"tags": [""]}), "tags[0] must"),
            (json!({"tags": vec!["t"; 51]}), "tags must"),
            (json!({"description": "x".repeat(2001)}), "description must"),
        ] {
            let error = read(body).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
