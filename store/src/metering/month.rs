//! Calendar months in UTC, the periods of monthly meters and plan limits.

use jiff::{Timestamp, civil::Date, tz::TimeZone};

/// A month of a year, as rows hold it: 202611 is November 2026.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, sqlx::Type)]
#[sqlx(transparent)]
pub struct Month(i64);

impl Month {
    pub(crate) fn number(self) -> i64 {
        self.0
    }

    /// The month of a time in milliseconds since 1970.
    pub fn of(now_ms: i64) -> Self {
        let time = Timestamp::from_millisecond(now_ms).unwrap_or(Timestamp::UNIX_EPOCH);
        let date = time.to_zoned(TimeZone::UTC).date();
        Self(i64::from(date.year()) * 100 + i64::from(date.month()))
    }

    /// Returns its first millisecond since 1970.
    pub fn begins_at(self) -> i64 {
        let year = i16::try_from(self.0 / 100).unwrap_or(9999);
        let month = i8::try_from(self.0 % 100).unwrap_or(1);
        Date::new(year, month, 1)
            .and_then(|date| date.to_zoned(TimeZone::UTC))
            .map_or(i64::MAX, |first| first.timestamp().as_millisecond())
    }

    /// The first millisecond of the month after it.
    pub fn ends_at(self) -> i64 {
        self.next().begins_at()
    }

    fn next(self) -> Self {
        match self.0 % 100 {
            12 => Self(self.0 + 89),
            _ => Self(self.0 + 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_knows_its_ends() {
        let cases = [
            (
                "2026-11-21T12:00:00Z",
                "2026-11-01T00:00:00Z",
                "2026-12-01T00:00:00Z",
            ),
            (
                "2026-12-31T23:59:59.999Z",
                "2026-12-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
            ),
            (
                "2027-01-01T00:00:00Z",
                "2027-01-01T00:00:00Z",
                "2027-02-01T00:00:00Z",
            ),
            (
                "2028-02-29T00:00:00Z",
                "2028-02-01T00:00:00Z",
                "2028-03-01T00:00:00Z",
            ),
        ];
        let ms = |text: &str| text.parse::<Timestamp>().unwrap().as_millisecond();
        for (at, begin, end) in cases {
            let month = Month::of(ms(at));
            assert_eq!(
                (month.begins_at(), month.ends_at()),
                (ms(begin), ms(end)),
                "{at}"
            );
        }
        assert!(Month::of(ms(cases[1].0)) < Month::of(ms(cases[2].0)));
    }
}
