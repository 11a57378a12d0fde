//! Query of `GET /api/files`: `q`, `type`, `tag`, `folderId`, `recursive`, `sort`, `createdAfter`, `limit`; default page, longest
//! search text.

use std::collections::HashSet;

use jiff::{Timestamp, civil::Date, tz::TimeZone};
use sluice_store::{
    Direction, Sorted as _,
    file_filter::{FileType, Filter, Place},
    file_list::{Order, Slice},
    files::File,
};
use unicode_normalization::UnicodeNormalization as _;
use url::form_urlencoded;
use uuid::Uuid;

use super::request::id_or_top;
use crate::application::{
    error::ApiError,
    field,
    object::camel_case,
    order::{self, SortedBy, read_position, write_position},
    page::{row_count, row_offset},
};

/// Files of one page when the client names no limit.
const DEFAULT_LIMIT: u32 = 50;
/// Longest `q`, `tag` or `mimePrefix`, in bytes.
const MAX_SEARCH: usize = 255;
/// Most `tag` parameters of a list.
const MAX_TAGS: usize = 10;

/// Query of a list of files.
#[derive(Debug)]
pub(crate) struct ListQuery {
    pub filter: Filter,
    /// The page; its `skip` is of no effect beside a cursor.
    pub slice: Slice,
    /// True when the files that match are counted.
    pub with_total: bool,
}

/// The query's words, before they are put together.
#[derive(Default)]
struct Asked {
    filter: Filter,
    folder: Option<Option<Uuid>>,
    is_recursive: bool,
    order: Order,
    direction: Option<Direction>,
    limit: Option<u32>,
    cursor: Option<String>,
    offset: u32,
    without_total: bool,
}

impl ListQuery {
    pub(crate) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut asked = Asked::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            asked.read(&camel_case(&name), &value)?;
        }
        asked.finish()
    }

    /// Returns the cursor of the page after this file.
    pub(crate) fn cursor_after(&self, last: &File) -> String {
        let order = self.slice.order;
        write_position(last.position(order), sorted_by(order))
    }
}

impl Asked {
    fn read(&mut self, name: &str, value: &str) -> Result<(), ApiError> {
        match name {
            "folderId" => self.folder = Some(id_or_top("folderId", value)?),
            "recursive" => self.is_recursive = field::flag("recursive", value)?,
            "total" => self.without_total = !value.is_empty() && !field::flag("total", value)?,
            "offset" => self.offset = row_offset(value)?,
            "limit" => self.limit = Some(row_count(value)?),
            _ if value.is_empty() => {}
            "q" => self.filter.text = Some(searched(value)?),
            "mimePrefix" => self.filter.mime_prefix = Some(bounded("mimePrefix", value)?),
            "type" => self.filter.types = types(value)?,
            "tag" => self.add_tag(value)?,
            "createdAfter" => self.filter.created_from = Some(time("createdAfter", value)?),
            "createdBefore" => self.filter.created_before = Some(time("createdBefore", value)?),
            "sort" => self.order = order_of(value)?,
            "order" => self.direction = Some(order::direction(value)?),
            "cursor" => self.cursor = Some(value.to_owned()),
            _ => {}
        }
        Ok(())
    }

    fn add_tag(&mut self, tag: &str) -> Result<(), ApiError> {
        if self.filter.tags.len() == MAX_TAGS {
            return Err(invalid!("tag may be given {MAX_TAGS} times at most"));
        }
        self.filter.tags.push(bounded("tag", tag)?);
        Ok(())
    }

    fn finish(mut self) -> Result<ListQuery, ApiError> {
        // A file has a tag once, so that a repeated one asks for nothing more.
        let mut seen = HashSet::new();
        self.filter.tags.retain(|tag| seen.insert(tag.clone()));
        self.filter.place = match (self.folder, self.is_recursive) {
            (None, _) | (Some(None), true) => Place::Anywhere,
            (Some(Some(folder)), true) => Place::Below(folder),
            (Some(folder), false) => Place::In(folder),
        };
        let after = match &self.cursor {
            Some(text) => Some(read_position(text, sorted_by(self.order))?),
            None => None,
        };
        let usual = match self.order {
            Order::Name => Direction::Ascending,
            Order::Created | Order::Size => Direction::Descending,
        };
        Ok(ListQuery {
            filter: self.filter,
            slice: Slice {
                order: self.order,
                direction: self.direction.unwrap_or(usual),
                limit: self.limit.unwrap_or(DEFAULT_LIMIT),
                skip: match after {
                    Some(_) => 0,
                    None => self.offset,
                },
                after,
            },
            with_total: !self.without_total,
        })
    }
}

fn sorted_by(order: Order) -> SortedBy {
    match order {
        Order::Created => SortedBy::Time,
        Order::Name => SortedBy::Name,
        Order::Size => SortedBy::Size,
    }
}

fn order_of(text: &str) -> Result<Order, ApiError> {
    match text {
        "created" => Ok(Order::Created),
        "name" => Ok(Order::Name),
        "size" => Ok(Order::Size),
        other => Err(field::wrong("sort", "created, name or size", other)),
    }
}

