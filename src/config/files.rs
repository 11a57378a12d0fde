//! `[files]`: `previews_per_account`.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Previews of one account's files that are rendered at a time for the account itself; more wait.
    pub previews_per_account: usize,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            previews_per_account: 4,
        }
    }
}

impl Files {
    pub(super) fn check(&self) -> Result<(), String> {
        match (1..=1_000).contains(&self.previews_per_account) {
            true => Ok(()),
            false => Err("files.previews_per_account must be between 1 and 1000".into()),
        }
    }
}
