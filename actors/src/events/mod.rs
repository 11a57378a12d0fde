//! Events: every type that the service sends, with its payload, and the one way to write one down.
//!
//! An event is written in the transaction of the change that it reports ([`emit`]), so that there is never one without the
//! other. A new kind of change adds its variant here and a call where it happens. Payloads carry neither secrets nor
//! addresses that depend on how the service was reached; they are described in `docs/reference/events.md`.

mod conversion;
mod file;
mod live;
pub(crate) mod recording_ready;
#[cfg(test)]
pub(crate) mod tests;
mod video;
mod workflow;

use serde_json::{Map, Value};
use sluice_store::{
    Error, Tx,
    events::{self as outbox, Audience, EventPosition, NewEvent},
    files::File,
};
use uuid::Uuid;

pub use conversion::{
    ConversionCompleted, ConversionFailed, ConversionProgress, ConversionStarted, FailedFile,
    Failures, MOST_ENTRIES, MediaToolCompleted, MediaToolFailed, ResultFile, Results, error_text,
};
pub use file::FileUploaded;
pub use live::{LiveInputConnected, LiveInputDisconnected, LiveInputRecordingReady, Parting};
pub use video::VideoStream;
pub use workflow::{RunOutput, WorkflowCompleted, WorkflowFailed};

/// A type of event to which an endpoint can subscribe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventType {
    pub name: &'static str,
    /// Sent to those endpoints only that name it; `*` does not.
    pub is_opt_in: bool,
    /// When it is sent, in a sentence without a full stop.
    pub summary: &'static str,
}

const fn listed(name: &'static str, summary: &'static str) -> EventType {
    EventType {
        name,
        is_opt_in: false,
        summary,
    }
}

const fn opt_in(name: &'static str, summary: &'static str) -> EventType {
    EventType {
        name,
        is_opt_in: true,
        summary,
    }
}

/// The list of the specification (interface.md §6), then those beside it (decisions.md §9).
static TYPES: [EventType; 15] = [
    listed(
        "conversion.started",
        "a batch conversion or compression begins processing",
    ),
    listed("conversion.progress", "each file in a batch finishes"),
    listed(
        "conversion.completed",
        "all files in a batch complete successfully",
    ),
    listed("conversion.failed", "a conversion or compression job fails"),
    listed(
        "file.uploaded",
        "an original, uploaded or converted file is stored",
    ),
    listed(
        "media.tool.completed",
        "a media tool request completes (thumbnail, watermark, PDF preview, trim, GIF and others)",
    ),
    listed(
        "media.tool.failed",
        "a media tool request fails after authentication",
    ),
    listed(
        "video.stream.started",
        "an HLS video stream asset starts processing",
    ),
    listed(
        "video.stream.ready",
        "manifest, renditions, segments and poster frame are ready for playback",
    ),
    listed(
        "video.stream.failed",
        "a video stream asset fails during processing",
    ),
    listed(
        "workflow.completed",
        "a workflow run completes and delivers its configured webhook step",
    ),
    opt_in("workflow.failed", "a workflow run fails or is cancelled"),
    opt_in(
        "live.input.connected",
        "an encoder begins to publish to a live input",
    ),
    opt_in(
        "live.input.disconnected",
        "an encoder that published to a live input is gone",
    ),
    opt_in(
        "live.input.recording.ready",
        "the recording of a broadcast is stored",
    ),
];

/// Every type to which an endpoint can subscribe, those of the specification first.
pub fn known_types() -> &'static [EventType] {
    &TYPES
}

/// What happened. `webhook.test` is not among these: an endpoint's owner asks for it, and the store writes it down
/// ([`sluice_store::webhooks::test`]).
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    FileUploaded(FileUploaded),
    ConversionStarted(ConversionStarted),
    ConversionProgress(ConversionProgress),
    ConversionCompleted(ConversionCompleted),
    ConversionFailed(ConversionFailed),
    MediaToolCompleted(MediaToolCompleted),
    MediaToolFailed(MediaToolFailed),
    VideoStreamStarted(VideoStream),
    VideoStreamReady(VideoStream),
    VideoStreamFailed(VideoStream),
    WorkflowCompleted(WorkflowCompleted),
    WorkflowFailed(WorkflowFailed),
    LiveInputConnected(LiveInputConnected),
    LiveInputDisconnected(LiveInputDisconnected),
    LiveInputRecordingReady(LiveInputRecordingReady),
}

