//! Many rows or ids in one SQL statement, as one JSON text that `json_each` reads; truncates foreign texts and removes
//! NUL.
//!
//! The statement's text is the same however many rows there are, so that it is prepared once. Ids are hexadecimal in it.

use serde::Serialize;
use uuid::Uuid;

use crate::Error;

/// An id as `unhex` reads it.
pub(crate) fn hex(id: Uuid) -> String {
    id.simple().to_string()
}

/// The rows as one JSON array.
pub(crate) fn json<T: Serialize>(rows: &[T]) -> Result<String, Error> {
    serde_json::to_string(rows)
        .map_err(|error| Error::Internal(format!("writing rows for a statement: {error}")))
}

/// The ids as one JSON array, each as `unhex` reads it.
pub(crate) fn ids<'a>(ids: impl IntoIterator<Item = &'a Uuid>) -> Result<String, Error> {
    let ids: Vec<String> = ids.into_iter().map(|id| hex(*id)).collect();
    json(&ids)
}

/// Truncates a foreign text to a number of characters, and removes what the database's JSON cannot carry.
pub(crate) fn text(text: &str, most_characters: usize) -> String {
    text.chars()
        .take(most_characters)
        .map(|character| match character {
            '\0' => char::REPLACEMENT_CHARACTER,
            other => other,
        })
        .collect()
}
