//! Requests about files: the query of a list, and the fields of a change.

use serde::Deserialize;
use sluice_store::{
    Page,
    files::{FilePatch, Filter},
};
use unicode_normalization::UnicodeNormalization as _;
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    error::ApiError,
    field::{self, given},
    filename,
    files::record::FocalPoint,
    object::camel_case,
    page::page,
};

/// Files of one page when the client names no limit.
const PAGE: u32 = 50;
const MAX_DESCRIPTION: usize = 2_000;
const MAX_TAGS: usize = 50;
const MAX_TAG: usize = 100;
/// Longest text that is searched for, in bytes.
const MAX_SEARCH: usize = 255;

/// Query of a list of files.
#[derive(Debug)]
pub(crate) struct ListQuery {
    pub filter: Filter,
    pub page: Page,
    /// Counted from the first file; of no effect beside a cursor.
    pub offset: u32,
}

impl ListQuery {
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let (mut filter, mut offset) = (Filter::default(), 0);
        let page = page(query, PAGE)?;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match camel_case(&name).as_str() {
                "folderId" => filter.folder = Some(id_or_top("folderId", &value)?),
                "q" if !value.is_empty() => filter.text = Some(searched(&value)?),
                "mimePrefix" if !value.is_empty() => {
                    filter.mime_prefix = Some(bounded("mimePrefix", &value)?);
                }
                "offset" => {
                    offset = value.parse().map_err(|_| {
                        ApiError::Invalid(format!("offset must be a whole number, got `{value}`"))
                    })?;
                }
                _ => {}
            }
        }
        if page.after.is_some() {
            offset = 0;
        }
        Ok(Self {
            filter,
            page,
            offset,
        })
    }
}

/// Parses a folder id; the word `null`, or nothing, is the top.
pub(crate) fn id_or_top(field: &str, text: &str) -> Result<Option<Uuid>, ApiError> {
    if text.is_empty() || text == "null" {
        return Ok(None);
    }
    let id = Uuid::try_parse(text).map_err(|_| {
        let shown = field::shorten(text);
        ApiError::Invalid(format!(
            "{field} must be the id of a folder or null, got `{shown}`"
        ))
    })?;
    Ok(Some(id))
}

/// Normalises a search text to NFC, the form in which names are stored.
fn searched(text: &str) -> Result<String, ApiError> {
    Ok(bounded("q", text)?.nfc().collect())
}

fn bounded(field: &str, text: &str) -> Result<String, ApiError> {
    match text.len() <= MAX_SEARCH {
        true => Ok(text.to_owned()),
        false => Err(ApiError::Invalid(format!(
            "{field} must have at most {MAX_SEARCH} bytes, got {}",
            text.len()
        ))),
    }
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
            tags: self.tags.map(checked_tags).transpose()?,
        })
    }
}

fn checked_point(FocalPoint { x, y }: FocalPoint) -> Result<(f64, f64), ApiError> {
    match [x, y].iter().all(|share| (0.0..=1.0).contains(share)) {
        true => Ok((x, y)),
        false => Err(ApiError::Invalid(format!(
            "focal_point must have x and y of 0 to 1, got {x} and {y}"
        ))),
    }
}

/// Trims tags and drops duplicates.
fn checked_tags(given: Vec<String>) -> Result<Vec<String>, ApiError> {
    if given.len() > MAX_TAGS {
        return Err(ApiError::Invalid(format!(
            "tags must have at most {MAX_TAGS} entries, got {}",
            given.len()
        )));
    }
    let mut tags: Vec<String> = Vec::with_capacity(given.len());
    for (index, text) in given.iter().enumerate() {
        let tag = text.trim();
        let length = tag.chars().count();
        if !(1..=MAX_TAG).contains(&length) || tag.chars().any(char::is_control) {
            return Err(ApiError::Invalid(format!(
                "tags[{index}] must have 1 to {MAX_TAG} characters and no control characters"
            )));
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
    fn queries_are_read_in_both_spellings() {
        let id = Uuid::now_v7();
        let query = ListQuery::parse(&format!(
            "folder_id={id}&q=%C3%9C&mime_prefix=image/&offset=7&x=1"
        ))
        .unwrap();
        assert_eq!(query.filter.folder, Some(Some(id)));
        assert_eq!(query.filter.text.as_deref(), Some("Ü"));
        assert_eq!(query.filter.mime_prefix.as_deref(), Some("image/"));
        assert_eq!((query.page.limit, query.offset), (PAGE, 7));
        // Decomposed, as some file systems and browsers write it.
        let query = ListQuery::parse("q=u%CC%88").unwrap();
        assert_eq!(query.filter.text.as_deref(), Some("\u{fc}"));
        for top in ["folderId=null", "folderId="] {
            assert_eq!(ListQuery::parse(top).unwrap().filter.folder, Some(None));
        }
        assert_eq!(ListQuery::parse("").unwrap().filter.folder, None);
        for (query, named) in [
            ("folderId=x", "folderId must be"),
            ("offset=-1", "offset must be"),
            ("limit=101", "limit must be 1 to 100"),
            (&format!("q={}", "x".repeat(256)), "q must have at most 255"),
        ] {
            let error = ListQuery::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }

    #[test]
    fn a_change_tells_null_from_nothing() {
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
