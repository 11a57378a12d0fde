//! Table of stream keys and passphrases that the SRT gateway admits, looked up at each handshake.
//!
//! Pure. It holds hashes of keys, never keys, and the passphrases that libsrt needs. The service checks an admitted
//! caller's key once more by its own directory.

use std::{collections::HashMap, fmt, net::IpAddr};

use sha2::{Digest, Sha256};

use super::stream_id::{Reject, StreamId};

/// An input as the wire names it: the bytes of its UUID.
pub type InputId = [u8; 16];

/// Row of one input. `Debug` hides the passphrase.
#[derive(Clone, PartialEq, Eq)]
pub struct Entry {
    pub id: InputId,
    pub slug: String,
    /// SHA-256 of the stream key.
    pub key_hash: [u8; 32],
    pub passphrase: String,
    pub enabled: bool,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entry")
            .field("slug", &self.slug)
            .field("enabled", &self.enabled)
            .finish_non_exhaustive()
    }
}

/// All inputs, by the names that callers use.
#[derive(Debug, Default)]
pub struct Table {
    entries: HashMap<InputId, Entry>,
    by_slug: HashMap<String, InputId>,
    by_key: HashMap<[u8; 32], InputId>,
    /// Encoders that a newer one displaced and that may not take the input back at the moment.
    conflicts: HashMap<InputId, Vec<IpAddr>>,
}

impl Table {
    pub fn put(&mut self, entry: Entry) {
        self.forget_names(&entry.id);
        self.by_slug.insert(entry.slug.clone(), entry.id);
        self.by_key.insert(entry.key_hash, entry.id);
        self.entries.insert(entry.id, entry);
    }

    pub fn remove(&mut self, id: &InputId) {
        self.forget_names(id);
        self.entries.remove(id);
        self.conflicts.remove(id);
    }

    pub fn set_conflicts(&mut self, id: InputId, addresses: Vec<IpAddr>) {
        if addresses.is_empty() {
            self.conflicts.remove(&id);
        } else {
            self.conflicts.insert(id, addresses);
        }
    }

    /// Returns the input that a caller may publish to; else the input that it named, if any, and the rejection.
    pub fn judge(
        &self,
        id: &StreamId,
        remote: IpAddr,
    ) -> Result<&Entry, (Option<InputId>, Reject)> {
        let hash: [u8; 32] = Sha256::digest(id.key.as_bytes()).into();
        let named = match &id.slug {
            Some(slug) => self.by_slug.get(slug).ok_or((None, Reject::NotFound))?,
            None => self.by_key.get(&hash).ok_or((None, Reject::Unauthorized))?,
        };
        let rejected = |reject| Err((Some(*named), reject));
        let Some(entry) = self.entries.get(named) else {
            return rejected(Reject::NotFound);
        };
        if !is_same(&entry.key_hash, &hash) {
            return rejected(Reject::Unauthorized);
        }
        if !entry.enabled {
            return rejected(Reject::Forbidden);
        }
        let contested = self.conflicts.get(named);
        if contested.is_some_and(|addresses| addresses.contains(&remote)) {
            return rejected(Reject::Conflict);
        }
        Ok(entry)
    }

    fn forget_names(&mut self, id: &InputId) {
        if let Some(old) = self.entries.get(id) {
            self.by_slug.remove(&old.slug);
            self.by_key.remove(&old.key_hash);
        }
    }
}

/// Compares in a time that does not depend on where they differ.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let difference = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    std::hint::black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u8, key: &str) -> Entry {
        Entry {
            id: [number; 16],
            slug: format!("slug{number}"),
            key_hash: Sha256::digest(key).into(),
            passphrase: format!("passphrase {number}"),
            enabled: true,
        }
    }

    fn judged(table: &Table, id: &str, last: u8) -> Result<u8, u16> {
        let id = StreamId::parse(id.as_bytes()).unwrap();
        match table.judge(&id, IpAddr::from([10, 0, 0, last])) {
            Ok(entry) => Ok(entry.id[0]),
            Err((_, reject)) => Err(reject.code()),
        }
    }

    #[test]
    fn a_caller_is_judged_by_slug_key_state_and_address() {
        let mut table = Table::default();
        table.put(entry(1, "one"));
        table.put(entry(2, "two"));
        table.put(Entry {
            enabled: false,
            ..entry(3, "three")
        });
        table.set_conflicts([2; 16], vec![[10, 0, 0, 9].into()]);
        for (id, last, expected) in [
            ("publish:slug1:one", 1, Ok(1)),
            ("one", 1, Ok(1)),
            ("publish:slug1:two", 1, Err(1401)),
            ("publish:slug4:one", 1, Err(1404)),
            ("four", 1, Err(1401)),
            ("publish:slug3:three", 1, Err(1403)),
            ("publish:slug3:guess", 1, Err(1401)),
            ("two", 8, Ok(2)),
            ("two", 9, Err(1409)),
        ] {
            assert_eq!(judged(&table, id, last), expected, "{id} from {last}");
        }
    }

    #[test]
    fn a_rotated_key_and_a_removed_input_are_forgotten() {
        let mut table = Table::default();
        table.put(entry(1, "old"));
        table.put(entry(1, "new"));
        assert_eq!(judged(&table, "old", 1), Err(1401));
        assert_eq!(judged(&table, "new", 1), Ok(1));
        table.set_conflicts([1; 16], vec![[10, 0, 0, 1].into()]);
        assert_eq!(judged(&table, "new", 1), Err(1409));
        table.set_conflicts([1; 16], Vec::new());
        assert_eq!(judged(&table, "new", 1), Ok(1));
        table.remove(&[1; 16]);
        assert_eq!(judged(&table, "publish:slug1:new", 1), Err(1404));
    }

    #[test]
    fn debug_shows_no_passphrase() {
        let mut table = Table::default();
        table.put(entry(1, "one"));
        assert!(!format!("{table:?}").contains("passphrase 1"));
    }
}
