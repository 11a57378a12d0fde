//! Memory tier of the image cache (`cdn.memory`): published variants that the façade reads without any message, and their
//! eviction.
//!
//! Bounded by bytes, and kept by a clock: an entry that was used since the hand last passed stays for another round.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};

use parking_lot::RwLock;
use uuid::Uuid;

use super::{entry::Entry, source::ImageSource};

/// Parts with a lock each.
const PARTS: usize = 8;

/// The tier.
#[derive(Debug)]
pub(super) struct Memory {
    parts: Vec<RwLock<Part>>,
    /// Bytes that one part may hold.
    most: usize,
}

#[derive(Debug, Default)]
struct Part {
    by_file: HashMap<Uuid, HashMap<Arc<str>, Arc<Entry>>>,
    /// The clock: the hand is at the front.
    clock: VecDeque<(Uuid, Arc<str>)>,
    bytes: usize,
}

impl Memory {
    /// Makes a tier of at most `bytes` in all.
    pub(super) fn new(bytes: u64) -> Self {
        Self {
            parts: (0..PARTS).map(|_| RwLock::default()).collect(),
            most: usize::try_from(bytes).unwrap_or(usize::MAX) / PARTS,
        }
    }

    /// Returns the variant of a file that was made for this request.
    pub(super) fn get(&self, file_id: Uuid, request: &str) -> Option<Arc<Entry>> {
        let part = self.part(file_id).read();
        let entry = part.by_file.get(&file_id)?.get(request)?;
        entry.note_use();
        Some(entry.clone())
    }

    /// Publishes a variant, unless its source is stale or it is larger than a part.
    pub(super) fn put(&self, source: &ImageSource, request: &Arc<str>, entry: Arc<Entry>) {
        if entry.weight() > self.most {
            return;
        }
        let mut part = self.part(source.id).write();
        if !source.is_current() {
            return;
        }
        part.put(source.id, request, entry);
        part.shrink_to(self.most);
    }

    /// Drops all variants of a file; returns how many.
    pub(super) fn purge(&self, file_id: Uuid) -> usize {
        let mut part = self.part(file_id).write();
        let Some(gone) = part.by_file.remove(&file_id) else {
            return 0;
        };
        part.bytes -= gone.values().map(|entry| entry.weight()).sum::<usize>();
        part.clock.retain(|(id, _)| *id != file_id);
        gone.len()
    }

    /// Drops all variants of the files of an account, or of all accounts.
    pub(super) fn forget(&self, account_id: Option<Uuid>) {
        for part in &self.parts {
            let mut part = part.write();
            let Part {
                by_file,
                clock,
                bytes,
            } = &mut *part;
            by_file.retain(|_, variants| {
                let mut entries = variants.values();
                let is_other =
                    account_id.is_some_and(|id| entries.any(|entry| entry.account_id != id));
                if !is_other {
                    *bytes -= variants.values().map(|entry| entry.weight()).sum::<usize>();
                }
                is_other
            });
            clock.retain(|(file_id, _)| by_file.contains_key(file_id));
        }
    }

    /// Returns numbers of entries and bytes.
    pub(super) fn size(&self) -> (usize, usize) {
        self.parts.iter().fold((0, 0), |(entries, bytes), part| {
            let part = part.read();
            (entries + part.clock.len(), bytes + part.bytes)
        })
    }

    fn part(&self, file_id: Uuid) -> &RwLock<Part> {
        // The last bytes of a UUID of version 7 are random.
        &self.parts[usize::from(file_id.as_bytes()[15]) % PARTS]
    }
}

impl Part {
    fn put(&mut self, file_id: Uuid, request: &Arc<str>, entry: Arc<Entry>) {
        self.bytes += entry.weight();
        let variants = self.by_file.entry(file_id).or_default();
        match variants.insert(request.clone(), entry) {
            Some(earlier) => self.bytes -= earlier.weight(),
            None => self.clock.push_back((file_id, request.clone())),
        }
    }

    fn shrink_to(&mut self, most: usize) {
        while self.bytes > most {
            let Some((file_id, request)) = self.clock.pop_front() else {
                return;
            };
            let Some(variants) = self.by_file.get_mut(&file_id) else {
                continue;
            };
            if variants.get(&request).is_some_and(|entry| entry.pass()) {
                self.clock.push_back((file_id, request));
                continue;
            }
            if let Some(gone) = variants.remove(&request) {
                self.bytes -= gone.weight();
            }
            if variants.is_empty() {
                self.by_file.remove(&file_id);
            }
        }
    }
}
