//! Nonces of the calls of the last minute, so that none is carried out twice.

use std::{
    collections::{HashSet, VecDeque},
    time::Duration,
};

use parking_lot::Mutex;
use sluice_store::duration_ms;

use super::signature::MOST_SKEW;

/// Calls that are remembered: 2 000 a second.
pub(super) const MOST: usize = 120_000;

/// Reason why a nonce is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotTaken {
    /// It was there before.
    Repeated,
    /// Table is full: no more may be remembered.
    Full,
}

/// The nonces of calls whose signature was right.
#[derive(Debug)]
pub(super) struct Nonces {
    most: usize,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    nonces: HashSet<u128>,
    /// In the order of their arrival, each with the time from which it need not be remembered.
    order: VecDeque<(i64, u128)>,
}

impl Nonces {
    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            seen: Mutex::default(),
        }
    }

    /// Takes a nonce once. It is remembered until every call with it is too old.
    pub(super) fn take(&self, nonce: u128, now_ms: i64) -> Result<(), NotTaken> {
        let mut seen = self.seen.lock();
        while let Some((until, old)) = seen.order.front().copied() {
            if until > now_ms {
                break;
            }
            seen.order.pop_front();
            seen.nonces.remove(&old);
        }
        if seen.nonces.contains(&nonce) {
            return Err(NotTaken::Repeated);
        }
        if seen.order.len() >= self.most {
            return Err(NotTaken::Full);
        }
        // A call may be as far in the future as in the past, and is valid for both.
        let until = now_ms + duration_ms(2 * MOST_SKEW + Duration::from_millis(1));
        seen.nonces.insert(nonce);
        seen.order.push_back((until, nonce));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_taken_once_while_its_call_is_valid() {
        let nonces = Nonces::new(3);
        assert_eq!(nonces.take(1, 0), Ok(()));
        assert_eq!(nonces.take(1, 60_000), Err(NotTaken::Repeated));
        assert_eq!(nonces.take(2, 60_000), Ok(()));
        assert_eq!(nonces.take(3, 60_000), Ok(()));
        assert_eq!(nonces.take(4, 60_000), Err(NotTaken::Full));
        assert_eq!(nonces.take(2, 60_000), Err(NotTaken::Repeated));
        assert_eq!(nonces.take(1, 60_001), Ok(()), "the first is forgotten");
        assert_eq!(nonces.take(4, 60_001), Err(NotTaken::Full));
    }
}
