//! Dashboard sessions as owners of streams at playback: they may watch what is theirs without a token; how long a session is
//! remembered.
//!
//! A player asks several times a second, so what the database said of a session is remembered for [`REMEMBERED_FOR`]; a session
//! that has ended is rejected by then. In a cluster the change log has the sessions of an account forgotten earlier.

use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use sluice_store::{Store, credentials, now_ms, sessions};
use uuid::Uuid;

use super::error::ApiError;

/// Time for which a session's account is not read again.
const REMEMBERED_FOR: Duration = Duration::from_secs(5);
/// Sessions that are remembered; the others are read at each request.
const MOST_REMEMBERED: usize = 4_096;

/// Accounts of the sessions that play.
#[derive(Debug, Default)]
pub(crate) struct OwnerSessions(Mutex<Remembered>);

#[derive(Debug, Default)]
struct Remembered {
    /// Accounts by the hash of the session's token, and until when.
    accounts: HashMap<String, (Uuid, Instant)>,
    /// Counts what was forgotten: what was read before that is not remembered after it.
    changes: u64,
}

impl OwnerSessions {
    /// Returns the account of the session with this token; `None` when there is no such session.
    pub async fn account_of(&self, store: &Store, token: &str) -> Result<Option<Uuid>, ApiError> {
        if !credentials::is_session_token(token) {
            return Ok(None);
        }
        let hash = credentials::hash(token);
        if let Some(account_id) = self.remembered(&hash, Instant::now()) {
            return Ok(Some(account_id));
        }
        let seen = self.0.lock().changes;
        let mut db = store.read().await?;
        let found = sessions::authenticate(&mut db, token, now_ms()).await?;
        // Every role may watch.
        let account_id = found.map(|(_, user)| user.account_id);
        if let Some(account_id) = account_id {
            self.remember(hash, account_id, Instant::now(), seen);
        }
        Ok(account_id)
    }

    /// Forgets the sessions of an account, or of all accounts, of which one may have ended.
    pub fn forget(&self, account_id: Option<Uuid>) {
        let mut remembered = self.0.lock();
        remembered.changes += 1;
        let is_other = |account: Uuid| account_id.is_some_and(|id| account != id);
        remembered
            .accounts
            .retain(|_, (account, _)| is_other(*account));
    }

    fn remembered(&self, hash: &str, now: Instant) -> Option<Uuid> {
        let remembered = self.0.lock();
        let (account_id, until) = remembered.accounts.get(hash)?;
        (now < *until).then_some(*account_id)
    }

    fn remember(&self, hash: String, account_id: Uuid, now: Instant, seen: u64) {
        let mut remembered = self.0.lock();
        if remembered.changes != seen {
            return;
        }
        let accounts = &mut remembered.accounts;
        if accounts.len() >= MOST_REMEMBERED {
            accounts.retain(|_, (_, until)| now < *until);
        }
        if accounts.len() < MOST_REMEMBERED {
            accounts.insert(hash, (account_id, now + REMEMBERED_FOR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_remembered_for_a_short_time() {
        let (sessions, account, now) = (OwnerSessions::default(), Uuid::now_v7(), Instant::now());
        sessions.remember("hash".into(), account, now, 0);
        let just_before = now + REMEMBERED_FOR - Duration::from_millis(1);
        assert_eq!(sessions.remembered("hash", just_before), Some(account));
        assert_eq!(sessions.remembered("hash", now + REMEMBERED_FOR), None);
        assert_eq!(sessions.remembered("other", now), None);
    }

    #[test]
    fn sessions_of_an_account_are_forgotten_also_while_they_are_read() {
        let (sessions, now) = (OwnerSessions::default(), Instant::now());
        let (account, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        sessions.remember("ended".into(), account, now, 0);
        sessions.remember("other".into(), other, now, 0);
        sessions.forget(Some(account));
        sessions.remember("read before".into(), account, now, 0);
        assert_eq!(sessions.remembered("ended", now), None);
        assert_eq!(sessions.remembered("read before", now), None);
        assert_eq!(sessions.remembered("other", now), Some(other));
        sessions.forget(None);
        assert_eq!(sessions.remembered("other", now), None);
    }

    #[test]
    fn a_flood_of_sessions_is_bounded_and_leaves_again() {
        let (sessions, account, now) = (OwnerSessions::default(), Uuid::now_v7(), Instant::now());
        for number in 0..MOST_REMEMBERED + 5 {
            sessions.remember(number.to_string(), account, now, 0);
        }
        assert_eq!(sessions.0.lock().accounts.len(), MOST_REMEMBERED);
        let later = now + REMEMBERED_FOR;
        sessions.remember("new".into(), account, later, 0);
        assert_eq!(sessions.0.lock().accounts.len(), 1);
        assert_eq!(sessions.remembered("new", later), Some(account));
    }
}
