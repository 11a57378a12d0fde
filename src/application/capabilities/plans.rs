//! `plans` of `GET /api/catalogue`: limits of the configured plans.

use serde::Serialize;
use utoipa::ToSchema;

use crate::config::Plan;

/// Limits of a plan; null: no bound.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanRecord {
    name: String,
    operations_per_month: Option<u64>,
    deliveries_per_month: Option<u64>,
    requests_per_minute: Option<u64>,
    files_per_batch: u32,
    image_upload_bytes: u64,
    video_upload_bytes: u64,
    /// Null: the disk is the bound.
    storage_bytes: Option<u64>,
}

impl From<(&String, &Plan)> for PlanRecord {
    fn from((name, plan): (&String, &Plan)) -> Self {
        let bound = |limit: u64| (limit > 0).then_some(limit);
        Self {
            name: name.clone(),
            operations_per_month: bound(plan.operations_per_month),
            deliveries_per_month: bound(plan.deliveries_per_month),
            requests_per_minute: bound(plan.requests_per_minute.into()),
            files_per_batch: plan.files_per_batch,
            image_upload_bytes: plan.image_upload.as_u64(),
            video_upload_bytes: plan.video_upload.as_u64(),
            storage_bytes: bound(plan.storage.as_u64()),
        }
    }
}
