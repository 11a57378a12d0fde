//! Lines of the log for operators (`GET /api/system/log`): `level`, `after`, `limit` of a query, records.

use serde::Serialize;
use tracing::Level;
use url::form_urlencoded;
use utoipa::ToSchema;

use crate::{
    application::{answer::Timestamp, error::ApiError, field},
    log::{Line, LogRing, MOST_LINES},
};

/// Lines in one answer when the client names no `limit`.
const DEFAULT_LIMIT: usize = 500;
const LEVELS: [(&str, Level); 5] = [
    ("error", Level::ERROR),
    ("warn", Level::WARN),
    ("info", Level::INFO),
    ("debug", Level::DEBUG),
    ("trace", Level::TRACE),
];

/// Lines that a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogQuery {
    pub level: Level,
    /// The number of the last line that the client has.
    pub after: Option<u64>,
    pub limit: usize,
}

/// A line of the log.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLine {
    /// Grows by one with each line since the start of the service.
    number: u64,
    time: Timestamp,
    /// `error`, `warn`, `info`, `debug` or `trace`.
    level: &'static str,
    /// Module of the code that wrote it.
    target: &'static str,
    /// Message with its fields; secrets are replaced by `••••`.
    text: String,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LogLines {
    /// Oldest first.
    lines: Vec<LogLine>,
    /// The number of the newest line of any level, 0 without one; `after` of the next request when fewer than `limit` lines came.
    newest: u64,
    /// The number of the oldest line that is kept. Lines between `after` and it are lost to this client.
    oldest: u64,
}

impl From<Line> for LogLine {
    fn from(line: Line) -> Self {
        Self {
            number: line.number,
            time: Timestamp(line.at_ms),
            level: name(line.level),
            target: line.target,
            text: line.text,
        }
    }
}

/// Reads the query; an error names the parameter and what is allowed.
pub(crate) fn query(text: &str) -> Result<LogQuery, ApiError> {
    let mut query = LogQuery {
        level: Level::TRACE,
        after: None,
        limit: DEFAULT_LIMIT,
    };
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        match &*name {
            _ if value.is_empty() => {}
            "level" => query.level = level(&value)?,
            "after" => {
                let number = value.parse().ok();
                let wrong = || field::wrong("after", "the number of a line", &value);
                query.after = Some(number.ok_or_else(wrong)?);
            }
            "limit" => {
                let limit = value.parse().ok();
                let limit = limit.filter(|limit| (1..=MOST_LINES).contains(limit));
                query.limit = limit
                    .ok_or_else(|| invalid!("limit must be 1 to {MOST_LINES}, got `{value}`"))?;
            }
            _ => {}
        }
    }
    Ok(query)
}

/// Returns the number of the newest line.
pub(crate) fn newest(ring: &LogRing) -> u64 {
    ring.range().1
}

/// Returns the lines that a client wants.
pub(crate) fn lines(ring: &LogRing, query: &LogQuery) -> LogLines {
    let (oldest, newest) = ring.range();
    let lines = ring.lines(query.after, query.level, query.limit);
    LogLines {
        lines: lines.into_iter().map(LogLine::from).collect(),
        newest,
        oldest,
    }
}

impl LogLines {
    pub(crate) fn into_lines(self) -> Vec<LogLine> {
        self.lines
    }
}

impl LogLine {
    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

fn name(level: Level) -> &'static str {
    let found = LEVELS.iter().find(|(_, of)| *of == level);
    found.map_or("trace", |(name, _)| name)
}

fn level(text: &str) -> Result<Level, ApiError> {
    let found = LEVELS.iter().find(|(name, _)| *name == text);
    found
        .map(|(_, level)| *level)
        .ok_or_else(|| field::wrong("level", "error, warn, info, debug or trace", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_read_and_wrong_values_are_named() {
        let read = query("level=warn&after=7&limit=5000&x=1").unwrap();
        let expected = LogQuery {
            level: Level::WARN,
            after: Some(7),
            limit: 5_000,
        };
        assert_eq!(read, expected);
        assert_eq!(query("level=&after=").unwrap().limit, DEFAULT_LIMIT);
        for (text, name) in [
            ("level=loud", "level"),
            ("after=-1", "after"),
            ("limit=0", "limit"),
            ("limit=5001", "limit"),
        ] {
            let message = query(text).unwrap_err().to_string();
            assert!(
                message.starts_with(name) && message.contains("got `"),
                "{message}"
            );
        }
        assert_eq!(LEVELS.map(|(_, level)| name(level)), LEVELS.map(|it| it.0));
    }
}
