//! `[account]`: `plan`, `look_every`, `keep_audit`.

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
    /// Time for which entries of the audit log are kept.
    #[serde(with = "duration")]
    pub keep_audit: Duration,
}

impl Default for Account {
    fn default() -> Self {
        Self {
            plan: accounts::UNLIMITED.to_owned(),
            look_every: Duration::from_secs(1),
            keep_audit: Duration::from_secs(365 * 24 * 60 * 60),
        }
    }
}

impl Account {
    pub(super) fn check(&self) -> Result<(), String> {
        let range = Duration::from_millis(100)..=Duration::from_secs(60);
        if !range.contains(&self.look_every) {
            return Err("account.look_every must be between 100ms and 1m".into());
        }
        if self.keep_audit < Duration::from_secs(24 * 60 * 60) {
            return Err("account.keep_audit must be at least 1d".into());
        }
        Ok(())
    }
}
