//! Rendered variant, ready to be sent: body, `Content-Type`, `ETag`, `Last-Modified`, `Cache-Tag`.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use bytes::Bytes;
use jiff::{Timestamp, fmt::rfc2822, tz::TimeZone};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Approximate cost of an entry beside its body, in bytes.
const OVERHEAD: usize = 512;

/// A variant. Header values are made once and shared by all answers.
#[derive(Debug)]
pub struct Entry {
    pub file_id: Uuid,
    pub account_id: Uuid,
    pub body: Bytes,
    pub content_type: Bytes,
    /// Strong: from the hash of the body. With its quotes.
    pub etag: Bytes,
    /// RFC 9110 §5.6.7.
    pub last_modified: Bytes,
    /// `asset:{fileId}`
    pub cache_tag: Bytes,
    pub(super) modified_ms: i64,
    used: AtomicBool,
}

impl Entry {
    pub(super) fn new(
        file_id: Uuid,
        account_id: Uuid,
        content_type: &str,
        body: Bytes,
        modified_ms: i64,
    ) -> Self {
        Self {
            file_id,
            account_id,
            content_type: Bytes::copy_from_slice(content_type.as_bytes()),
            etag: etag(&body).into(),
            last_modified: http_date(modified_ms).into(),
            cache_tag: format!("asset:{file_id}").into(),
            modified_ms,
            body,
            used: AtomicBool::new(false),
        }
    }

    /// Returns `last_modified` in Unix milliseconds.
    pub fn modified_ms(&self) -> i64 {
        self.modified_ms
    }

    /// Bytes of memory it takes.
    pub(super) fn weight(&self) -> usize {
        self.body.len() + OVERHEAD
    }

    /// Notes a use, for the memory tier's clock.
    pub(super) fn note_use(&self) {
        // Looking first keeps the cache line shared between the cores.
        if !self.used.load(Relaxed) {
            self.used.store(true, Relaxed);
        }
    }

    /// Returns whether it was used since the clock's hand last passed.
    pub(super) fn pass(&self) -> bool {
        self.used.swap(false, Relaxed)
    }
}

/// 128 bits of the body's SHA-256.
fn etag(body: &[u8]) -> String {
    let digest = Sha256::digest(body);
    let mut text = String::with_capacity(34);
    text.push('"');
    for byte in &digest[..16] {
        text.push_str(&format!("{byte:02x}"));
    }
    text.push('"');
    text
}

fn http_date(unix_ms: i64) -> String {
    let time = Timestamp::from_millisecond(unix_ms).unwrap_or(Timestamp::UNIX_EPOCH);
    rfc2822::DateTimePrinter::new()
        .timestamp_to_rfc9110_string(&time)
        .unwrap_or_else(|_| time.to_zoned(TimeZone::UTC).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_values_follow_the_rfc() {
        let entry = Entry::new(
            Uuid::nil(),
            Uuid::nil(),
            "image/jpeg",
            Bytes::from_static(b"abc"),
            784_111_777_000,
        );
        // RFC 9110 §5.6.7, and FIPS 180-2, appendix B.1.
        assert_eq!(entry.last_modified, "Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(entry.etag, "\"ba7816bf8f01cfea414140de5dae2223\"");
        assert_eq!(
            entry.cache_tag,
            "asset:00000000-0000-0000-0000-000000000000"
        );
    }

    #[test]
    fn the_clock_sees_each_use_once() {
        let entry = Entry::new(Uuid::nil(), Uuid::nil(), "a/b", Bytes::new(), 0);
        assert!(!entry.pass());
        entry.note_use();
        assert!(entry.pass());
        assert!(!entry.pass());
    }
}
