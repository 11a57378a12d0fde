//! Cues of captions: times with hours up to four digits, settings and text, as WebVTT writes them.

use std::fmt::Write as _;

use super::Problem;

/// A cue as WebVTT writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cue {
    pub identifier: Option<String>,
    pub start_ms: u64,
    pub end_ms: u64,
    /// Settings as they are written behind the times, checked.
    pub settings: String,
    /// Lines of cue text (W3C WebVTT §4.2), none of them empty.
    pub text: Vec<String>,
}

impl Cue {
    pub fn write(&self, text: &mut String) {
        if let Some(identifier) = &self.identifier {
            text.push_str(identifier);
            text.push('\n');
        }
        let (start, end) = (Time(self.start_ms), Time(self.end_ms));
        write!(text, "{start} --> {end}").expect("a string takes all");
        if !self.settings.is_empty() {
            text.push(' ');
            text.push_str(&self.settings);
        }
        text.push('\n');
        for line in &self.text {
            text.push_str(line);
            text.push('\n');
        }
    }
}

/// Text between start and end.
pub(super) const ARROW: &str = "-->";

/// Reads the two times of a line `{start} --> {end} {more}`, and what follows them.
pub(super) fn times(
    (number, line): (usize, &str),
    time: impl Fn(&str) -> Option<u64>,
) -> Result<(u64, u64, &str), Problem> {
    let (start, rest) = line
        .split_once(ARROW)
        .ok_or_else(|| Problem::new(number, "expected the times of a cue, `start --> end`"))?;
    let rest = rest.trim();
    let (end, more) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    let read = |text: &str| {
        let shown: String = text.chars().take(30).collect();
        time(text).ok_or_else(|| Problem::new(number, format!("`{shown}` is no time")))
    };
    let (start_ms, end_ms) = (read(start.trim())?, read(end)?);
    match start_ms < end_ms {
        true => Ok((start_ms, end_ms, more.trim())),
        false => Err(Problem::new(number, "a cue must end after its start")),
    }
}

/// Milliseconds of hours (up to four digits), minutes, seconds and milliseconds.
pub(super) fn milliseconds(hours: &str, minutes: &str, seconds: &str, ms: u64) -> Option<u64> {
    let number = |text: &str, digits: std::ops::RangeInclusive<usize>| -> Option<u64> {
        let is_plain =
            digits.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
        is_plain.then(|| text.parse().ok()).flatten()
    };
    let (minutes, seconds) = (number(minutes, 2..=2)?, number(seconds, 2..=2)?);
    let hours = number(hours, 1..=4)?;
    (minutes < 60 && seconds < 60).then(|| ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms)
}

/// A time of milliseconds, as WebVTT writes it.
#[derive(Clone, Copy, Debug)]
pub struct Time(pub u64);

impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (seconds, ms) = (self.0 / 1_000, self.0 % 1_000);
        let (minutes, hours) = (seconds / 60 % 60, seconds / 3_600);
        write!(f, "{hours:02}:{minutes:02}:{:02}.{ms:03}", seconds % 60)
    }
}
