//! Time limits of requests to the object store.

use std::time::Duration;

use crate::StoreSettings;

#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Longest time until there is a connection, TLS among it.
    pub(super) connect: Duration,
    /// Longest time in which no byte moves in either direction.
    pub(super) stall: Duration,
    /// Longest time for a whole request (`store.objects_timeout`).
    pub(super) patience: Duration,
    /// Pause before the first repetition; each later one is twice as long.
    pub(super) first_pause: Duration,
}

impl Limits {
    pub(super) fn of(settings: &StoreSettings) -> Self {
        Self {
            connect: Duration::from_secs(3),
            stall: Duration::from_secs(10),
            patience: settings.objects_timeout,
            first_pause: Duration::from_millis(100),
        }
    }
}
