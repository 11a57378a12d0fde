//! File names of a live broadcast in playlists, URLs and on disk: `{msn}.m4s`, `{msn}.{part}.m4s`, `init{number}.mp4`.
//!
//! A name is unique within its broadcast for ever (media sequence numbers never fall), so whatever it answers may be
//! cached without end.

/// Kind of a name in a broadcast's folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MediaName {
    /// A whole segment, by media sequence number.
    Segment(u64),
    /// A part of a segment: media sequence number and index.
    Part(u64, u32),
    /// An init section, by number.
    Init(u32),
}

impl std::fmt::Display for MediaName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&match *self {
            Self::Segment(msn) => segment_name(msn),
            Self::Part(msn, part) => part_name(msn, part),
            Self::Init(number) => init_name(number),
        })
    }
}

/// Writes `{msn}.m4s`.
pub fn segment_name(msn: u64) -> String {
    format!("{msn}.m4s")
}

/// Writes `{msn}.{part}.m4s`.
pub fn part_name(msn: u64, part: u32) -> String {
    format!("{msn}.{part}.m4s")
}

/// Writes `init{number}.mp4`.
pub fn init_name(number: u32) -> String {
    format!("init{number}.mp4")
}

/// Parses a name. Only the exact form that the functions above write is valid: no sign, no leading zero, no path, so
/// that each file has one address.
pub fn parse(name: &str) -> Option<MediaName> {
    if let Some(number) = name.strip_prefix("init") {
        return Some(MediaName::Init(decimal(number.strip_suffix(".mp4")?)?));
    }
    let stem = name.strip_suffix(".m4s")?;
    match stem.split_once('.') {
        Some((msn, part)) => Some(MediaName::Part(decimal(msn)?, decimal(part)?)),
        None => Some(MediaName::Segment(decimal(stem)?)),
    }
}

/// Parses a number in its one form: digits, no leading zero.
pub(super) fn decimal<T: std::str::FromStr>(text: &str) -> Option<T> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if canonical { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_exact_form_is_a_name() {
        let cases = [
            ("", None),
            (".m4s", None),
            ("init.mp4", None),
            ("+1.m4s", None),
            ("01.m4s", None),
            ("1..m4s", None),
            ("1.2.3.m4s", None),
            ("../1.m4s", None),
            ("18446744073709551616.m4s", None),
            ("1.4294967296.m4s", None),
            ("init-1.mp4", None),
            ("1.mp4", None),
            ("0.m4s", Some(MediaName::Segment(0))),
            (
                "18446744073709551615.m4s",
                Some(MediaName::Segment(u64::MAX)),
            ),
            ("7.10.m4s", Some(MediaName::Part(7, 10))),
            ("init3.mp4", Some(MediaName::Init(3))),
        ];
        for (name, expected) in cases {
            assert_eq!(parse(name), expected, "{name:?}");
        }
    }

    #[test]
    fn names_are_read_back() {
        assert_eq!(parse(&segment_name(12)), Some(MediaName::Segment(12)));
        assert_eq!(parse(&part_name(12, 3)), Some(MediaName::Part(12, 3)));
        assert_eq!(parse(&init_name(4)), Some(MediaName::Init(4)));
    }
}
