//! Sizes, counts, dates, durations and file types in words, for the share page. Pure.

use jiff::tz::TimeZone;

use crate::{application::answer::Timestamp, http::html};

/// Decimal units of sizes.
const UNITS: [&str; 5] = ["kB", "MB", "GB", "TB", "PB"];
/// Longest extension of a name that is shown as a type.
const MAX_EXTENSION: usize = 5;

/// Writes `0 bytes`, `1.4 MB`, `214 GB`: decimal units, as browsers show downloads. The unit stays on its number's line.
pub(super) fn size(bytes: i64) -> String {
    let bytes = bytes.max(0);
    if bytes < 1000 {
        return counted(bytes, "byte", "bytes");
    }
    let mut amount = bytes as f64 / 1000.0;
    let mut unit = 0;
    // What would be rounded up to 1000 is 1 of the next.
    while amount >= 999.5 && unit + 1 < UNITS.len() {
        amount /= 1000.0;
        unit += 1;
    }
    let decimals = usize::from(amount < 99.95);
    format!("{amount:.decimals$}\u{a0}{}", UNITS[unit])
}

/// Writes `1 file`, `17,000 files`.
pub(super) fn counted(count: impl Into<i128>, one: &str, many: &str) -> String {
    let count = count.into();
    let word = if count == 1 { one } else { many };
    format!("{} {word}", html::grouped(count, ','))
}

/// Writes `0:07`, `1:02:03`.
pub(super) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

/// Writes `29 Nov 2026`, in UTC.
pub(super) fn date(at: Timestamp) -> String {
    formatted(at, "%-d %b %Y")
}

/// Writes `29 Nov 2026, 14:05 UTC`.
pub(super) fn moment(at: Timestamp) -> String {
    formatted(at, "%-d %b %Y, %H:%M UTC")
}

/// Formats a time; 1970 for what no calendar has.
fn formatted(Timestamp(at_ms): Timestamp, format: &str) -> String {
    let at = jiff::Timestamp::from_millisecond(at_ms).unwrap_or_default();
    at.to_zoned(TimeZone::UTC).strftime(format).to_string()
}

/// Writes `JPG`, `MP4`: by the name, which people know files by, else by the media type.
pub(super) fn kind(filename: &str, mime_type: &str) -> String {
    let extension = filename
        .rsplit_once('.')
        .map(|(_, extension)| extension)
        .filter(|it| (1..=MAX_EXTENSION).contains(&it.len()))
        .filter(|it| it.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    match (extension, mime_type.split_once('/')) {
        (Some(extension), _) => extension.to_ascii_uppercase(),
        (None, Some(("image", _))) => "Image".into(),
        (None, Some(("video", _))) => "Video".into(),
        (None, Some(("audio", _))) => "Audio".into(),
        (None, _) if mime_type == "application/pdf" => "PDF".into(),
        (None, _) => "File".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_figures_at_most() {
        let cases = [
            (0, "0 bytes"),
            (1, "1 byte"),
            (999, "999 bytes"),
            (1000, "1.0 kB"),
            (99_949, "99.9 kB"),
            (99_960, "100 kB"),
            (999_499, "999 kB"),
            (999_500, "1.0 MB"),
            (10_200_000_000, "10.2 GB"),
            (i64::MAX, "9223 PB"),
            (-1, "0 bytes"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(size(bytes).replace('\u{a0}', " "), expected, "{bytes}");
        }
    }

    #[test]
    fn counts_are_grouped() {
        let cases = [
            (0, "0 files"),
            (1, "1 file"),
            (999, "999 files"),
            (17_000, "17,000 files"),
            (1_234_567, "1,234,567 files"),
        ];
        for (count, expected) in cases {
            assert_eq!(counted(count, "file", "files"), expected);
        }
        for (seconds, expected) in [
            (0.4, "0:00"),
            (7.0, "0:07"),
            (59.6, "1:00"),
            (3723.0, "1:02:03"),
        ] {
            assert_eq!(duration(seconds), expected);
        }
    }

    #[test]
    fn types_are_known_by_their_extension() {
        let cases = [
            ("DSC_0001.jpg", "image/jpeg", "JPG"),
            ("archive.tar.gz", "application/gzip", "GZ"),
            ("no extension", "image/png", "Image"),
            (".hidden", "text/plain", "File"),
            ("what.is this", "video/mp4", "Video"),
            ("dot.", "application/pdf", "PDF"),
            ("a.<b>", "text/html", "File"),
        ];
        for (filename, mime_type, expected) in cases {
            assert_eq!(kind(filename, mime_type), expected, "{filename}");
        }
    }

    #[test]
    fn times_are_said_in_utc() {
        let at = Timestamp(1_795_961_100_000);
        assert_eq!(date(at), "29 Nov 2026");
        assert_eq!(moment(at), "29 Nov 2026, 14:05 UTC");
    }
}
