//! Delivery key as requests use it: account, presets only, limit of new variants a minute (`cdn.new_variants_per_minute`),
//! last use.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use sluice_store::delivery_keys::DeliveryKey;
use uuid::Uuid;

use crate::meter::{Account, CountDelivery, Delivered, KeyCounts, Meter};

/// Precision of a key's last use.
const USE_GRAIN_MS: i64 = 5 * 60 * 1000;
const MINUTE: Duration = Duration::from_secs(60);

/// A key that is not revoked.
#[derive(Debug)]
pub struct Key {
    pub id: Uuid,
    pub account: Arc<Account>,
    counts: Arc<KeyCounts>,
    /// True when it delivers presets and nothing else.
    pub presets_only: bool,
    last_used_ms: AtomicI64,
    known_since: Instant,
    /// The minute since `known_since` in the upper half, the variants that were new in it in the lower.
    new_variants: AtomicU64,
}

impl Key {
    pub(super) fn new(row: &DeliveryKey, meter: &Meter) -> Self {
        Self {
            id: row.id,
            account: meter.account(row.account_id),
            counts: meter.key(row.account_id, row.id),
            presets_only: row.presets_only,
            last_used_ms: AtomicI64::new(row.last_used_at.unwrap_or(0)),
            known_since: Instant::now(),
            new_variants: AtomicU64::new(0),
        }
    }

    /// Returns whether this use has to be noted; true once in five minutes.
    pub(super) fn is_due_to_note(&self, now_ms: i64) -> bool {
        let last = self.last_used_ms.load(Relaxed);
        now_ms - last >= USE_GRAIN_MS
            && self
                .last_used_ms
                .compare_exchange(last, now_ms, Relaxed, Relaxed)
                .is_ok()
    }

    /// Admits one new variant of at most `limit` a minute (0: no bound), else returns the time until the next minute.
    pub(super) fn admit_variant(&self, limit: u32, now: Instant) -> Result<(), Duration> {
        if limit == 0 {
            return Ok(());
        }
        let elapsed = now.saturating_duration_since(self.known_since);
        let minute = elapsed.as_secs() / MINUTE.as_secs();
        let admit = |state: u64| {
            let count = if state >> 32 == minute {
                state & 0xffff_ffff
            } else {
                0
            };
            (count < u64::from(limit)).then_some((minute << 32) | (count + 1))
        };
        match self.new_variants.fetch_update(Relaxed, Relaxed, admit) {
            Ok(_) => Ok(()),
            Err(_) => Err(MINUTE - Duration::from_secs(elapsed.as_secs() % MINUTE.as_secs())),
        }
    }

    /// Gives a new variant back that turned out to be none.
    pub(super) fn give_back_variant(&self) {
        let one_less = |state: u64| (state & 0xffff_ffff > 0).then(|| state - 1);
        // An error says that the minute has none.
        let _none = self.new_variants.fetch_update(Relaxed, Relaxed, one_less);
    }
}

/// Counts for the key and for its account.
impl CountDelivery for Arc<Key> {
    fn delivered(&self, how: Delivered, bytes: u64) {
        self.account.delivered(how, bytes);
        self.counts.add(how, bytes);
    }
}

#[cfg(test)]
mod tests {
    use sluice_store::{Store, StoreSettings};

    use super::*;
    use crate::meter::Caps;

    #[tokio::test]
    async fn new_variants_are_bounded_by_the_minute() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let row = DeliveryKey {
            id: Uuid::now_v7(),
            account_id: Uuid::now_v7(),
            name: String::new(),
            delivery_alias: None,
            presets_only: false,
            key_hash: String::new(),
            key_prefix: String::new(),
            created_at: 0,
            last_used_at: None,
            revoked_at: None,
        };
        let key = Key::new(&row, &Meter::new(store, Caps::new()));
        let at = |seconds| key.known_since + Duration::from_secs(seconds);
        let cases = [
            (0, Ok(())),
            (1, Ok(())),
            (2, Err(Duration::from_secs(58))),
            (59, Err(Duration::from_secs(1))),
            (60, Ok(())),
            (119, Ok(())),
            (119, Err(Duration::from_secs(1))),
            (600, Ok(())),
        ];
        for (seconds, expected) in cases {
            assert_eq!(key.admit_variant(2, at(seconds)), expected, "{seconds}");
        }
        key.give_back_variant();
        assert_eq!(key.admit_variant(1, at(600)), Ok(()), "it was given back");
        assert!((0..1000).all(|_| key.admit_variant(0, at(1)).is_ok()));
        assert!(key.is_due_to_note(USE_GRAIN_MS));
        assert!(!key.is_due_to_note(USE_GRAIN_MS * 2 - 1));
        assert!(key.is_due_to_note(USE_GRAIN_MS * 2));
    }
}
