//! `[account]`: `plan`, `look_every`, `max_users`, `max_invitations`, `keep_audit`, `max_audit`.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;
use sluice_store::accounts;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Account {
    /// Plan of the first account, and of accounts that are made without one.
    pub plan: String,
    /// Interval at which the service looks for accounts that were suspended or resumed by the command line.
    #[serde(with = "duration")]
    pub look_every: Duration,
    /// Users of one account; an invitation beyond them cannot be used.
    pub max_users: u32,
    /// Invitations of one account that can be used.
    pub max_invitations: u32,
    /// Time for which entries of the audit log are kept.
    #[serde(with = "duration")]
    pub keep_audit: Duration,
    /// Entries of the audit log of one account; the oldest are deleted.
    pub max_audit: u32,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            plan: accounts::UNLIMITED.to_owned(),
            look_every: Duration::from_secs(1),
            max_users: 200,
            max_invitations: 50,
            keep_audit: Duration::from_secs(365 * 24 * 60 * 60),
            max_audit: 200_000,
        }
    }
}

impl Account {
    pub(super) fn check(&self) -> Result<(), String> {
        let range = Duration::from_millis(100)..=Duration::from_secs(60);
        if !range.contains(&self.look_every) {
            return Err("account.look_every must be between 100ms and 1m".into());
        }
        if !(1..=1_000).contains(&self.max_users) {
            return Err("account.max_users must be 1 to 1000".into());
        }
        if !(1..=1_000).contains(&self.max_invitations) {
            return Err("account.max_invitations must be 1 to 1000".into());
        }
        if !(1_000..=1_000_000).contains(&self.max_audit) {
            return Err("account.max_audit must be 1000 to 1000000".into());
        }
        if self.keep_audit < Duration::from_secs(24 * 60 * 60) {
            return Err("account.keep_audit must be at least 1d".into());
        }
        Ok(())
    }
}
