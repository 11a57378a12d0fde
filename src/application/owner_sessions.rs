//! Dashboard sessions as owners of streams at playback: they may watch what is theirs without a token; how long a session is
//! remembered.
//!
//! A player asks several times a second, so what the database said of a session is remembered for [`REMEMBERED_FOR`]; a session
//! that has ended is rejected by then.

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

/// Accounts by the hash of the session's token.
type Remembered = HashMap<String, (Uuid, Instant)>;

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
        let mut db = store.read().await?;
        let found = sessions::authenticate(&mut db, token, now_ms()).await?;
        // Every role may watch.
        let account_id = found.map(|(_, user)| user.account_id);
        if let Some(account_id) = account_id {
            self.remember(hash, account_id, Instant::now());
        }
        Ok(account_id)
    }

    fn remembered(&self, hash: &str, now: Instant) -> Option<Uuid> {
        let remembered = self.0.lock();
        let (account_id, until) = remembered.get(hash)?;
        (now < *until).then_some(*account_id)
    }

    fn remember(&self, hash: String, account_id: Uuid, now: Instant) {
        let mut remembered = self.0.lock();
        if remembered.len() >= MOST_REMEMBERED {
            remembered.retain(|_, (_, until)| now < *until);
        }
        if remembered.len() < MOST_REMEMBERED {
            remembered.insert(hash, (account_id, now + REMEMBERED_FOR));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_remembered_for_a_short_time() {
        let (sessions, account, now) = (OwnerSessions::default(), Uuid::now_v7(), Instant::now());
        sessions.remember("hash".into(), account, now);
        let just_before = now + REMEMBERED_FOR - Duration::from_millis(1);
        assert_eq!(sessions.remembered("hash", just_before), Some(account));
        assert_eq!(sessions.remembered("hash", now + REMEMBERED_FOR), None);
        assert_eq!(sessions.remembered("other", now), None);
    }

    #[test]
    fn a_flood_of_sessions_is_bounded_and_leaves_again() {
        let (sessions, account, now) = (OwnerSessions::default(), Uuid::now_v7(), Instant::now());
        for number in 0..MOST_REMEMBERED + 5 {
            sessions.remember(number.to_string(), account, now);
        }
        assert_eq!(sessions.0.lock().len(), MOST_REMEMBERED);
        let later = now + REMEMBERED_FOR;
        sessions.remember("new".into(), account, later);
        assert_eq!(sessions.0.lock().len(), 1);
        assert_eq!(sessions.remembered("new", later), Some(account));
    }
}