/// Types separated by commas.
fn types(text: &str) -> Result<Vec<FileType>, ApiError> {
    let known = |word: &str| FileType::ALL.into_iter().find(|it| it.as_str() == word);
    text.split(',')
        .map(|word| {
            known(word.trim()).ok_or_else(|| {
                let types = FileType::ALL.map(FileType::as_str).join(", ");
                let expected = format_args!("some of {types}, separated by commas");
                field::wrong("type", expected, word)
            })
        })
        .collect()
}

/// A time, or a day that begins at midnight UTC.
fn time(field: &str, text: &str) -> Result<i64, ApiError> {
    let day = || {
        Some(
            text.parse::<Date>()
                .ok()?
                .to_zoned(TimeZone::UTC)
                .ok()?
                .timestamp(),
        )
    };
    let at = text.parse::<Timestamp>().ok().or_else(day);
    at.map(Timestamp::as_millisecond).ok_or_else(|| {
        field::wrong(
            field,
            "a time such as 2026-12-24T18:00:00Z or a day such as 2026-12-24",
            text,
        )
    })
}

/// Normalises a search text to NFC, the form in which names are stored.
pub(crate) fn searched(text: &str) -> Result<String, ApiError> {
    Ok(bounded("q", text)?.nfc().collect())
}

fn bounded(field: &str, text: &str) -> Result<String, ApiError> {
    match text.len() <= MAX_SEARCH {
        true => Ok(text.to_owned()),
        false => Err(invalid!(
            "{field} must have at most {MAX_SEARCH} bytes, got {}",
            text.len()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_in_both_spellings() {
        let id = Uuid::now_v7();
        let query = ListQuery::parse(&format!(
            "folder_id={id}&q=%C3%9C&mime_prefix=image/&offset=7&x=1"
        ))
        .unwrap();
        assert_eq!(query.filter.place, Place::In(Some(id)));
        assert_eq!(query.filter.text.as_deref(), Some("Ü"));
        assert_eq!(query.filter.mime_prefix.as_deref(), Some("image/"));
        assert_eq!((query.slice.limit, query.slice.skip), (DEFAULT_LIMIT, 7));
        // Decomposed, as some file systems and browsers write it.
        let query = ListQuery::parse("q=u%CC%88").unwrap();
        assert_eq!(query.filter.text.as_deref(), Some("\u{fc}"));
        for (text, place) in [
            ("folderId=null", Place::In(None)),
            ("folderId=", Place::In(None)),
            ("", Place::Anywhere),
            ("recursive=true", Place::Anywhere),
            ("folderId=null&recursive=true", Place::Anywhere),
            (&format!("recursive=true&folderId={id}"), Place::Below(id)),
        ] {
            assert_eq!(
                ListQuery::parse(text).unwrap().filter.place,
                place,
                "{text}"
            );
        }
    }

    #[test]
    fn orders_have_their_usual_directions() {
        use Direction::{Ascending, Descending};
        for (text, order, direction) in [
            ("", Order::Created, Descending),
            ("sort=name", Order::Name, Ascending),
            ("sort=size", Order::Size, Descending),
            ("sort=size&order=asc", Order::Size, Ascending),
            ("order=asc", Order::Created, Ascending),
        ] {
            let slice = ListQuery::parse(text).unwrap().slice;
            assert_eq!((slice.order, slice.direction), (order, direction), "{text}");
        }
    }

    #[test]
    fn filters_are_read() {
        let query = ListQuery::parse(
            "type=image,%20video&tag=sea&tag=a,b&created_after=2026-12-24&createdBefore=2026-12-24T01:00:00%2B01:00&total=false",
        )
        .unwrap();
        assert_eq!(query.filter.types, [FileType::Image, FileType::Video]);
        assert_eq!(query.filter.tags, ["sea", "a,b"]);
        assert_eq!(query.filter.created_from, query.filter.created_before);
        assert!(!query.with_total && ListQuery::parse("total=").unwrap().with_total);
    }

    #[test]
    fn wrong_values_are_named() {
        for (query, named) in [
            ("folderId=x", "folderId must be"),
            ("offset=-1", "offset must be"),
            ("limit=101", "limit must be 1 to 100"),
            ("sort=date", "sort must be created, name or size"),
            ("order=down", "order must be asc or desc"),
            ("type=image,film", "type must be some of image, video"),
            ("createdAfter=yesterday", "createdAfter must be a time"),
            ("createdBefore=2026-13-01", "createdBefore must be a time"),
            ("recursive=1", "recursive must be true or false"),
            ("total=no", "total must be true or false"),
            ("cursor=x", "cursor must be the nextCursor"),
            ("sort=name&cursor=1-0", "cursor must be the nextCursor"),
            (&"tag=x&".repeat(11), "tag may be given 10 times"),
            (&format!("q={}", "x".repeat(256)), "q must have at most 255"),
        ] {
            let error = ListQuery::parse(query).unwrap_err().to_string();
            assert!(error.starts_with(named), "{error}");
        }
    }
}
