//! `sort` and `order` of lists, and the cursors of lists that have several orders.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use sluice_store::{Cursor, Direction, Position, SortKey};
use uuid::Uuid;

use crate::application::{
    error::ApiError,
    field,
    page::{cursor_text, read_cursor},
};

/// First letters of cursors by their key, none of them a hexadecimal digit; a cursor without one is of a list by time.
const SIZE: char = 's';
const NAME: char = 'n';
const DURATION: char = 'l';

/// Order of a list, as far as its cursors distinguish orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SortedBy {
    Time,
    Name,
    Size,
    Duration,
}

/// Reads `order`.
pub(crate) fn direction(text: &str) -> Result<Direction, ApiError> {
    match text {
        "asc" => Ok(Direction::Ascending),
        "desc" => Ok(Direction::Descending),
        other => Err(field::wrong("order", "asc or desc", other)),
    }
}

/// Writes the cursor of the page after a row; by time as lists that have one order write it.
pub(crate) fn write_position(position: Position, sorted_by: SortedBy) -> String {
    let id = position.id;
    match (position.key, sorted_by) {
        (SortKey::Number(created_at), SortedBy::Time) => cursor_text(Cursor {
            created_at,
            id: position.id,
        }),
        (SortKey::Number(number), SortedBy::Duration) => number_text(DURATION, number, id),
        (SortKey::Number(number), _) => number_text(SIZE, number, id),
        (SortKey::Text(text), _) => {
            format!("{NAME}{}-{}", URL_SAFE_NO_PAD.encode(text), id.simple())
        }
    }
}

/// Reads a cursor of [`write_position`]; 400 for one of another order.
pub(crate) fn read_position(text: &str, sorted_by: SortedBy) -> Result<Position, ApiError> {
    let position = match sorted_by {
        SortedBy::Time => {
            let Cursor { created_at, id } = read_cursor(text)?;
            Some(Position {
                key: SortKey::Number(created_at),
                id,
            })
        }
        SortedBy::Size => number(text, SIZE),
        SortedBy::Duration => number(text, DURATION),
        SortedBy::Name => parts(text, NAME).and_then(|(name, id)| {
            let name = URL_SAFE_NO_PAD.decode(name).ok()?;
            let key = SortKey::Text(String::from_utf8(name).ok()?);
            Some(Position { key, id })
        }),
    };
    position.ok_or_else(|| {
        field::wrong(
            "cursor",
            "the nextCursor of an earlier answer with the same sort",
            text,
        )
    })
}

fn number_text(letter: char, number: i64, id: Uuid) -> String {
    // A duration may be negative: of what has none.
    let sign = if number < 0 { "~" } else { "" };
    format!("{letter}{sign}{:x}-{}", number.unsigned_abs(), id.simple())
}

fn number(text: &str, letter: char) -> Option<Position> {
    let (number, id) = parts(text, letter)?;
    let number = match number.strip_prefix('~') {
        Some(size) => i64::from_str_radix(size, 16).ok()?.checked_neg()?,
        None => i64::from_str_radix(number, 16).ok()?,
    };
    Some(Position {
        key: SortKey::Number(number),
        id,
    })
}

/// The key and the id of a cursor with this first letter. The text of a name may hold the separator.
fn parts(text: &str, letter: char) -> Option<(&str, Uuid)> {
    let (key, id) = text.strip_prefix(letter)?.rsplit_once('-')?;
    Some((key, Uuid::try_parse(id).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_as_it_was_given() {
        let number = SortKey::Number(1_795_000_000_123);
        let name = SortKey::Text("ü??>>~ 1.jpg".to_owned());
        for (key, sorted_by, others) in [
            (
                number.clone(),
                SortedBy::Time,
                [SortedBy::Name, SortedBy::Size],
            ),
            (number, SortedBy::Size, [SortedBy::Name, SortedBy::Time]),
            (name, SortedBy::Name, [SortedBy::Time, SortedBy::Size]),
            (
                SortKey::Number(-1),
                SortedBy::Duration,
                [SortedBy::Size, SortedBy::Time],
            ),
        ] {
            let id = Uuid::now_v7();
            let position = Position { key, id };
            let text = write_position(position.clone(), sorted_by);
            assert_eq!(read_position(&text, sorted_by).unwrap(), position);
            for other in others {
                let error = read_position(&text, other).unwrap_err().to_string();
                assert!(
                    error.starts_with("cursor must be the nextCursor"),
                    "{error}"
                );
            }
        }
        for odd in [
            "", "n", "n-", "n%-00", "szz-zz", "lzz-zz", "l~-1", "é", "n\u{0}-1",
        ] {
            for sorted_by in [
                SortedBy::Time,
                SortedBy::Name,
                SortedBy::Size,
                SortedBy::Duration,
            ] {
                assert!(read_position(odd, sorted_by).is_err(), "{odd}");
            }
        }
    }

    #[test]
    fn directions_are_read_and_other_words_named() {
        assert_eq!(direction("asc").unwrap(), Direction::Ascending);
        let error = direction("up").unwrap_err().to_string();
        assert_eq!(error, "order must be asc or desc, got `up`");
    }
}
