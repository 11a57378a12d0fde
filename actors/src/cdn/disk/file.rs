//! Format of a variant in the disk cache and between nodes: magic number `SLV1`, length of the head, head as JSON with checksum and state of
//! the source, body.

use std::{fs, io, path::Path};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::cdn::{entry::Entry, source::ImageSource};

/// Magic number and version of the format: a file with another one is a miss.
const MAGIC: &[u8; 4] = b"SLV1";
const LENGTH: usize = MAGIC.len() + 4;

#[derive(Serialize, Deserialize)]
struct Head {
    account_id: Uuid,
    request: String,
    /// State of the source, see [`ImageSource::stamp`].
    stamp: String,
    content_type: String,
    modified_ms: i64,
    body_bytes: u64,
    body_crc32: u32,
}

/// Returns the content of the file.
pub(in crate::cdn) fn compose(source: &ImageSource, request: &str, entry: &Entry) -> Vec<u8> {
    let head = Head {
        account_id: entry.account_id,
        request: request.to_owned(),
        stamp: source.stamp(),
        content_type: String::from_utf8_lossy(&entry.content_type).into_owned(),
        modified_ms: entry.modified_ms,
        body_bytes: entry.body.len() as u64,
        body_crc32: crc32fast::hash(&entry.body),
    };
    let head = serde_json::to_vec(&head).expect("a head is plain data");
    let length = u32::try_from(head.len()).expect("a request is a bounded text");
    [MAGIC, &length.to_le_bytes()[..], &head, &entry.body].concat()
}

/// Reads a variant from a file; the error is the reason why it is not the variant of that request and source.
pub(super) fn read(path: &Path, source: &ImageSource, request: &str) -> io::Result<Entry> {
    let image = Bytes::from(fs::read(path)?);
    parse(image, source, request).map_err(io::Error::other)
}

/// Reads a variant; the error is the reason why these bytes are not the variant of that request and source.
pub(in crate::cdn) fn parse(
    image: Bytes,
    source: &ImageSource,
    request: &str,
) -> Result<Entry, &'static str> {
    let rest = image
        .strip_prefix(MAGIC)
        .ok_or("it has another magic number")?;
    let (length, rest) = rest.split_first_chunk().ok_or("it ends in its head")?;
    let length = u32::from_le_bytes(*length) as usize;
    let head = rest.get(..length).ok_or("it ends in its head")?;
    let head: Head = serde_json::from_slice(head).map_err(|_| "its head is damaged")?;
    let body = image.slice(LENGTH + length..);
    if head.request != request || head.account_id != source.account_id {
        return Err("it is another variant");
    }
    if head.stamp != source.stamp() {
        return Err("its source has changed");
    }
    if head.body_bytes != body.len() as u64 || head.body_crc32 != crc32fast::hash(&body) {
        return Err("its body is damaged");
    }
    Ok(Entry::new(
        source.id,
        source.account_id,
        &head.content_type,
        body,
        head.modified_ms,
    ))
}
