//! Conversion jobs: reading of `fileIds`, finding a job with its results.

pub(crate) mod material;
pub(crate) mod record;
pub(crate) mod submission;

use serde_json::{Map, Value};
use sluice_store::jobs;
use uuid::Uuid;

use crate::application::{
    context::JobContext,
    error::ApiError,
    jobs::{
        material::Material,
        record::{JobRecord, Records},
    },
    reached::Reached,
};

pub(crate) async fn stored_files(
    context: &JobContext,
    account_id: Uuid,
    body: &Map<String, Value>,
    most: usize,
) -> Result<Vec<Material>, ApiError> {
    let rejection =
        || invalid!("fileIds must be an array with the ids of at most {most} stored files");
    let ids = match body.get("fileIds") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(ids)) if ids.len() <= most => ids,
        Some(_) => return Err(rejection()),
    };
    let mut files = Vec::new();
    for id in ids {
        let id = id.as_str().and_then(|id| Uuid::try_parse(id).ok());
        files.push(Material::stored(context, account_id, id.ok_or_else(rejection)?).await?);
    }
    Ok(files)
}

/// Finds a job of the account, with its results so far.
pub(crate) async fn find(
    context: &JobContext,
    account_id: Uuid,
    reached: &Reached,
    id: Uuid,
) -> Result<JobRecord, ApiError> {
    let job = jobs::get(&mut context.store.read().await?, account_id, id).await?;
    record_of(context, reached, &job).await
}

pub(crate) async fn record_of(
    context: &JobContext,
    reached: &Reached,
    job: &jobs::Job,
) -> Result<JobRecord, ApiError> {
    let items = jobs::items(&mut context.store.read().await?, job.id).await?;
    let records = Records::new(context, reached).await?;
    Ok(records.job(job, Some(&items)))
}
