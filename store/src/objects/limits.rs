//! Time limits of requests to the object store.

use std::time::Duration;

use crate::StoreSettings;

/// Bytes that the slowest line for which the service is made moves in a second, in each direction.
const SLOWEST_LINE: u64 = 256 << 10;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest time until there is a connection, TLS among it.
    pub(super) connect: Duration,
    /// Longest time in which no byte moves in either direction.
    pub(super) stall: Duration,
    /// Longest time for a whole request (`store.objects_timeout`), besides that of its bytes.
    pub(super) patience: Duration,
    /// Bytes for which a request has another second once they have moved: those of the slowest line, by the pieces that share it.
    pub(super) pace: u64,
    /// Pause before the first repetition; each later one is twice as long.
    pub(super) first_pause: Duration,
}

impl Limits {
    pub(super) fn of(settings: &StoreSettings) -> Self {
        Self {
            connect: Duration::from_secs(3),
            stall: Duration::from_secs(10),
            patience: settings.objects_timeout,
            pace: SLOWEST_LINE / settings.objects_at_once.clamp(1, 64) as u64,
            first_pause: Duration::from_millis(100),
        }
    }
}
