//! Many rows or ids in one SQL statement, as one JSON text that `json_each` reads; truncates foreign texts and removes
//! NUL.
//!
//! The statement's text is the same however many rows there are, so that it is prepared once. Ids are hexadecimal in it.

use serde::{Serialize, de::DeserializeOwned};
use sqlx::{Database, Decode, Type, error::BoxDynError};
use uuid::Uuid;

use crate::{
    Error,
    jobs::Allowance,
    statement::{Bind, Kind, Value},
    video::CustomRendition,
};

/// A value that is kept as JSON in a text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Json<T>(pub T);

impl<T: Serialize> Bind for Json<T> {
    const KIND: Kind = Kind::Text;

    fn value(self) -> Value {
        match serde_json::to_string(&self.0) {
            Ok(text) => Value::Text(text.into()),
            Err(error) => Value::Unwritable(error.to_string()),
        }
    }
}

impl<DB: Database, T> Type<DB> for Json<T>
where
    String: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        String::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        String::compatible(ty)
    }
}

impl<'r, DB: Database, T: DeserializeOwned> Decode<'r, DB> for Json<T>
where
    &'r str: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        let text = <&str as Decode<DB>>::decode(value)?;
        Ok(Self(serde_json::from_str(text)?))
    }
}

/// Column of JSON, from which a field is made by `#[sqlx(try_from = "JsonText")]`.
#[derive(Debug, sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct JsonText(Option<String>);

macro_rules! from_json {
    ($($type:ty),+ $(,)?) => {
        $(impl TryFrom<JsonText> for $type {
            type Error = serde_json::Error;

            fn try_from(column: JsonText) -> Result<Self, serde_json::Error> {
                serde_json::from_str(column.0.as_deref().unwrap_or("null"))
            }
        })+
    };
}

from_json!(
    Vec<String>,
    serde_json::Value,
    Option<serde_json::Value>,
    Allowance,
    Vec<CustomRendition>,
);

/// Column of numbers that may be null and are narrower than 64 bits, from which a field is made by
/// `#[sqlx(try_from = "Narrow")]`.
#[derive(Debug, sqlx::Type)]
#[sqlx(transparent)]
pub(crate) struct Narrow(Option<i64>);

macro_rules! from_narrow {
    ($($type:ty),+) => {
        $(impl TryFrom<Narrow> for Option<$type> {
            type Error = std::num::TryFromIntError;

            fn try_from(column: Narrow) -> Result<Self, Self::Error> {
                column.0.map(<$type>::try_from).transpose()
            }
        })+
    };
}

from_narrow!(u8, u16, u32);

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
