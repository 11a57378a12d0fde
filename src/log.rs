//! The newest 5 000 lines of the log, kept in memory for `GET /api/system/log`: ring, secrets masked, length of a line, readers.
//!
//! A layer of `tracing` adds what passes `log.filter`. A line is masked before it is kept, since a message of a library or an
//! address in an error may carry what no code of this service writes. Adding takes a lock for a few lines and waits for no reader.

mod mask;

use std::{collections::VecDeque, fmt, sync::Arc};

use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::{
    Event, Level, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use mask::masked;

/// Lines that are kept.
pub const MOST_LINES: usize = 5_000;
/// Longest text of a line, in characters; the rest is cut.
const MOST_CHARACTERS: usize = 2_000;

/// A line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Grows by one with each line since the start of the process; the first is 1.
    pub number: u64,
    /// Unix milliseconds.
    pub at_ms: i64,
    pub level: Level,
    /// Module of the code that wrote it.
    pub target: &'static str,
    /// Message with its fields.
    pub text: String,
}

/// The ring. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LogRing(Arc<Ring>);

#[derive(Debug, Default)]
struct Ring {
    lines: RwLock<VecDeque<Line>>,
    /// The number of the newest line.
    newest: watch::Sender<u64>,
}

impl LogRing {
    /// Returns lines after the number `after` with at least this level, oldest first. Without `after` these are the newest
    /// `most`, with it the first `most`.
    pub fn lines(&self, after: Option<u64>, level: Level, most: usize) -> Vec<Line> {
        let lines = self.0.lines.read();
        // A more severe level is the lesser one.
        let wanted = lines.iter().filter(|line| line.level <= level);
        match after {
            Some(after) => {
                let newer = wanted.filter(|line| line.number > after);
                newer.take(most).cloned().collect()
            }
            None => {
                let mut newest: Vec<Line> = wanted.rev().take(most).cloned().collect();
                newest.reverse();
                newest
            }
        }
    }

    /// Returns the numbers of the oldest and the newest line; zeros without any.
    pub fn range(&self) -> (u64, u64) {
        let lines = self.0.lines.read();
        let number = |line: Option<&Line>| line.map_or(0, |line| line.number);
        (number(lines.front()), number(lines.back()))
    }

    /// Follows the number of the newest line.
    pub fn newest(&self) -> watch::Receiver<u64> {
        self.0.newest.subscribe()
    }

    #[cfg(test)]
    pub(crate) fn add_for_tests(&self, text: &str) {
        self.add(Level::INFO, "test", text);
    }

    fn add(&self, level: Level, target: &'static str, text: &str) {
        let text = cut(&masked(text));
        let mut lines = self.0.lines.write();
        let number = *self.0.newest.borrow() + 1;
        if lines.len() == MOST_LINES {
            lines.pop_front();
        }
        lines.push_back(Line {
            number,
            at_ms: sluice_store::now_ms(),
            level,
            target,
            text,
        });
        // Under the lock: numbers and lines have one order.
        self.0.newest.send_replace(number);
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The layer that adds events to the ring.
#[derive(Debug)]
pub struct RingLayer(pub LogRing);

impl<S: Subscriber + for<'span> LookupSpan<'span>> Layer<S> for RingLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut text = EventText::default();
        event.record(&mut text);
        let metadata = event.metadata();
        self.0
            .add(*metadata.level(), metadata.target(), &text.text());
    }
}

/// Text of an event: its message, then its fields.
#[derive(Default)]
struct EventText {
    message: String,
    fields: String,
}

impl EventText {
    fn text(self) -> String {
        match self.message.is_empty() {
            true => self.fields.trim_start().to_owned(),
            false => self.message + &self.fields,
        }
    }
}

impl Visit for EventText {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            name => self.fields += &format!(" {name}={value:?}"),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message = value.to_owned(),
            name => self.fields += &format!(" {name}={value:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn texts(lines: &[Line]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn events_become_lines_with_their_fields() {
        let ring = LogRing::default();
        let subscriber = tracing_subscriber::registry().with(RingLayer(ring.clone()));
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(protocol = "rtmp", port = 1935, "encoders can connect");
            tracing::warn!("slow");
            tracing::debug!(count = 2);
        });
        let all = ring.lines(None, Level::TRACE, 10);
        assert_eq!(
            texts(&all),
            [
                "encoders can connect protocol=\"rtmp\" port=1935",
                "slow",
                "count=2"
            ]
        );
        assert_eq!(all[0].number, 1);
        assert!(all[0].target.contains("log"));
        assert_eq!(texts(&ring.lines(None, Level::WARN, 10)), ["slow"]);
        assert_eq!(texts(&ring.lines(Some(1), Level::TRACE, 1)), ["slow"]);
        assert_eq!(texts(&ring.lines(None, Level::TRACE, 1)), ["count=2"]);
        assert_eq!(ring.range(), (1, 3));
    }

    #[test]
    fn the_oldest_lines_go_and_a_long_one_is_cut() {
        let ring = LogRing::default();
        for number in 0..MOST_LINES + 7 {
            ring.add(Level::INFO, "x", &number.to_string());
        }
        assert_eq!(ring.range(), (8, MOST_LINES as u64 + 7));
        assert_eq!(
            ring.lines(Some(0), Level::TRACE, usize::MAX).len(),
            MOST_LINES
        );
        ring.add(Level::INFO, "x", &"é".repeat(MOST_CHARACTERS + 1));
        let newest = ring.lines(None, Level::INFO, 1);
        assert_eq!(newest[0].text.chars().count(), MOST_CHARACTERS + 1);
        assert!(newest[0].text.ends_with('…'));
    }

    #[test]
    fn a_reader_that_waits_is_woken_and_secrets_are_masked() {
        let ring = LogRing::default();
        let mut newest = ring.newest();
        assert!(!newest.has_changed().unwrap());
        ring.add(Level::INFO, "x", "key svc_0123456789abcdef is unknown");
        assert!(newest.has_changed().unwrap());
        assert_eq!(*newest.borrow_and_update(), 1);
        let lines = ring.lines(None, Level::INFO, 1);
        assert!(!lines[0].text.contains("0123456789"), "{}", lines[0].text);
    }
}
