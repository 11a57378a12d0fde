//! Limits of ZIP archives (`[archive]`): `max_active`, `max_per_account`, `max_listed`, `memory`; wait for a permit to list,
//! `Retry-After`.

use std::{sync::Arc, time::Duration};

use sluice_actors::network::{KeyedLimit, KeyedPermit};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use uuid::Uuid;

use crate::{application::error::ApiError, config};

/// Longest wait of a request for a permit to list a folder.
const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// `Retry-After` when there is no permit or no memory.
const RETRY_AFTER_S: u64 = 5;
const KIB: u64 = 1024;

/// Limits shared by all archives. Permits are returned when dropped.
#[derive(Debug)]
pub(crate) struct ArchiveLimiter {
    sent: Arc<Semaphore>,
    accounts: Arc<KeyedLimit<Uuid>>,
    listed: Semaphore,
    /// A permit for each KiB.
    memory: Arc<Semaphore>,
    memory_kib: u64,
    max_entries: u32,
}

/// Permit to send one archive.
#[derive(Debug)]
pub(crate) struct ArchivePermit {
    _of_account: KeyedPermit<Uuid>,
    _one_of_all: OwnedSemaphorePermit,
}

/// Memory for one list.
#[derive(Debug)]
pub(crate) struct Memory {
    all: Arc<Semaphore>,
    all_kib: u64,
    held: Option<OwnedSemaphorePermit>,
}

impl ArchiveLimiter {
    pub(crate) fn new(settings: &config::Archive) -> Self {
        let memory_kib = settings.memory.as_u64() / KIB;
        Self {
            sent: Arc::new(Semaphore::new(settings.max_active)),
            accounts: KeyedLimit::new(settings.max_per_account),
            listed: Semaphore::new(settings.max_listed),
            memory: Arc::new(Semaphore::new(memory_kib as usize)),
            memory_kib,
            max_entries: settings.max_entries,
        }
    }

    /// Returns the permit for one archive of the account, from its listing to its last byte; 503 when there is none.
    pub(crate) fn place(&self, account_id: Uuid) -> Result<ArchivePermit, ApiError> {
        let one_of_all = self.sent.clone().try_acquire_owned().map_err(|_| busy())?;
        let of_account = self.accounts.take(account_id);
        Ok(ArchivePermit {
            _of_account: of_account
                .ok_or_else(|| unavailable("the sending of this account's archives"))?,
            _one_of_all: one_of_all,
        })
    }

    /// Waits for a permit to list a folder; 503 after `LONGEST_WAIT`.
    pub(crate) async fn turn(&self) -> Result<SemaphorePermit<'_>, ApiError> {
        match tokio::time::timeout(LONGEST_WAIT, self.listed.acquire()).await {
            Ok(Ok(turn)) => Ok(turn),
            _ => Err(busy()),
        }
    }

    pub(crate) fn memory(&self) -> Memory {
        Memory {
            all: self.memory.clone(),
            all_kib: self.memory_kib,
            held: None,
        }
    }

    pub(crate) fn max_entries(&self) -> u32 {
        self.max_entries
    }
}

impl Memory {
    /// Raises the memory held to `bytes`, rounded up to KiB; 413 when that exceeds the bound for all archives, 503 when
    /// other archives hold it.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<(), ApiError> {
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
        if let Some(held) = &mut self.held
            && wanted_kib < held_kib
        {
            drop(held.split((held_kib - wanted_kib) as usize));
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
    unavailable("the sending of archives")
}

fn unavailable(what: &'static str) -> ApiError {
    ApiError::Unavailable {
        what,
        retry_after_s: RETRY_AFTER_S,
    }
}

#[cfg(test)]
mod tests {
    use bytesize::ByteSize;

    use super::*;

    #[test]
    fn memory_is_shared_and_given_back() {
        let places = ArchiveLimiter::new(&config::Archive {
            memory: ByteSize::mib(1),
            ..config::Archive::default()
        });
        let (mut one, mut other) = (places.memory(), places.memory());
        one.hold(100 << 10).unwrap();
        one.hold(600 << 10).unwrap();
        assert!(matches!(
            other.hold(500 << 10),
            Err(ApiError::Unavailable { .. })
        ));
        assert!(matches!(
            other.hold((1 << 20) + 1),
            Err(ApiError::TooLarge(_))
        ));
        one.hold(500 << 10).unwrap();
        other.hold(500 << 10).unwrap();
        drop(one);
        other.hold(1 << 20).unwrap();
    }

    #[test]
    fn an_account_has_its_share_of_the_places_only() {
        let places = ArchiveLimiter::new(&config::Archive {
            max_active: 3,
            max_per_account: 2,
            ..config::Archive::default()
        });
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = places.place(one).unwrap();
        let second = places.place(one).unwrap();
        let rejected = places.place(one).unwrap_err();
        assert!(rejected.to_string().contains("this account"), "{rejected}");
        let third = places.place(other).unwrap();
        let rejected = places.place(other).unwrap_err();
        assert!(!rejected.to_string().contains("this account"), "{rejected}");
        drop(first);
        let again = places.place(one).unwrap();
        drop((second, third, again));
        assert!(places.accounts.is_empty());
        assert_eq!(places.sent.available_permits(), 3);
    }
}
