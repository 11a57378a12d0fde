//! Limits of followers of changes (`[changes]` `max_followers`, per account, per credential), and validity of their credentials.
//!
//! Followers with one credential share the answer to that question: many tabs of a browser ask the database once.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::Hash,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::{application::error::ApiError, config::Changes};

/// Time for which a credential counts as valid without a look at the database. One that ends in this process is looked at
/// at once.
const VALID_FOR: Duration = Duration::from_secs(10);
/// `Retry-After` beyond the limits.
const RETRY_AFTER_S: u64 = 5;

/// Names a credential without revealing it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CredentialId {
    Key(Uuid),
    /// The hash of its token.
    Session(String),
}

/// Limits followers, with bounds for all, for each account and for each credential.
#[derive(Debug)]
pub(crate) struct FollowerLimiter {
    bounds: Changes,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_account: HashMap<Uuid, usize>,
    by_credential: HashMap<CredentialId, (usize, Arc<Validity>)>,
}

/// Validity of a credential when that was last looked at.
type Validity = tokio::sync::Mutex<Look>;

#[derive(Debug)]
struct Look {
    at: Instant,
    /// The number of the newest change that it has seen.
    seen: u64,
    is_valid: bool,
}

/// The right to follow until it is dropped.
#[derive(Debug)]
pub(crate) struct FollowerPermit {
    limiter: Arc<FollowerLimiter>,
    account_id: Uuid,
    credential: CredentialId,
    validity: Arc<Validity>,
}

impl FollowerLimiter {
    pub(crate) fn new(bounds: Changes) -> Self {
        Self {
            bounds,
            taken: Mutex::default(),
        }
    }

    /// Takes a permit for a credential that was just admitted.
    pub(crate) fn take(
        self: &Arc<Self>,
        account_id: Uuid,
        credential: CredentialId,
    ) -> Result<FollowerPermit, ApiError> {
        let mut taken = self.taken.lock();
        if taken.all >= self.bounds.max_followers {
            return Err(ApiError::Unavailable {
                what: "changes.max_followers is reached: following changes",
                retry_after_s: RETRY_AFTER_S,
            });
        }
        let of_account = taken.by_account.get(&account_id).copied().unwrap_or(0);
        if of_account >= self.bounds.max_followers_per_account {
            return Err(too_many(
                "this account follows changes with as many connections as changes.max_followers_per_account allows: close some",
            ));
        }
        let of_credential = taken.by_credential.get(&credential);
        if of_credential
            .is_some_and(|(count, _)| *count >= self.bounds.max_followers_per_credential)
        {
            return Err(too_many(
                "this session or key follows changes with as many connections as changes.max_followers_per_credential allows: close some",
            ));
        }
        taken.all += 1;
        *taken.by_account.entry(account_id).or_default() += 1;
        let (count, validity) = taken
            .by_credential
            .entry(credential.clone())
            .or_insert_with(|| (0, Arc::new(Validity::new(Look::just_admitted()))));
        *count += 1;
        let validity = validity.clone();
        drop(taken);
        Ok(FollowerPermit {
            limiter: self.clone(),
            account_id,
            credential,
            validity,
        })
    }

    fn give_back(&self, permit: &FollowerPermit) {
        let mut taken = self.taken.lock();
        taken.all -= 1;
        leave(&mut taken.by_account, permit.account_id, |count| count);
        leave(
            &mut taken.by_credential,
            permit.credential.clone(),
            |(count, _)| count,
        );
    }
}

/// Counts one less; without any the entry goes.
fn leave<K: Eq + Hash, V>(counts: &mut HashMap<K, V>, key: K, count_of: fn(&mut V) -> &mut usize) {
    if let Entry::Occupied(mut entry) = counts.entry(key) {
        let count = count_of(entry.get_mut());
        *count -= 1;
        if *count == 0 {
            entry.remove();
        }
    }
}

fn too_many(message: &'static str) -> ApiError {
    ApiError::TooMany {
        message,
        retry_after_s: RETRY_AFTER_S,
    }
}

impl Look {
    fn just_admitted() -> Self {
        Self {
            at: Instant::now(),
            seen: 0,
            is_valid: true,
        }
    }
}

impl FollowerPermit {
    /// Returns whether the credential is still valid, by `look` when that was not looked at lately. `since`: the number of
    /// a change that may have ended it.
    pub(crate) async fn is_valid(
        &self,
        since: Option<u64>,
        look: impl Future<Output = bool>,
    ) -> bool {
        let mut known = self.validity.lock().await;
        let is_outdated = since.is_some_and(|since| known.seen < since);
        if known.is_valid && (is_outdated || known.at.elapsed() >= VALID_FOR) {
            known.at = Instant::now();
            known.seen = since.unwrap_or(known.seen);
            known.is_valid = look.await;
        }
        known.is_valid
    }
}

impl Drop for FollowerPermit {
    fn drop(&mut self) {
        self.limiter.give_back(self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limiter(
        max_followers: usize,
        per_account: usize,
        per_credential: usize,
    ) -> Arc<FollowerLimiter> {
        Arc::new(FollowerLimiter::new(Changes {
            max_followers,
            max_followers_per_account: per_account,
            max_followers_per_credential: per_credential,
        }))
    }

    fn key(number: u128) -> CredentialId {
        CredentialId::Key(Uuid::from_u128(number))
    }

    fn bound(rejected: Result<FollowerPermit, ApiError>) -> String {
        rejected.map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn permits_are_bounded_for_all_for_accounts_and_for_credentials() {
        let limiter = limiter(4, 3, 2);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = limiter.take(one, key(1)).unwrap();
        let _second = limiter.take(one, key(1)).unwrap();
        let rejected = bound(limiter.take(one, key(1)));
        assert!(rejected.contains("per_credential"), "{rejected}");
        let _third = limiter.take(one, key(2)).unwrap();
        let rejected = bound(limiter.take(one, key(3)));
        assert!(rejected.contains("per_account"), "{rejected}");
        let fourth = limiter.take(other, key(4)).unwrap();
        let rejected = bound(limiter.take(other, key(4)));
        assert!(rejected.contains("changes.max_followers is"), "{rejected}");
        drop((first, fourth));
        let again = [limiter.take(one, key(1)), limiter.take(other, key(4))];
        assert!(again.iter().all(Result::is_ok));
        drop(again);
        let taken = limiter.taken.lock();
        assert_eq!((taken.all, taken.by_account.len()), (2, 1));
    }
}
