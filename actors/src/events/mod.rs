//! Events that the service sends to webhooks and lists: writing of an event in the transaction of its change ([`emit`]).
//!
//! There is never an event without its change or a change without its event. A new kind of change adds its payload, its
//! resource in `payload.rs`, its row in `table.rs` and a call where it happens. Payloads carry neither secrets nor addresses
//! that depend on how the service was reached; they are described in `docs/reference/events.md`.

mod conversion;
mod file;
mod live;
mod payload;
pub(crate) mod recording_ready;
mod table;
#[cfg(test)]
pub(crate) mod tests;
mod video;
mod workflow;

use sluice_store::{
    Error, Tx,
    events::{self as outbox, NewEvent},
    files::File,
};
use uuid::Uuid;

pub use conversion::{
    ConversionCompleted, ConversionFailed, ConversionProgress, ConversionStarted, FailedFile,
    Failures, MOST_ENTRIES, MediaToolCompleted, MediaToolFailed, ResultFile, Results, error_text,
};
pub use file::FileUploaded;
pub use live::{LiveInputConnected, LiveInputDisconnected, LiveInputRecordingReady, Parting};
pub use table::{Event, EventType, known_types};
pub use video::VideoStream;
pub use workflow::{RunOutput, WorkflowCompleted, WorkflowFailed};

/// Writes an event with its deliveries, in the transaction of the change that it reports.
pub async fn emit(
    tx: &mut Tx<'_>,
    account_id: Uuid,
    event: &Event,
    now_ms: i64,
) -> Result<outbox::Event, Error> {
    emit_also(tx, account_id, event, Vec::new(), now_ms).await
}

/// [`emit`] with endpoints that get the event besides, whatever they subscribe to.
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

/// Emits `file.uploaded`, in the transaction that makes the file.
pub async fn file_stored(tx: &mut Tx<'_>, file: &File, now_ms: i64) -> Result<(), Error> {
    let event = Event::FileUploaded(file.into());
    emit(tx, file.account_id, &event, now_ms).await?;
    Ok(())
}
