//! Hash of a blob, the SHA-256 of its bytes: its form as text, in JSON and in database rows.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sqlx::{Database, Decode, Type, error::BoxDynError};

use crate::{
    Error,
    credentials::hexadecimal,
    statement::{Bind, Kind, Value},
};

/// SHA-256 of a blob's bytes; 64 hexadecimal digits as text, 32 bytes in rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash(pub(crate) [u8; 32]);

impl BlobHash {
    /// Wraps a digest that was computed elsewhere.
    pub fn from_bytes(digest: [u8; 32]) -> Self {
        Self(digest)
    }

    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hexadecimal(&self.0))
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobHash({self})")
    }
}

impl FromStr for BlobHash {
    type Err = Error;

    /// 64 lower-case hexadecimal digits, as [`fmt::Display`] writes them.
    fn from_str(text: &str) -> Result<Self, Error> {
        let rejection = || Error::Invalid(format!("expected 64 hexadecimal digits, got {text:?}"));
        let digits: &[u8; 64] = text.as_bytes().try_into().map_err(|_| rejection())?;
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(digits.chunks_exact(2)) {
            let (high, low) = (nibble(pair[0]), nibble(pair[1]));
            *byte = high
                .zip(low)
                .map(|(h, l)| h << 4 | l)
                .ok_or_else(rejection)?;
        }
        Ok(Self(digest))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl Serialize for BlobHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for BlobHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl Bind for BlobHash {
    const KIND: Kind = Kind::Bytes;

    fn value(self) -> Value {
        Value::Bytes(self.0.to_vec())
    }
}

impl<DB: Database> Type<DB> for BlobHash
where
    Vec<u8>: Type<DB>,
{
    fn type_info() -> DB::TypeInfo {
        Vec::type_info()
    }

    fn compatible(ty: &DB::TypeInfo) -> bool {
        Vec::compatible(ty)
    }
}

impl<'r, DB: Database> Decode<'r, DB> for BlobHash
where
    &'r [u8]: Decode<'r, DB>,
{
    fn decode(value: DB::ValueRef<'r>) -> Result<Self, BoxDynError> {
        let bytes = <&[u8] as Decode<DB>>::decode(value)?;
        Ok(Self(bytes.try_into()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = BlobHash(std::array::from_fn(|n| (n * 37) as u8));
        let text = hash.to_string();
        assert_eq!(text.len(), 64);
        assert_eq!(text.parse::<BlobHash>().unwrap(), hash);
        let upper = text.to_uppercase();
        for odd in [
            "",
            "ab",
            &text[1..],
            &format!("{text}0"),
            &upper,
            &"g".repeat(64),
        ] {
            assert!(odd.parse::<BlobHash>().is_err(), "{odd}");
        }
    }
}
