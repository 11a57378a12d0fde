//! `GET /api/live/inputs/{id}/recordings` and `POST …/clips`: recordings of an input, clips of what is on air; length of a clip's
//! name.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use sluice_actors::recording::{ClipError, Moment, NewClip};
use sluice_store::{
    Listed, broadcasts,
    recordings::{self, Recording, RecordingFile},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    application::{
        answer::Timestamp,
        caller::{Caller, Read, Write},
        context::LiveContext,
        error::ApiError,
        field, filename,
        files::{record::FileRecord, record_of},
        live_inputs::find,
        page::next_cursor,
        reached::Reached,
    },
    http::extract::{Body, PageQuery},
};

/// Longest name of a clip, in characters.
const MAX_CLIP_NAME: usize = 200;

/// A recorded broadcast.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordingRecord {
    id: Uuid,
    live_input_id: Uuid,
    /// Name of the broadcast in the playlist's addresses.
    broadcast_id: String,
    /// `recording`, `processing`, `ready` or `failed`.
    status: &'static str,
    /// Reason why recording stopped before the broadcast's end, such as a full disk.
    stopped_reason: Option<String>,
    /// Reason why it failed, why it waits, or what it lacks: media that were lost.
    error: Option<String>,
    /// The most viewers of the broadcast at a time; null when they were not counted.
    peak_viewers: Option<u64>,
    /// One file, and a further one for each change of codecs or tracks.
    files: Vec<RecordingFileRecord>,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    ready_at: Option<Timestamp>,
}

/// A stored MP4 and the video stream that is made of it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordingFileRecord {
    /// Null: deleted.
    file_id: Option<Uuid>,
    /// Null: deleted, or the month's media operations were used up.
    stream_id: Option<Uuid>,
    filename: String,
    size_bytes: i64,
    /// In seconds.
    duration: f64,
    width: Option<u32>,
    height: Option<u32>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordingList {
    recordings: Vec<RecordingRecord>,
    next_cursor: Option<String>,
}

/// A clip to be made.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewClipRequest {
    /// Seconds from the broadcast's beginning, or a time (ISO 8601) as the playlist's `EXT-X-PROGRAM-DATE-TIME` has it.
    /// Negative seconds count from the live edge.
    #[serde(deserialize_with = "moment")]
    #[schema(value_type = f64, example = -30)]
    start: Moment,
    /// The same; the live edge without one.
    #[serde(default, deserialize_with = "moment_or_none")]
    #[schema(value_type = Option<f64>)]
    end: Option<Moment>,
    /// 1 to 200 characters; the input's name and the clip's place without one.
    #[serde(default)]
    filename: Option<String>,
}

/// A clip, as it came out.
#[derive(Serialize, ToSchema)]
pub struct ClipAnswer {
    file: FileRecord,
    /// Seconds from the broadcast's beginning: of the frame that it begins with, a key frame.
    start: f64,
    end: f64,
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Given {
        Seconds(f64),
        Time(String),
    }
    match Given::deserialize(deserializer) {
        Ok(Given::Seconds(seconds)) if seconds.is_finite() => Ok(Moment::Seconds(seconds)),
        Ok(Given::Time(text)) => match text.parse::<jiff::Timestamp>() {
            Ok(time) => Ok(Moment::Wall(time.as_millisecond())),
            Err(_) => Err(unreadable()),
        },
        _ => Err(unreadable()),
    }
}

fn unreadable<E: serde::de::Error>() -> E {
    E::custom("start and end must be seconds or ISO 8601 times")
}

fn moment_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Moment>, D::Error> {
    let given = Option::<serde_json::Value>::deserialize(deserializer)?;
    match given {
        Some(value) => moment(value).map(Some).map_err(D::Error::custom),
        None => Ok(None),
    }
}

