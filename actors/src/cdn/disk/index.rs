//! Index of the disk cache, in memory: sizes of variants, order of use, eviction of the least recently used.

use std::collections::{BTreeMap, HashMap};

use uuid::Uuid;

use super::{Dropped, Name};

/// A variant on disk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) file_id: Uuid,
    pub(super) bytes: u64,
}

#[derive(Debug, Default)]
pub(super) struct Index {
    slots: HashMap<Name, (Slot, u64)>,
    /// By the number of the last use.
    by_use: BTreeMap<u64, Name>,
    by_file: HashMap<Uuid, Vec<Name>>,
    bytes: u64,
    uses: u64,
}

impl Index {
    pub(super) fn holds(&self, name: &Name) -> bool {
        self.slots.contains_key(name)
    }

    /// Notes a use; false when it is not there.
    pub(super) fn touch(&mut self, name: &Name) -> bool {
        let Some((_, used)) = self.slots.get_mut(name) else {
            return false;
        };
        self.uses += 1;
        self.by_use.remove(used);
        *used = self.uses;
        self.by_use.insert(self.uses, *name);
        true
    }

    pub(super) fn put(&mut self, name: Name, slot: Slot) {
        self.remove(&name);
        self.uses += 1;
        self.bytes += slot.bytes;
        self.slots.insert(name, (slot, self.uses));
        self.by_use.insert(self.uses, name);
        self.by_file.entry(slot.file_id).or_default().push(name);
    }

    pub(super) fn remove(&mut self, name: &Name) -> Option<Slot> {
        let (slot, used) = self.slots.remove(name)?;
        self.by_use.remove(&used);
        self.bytes -= slot.bytes;
        if let Some(names) = self.by_file.get_mut(&slot.file_id) {
            names.retain(|known| known != name);
            if names.is_empty() {
                self.by_file.remove(&slot.file_id);
            }
        }
        Some(slot)
    }

    /// Forgets all variants of a file; returns how many.
    pub(super) fn purge(&mut self, file_id: Uuid) -> usize {
        let names = self.by_file.get(&file_id).cloned().unwrap_or_default();
        for name in &names {
            self.remove(name);
        }
        names.len()
    }

    /// Forgets what was not used for the longest time until `most` bytes are left.
    pub(super) fn shrink_to(&mut self, most: u64) -> Dropped {
        let mut dropped = Dropped::new();
        while self.bytes > most
            && let Some((_, &name)) = self.by_use.first_key_value()
            && let Some(slot) = self.remove(&name)
        {
            dropped.push((slot.file_id, name));
        }
        dropped
    }

    pub(super) fn files(&self) -> Vec<Uuid> {
        self.by_file.keys().copied().collect()
    }

    /// Returns numbers of entries and bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.slots.len(), self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let mut index = Index::default();
        for (name, file_id) in [(1, one), (2, one), (3, other)] {
            index.put([name; 16], Slot { file_id, bytes: 10 });
        }
        assert!(index.touch(&[1; 16]) && !index.touch(&[9; 16]));
        // Written again: its bytes count once.
        index.put(
            [3; 16],
            Slot {
                file_id: other,
                bytes: 5,
            },
        );
        assert_eq!(index.size(), (3, 25));
        assert_eq!(index.shrink_to(24), [(one, [2; 16])]);
        assert_eq!(index.shrink_to(15), []);
        assert_eq!(index.purge(one), 1);
        assert_eq!((index.size(), index.files()), ((1, 5), vec![other]));
        assert_eq!(index.shrink_to(0), [(other, [3; 16])]);
        assert_eq!(index.size(), (0, 0));
    }
}