impl Event {
    /// Its name on the wire.
    pub fn event_type(&self) -> &'static str {
        match self {
            Self::FileUploaded(_) => "file.uploaded",
            Self::ConversionStarted(_) => "conversion.started",
            Self::ConversionProgress(_) => "conversion.progress",
            Self::ConversionCompleted(_) => "conversion.completed",
            Self::ConversionFailed(_) => "conversion.failed",
            Self::MediaToolCompleted(_) => "media.tool.completed",
            Self::MediaToolFailed(_) => "media.tool.failed",
            Self::VideoStreamStarted(_) => "video.stream.started",
            Self::VideoStreamReady(_) => "video.stream.ready",
            Self::VideoStreamFailed(_) => "video.stream.failed",
            Self::WorkflowCompleted(_) => "workflow.completed",
            Self::WorkflowFailed(_) => "workflow.failed",
            Self::LiveInputConnected(_) => "live.input.connected",
            Self::LiveInputDisconnected(_) => "live.input.disconnected",
            Self::LiveInputRecordingReady(_) => "live.input.recording.ready",
        }
    }

    /// Whether endpoints must name it to get it.
    pub fn is_opt_in(&self) -> bool {
        let name = self.event_type();
        TYPES
            .iter()
            .any(|known| known.name == name && known.is_opt_in)
    }

    /// The resource that it is about, and its place among the events about that.
    fn subject(&self) -> (String, EventPosition) {
        match self {
            Self::FileUploaded(file) => (format!("file:{}", file.file_id), EventPosition::Only),
            Self::ConversionStarted(job) => (format!("job:{}", job.job_id), EventPosition::Next),
            Self::ConversionProgress(job) => (format!("job:{}", job.job_id), EventPosition::Next),
            Self::ConversionCompleted(job) => (format!("job:{}", job.job_id), EventPosition::Last),
            Self::ConversionFailed(job) => (format!("job:{}", job.job_id), EventPosition::Last),
            Self::MediaToolCompleted(job) => (format!("job:{}", job.job_id), EventPosition::Only),
            Self::MediaToolFailed(job) => match job.job_id {
                Some(job_id) => (format!("job:{job_id}"), EventPosition::Only),
                None => (format!("rejection:{}", Uuid::now_v7()), EventPosition::Only),
            },
            Self::VideoStreamStarted(stream) => {
                (format!("stream:{}", stream.stream_id), EventPosition::Next)
            }
            Self::VideoStreamReady(stream) | Self::VideoStreamFailed(stream) => {
                (format!("stream:{}", stream.stream_id), EventPosition::Last)
            }
            Self::WorkflowCompleted(run) => (format!("run:{}", run.run_id), EventPosition::Last),
            // It may be tried again.
            Self::WorkflowFailed(run) => (format!("run:{}", run.run_id), EventPosition::Next),
            Self::LiveInputConnected(live) => {
                (of_live_input(live.live_input_id), EventPosition::Next)
            }
            Self::LiveInputDisconnected(live) => {
                let place = match live.reason {
                    Parting::Deleted => EventPosition::Last,
                    _ => EventPosition::Next,
                };
                (of_live_input(live.connection.live_input_id), place)
            }
            Self::LiveInputRecordingReady(live) => {
                (of_live_input(live.live_input_id), EventPosition::Next)
            }
        }
    }

    fn audience(&self) -> Audience {
        match self.is_opt_in() {
            true => Audience::ThoseWhoNameIt,
            false => Audience::Everyone,
        }
    }

    /// The payload, without what the store adds.
    fn data(&self) -> Map<String, Value> {
        let data = match self {
            Self::FileUploaded(data) => serde_json::to_value(data),
            Self::ConversionStarted(data) => serde_json::to_value(data),
            Self::ConversionProgress(data) => serde_json::to_value(data),
            Self::ConversionCompleted(data) => serde_json::to_value(data),
            Self::ConversionFailed(data) => serde_json::to_value(data),
            Self::MediaToolCompleted(data) => serde_json::to_value(data),
            Self::MediaToolFailed(data) => serde_json::to_value(data),
            Self::VideoStreamStarted(data)
            | Self::VideoStreamReady(data)
            | Self::VideoStreamFailed(data) => serde_json::to_value(data),
            Self::WorkflowCompleted(data) => serde_json::to_value(data),
            Self::WorkflowFailed(data) => serde_json::to_value(data),
            Self::LiveInputConnected(data) => serde_json::to_value(data),
            Self::LiveInputDisconnected(data) => serde_json::to_value(data),
            Self::LiveInputRecordingReady(data) => serde_json::to_value(data),
        };
        match data {
            Ok(Value::Object(data)) => data,
            _ => unreachable!("payloads are structs with text keys"),
        }
    }
}

fn of_live_input(id: Uuid) -> String {
    format!("live-input:{id}")
}

/// Writes an event down, with its deliveries, in the transaction of the change that it reports.
pub async fn emit(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    event: &Event,
    now_ms: i64,
) -> Result<outbox::Event, Error> {
    emit_also(tx, account_id, event, Vec::new(), now_ms).await
}

/// As [`emit`]; those endpoints get it besides, whatever they subscribe to.
pub async fn emit_also(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    event: &Event,
    also: Vec<Uuid>,
    now_ms: i64,
) -> Result<outbox::Event, Error> {
    let (resource, place) = event.subject();
    let new = NewEvent {
        account_id,
        event_type: event.event_type(),
        audience: event.audience(),
        also,
        resource,
        place,
        data: event.data(),
    };
    outbox::append(tx, new, now_ms).await
}

/// `file.uploaded`, in the transaction that makes the file.
pub async fn file_stored(tx: &mut Tx<'_>, file: &File, now_ms: i64) -> Result<(), Error> {
    let event = Event::FileUploaded(file.into());
    emit(tx, file.account_id, &event, now_ms).await?;
    Ok(())
}