/// List the recordings of a live input
///
/// Broadcasts of an input with `recordMode` `automatic`. A recording is stored once its broadcast is over, with the
/// webhooks `file.uploaded` and `live.input.recording.ready`. Deleting the input keeps the files and streams.
#[utoipa::path(get, path = "/api/live/inputs/{id}/recordings", tag = "live", params(
    ("id" = Uuid, Path, description = "The input's id"),
    ("limit" = Option<u32>, Query, description = "1 to 100"),
    ("cursor" = Option<String>, Query, description = "`nextCursor` of the page before"),
), responses((status = 200, description = "Newest first", body = RecordingList)))]
pub async fn recordings(
    context: web::Data<LiveContext>,
    caller: Caller<Read>,
    id: web::Path<Uuid>,
    PageQuery(page): PageQuery,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    let mut db = context.store.read().await?;
    let rows = recordings::list(&mut db, caller.account_id(), input.id, page).await?;
    let next_cursor = next_cursor(&rows, page, Listed::cursor);
    let mut recordings = Vec::with_capacity(rows.len());
    for row in rows {
        let files = recordings::files(&mut db, row.id).await?;
        let peak_viewers = broadcasts::peak_viewers(&mut db, &row.broadcast).await?;
        recordings.push(record(row, files, peak_viewers));
    }
    Ok(HttpResponse::Ok().json(RecordingList {
        recordings,
        next_cursor,
    }))
}

fn record(row: Recording, files: Vec<RecordingFile>, peak_viewers: Option<u64>) -> RecordingRecord {
    RecordingRecord {
        id: row.id,
        live_input_id: row.input_id,
        broadcast_id: row.broadcast,
        status: row.status.as_str(),
        stopped_reason: row.stopped_reason,
        error: row.error,
        peak_viewers,
        files: files.into_iter().map(file_record).collect(),
        started_at: Timestamp(row.started_at),
        ended_at: row.ended_at.map(Timestamp),
        ready_at: row.ready_at.map(Timestamp),
    }
}

fn file_record(file: RecordingFile) -> RecordingFileRecord {
    RecordingFileRecord {
        file_id: file.file_id,
        stream_id: file.stream_id,
        filename: file.filename,
        size_bytes: file.size_bytes,
        duration: file.duration_ms as f64 / 1_000.0,
        width: file.width,
        height: file.height,
    }
}

/// Make a clip of what is on air
///
/// Without re-encoding: it begins with the last key frame at or before `start`. It reaches back to the beginning of a broadcast
/// that is recorded, else as far as the playlist does. The clip is a stored file when the answer comes.
#[utoipa::path(post, path = "/api/live/inputs/{id}/clips", tag = "live", request_body = NewClipRequest,
    params(("id" = Uuid, Path, description = "The input's id")),
    responses(
        (status = 201, description = "The stored clip", body = ClipAnswer),
        (status = 400, description = "The range is empty, too long or not there", body = crate::application::error::ErrorBody),
        (status = 409, description = "Nothing is on air, or the codecs changed in between", body = crate::application::error::ErrorBody),
        (status = 507, description = "The disk is full", body = crate::application::error::ErrorBody)))]
pub async fn clip(
    context: web::Data<LiveContext>,
    caller: Caller<Write>,
    reached: Reached,
    id: web::Path<Uuid>,
    Body(request): Body<NewClipRequest>,
) -> Result<HttpResponse, ApiError> {
    let input = find(&context, caller.account_id(), *id).await?;
    let new = NewClip {
        start: request.start,
        end: request.end,
        filename: named(request.filename)?,
    };
    let playback = context
        .live
        .playback(&input.playback_id)
        .ok_or(ApiError::NotFound("live input"))?;
    let clip = context.recordings.clip(&input, &playback, new).await;
    let clip = clip.map_err(rejection)?;
    let file = record_of(&context, &reached, clip.file).await?;
    Ok(HttpResponse::Created().json(ClipAnswer {
        file,
        start: clip.start_s,
        end: clip.end_s,
    }))
}

fn named(given: Option<String>) -> Result<Option<String>, ApiError> {
    let Some(given) = field::words("filename", given, MAX_CLIP_NAME)? else {
        return Ok(None);
    };
    let name = filename::checked("filename", &given)?;
    Ok(Some(match name.to_ascii_lowercase().ends_with(".mp4") {
        true => name,
        false => format!("{name}.mp4"),
    }))
}

fn rejection(error: ClipError) -> ApiError {
    match error {
        ClipError::Range(message) => ApiError::Invalid(message),
        ClipError::Idle | ClipError::CodecChange => ApiError::Conflict(error.to_string()),
        ClipError::Busy => ApiError::Unavailable {
            what: "clips",
            retry_after_s: 1,
        },
        ClipError::Store(error) => error.into(),
    }
}
