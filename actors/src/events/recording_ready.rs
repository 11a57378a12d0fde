//! Event `live.input.recording.ready`: one for each file of a recording, in the transaction that ends its video stream.

use sluice_store::{
    Error, Tx,
    recordings::{self, Recording, RecordingFile},
};
use uuid::Uuid;

use crate::events::{self, Event, LiveInputRecordingReady};

/// Emits the event of the recording whose video stream has ended, well or not, or is about to be deleted.
pub(crate) async fn stream_ended(
    tx: &mut Tx<'_>,
    stream_id: Uuid,
    now_ms: i64,
) -> Result<(), Error> {
    match recordings::stream_ended(tx, stream_id, now_ms).await? {
        Some((recording, file)) => ready(tx, &recording, &file, now_ms).await,
        None => Ok(()),
    }
}

/// Emits the event of a recording's file once its stream, if any, has ended; nothing when the file was deleted meanwhile.
pub(crate) async fn ready(
    tx: &mut Tx<'_>,
    recording: &Recording,
    file: &RecordingFile,
    now_ms: i64,
) -> Result<(), Error> {
    let Some(file_id) = file.file_id else {
        return Ok(());
    };
    let event = Event::LiveInputRecordingReady(LiveInputRecordingReady {
        live_input_id: recording.input_id,
        name: recording.input_name.clone(),
        playback_id: recording.playback_id.clone(),
        broadcast_id: recording.broadcast.clone(),
        file_id,
        stream_id: file.stream_id,
        filename: file.filename.clone(),
        size_bytes: file.size_bytes.unsigned_abs(),
        duration: Some(file.duration_ms as f64 / 1_000.0),
    });
    events::emit(tx, recording.account_id, &event, now_ms).await?;
    Ok(())
}
