//! `[shares]`: `failed_tokens`, `password_attempts`, `unlock_lifetime`, `max_counted`, `max_previews` of share links.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use sluice_media::setting::duration;

use super::at_least;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Shares {
    /// Different tokens that open no link, for one address inside `failed_token_window`.
    pub failed_tokens: u32,
    #[serde(with = "duration")]
    pub failed_token_window: Duration,
    /// Wrong passwords for one link from one network inside `password_window`, then 429.
    pub password_attempts: u32,
    /// Wrong passwords for all links from one network inside `password_window`, then 429.
    pub network_password_attempts: u32,
    #[serde(with = "duration")]
    pub password_window: Duration,
    /// Lifetime of the cookie that replaces the password.
    #[serde(with = "duration")]
    pub unlock_lifetime: Duration,
    /// Files that are added up for the size of a folder.
    pub max_counted: u32,
    /// Previews that are rendered at a time for all links; more wait.
    pub max_previews: usize,
}

impl Default for Shares {
    fn default() -> Self {
        Self {
            failed_tokens: 50,
            failed_token_window: Duration::from_secs(10 * 60),
            password_attempts: 10,
            network_password_attempts: 100,
            password_window: Duration::from_secs(15 * 60),
            unlock_lifetime: Duration::from_secs(12 * 3600),
            max_counted: 1_000_000,
            max_previews: 8,
        }
    }
}

impl Shares {
    pub(super) fn check(&self) -> Result<(), String> {
        if !(1..=1_000).contains(&self.failed_tokens) {
            return Err("shares.failed_tokens must be between 1 and 1000".into());
        }
        at_least("shares.password_attempts", self.password_attempts > 0, "1")?;
        if self.network_password_attempts == 0 {
            return Err("shares.network_password_attempts must be at least 1".into());
        }
        at_least("shares.max_counted", self.max_counted > 0, "1")?;
        at_least("shares.max_previews", self.max_previews > 0, "1")?;
        for (key, value) in [
            ("shares.failed_token_window", self.failed_token_window),
            ("shares.password_window", self.password_window),
            ("shares.unlock_lifetime", self.unlock_lifetime),
        ] {
            at_least(key, value.as_secs() > 0, "1s")?;
        }
        Ok(())
    }
}
