//! `[changes]`: `max_followers`, for all, each account and each credential.

use serde::{Deserialize, Serialize};

/// Largest value of the settings; more connections than any machine holds.
const MOST_FOLLOWERS: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Changes {
    /// Clients that follow changes at a time.
    pub max_followers: usize,
    /// Those of one account among them.
    pub max_followers_per_account: usize,
    /// Those with one session or API key among them.
    pub max_followers_per_credential: usize,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            max_followers: 1_000,
            max_followers_per_account: 250,
            max_followers_per_credential: 16,
        }
    }
}

impl Changes {
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, value) in [
            ("max_followers", self.max_followers),
            ("max_followers_per_account", self.max_followers_per_account),
            (
                "max_followers_per_credential",
                self.max_followers_per_credential,
            ),
        ] {
            if !(1..=MOST_FOLLOWERS).contains(&value) {
                return Err(format!(
                    "changes.{key} must be between 1 and {MOST_FOLLOWERS}"
                ));
            }
        }
        Ok(())
    }
}
