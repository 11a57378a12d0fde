//! Line of `sluice webhooks listen` for an event: time, type, id, subject; longest text shown. Pure.
//!
//! Names in it come from anyone who uploaded a file: what could steer a terminal is not shown.

use jiff::{Timestamp, tz::TimeZone};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most characters of a text of an event that are shown.
const SHOWN_CHARS: usize = 120;

/// An event as its receiver reads it (specification §2).
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Envelope {
    pub(super) id: String,
    #[serde(rename = "type")]
    pub(super) event_type: String,
    /// Unix seconds.
    created: i64,
    data: Map<String, Value>,
}

impl Envelope {
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(bytes)
    }

    /// Formats one line: time, type, id and subject.
    pub(super) fn line(&self, zone: &TimeZone) -> String {
        let created = Timestamp::from_second(self.created).unwrap_or_default();
        format!(
            "{}  {}  {}  {}",
            created.to_zoned(zone.clone()).strftime("%F %T"),
            shown(&self.event_type),
            shown(&self.id),
            self.about()
        )
    }

    /// Its subject's name, what it belongs to, and what went wrong.
    fn about(&self) -> String {
        let mut parts = Vec::new();
        parts.extend(self.text(&["filename", "name"]));
        parts.extend(self.progress());
        parts.extend(self.text(&["tool"]));
        parts.extend(self.subject());
        parts.extend(
            self.text(&["error", "reason"])
                .map(|why| format!("– {why}")),
        );
        parts.join("  ")
    }

    /// The first of these fields that holds a text.
    fn text(&self, names: &[&str]) -> Option<String> {
        let mut texts = names.iter().filter_map(|name| self.data.get(*name));
        texts.find_map(Value::as_str).map(shown)
    }

    fn progress(&self) -> Option<String> {
        let number = |name| self.data.get(name).and_then(Value::as_u64);
        Some(format!("{} of {}", number("completed")?, number("total")?))
    }

    /// The id that the event is about, with the word for what it is.
    fn subject(&self) -> Option<String> {
        [
            ("jobId", "job"),
            ("runId", "run"),
            ("streamId", "stream"),
            ("liveInputId", "live input"),
            ("fileId", "file"),
        ]
        .into_iter()
        .find_map(|(field, word)| Some(format!("({word} {})", self.text(&[field])?)))
    }
}

/// Returns a foreign text without characters that could change the terminal.
pub(super) fn shown(text: &str) -> String {
    super::super::shown(text, SHOWN_CHARS)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn line(envelope: &Value) -> String {
        Envelope::parse(envelope.to_string().as_bytes())
            .unwrap()
            .line(&TimeZone::UTC)
    }

    #[test]
    fn a_line_says_what_happened_to_what() {
        for (event_type, data, about) in [
            (
                "file.uploaded",
                json!({"fileId": "f1", "filename": "a b.jpg", "sizeBytes": 3, "folderId": null, "sequence": 1}),
                "a b.jpg  (file f1)",
            ),
            (
                "conversion.progress",
                json!({"jobId": "j1", "filename": "a.jpg", "completed": 2, "total": 5, "error": null}),
                "a.jpg  2 of 5  (job j1)",
            ),
            (
                "media.tool.failed",
                json!({"tool": "trim", "jobId": null, "filename": null, "error": "too long"}),
                "trim  – too long",
            ),
            (
                "live.input.recording.ready",
                json!({"name": "Studio", "liveInputId": "l1", "fileId": "f1"}),
                "Studio  (live input l1)",
            ),
            ("webhook.test", json!({}), ""),
            (
                "new.type",
                json!({"filename": 7, "name": "n", "completed": -1, "total": "x"}),
                "n",
            ),
        ] {
            let envelope =
                json!({"id": "evt_1", "type": event_type, "created": 1_795_276_800, "data": data});
            assert_eq!(
                line(&envelope),
                format!("2026-11-21 16:00:00  {event_type}  evt_1  {about}")
            );
        }
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let name = "\u{1b}[2J\u{9b}31m\r\n\u{7f}.jpg";
        let envelope = json!({"id": "evt_\u{7}", "type": "a\u{8}", "created": i64::MAX, "data": {"filename": name, "error": "x".repeat(10_000)}});
        let line = line(&envelope);
        assert!(!line.contains(char::is_control), "{line:?}");
        assert!(line.chars().count() < 300, "{line}");
        assert!(line.ends_with('…'), "{line}");
    }

    #[test]
    fn what_is_no_envelope_is_rejected() {
        for text in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"id":1}"#,
            r#"{"id":"e","type":"t","created":1.5,"data":{}}"#,
        ] {
            assert!(Envelope::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
