//! Bytes of a broadcast's segments, parts and init sections: the newest in memory, older ones in segment files.
//!
//! The owner (`LiveInput`) puts, moves and removes; viewers only take. The newest segments are in memory, where nearly
//! every viewer is; older ones are served from their files. When the disk failed, memory keeps them until they may be
//! forgotten.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use parking_lot::RwLock;
use sluice_media::hls::{Segment, names};

use super::{disk::Disk, recorded_media::RecordedMedia, recording_writer::RecordingWriter};

/// The bytes of a segment, a part or an init section, ready to be sent.
#[derive(Clone, Debug)]
pub enum Body {
    /// In order; together they are the resource.
    Memory(Vec<Bytes>),
    /// `len` bytes of a file from `offset` on.
    File {
        path: PathBuf,
        offset: u64,
        len: u64,
    },
    /// A file of the recording, on the disk or in the object store.
    Recorded(RecordedMedia),
}

impl Body {
    /// Returns the length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::Memory(pieces) => pieces.iter().map(|piece| piece.len() as u64).sum(),
            Self::File { len, .. } => *len,
            Self::Recorded(media) => media.len(),
        }
    }

    /// Returns whether it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The bytes of one broadcast.
#[derive(Debug)]
pub struct SegmentStore {
    folder: PathBuf,
    disk: Disk,
    segments: RwLock<BTreeMap<u64, Slot>>,
    inits: RwLock<BTreeMap<u32, Bytes>>,
    /// Writer of the broadcast's recording.
    recording_writer: OnceLock<Arc<RecordingWriter>>,
}

#[derive(Debug, Default)]
struct Slot {
    /// Length and, while in memory, bytes of each part in order.
    parts: Vec<(u32, Option<Bytes>)>,
    closed: bool,
}

impl Slot {
    fn len(&self) -> u64 {
        self.parts.iter().map(|(len, _)| u64::from(*len)).sum()
    }

    fn is_in_memory(&self) -> bool {
        self.parts.iter().any(|(_, bytes)| bytes.is_some())
    }

    fn memory(&self, range: std::ops::Range<usize>) -> Option<Vec<Bytes>> {
        self.parts
            .get(range)?
            .iter()
            .map(|(_, bytes)| bytes.clone())
            .collect()
    }
}

impl SegmentStore {
    pub(super) fn new(folder: PathBuf, disk: Disk) -> Self {
        Self {
            folder,
            disk,
            segments: RwLock::default(),
            inits: RwLock::default(),
            recording_writer: OnceLock::new(),
        }
    }

    /// Returns the writer of the broadcast's recording; `None` when it is not recorded.
    pub fn recording_writer(&self) -> Option<&Arc<RecordingWriter>> {
        self.recording_writer.get()
    }

    /// Notes that the broadcast is recorded; called once, before any reader.
    pub(super) fn set_recording_writer(&self, recording_writer: RecordingWriter) {
        let _ = self.recording_writer.set(Arc::new(recording_writer));
    }

    /// Returns the folder of the broadcast's files.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the writer of the folder.
    pub(super) fn disk(&self) -> &Disk {
        &self.disk
    }

    pub fn put_init(&self, number: u32, bytes: Bytes) {
        self.inits.write().insert(number, bytes);
    }

    pub fn put_part(&self, msn: u64, bytes: Bytes) {
        let mut segments = self.segments.write();
        segments
            .entry(msn)
            .or_default()
            .parts
            .push((bytes.len() as u32, Some(bytes)));
    }

    pub fn close_segment(&self, msn: u64) {
        if let Some(slot) = self.segments.write().get_mut(&msn) {
            slot.closed = true;
        }
    }

    /// Adds a segment that an earlier process wrote: its bytes are in its file.
    pub fn put_recovered(&self, segment: &Segment) {
        let parts = segment.parts.iter().map(|part| (part.len, None)).collect();
        let slot = Slot {
            parts,
            closed: segment.closed,
        };
        self.segments.write().insert(segment.msn, slot);
    }

