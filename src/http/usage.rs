//! `GET /api/usage` and `/api/usage/history`: use of the plan this month and by day; default and most `days`.

use actix_web::{HttpRequest, HttpResponse, web};
use serde::Serialize;
use sluice_store::{Month, deliveries, now_ms, operations, storage};
use url::form_urlencoded;
use utoipa::{ToSchema, openapi::OpenApi};

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Read},
        context::DeliveryContext,
        error::ApiError,
        field,
        reached::Reached,
        usage_history::{self, MOST_DAYS, UsageHistory},
    },
    config::{Config, Plan},
};

/// Days of a history when the client names no number.
const DEFAULT_DAYS: u32 = 30;

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// The name of the account's plan.
    plan: String,
    /// Media operations: files processed, and workflow runs.
    operations: Meter,
    /// Images delivered.
    deliveries: Meter,
    storage: Stored,
    limits: PlanLimits,
    /// Address at which a larger plan can be had.
    upgrade_url: String,
}

/// A monthly meter. Months are calendar months in UTC.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Meter {
    used: u64,
    /// Null: no bound.
    limit: Option<u64>,
    /// Null: no bound.
    remaining: Option<u64>,
    resets_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stored {
    files: u64,
    used_bytes: u64,
    /// Null: the disk is the bound.
    limit_bytes: Option<u64>,
}

/// Limits of the plan at a time.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanLimits {
    /// Null: no bound.
    requests_per_minute: Option<u64>,
    files_per_batch: u32,
    image_upload_bytes: u64,
    video_upload_bytes: u64,
}

impl Meter {
    fn new(used: u64, cap: u64, month: Month) -> Self {
        let limit = bound(cap);
        Self {
            used,
            limit,
            remaining: limit.map(|limit| limit.saturating_sub(used)),
            resets_at: Timestamp(month.ends_at()),
        }
    }
}

/// Adds the plans to the API's description.
pub(super) fn describe(document: &mut OpenApi, config: &Config) {
    let path = document.paths.paths.get_mut("/api/usage");
    if let Some(operation) = path.and_then(|path| path.get.as_mut()) {
        let plans = config.plans.iter();
        let lines: Vec<String> = plans.map(|(name, plan)| line(name, plan)).collect();
        operation.description = Some(format!(
            "An account has one of these plans:\n\n{}",
            lines.join("\n")
        ));
    }
}

fn line(name: &str, plan: &Plan) -> String {
    let count =
        |limit: u64| bound(limit).map_or_else(|| "any number of".to_owned(), |n| n.to_string());
    let storage = match plan.storage.as_u64() {
        0 => "the disk's".to_owned(),
        _ => plan.storage.display().si().to_string(),
    };
    format!(
        "- `{name}`: {} media operations and {} image deliveries a month, {} requests a minute, {} files at once; \
         images up to {}, videos up to {}; {storage} storage",
        count(plan.operations_per_month),
        count(plan.deliveries_per_month),
        count(plan.requests_per_minute.into()),
        plan.files_per_batch,
        plan.image_upload.display().si(),
        plan.video_upload.display().si(),
    )
}

/// Converts a limit of a plan, where 0 is "no bound".
fn bound(limit: u64) -> Option<u64> {
    (limit > 0).then_some(limit)
}

/// Show what is used
#[utoipa::path(get, path = "/api/usage", tag = "usage",
    responses((status = 200, description = "Both monthly meters, storage and plan", body = Usage)))]
pub async fn show(
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
    reached: Reached,
) -> Result<HttpResponse, ApiError> {
    let (plan, account_id, now) = (caller.plan(&context), caller.account_id(), now_ms());
    let mut db = context.store.read().await?;
    let operations = operations::used(&mut db, account_id, now).await?;
    let deliveries = deliveries::standing(&mut db, account_id, now).await?;
    // The store counts a block as used before it is; the meter knows what was delivered out of it by this process.
    let meter = context.images.meter();
    let delivered = match meter.published(account_id) {
        Some(quota) if context.store.cluster().is_solo() => quota.used,
        Some(quota) => {
            let by_all = deliveries.taken.saturating_sub(meter.held(account_id));
            by_all.max(quota.used)
        }
        None => deliveries.taken,
    };
    let stored = storage::totals(&mut db, account_id).await?;
    Ok(HttpResponse::Ok().json(Usage {
        plan: caller.plan_name().to_owned(),
        operations: Meter::new(
            operations.operations,
            plan.operations_per_month,
            operations.month,
        ),
        deliveries: Meter::new(delivered, plan.deliveries_per_month, deliveries.month),
        storage: Stored {
            files: stored.files,
            used_bytes: stored.bytes,
            limit_bytes: bound(plan.storage.as_u64()),
        },
        limits: PlanLimits {
            requests_per_minute: bound(u64::from(plan.requests_per_minute)),
            files_per_batch: plan.files_per_batch,
            image_upload_bytes: plan.image_upload.as_u64(),
            video_upload_bytes: plan.video_upload.as_u64(),
        },
        upgrade_url: reached.upgrade_url(&context),
    }))
}

/// Show usage by day
///
/// Media operations by kind, and deliveries by delivery key, of every day (UTC). An operation counts on the day on which it was asked
/// for, until it is rejected or fails. Exact to a second or two.
#[utoipa::path(get, path = "/api/usage/history", tag = "usage",
    params(("days" = Option<u32>, Query, description = "1 to 400, today included; 30 without one")),
    responses((status = 200, description = "Every day, the oldest first", body = UsageHistory)))]
pub async fn history(
    request: HttpRequest,
    context: web::Data<DeliveryContext>,
    caller: Caller<Read>,
) -> Result<HttpResponse, ApiError> {
    let days = wanted_days(request.query_string())?;
    let mut db = context.store.read().await?;
    let history = usage_history::history(&mut db, caller.account_id(), days).await?;
    Ok(HttpResponse::Ok().json(history))
}

/// Reads `days`: 1 to 400.
pub(super) fn wanted_days(query: &str) -> Result<u32, ApiError> {
    let given = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "days");
    let given = given.map(|(_, value)| value.parse::<i64>().unwrap_or(-1));
    Ok(field::within("days", given, 1..=MOST_DAYS)?.unwrap_or(DEFAULT_DAYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_bounded() {
        for (query, expected) in [
            ("", Some(30)),
            ("days=1", Some(1)),
            ("x=2&days=400", Some(400)),
            ("days=401", None),
            ("days=0", None),
            ("days=x", None),
            ("days=", None),
        ] {
            assert_eq!(wanted_days(query).ok(), expected, "{query}");
        }
    }
}
