//! Input files of operations: format by the first bytes (`is of no type that is known`), names in messages.

use std::{fs::File, os::unix::fs::FileExt as _};

use sluice_media::{
    format::Format,
    task::{Failure, FailureCode},
};
use sluice_store::blob::HEAD_BYTES;

/// Most characters of a name in a message.
const SHOWN_CHARS: usize = 80;

/// Returns the format of a file by its first bytes, which the page cache has: uploads were just written.
pub(crate) fn sniff(file: &File, filename: &str) -> Result<Option<Format>, Failure> {
    let mut head = vec![0; HEAD_BYTES];
    let mut length = 0;
    while length < head.len() {
        match file.read_at(&mut head[length..], length as u64) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(_) => {
                return Err(Failure::internal("an upload cannot be read"));
            }
        }
    }
    Ok(Format::recognise(&head[..length], filename))
}

/// [`sniff`] for an operation that needs a known format.
pub(crate) fn known_format(file: &File, filename: &str) -> Result<Format, Failure> {
    sniff(file, filename)?.ok_or_else(|| {
        Failure::new(
            FailureCode::UnsupportedType,
            format!("{} is of no type that is known", shown(filename)),
        )
    })
}

/// Returns a name as messages show it.
pub(crate) fn shown(filename: &str) -> String {
    filename.chars().take(SHOWN_CHARS).collect()
}