    /// Drops the bytes of the segments before `msn`, which are served from their files from now on. All of them must be
    /// written.
    pub fn drop_memory_before(&self, msn: u64) {
        let mut segments = self.segments.write();
        let older = segments.range_mut(..msn).rev();
        for (_, slot) in older.take_while(|(_, slot)| slot.is_in_memory()) {
            slot.parts.iter_mut().for_each(|(_, bytes)| *bytes = None);
        }
    }

    pub fn remove(&self, msn: u64) {
        self.segments.write().remove(&msn);
    }

    pub fn init(&self, number: u32) -> Option<Bytes> {
        self.inits.read().get(&number).cloned()
    }

    /// Returns all init sections, for a rebuild of the folder.
    pub fn inits(&self) -> Vec<(u32, Bytes)> {
        let inits = self.inits.read();
        inits
            .iter()
            .map(|(number, bytes)| (*number, bytes.clone()))
            .collect()
    }

    /// Returns a whole, closed segment.
    pub fn segment(&self, msn: u64) -> Option<Body> {
        let segments = self.segments.read();
        let slot = segments.get(&msn).filter(|slot| slot.closed)?;
        Some(match slot.memory(0..slot.parts.len()) {
            Some(pieces) => Body::Memory(pieces),
            None => Body::File {
                path: self.folder.join(names::segment_name(msn)),
                offset: 0,
                len: slot.len(),
            },
        })
    }

    /// Returns a part, of an open segment as well.
    pub fn part(&self, msn: u64, index: u32) -> Option<Body> {
        let segments = self.segments.read();
        let slot = segments.get(&msn)?;
        let index = index as usize;
        let (len, bytes) = slot.parts.get(index)?;
        Some(match bytes {
            Some(bytes) => Body::Memory(vec![bytes.clone()]),
            None => Body::File {
                path: self.folder.join(names::segment_name(msn)),
                offset: slot.parts[..index]
                    .iter()
                    .map(|(len, _)| u64::from(*len))
                    .sum(),
                len: u64::from(*len),
            },
        })
    }

    /// Returns the segments that are whole in memory with their parts, for a rebuild of the folder.
    pub fn in_memory(&self) -> Vec<(u64, Vec<Bytes>)> {
        let segments = self.segments.read();
        let whole = |(msn, slot): (&u64, &Slot)| Some((*msn, slot.memory(0..slot.parts.len())?));
        segments.iter().filter_map(whole).collect()
    }

    /// Bytes held in memory.
    #[cfg(test)]
    pub fn memory_bytes(&self) -> u64 {
        let segments = self.segments.read();
        segments
            .values()
            .flat_map(|slot| &slot.parts)
            .filter_map(|(_, bytes)| bytes.as_ref())
            .map(|b| b.len() as u64)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment_store() -> SegmentStore {
        let folder = PathBuf::from("/nonexistent");
        let segment_store = SegmentStore::new(folder.clone(), Disk::start(folder).unwrap());
        segment_store.put_part(7, Bytes::from_static(b"abc"));
        segment_store.put_part(7, Bytes::from_static(b"de"));
        segment_store
    }

    #[test]
    fn an_open_segment_has_parts_but_is_no_segment() {
        let segment_store = segment_store();
        assert!(segment_store.segment(7).is_none());
        assert!(
            matches!(segment_store.part(7, 1), Some(Body::Memory(pieces)) if pieces[0] == "de")
        );
        assert!(segment_store.part(7, 2).is_none());
        segment_store.close_segment(7);
        assert_eq!(segment_store.segment(7).map(|body| body.len()), Some(5));
    }

    #[test]
    fn a_part_whose_memory_was_dropped_is_a_range_of_its_file() {
        let segment_store = segment_store();
        segment_store.close_segment(7);
        segment_store.drop_memory_before(8);
        assert_eq!(segment_store.memory_bytes(), 0);
        let Some(Body::File { path, offset, len }) = segment_store.part(7, 1) else {
            panic!("a file range")
        };
        assert_eq!((path.ends_with("7.m4s"), offset, len), (true, 3, 2));
        segment_store.remove(7);
        assert!(segment_store.segment(7).is_none());
    }
}
