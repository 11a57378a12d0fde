//! `[account]`: what holds for all accounts.

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
}

impl Default for Account {
    fn default() -> Self {
        Self {
            plan: accounts::UNLIMITED.to_owned(),
            look_every: Duration::from_secs(1),
        }
    }
}

impl Account {
    pub(super) fn check(&self) -> Result<(), String> {
        let range = Duration::from_millis(100)..=Duration::from_secs(60);
        if !range.contains(&self.look_every) {
            return Err("account.look_every must be between 100ms and 1m".into());
        }
        Ok(())
    }
}
