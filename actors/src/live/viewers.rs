//! Viewer counts of live inputs (`live.count_viewers`): distinct play ids in playlist requests, without cookies and
//! addresses.
//!
//! Each multivariant playlist names its media playlist with an id of its own, and the player sends it at every reload. An
//! id that was sent within the last three target durations is a viewer.

use std::{collections::HashMap, fmt};

use parking_lot::Mutex;
use sluice_store::credentials;

/// Most viewers of one input that are counted; further ones watch all the same.
const MOST_COUNTED: usize = 100_000;
/// Shortest time between two searches of a full set for ids that left.
const PRUNE_EVERY_MS: i64 = 1_000;
/// Characters of an id.
const DIGITS: usize = 16;

/// Names one playing of a stream; random, and of no meaning elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlayId(u64);

impl PlayId {
    pub fn random() -> Self {
        Self(u64::from_le_bytes(credentials::random_bytes()))
    }

    /// Reads an id; `None` for a text that [`PlayId`] never displays as.
    pub fn parse(text: &str) -> Option<Self> {
        let is_ours = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        let fits = text.len() == DIGITS && text.bytes().all(is_ours);
        fits.then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl fmt::Display for PlayId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The players of one input.
#[derive(Debug, Default)]
pub(super) struct Viewers(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Unix milliseconds of each id's last request.
    at_ms: HashMap<PlayId, i64>,
    pruned_ms: i64,
}

impl Viewers {
    /// Counts a player for `within_ms` from now on; a new one is left out beyond [`MOST_COUNTED`].
    pub fn note(&self, play: PlayId, now_ms: i64, within_ms: i64) {
        let mut seen = self.0.lock();
        if let Some(at_ms) = seen.at_ms.get_mut(&play) {
            *at_ms = now_ms;
            return;
        }
        let is_full = seen.at_ms.len() >= MOST_COUNTED;
        if is_full && now_ms - seen.pruned_ms >= PRUNE_EVERY_MS {
            seen.prune(now_ms, within_ms);
        }
        if seen.at_ms.len() < MOST_COUNTED {
            seen.at_ms.insert(play, now_ms);
        }
    }

    /// Returns the number of players of the last `within_ms`; the others are forgotten.
    pub fn count(&self, now_ms: i64, within_ms: i64) -> u64 {
        let mut seen = self.0.lock();
        seen.prune(now_ms, within_ms);
        seen.at_ms.len() as u64
    }
}

impl Seen {
    fn prune(&mut self, now_ms: i64, within_ms: i64) {
        self.pruned_ms = now_ms;
        self.at_ms
            .retain(|_, at_ms| now_ms.saturating_sub(*at_ms) < within_ms);
        if self.at_ms.is_empty() {
            self.at_ms = HashMap::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_one_spelling() {
        let play = PlayId::random();
        assert_eq!(PlayId::parse(&play.to_string()), Some(play));
        assert_eq!(PlayId::parse("00000000000000ff"), Some(PlayId(255)));
        for odd in [
            "",
            "ff",
            "00000000000000FF",
            "+0000000000000ff",
            "00000000000000ff0",
            "0000000000000 ff",
            "éééééééé",
        ] {
            assert_eq!(PlayId::parse(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_viewer_counts_once_and_for_a_while() {
        let viewers = Viewers::default();
        let (one, other) = (PlayId(1), PlayId(2));
        viewers.note(one, 0, 12_000);
        viewers.note(one, 5_000, 12_000);
        viewers.note(other, 6_000, 12_000);
        assert_eq!(viewers.count(6_000, 12_000), 2);
        assert_eq!(viewers.count(17_000, 12_000), 1, "the first is gone");
        assert_eq!(viewers.count(17_000, 0), 0, "nothing is on air");
        viewers.note(one, 20_000, 12_000);
        assert_eq!(viewers.count(20_001, 12_000), 1);
    }

    #[test]
    fn a_flood_of_ids_is_bounded_and_leaves_again() {
        let viewers = Viewers::default();
        for id in 0..MOST_COUNTED as u64 + 500 {
            viewers.note(PlayId(id), 1_000, 12_000);
        }
        assert_eq!(viewers.count(1_000, 12_000), MOST_COUNTED as u64);
        viewers.note(PlayId(u64::MAX), 14_000, 12_000);
        assert_eq!(viewers.count(14_000, 12_000), 1);
    }
}
