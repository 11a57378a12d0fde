//! Limit of clients that follow events (`webhooks.max_followers`), 503 beyond it.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::application::error::ApiError;

/// Permits for clients that follow events.
#[derive(Debug)]
pub(crate) struct Followers {
    permits: Arc<Semaphore>,
    /// Held while reading for one of them.
    pub(crate) reading: Mutex<()>,
}

impl Followers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(most)),
            reading: Mutex::new(()),
        }
    }

    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.permits
            .clone()
            .try_acquire_owned()
            .map_err(|_| ApiError::Unavailable {
                what: "webhooks.max_followers is reached: following events",
                retry_after_s: 5,
            })
    }
}
