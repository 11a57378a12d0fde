//! `/api/live/inputs/{id}/outputs`: add, list, show, change and remove the platforms to which an input is forwarded (`url`,
//! `enabled`).
//!
//! As with inputs, the row is committed first; the outputs then know it at once.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use sluice_actors::live::restream::masked;
use sluice_store::outputs::{self, Output};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::{Success, Timestamp},
        caller::{Caller, Read, Write},
        context::LiveContext,
        error::ApiError,
        live_inputs::{find, outputs as operations},
    },
    http::extract::Body,
};

/// An output to be made.
#[derive(Deserialize, ToSchema)]
pub struct NewLiveOutputRequest {
    /// `rtmp://host/app/key`, `rtmps://host/app/key` or `srt://host:port?streamid=…&passphrase=…&latency=…` (milliseconds).
    #[schema(example = "rtmps://live.example.com/app/key")]
    url: String,
    /// True when the stream is sent there (true).
    enabled: Option<bool>,
}

/// The fields to change.
#[derive(Default, Deserialize, ToSchema)]
#[serde(default)]
pub struct ChangeLiveOutput {
    /// Another target; from the answer on.
    url: Option<String>,
    /// `false` ends the target's stream; from the answer on.
    enabled: Option<bool>,
}

/// An output and its status. Counters begin with the service, and again when `url` or `enabled` change.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LiveOutputRecord {
    id: Uuid,
    live_input_id: Uuid,
    /// The stream key, stream id and passphrase show `••••` but in the answer of create.
    url: String,
    enabled: bool,
    /// `idle` (turned off, or nothing is on air), `connecting`, `live` or `waiting` (to be tried again, or for the encoder).
    status: &'static str,
    /// Time at which the status began.
    since: Option<Timestamp>,
    /// Reason why the last attempt failed; null once one succeeds.
    last_error: Option<String>,
    /// Tries after a failed one.
    retries: u64,
    sent_bytes: u64,
    /// Video frames and audio frames left out because the target was too slow.
    dropped_units: u64,
    /// Age of the media that were sent last.
    lag_ms: u64,
    created_at: Timestamp,
    updated_at: Timestamp,
}

#[derive(Serialize, ToSchema)]
pub struct LiveOutputAnswer {
    output: LiveOutputRecord,
}

#[derive(Serialize, ToSchema)]
pub struct LiveOutputList {
    outputs: Vec<LiveOutputRecord>,
}

fn record(context: &LiveContext, row: Output, url: String) -> LiveOutputRecord {
    let report = context.restreams.report(row.id);
    LiveOutputRecord {
        id: row.id,
        live_input_id: row.input_id,
        url,
        enabled: row.enabled,
        status: report.status.as_str(),
        since: report.since_ms.map(Timestamp),
        last_error: report.last_error,
        retries: report.retries,
        sent_bytes: report.sent_bytes,
        dropped_units: report.dropped_units,
        lag_ms: report.lag_ms,
        created_at: Timestamp(row.created_at),
        updated_at: Timestamp(row.updated_at),
    }
}

fn masked_record(context: &LiveContext, row: Output) -> LiveOutputRecord {
    let url = masked(&row.url);
    record(context, row, url)
}

fn answer(context: &LiveContext, row: Output) -> HttpResponse {
    HttpResponse::Ok().json(LiveOutputAnswer {
        output: masked_record(context, row),
    })
}

/// List the outputs of a live input
#[utoipa::path(get, path = "/api/live/inputs/{id}/outputs", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id")),
    responses((status = 200, description = "All of them, newest first, their secrets masked", body = LiveOutputList)))]
pub async fn outputs(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    let rows = outputs::list(&mut context.store.read().await?, input.id).await?;
    let outputs = rows
        .into_iter()
        .map(|row| masked_record(&context, row))
        .collect();
    Ok(HttpResponse::Ok().json(LiveOutputList { outputs }))
}

/// Add an output to a live input
///
/// Sends the stream to another platform or server, from now on and with every broadcast, without re-encoding. A target that cannot be reached
/// is tried again; none ever delays the input or its other outputs.
#[utoipa::path(post, path = "/api/live/inputs/{id}/outputs", tag = "live", request_body = NewLiveOutputRequest,
    params(("id" = Uuid, Path, description = "The input's id")),
    responses(
        (status = 201, description = "The output, its address in plain for the only time", body = LiveOutputAnswer),
        (status = 409, description = "The input, or the service, has as many as it may", body = crate::application::error::ErrorBody)))]
pub async fn add_output(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    id: web::Path<Uuid>,
    Body(request): Body<NewLiveOutputRequest>,
) -> Result<HttpResponse, ApiError> {
    let enabled = request.enabled.unwrap_or(true);
    let row = operations::add(&context, caller.account_id(), *id, request.url, enabled).await?;
    let url = row.url.clone();
    Ok(HttpResponse::Created().json(LiveOutputAnswer {
        output: record(&context, row, url),
    }))
}

/// Show an output
#[utoipa::path(get, path = "/api/live/inputs/{id}/outputs/{outputId}", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id"), ("outputId" = Uuid, Path, description = "The output's id")),
    responses((status = 200, description = "The output, its secrets masked", body = LiveOutputAnswer)))]
pub async fn output(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    path: web::Path<(Uuid, Uuid)>,
) -> Result<HttpResponse, ApiError> {
    let (input_id, id) = path.into_inner();
    let input = find(&context, caller.account_id(), input_id).await?;
    let row = outputs::get(&mut context.store.read().await?, input.id, id).await?;
    Ok(answer(&context, row))
}

/// Change an output
///
/// Only the fields given change. The masked address of a record that is sent back leaves it as it is.
#[utoipa::path(patch, path = "/api/live/inputs/{id}/outputs/{outputId}", tag = "live", request_body = ChangeLiveOutput,
    params(("id" = Uuid, Path, description = "The input's id"), ("outputId" = Uuid, Path, description = "The output's id")),
    responses((status = 200, description = "The output as it is now", body = LiveOutputAnswer)))]
pub async fn change_output(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    path: web::Path<(Uuid, Uuid)>,
    Body(request): Body<ChangeLiveOutput>,
) -> Result<HttpResponse, ApiError> {
    let (account_id, ids) = (caller.account_id(), path.into_inner());
    let row = operations::change(&context, account_id, ids, request.url, request.enabled).await?;
    Ok(answer(&context, row))
}

/// Remove an output
///
/// Ends the target's stream.
#[utoipa::path(delete, path = "/api/live/inputs/{id}/outputs/{outputId}", tag = "live",
    params(("id" = Uuid, Path, description = "The input's id"), ("outputId" = Uuid, Path, description = "The output's id")),
    responses((status = 200, description = "Removed", body = Success)))]
pub async fn remove_output(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    path: web::Path<(Uuid, Uuid)>,
) -> Result<HttpResponse, ApiError> {
    operations::remove(&context, caller.account_id(), path.into_inner()).await?;
    Ok(HttpResponse::Ok().json(Success::default()))
}
