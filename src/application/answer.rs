//! Shared forms of answers: `{"success": true}`, ISO 8601 times with milliseconds, dates.

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// `{"success": true}`: the record is deleted.
#[derive(Debug, Serialize, ToSchema)]
pub struct Success {
    success: bool,
}

impl Default for Success {
    fn default() -> Self {
        Self { success: true }
    }
}

/// Milliseconds since 1970, on the wire as ISO 8601 in UTC with milliseconds. The OpenAPI document knows its form by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp(pub i64);

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{time:.3}")
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Days since 1970 (UTC), on the wire as `2026-11-21`. The OpenAPI document knows its form by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date(pub i64);

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let time = jiff::Timestamp::from_second(self.0.saturating_mul(24 * 60 * 60));
        let time = time.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
        write!(f, "{}", time.strftime("%F"))
    }
}

impl Serialize for Date {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_iso_8601_in_utc() {
        assert_eq!(
            Timestamp(1_795_000_000_120).to_string(),
            "2026-11-18T11:06:40.120Z"
        );
        assert_eq!(Timestamp(0).to_string(), "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn days_are_dates() {
        for (day, expected) in [
            (0, "1970-01-01"),
            (20_778, "2026-11-21"),
            (i64::MAX, "1970-01-01"),
        ] {
            assert_eq!(Date(day).to_string(), expected);
        }
    }
}
