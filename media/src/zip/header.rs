//! Writes ZIP records (APPNOTE 4.3): local headers, central directory, ZIP64, time stamps. Each has its length beside
//! it.

use super::date;

const LOCAL: u32 = 0x0403_4B50;
const CENTRAL: u32 = 0x0201_4B50;
const END: u32 = 0x0605_4B50;
const END_64: u32 = 0x0606_4B50;
const LOCATOR_64: u32 = 0x0706_4B50;

const EXTRA_64: u16 = 0x0001;
/// Info-ZIP's extended time stamp: seconds since 1970.
const EXTRA_TIME: u16 = 0x5455;
const EXTRA_TIME_BYTES: u64 = 9;
/// Flag of the time stamp: only the time of modification follows.
const HAS_MODIFIED: u8 = 1;

/// Folders, and ZIP64.
const VERSION: u16 = 20;
const VERSION_64: u16 = 45;
/// Made on Unix, so that the upper half of the attributes is a mode.
const UNIX: u16 = 3 << 8;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;
const STORED: u16 = 0;
const FILE_MODE: u32 = 0o100_644;
const FOLDER_MODE: u32 = 0o040_755;
const DOS_FOLDER: u32 = 0x10;

const LOCAL_BYTES: u64 = 30;
const CENTRAL_BYTES: u64 = 46;
const END_BYTES: u64 = 22;
const END_64_BYTES: u64 = 56;
const LOCATOR_64_BYTES: u64 = 20;

/// Header fields of an entry beside its path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub size: u64,
    pub crc32: u32,
    /// Seconds since 1970.
    pub modified: u32,
    pub is_folder: bool,
}

impl Entry {
    /// Returns whether the time fits the extended stamp, which readers take as signed; a later one has only MS-DOS's
    /// form.
    fn has_stamp(&self) -> bool {
        i32::try_from(self.modified).is_ok()
    }

    fn stamp_len(&self) -> u64 {
        if self.has_stamp() {
            EXTRA_TIME_BYTES
        } else {
            0
        }
    }
}

fn is_large(value: u64) -> bool {
    value >= u64::from(u32::MAX)
}

pub(super) fn local_len(entry: &Entry, path_len: u64) -> u64 {
    let extra_64 = if is_large(entry.size) { 4 + 16 } else { 0 };
    LOCAL_BYTES + path_len + extra_64 + entry.stamp_len()
}

pub(super) fn write_local(out: &mut Vec<u8>, entry: &Entry, path: &[u8]) {
    let is_large = is_large(entry.size);
    put32(out, LOCAL);
    put16(out, version(is_large));
    write_facts(out, entry);
    put16(out, short(path.len()));
    let extra_at = out.len();
    put16(out, 0);
    out.extend_from_slice(path);
    let extra_from = out.len();
    if is_large {
        write_extra_64(out, &[entry.size, entry.size]);
    }
    write_stamp(out, entry);
    fill_in_length(out, extra_at, extra_from);
}

/// Returns the length of the central header; `offset` is that of the local header.
pub(super) fn central_len(entry: &Entry, path_len: u64, offset: u64) -> u64 {
    let extra_64 = match (is_large(entry.size), is_large(offset)) {
        (false, false) => 0,
        (false, true) => 4 + 8,
        (true, false) => 4 + 16,
        (true, true) => 4 + 24,
    };
    CENTRAL_BYTES + path_len + extra_64 + entry.stamp_len()
}

pub(super) fn write_central(out: &mut Vec<u8>, entry: &Entry, path: &[u8], offset: u64) {
    let mut large = Vec::with_capacity(3);
    if is_large(entry.size) {
        large.extend([entry.size, entry.size]);
    }
    if is_large(offset) {
        large.push(offset);
    }
    let version = version(!large.is_empty());
    put32(out, CENTRAL);
    put16(out, UNIX | version);
    put16(out, version);
    write_facts(out, entry);
    put16(out, short(path.len()));
    let extra_at = out.len();
    put16(out, 0);
    // No comment, disk 0, nothing known of the content.
    out.extend_from_slice(&[0; 6]);
    put32(out, attributes(entry));
    put32(out, clamped(offset));
    out.extend_from_slice(path);
    let extra_from = out.len();
    if !large.is_empty() {
        write_extra_64(out, &large);
    }
    write_stamp(out, entry);
    fill_in_length(out, extra_at, extra_from);
}

/// Place of the central directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directory {
    pub entries: u64,
    pub at: u64,
    pub len: u64,
}

impl Directory {
    fn is_large(&self) -> bool {
        self.entries >= u64::from(u16::MAX) || is_large(self.at) || is_large(self.len)
    }

    /// Returns the length of the records behind it.
    pub(super) fn end_len(&self) -> u64 {
        match self.is_large() {
            true => END_64_BYTES + LOCATOR_64_BYTES + END_BYTES,
            false => END_BYTES,
        }
    }

    pub(super) fn write_end(&self, out: &mut Vec<u8>) {
        if self.is_large() {
            put32(out, END_64);
            // What follows this number.
            put64(out, END_64_BYTES - 12);
            put16(out, UNIX | VERSION_64);
            put16(out, VERSION_64);
            out.extend_from_slice(&[0; 8]);
            for value in [self.entries, self.entries, self.len, self.at] {
                put64(out, value);
            }
            put32(out, LOCATOR_64);
            put32(out, 0);
            put64(out, self.at + self.len);
            put32(out, 1);
        }
        let entries = u16::try_from(self.entries).unwrap_or(u16::MAX);
        put32(out, END);
        out.extend_from_slice(&[0; 4]);
        put16(out, entries);
        put16(out, entries);
        put32(out, clamped(self.len));
        put32(out, clamped(self.at));
        put16(out, 0);
    }
}

/// Writes the fields from the flags to the sizes, the same in both headers.
fn write_facts(out: &mut Vec<u8>, entry: &Entry) {
    let (time, date) = date::dos(entry.modified);
    for value in [FLAGS, STORED, time, date] {
        put16(out, value);
    }
    put32(out, entry.crc32);
    put32(out, clamped(entry.size));
    put32(out, clamped(entry.size));
}

fn write_extra_64(out: &mut Vec<u8>, values: &[u64]) {
    put16(out, EXTRA_64);
    put16(out, short(values.len() * 8));
    for value in values {
        put64(out, *value);
    }
}

fn write_stamp(out: &mut Vec<u8>, entry: &Entry) {
    if entry.has_stamp() {
        put16(out, EXTRA_TIME);
        put16(out, 5);
        out.push(HAS_MODIFIED);
        put32(out, entry.modified);
    }
}

/// Puts at `at` how much has been written since `from`.
fn fill_in_length(out: &mut [u8], at: usize, from: usize) {
    let len = short(out.len() - from);
    out[at..at + 2].copy_from_slice(&len.to_le_bytes());
}

fn attributes(entry: &Entry) -> u32 {
    match entry.is_folder {
        true => (FOLDER_MODE << 16) | DOS_FOLDER,
        false => FILE_MODE << 16,
    }
}

fn version(is_large: bool) -> u16 {
    if is_large { VERSION_64 } else { VERSION }
}

/// Returns the value, or 0xffffffff: the true one is in a ZIP64 field.
fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn short(len: usize) -> u16 {
    u16::try_from(len)
        .expect("the builder rejects longer paths, and extra fields have at most 37 bytes")
}

fn put16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_le_bytes());
}

fn put64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_le_bytes());
}
