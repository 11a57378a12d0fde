//! `[plans]`: limits of the plans `free`, `starter`, `pro`, `business`, `unlimited`. They are data, so that an operator can change
//! or add plans.

use std::{
    collections::BTreeMap,
    ops::{Deref, DerefMut},
};

use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use sluice_media::setting::size;
use sluice_store::jobs::Allowance;

/// Bounds of one plan. In the counts and in `storage`, 0 means no bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Plan {
    pub requests_per_minute: u32,
    pub operations_per_month: u64,
    pub deliveries_per_month: u64,
    pub files_per_batch: u32,
    #[serde(with = "size")]
    pub image_upload: ByteSize,
    #[serde(with = "size")]
    pub video_upload: ByteSize,
    #[serde(with = "size")]
    pub storage: ByteSize,
}

impl Default for Plan {
    /// `unlimited`: no monthly cap and no rate, the sizes of business, since every body has a bound.
    fn default() -> Self {
        Self {
            requests_per_minute: 0,
            operations_per_month: 0,
            deliveries_per_month: 0,
            files_per_batch: 1_000,
            image_upload: ByteSize::gb(2),
            video_upload: ByteSize::gb(10),
            storage: ByteSize(0),
        }
    }
}

impl Plan {
    /// Returns the limits that are stored with work of the account; images have the limits of its operations.
    pub fn allowance(&self) -> Allowance {
        Allowance {
            files: u64::from(self.files_per_batch),
            operations: self.operations_per_month,
            file_bytes: self.image_upload.as_u64(),
            storage_bytes: self.storage.as_u64(),
        }
    }
}

/// Plans by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Plans(BTreeMap<String, Plan>);

impl Deref for Plans {
    type Target = BTreeMap<String, Plan>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Plans {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Default for Plans {
    /// The plans of the specification, and `unlimited`.
    fn default() -> Self {
        let free = Plan {
            requests_per_minute: 30,
            operations_per_month: 500,
            deliveries_per_month: 5_000,
            files_per_batch: 5,
            image_upload: ByteSize::mb(50),
            video_upload: ByteSize::mb(500),
            storage: ByteSize::gb(1),
        };
        let starter = Plan {
            requests_per_minute: 120,
            operations_per_month: 5_000,
            deliveries_per_month: 50_000,
            files_per_batch: 25,
            image_upload: ByteSize::mb(500),
            video_upload: ByteSize::gb(2),
            storage: ByteSize::gb(10),
        };
        let pro = Plan {
            requests_per_minute: 600,
            operations_per_month: 50_000,
            deliveries_per_month: 500_000,
            files_per_batch: 100,
            image_upload: ByteSize::gb(1),
            video_upload: ByteSize::gb(5),
            storage: ByteSize::gb(50),
        };
        let business = Plan {
            requests_per_minute: 3_000,
            operations_per_month: 500_000,
            deliveries_per_month: 5_000_000,
            storage: ByteSize::gb(500),
            ..Plan::default()
        };
        let plans = [
            ("free", free),
            ("starter", starter),
            ("pro", pro),
            ("business", business),
            ("unlimited", Plan::default()),
        ]
        .map(|(name, plan)| (name.to_owned(), plan));
        Self(plans.into())
    }
}
