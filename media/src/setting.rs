//! Durations in settings (`200ms`, `1m 30s`, `2h`), in the configuration file and in the environment; their units.

pub mod size;

/// A [`std::time::Duration`] as text, for `#[serde(with = "sluice_media::setting::duration")]`.
///
/// Whole numbers with the units `d`, `h`, `m`, `s` and `ms`, largest first, each at most once, blanks between them or
/// not: "200ms", "10s", "1m 30s", "2h". A bare "0" needs no unit. The finest step is a millisecond.
pub mod duration {
    use std::{fmt, time::Duration};

    use serde::{
        Deserializer, Serializer,
        de::{Error, Unexpected, Visitor},
    };

    const EXPECTED: &str = "a duration such as \"200ms\", \"10s\", \"1m 30s\" or \"2h\" \
        (whole numbers with d, h, m, s, ms, largest first)";

    /// Each unit and its milliseconds, largest first.
    const UNITS: [(&str, u64); 5] = [
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
        ("ms", 1),
    ];

    /// Writes what [`deserialize`] reads.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format(*duration))
    }

    /// Reads a duration; the error names the value and the allowed forms.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        deserializer.deserialize_any(DurationVisitor)
    }

    struct DurationVisitor;

    impl Visitor<'_> for DurationVisitor {
        type Value = Duration;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str(EXPECTED)
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Duration, E> {
            parse(text).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
        }

        // The environment turns "0" into a number before it comes here; any other number lacks its unit.
        fn visit_u64<E: Error>(self, number: u64) -> Result<Duration, E> {
            match number {
                0 => Ok(Duration::ZERO),
                _ => Err(E::invalid_value(Unexpected::Unsigned(number), &self)),
            }
        }

        fn visit_i64<E: Error>(self, number: i64) -> Result<Duration, E> {
            match u64::try_from(number) {
                Ok(number) => self.visit_u64(number),
                Err(_) => Err(E::invalid_value(Unexpected::Signed(number), &self)),
            }
        }
    }

    /// Reads a duration; `None` when the text is none, or too long for 64 bits of milliseconds.
    pub fn parse(text: &str) -> Option<Duration> {
        let mut rest = text.trim();
        if rest == "0" {
            return Some(Duration::ZERO);
        }
        if rest.is_empty() {
            return None;
        }
        let mut total_ms = 0u64;
        let mut units = UNITS.iter();
        while !rest.is_empty() {
            let number;
            let unit;
            (number, rest) = split_while(rest, |character| character.is_ascii_digit());
            (unit, rest) = split_while(rest.trim_start(), |character| {
                character.is_ascii_alphabetic()
            });
            rest = rest.trim_start();
            let (_, unit_ms) = units.find(|(name, _)| *name == unit)?;
            let ms = number.parse::<u64>().ok()?.checked_mul(*unit_ms)?;
            total_ms = total_ms.checked_add(ms)?;
        }
        Some(Duration::from_millis(total_ms))
    }

    /// Writes a duration with its largest units first and without those that are zero; less than a millisecond is
    /// left out.
    pub fn format(duration: Duration) -> String {
        let mut left_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if left_ms == 0 {
            return "0s".to_owned();
        }
        let mut words = Vec::new();
        for (unit, unit_ms) in UNITS {
            let count = left_ms / unit_ms;
            left_ms %= unit_ms;
            if count > 0 {
                words.push(format!("{count}{unit}"));
            }
        }
        words.join(" ")
    }

    fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
        let end = text
            .find(|character| !keep(character))
            .unwrap_or(text.len());
        text.split_at(end)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;
    use serde::{Deserialize, Serialize};

    use super::duration;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Section {
        #[serde(with = "duration")]
        wait: Duration,
    }

    #[test]
    fn reads_every_form() {
        for (text, expected_ms) in [
            ("0", 0),
            ("0s", 0),
            ("200ms", 200),
            ("10s", 10_000),
            ("1m 30s", 90_000),
            ("1m30s", 90_000),
            (" 2 h ", 7_200_000),
            ("1d 1h 1m 1s 1ms", 90_061_001),
            ("90s", 90_000),
        ] {
            assert_eq!(
                duration::parse(text),
                Some(Duration::from_millis(expected_ms)),
                "{text}"
            );
        }
    }

    #[test]
    fn refuses_everything_else() {
        for text in [
            "",
            " ",
            "10",
            "s",
            "ten seconds",
            "-1s",
            "1.5s",
            "1e3s",
            "10 S",
            "10sec",
            "30s 1m",
            "1s 1s",
            "1m,30s",
            "1 0s",
            "٣s",
            "18446744073709551616ms",
            "18446744073709551615d",
            "18446744073709551615ms 1ms",
        ] {
            assert_eq!(duration::parse(text), None, "{text}");
        }
    }

    #[test]
    fn writes_the_shortest_text() {
        for (ms, expected) in [
            (0, "0s"),
            (200, "200ms"),
            (60_000, "1m"),
            (90_500, "1m 30s 500ms"),
            (172_800_000, "2d"),
        ] {
            assert_eq!(duration::format(Duration::from_millis(ms)), expected);
        }
        assert_eq!(duration::format(Duration::from_micros(999)), "0s");
        duration::format(Duration::MAX);
    }

    #[test]
    fn errors_name_the_value_and_the_forms() {
        for (json, named) in [
            (r#"{"wait":"soon"}"#, "\"soon\""),
            (r#"{"wait":10}"#, "`10`"),
            (r#"{"wait":-1}"#, "`-1`"),
        ] {
            let error = serde_json::from_str::<Section>(json)
                .unwrap_err()
                .to_string();
            assert!(error.contains(named) && error.contains("1m 30s"), "{error}");
        }
        assert!(serde_json::from_str::<Section>(r#"{"wait":null}"#).is_err());
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(ms in any::<u64>()) {
            let section = Section { wait: Duration::from_millis(ms) };
            let json = serde_json::to_string(&section).unwrap();
            prop_assert_eq!(serde_json::from_str::<Section>(&json).unwrap(), section);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            duration::parse(&text);
        }
    }
}
