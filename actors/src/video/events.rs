//! Events of video streams (`video.stream.started`, `.ready`, `.failed`), each in the transaction of its change;
//! `manifestUrl`.

use sluice_store::{
    Error, Tx,
    video::{Access, Stream},
};

use crate::events::{self, Event, VideoStream, error_text, recording_ready::stream_ended};

/// Emits that work on the stream begins for the first time.
pub(super) async fn started(tx: &mut Tx<'_>, stream: &Stream, now_ms: i64) -> Result<(), Error> {
    let event = Event::VideoStreamStarted(payload(stream));
    emit(tx, stream, event, now_ms).await
}

/// Emits that the stream is ready. `base_url`: the service's public address, or empty.
pub(super) async fn ready(
    tx: &mut Tx<'_>,
    stream: &Stream,
    base_url: &str,
    now_ms: i64,
) -> Result<(), Error> {
    let event = Event::VideoStreamReady(VideoStream {
        manifest_url: manifest_url(stream, base_url),
        ..payload(stream)
    });
    emit(tx, stream, event, now_ms).await?;
    stream_ended(tx, stream.id, now_ms).await
}

/// Emits that the stream has failed.
pub(super) async fn failed(tx: &mut Tx<'_>, stream: &Stream, now_ms: i64) -> Result<(), Error> {
    let event = Event::VideoStreamFailed(payload(stream));
    emit(tx, stream, event, now_ms).await?;
    stream_ended(tx, stream.id, now_ms).await
}

async fn emit(tx: &mut Tx<'_>, stream: &Stream, event: Event, now_ms: i64) -> Result<(), Error> {
    events::emit(tx, stream.account_id, &event, now_ms).await?;
    Ok(())
}

fn payload(stream: &Stream) -> VideoStream {
    VideoStream {
        stream_id: stream.id,
        playback_id: stream.playback_id.clone(),
        status: stream.status.as_str(),
        manifest_url: None,
        error: stream.error.as_deref().map(error_text),
    }
}

/// Returns the address of a public stream: that of a signed one has a token in it, and events carry no secrets.
fn manifest_url(stream: &Stream, base_url: &str) -> Option<String> {
    let base = base_url.trim_end_matches('/');
    let is_known = !base.is_empty() && stream.access == Access::Public;
    is_known.then(|| format!("{base}/video/v1/{}/master.m3u8", stream.playback_id))
}
