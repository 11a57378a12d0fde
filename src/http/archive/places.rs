//! How many archives there are at a time, and how much memory for them.

use std::{sync::Arc, time::Duration};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::{config, http::error::ApiError};

/// How long a request waits for its turn to list a folder.
const PATIENCE: Duration = Duration::from_secs(5);
const RETRY_AFTER_S: u64 = 5;
const KIB: u64 = 1024;

/// Shared by all archives. Permits, so that nothing is ever given back by hand.
#[derive(Debug)]
pub(in crate::http) struct Places {
    sent: Arc<Semaphore>,
    listed: Semaphore,
    /// A permit for each KiB.
    memory: Arc<Semaphore>,
    memory_kib: u64,
    max_entries: u32,
}

/// Memory for one list; given back when dropped.
#[derive(Debug)]
pub(super) struct Memory {
    all: Arc<Semaphore>,
    all_kib: u64,
    held: Option<OwnedSemaphorePermit>,
}

impl Places {
    pub(in crate::http) fn new(settings: &config::Archive) -> Self {
        let memory_kib = settings.memory.as_u64() / KIB;
        Self {
            sent: Arc::new(Semaphore::new(settings.max_active)),
            listed: Semaphore::new(settings.max_listed),
            memory: Arc::new(Semaphore::new(memory_kib as usize)),
            memory_kib,
            max_entries: settings.max_entries,
        }
    }

    /// A place for one archive, from its listing to its last byte.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        self.sent.clone().try_acquire_owned().map_err(|_| busy())
    }

    /// A turn to list a folder.
    pub(super) async fn turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        match tokio::time::timeout(PATIENCE, self.listed.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(busy()),
        }
    }

    pub(super) fn memory(&self) -> Memory {
        Memory {
            all: self.memory.clone(),
            all_kib: self.memory_kib,
            held: None,
        }
    }

    pub(super) fn max_entries(&self) -> u32 {
        self.max_entries
    }
}

impl Memory {
    /// Has at least so many bytes afterwards; 413 when that is more than there is for all archives, 503 when others have it.
    pub(super) fn grow_to(&mut self, bytes: usize) -> Result<(), ApiError> {
        let held_kib = self
            .held
            .as_ref()
            .map_or(0, |held| held.num_permits() as u64);
        let wanted_kib = (bytes as u64).div_ceil(KIB);
        if wanted_kib > self.all_kib {
            return Err(ApiError::TooLarge(format!(
                "the list of this folder's files takes more than archive.memory ({} KiB): download its folders one by one",
                self.all_kib
            )));
        }
        let Ok(more) = u32::try_from(wanted_kib.saturating_sub(held_kib)) else {
            return Err(busy());
        };
        if more == 0 {
            return Ok(());
        }
        let more = self.all.clone().try_acquire_many_owned(more);
        let more = more.map_err(|_| busy())?;
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        Ok(())
    }
}

fn busy() -> ApiError {
    ApiError::Unavailable {
        what: "the sending of archives",
        retry_after_s: RETRY_AFTER_S,
    }
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn memory_is_shared_and_given_back() {
        let places = Places::new(&config::Archive {
            memory: ByteSize::mib(1),
            ..config::Archive::default()
        });
        let (mut one, mut other) = (places.memory(), places.memory());
        one.grow_to(600 << 10).unwrap();
        one.grow_to(100 << 10).unwrap();
        assert!(matches!(
            other.grow_to(500 << 10),
            Err(ApiError::Unavailable { .. })
        ));
        assert!(matches!(
            other.grow_to((1 << 20) + 1),
            Err(ApiError::TooLarge(_))
        ));
        drop(one);
        other.grow_to(1 << 20).unwrap();
    }
}
