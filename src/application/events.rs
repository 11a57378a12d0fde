//! Places for clients that follow events.

use std::sync::Arc;

use tokio::sync::{Mutex, OwnedSemaphorePermit, Semaphore};

use crate::application::error::ApiError;

/// Places for those who follow events.
#[derive(Debug)]
pub(crate) struct Followers {
    places: Arc<Semaphore>,
    /// Held while reading for one of them.
    pub(crate) reading: Mutex<()>,
}

impl Followers {
    pub(crate) fn new(most: usize) -> Self {
        Self {
            places: Arc::new(Semaphore::new(most)),
            reading: Mutex::new(()),
        }
    }

    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.places
            .clone()
            .try_acquire_owned()
            .map_err(|_| ApiError::Unavailable {
                what: "webhooks.max_followers is reached: following events",
                retry_after_s: 5,
            })
    }
}
