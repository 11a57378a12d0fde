//! Query of `GET /api/events` and its stream: `after`, `before`, `order`, `types`; form of a cursor.

use sluice_store::{Direction, events::Event};
use url::form_urlencoded;

use crate::application::{
    error::ApiError, field::wrong, object::camel_case, order, webhooks::request::checked_type,
};

/// The last event that a client has seen: hexadecimal on the wire, opaque to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::http) struct Cursor(pub i64);

impl Cursor {
    pub(super) fn parse(field: &str, text: &str) -> Result<Self, ApiError> {
        u64::from_str_radix(text, 16)
            .ok()
            .and_then(|seq| i64::try_from(seq).ok())
            .filter(|_| !text.starts_with('+'))
            .map(Self)
            .ok_or_else(|| {
                wrong(
                    field,
                    "the nextCursor of an earlier answer or the id of an event of the stream",
                    text,
                )
            })
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}", self.0)
    }
}

/// Requested types; empty: all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct Types(Vec<String>);

impl Types {
    /// Names separated by commas.
    fn parse(text: &str) -> Result<Self, ApiError> {
        let names = text
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty());
        names
            .map(|name| checked_type("types", name))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn want(&self, event: &Event) -> bool {
        self.0.is_empty() || self.0.contains(&event.event_type)
    }
}

/// Query of the feed or the stream.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::http) struct Query {
    pub after: Option<Cursor>,
    /// With `order=desc` only.
    pub before: Option<Cursor>,
    pub is_newest_first: bool,
    pub types: Types,
}

impl Query {
    pub(in crate::http) fn parse(query: &str) -> Result<Self, ApiError> {
        let mut parsed = Self::default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            match camel_case(&name).as_str() {
                "after" if !value.is_empty() => {
                    parsed.after = Some(Cursor::parse("after", &value)?);
                }
                "before" if !value.is_empty() => {
                    parsed.before = Some(Cursor::parse("before", &value)?);
                }
                "order" if !value.is_empty() => {
                    parsed.is_newest_first = order::direction(&value)? == Direction::Descending;
                }
                "types" => parsed.types = Types::parse(&value)?,
                _ => {}
            }
        }
        match parsed.is_newest_first {
            true if parsed.after.is_some() => Err(invalid!(
                "after belongs to order=asc: with order=desc ask on with before"
            )),
            false if parsed.before.is_some() => Err(invalid!(
                "before belongs to order=desc: with order=asc ask on with after"
            )),
            _ => Ok(parsed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_as_it_was_given() {
        for seq in [0, 1, 255, i64::MAX] {
            let text = Cursor(seq).to_string();
            assert_eq!(Cursor::parse("after", &text).unwrap(), Cursor(seq));
        }
        for odd in ["", "-1", "+1", "x", "8000000000000000", "1 ", "evt_1"] {
            let error = Cursor::parse("Last-Event-ID", odd).unwrap_err().to_string();
            assert!(
                error.starts_with("Last-Event-ID must be") && error.ends_with(&format!("`{odd}`")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_query_names_types_and_a_cursor() {
        let query = Query::parse("after=ff&types=file.uploaded,%20conversion.failed,&x=1").unwrap();
        assert_eq!(query.after, Some(Cursor(255)));
        assert_eq!(query.types.0, ["file.uploaded", "conversion.failed"]);
        assert_eq!(Query::parse("after=&types=").unwrap(), Query::default());
        let newest = Query::parse("order=desc&before=ff").unwrap();
        assert!(newest.is_newest_first && newest.before == Some(Cursor(255)));
        for (odd, error) in [
            ("types=file.gone", "types has unknown names: `file.gone`"),
            ("after=newest", "after must be"),
            ("order=desc&before=newest", "before must be"),
            ("order=newest", "order must be asc or desc, got `newest`"),
            ("order=desc&after=ff", "after belongs to order=asc"),
            ("before=ff", "before belongs to order=desc"),
        ] {
            let rejection = Query::parse(odd).unwrap_err().to_string();
            assert!(rejection.starts_with(error), "{rejection}");
        }
    }
}
