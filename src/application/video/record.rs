//! Fields of video streams, renditions and captions in answers: `status`, `manifestUrl`, `posterUrl`, `storyboardUrl`.

use serde::Serialize;
use sluice_actors::video::StreamProgress;
use sluice_store::video::{self, Rendition, RenditionKind, Stream, StreamStatus};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::application::{
    answer::Timestamp, context::VideoContext, error::ApiError, reached::Reached,
};

/// A video stream. Addresses of a stream with `access: signed` carry no token: `POST /{id}/playback-token` gives some that do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StreamRecord {
    id: Uuid,
    /// Stored file that the stream is made of; null once that is deleted.
    source_file_id: Option<Uuid>,
    playback_id: String,
    title: String,
    /// `pending`, `processing`, `ready` or `failed`.
    status: &'static str,
    /// 0 to 100.
    progress: u8,
    /// Position among the streams that wait for a worker, 1 is next; null when it does not wait.
    queue_place: Option<u32>,
    /// True when it can be played, which is so before it is ready.
    playable: bool,
    /// `basic`, `standard`, `hd`, `source_max` or `custom`.
    profile: String,
    /// Segment duration in seconds.
    segment_duration: u32,
    /// Duration in seconds; null until the source has been analysed.
    duration: Option<f64>,
    /// Width in pixels as shown; null until the source has been analysed, and without video.
    width: Option<u32>,
    height: Option<u32>,
    /// The multivariant playlist: 404 `not_ready` until the stream is playable. Null of one that failed.
    manifest_url: Option<String>,
    /// Null until it has been made, and without video.
    poster_url: Option<String>,
    /// WebVTT that maps times to images; null until it has been made, and without video.
    storyboard_url: Option<String>,
    /// From the smallest to the largest; none above the source.
    renditions: Vec<RenditionRecord>,
    captions: Vec<CaptionRecord>,
    /// `public` or `signed`.
    access: &'static str,
    /// Lifetime in seconds of tokens whose request names none.
    token_ttl_seconds: Option<u32>,
    allowed_domains: Vec<String>,
    /// Reason of the failure.
    error: Option<String>,
    /// The same as a stable word, such as `undecodable`, `too_large`, `timed_out`.
    error_code: Option<String>,
    created_at: Timestamp,
    ready_at: Option<Timestamp>,
}

/// One quality of a stream; of a stream without video, its audio.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenditionRecord {
    /// Name in its addresses, such as `720p` or `audio`.
    id: String,
    /// In pixels; null of audio.
    width: Option<u32>,
    height: Option<u32>,
    /// Aimed at, in bits per second.
    bitrate: u32,
    /// Measured over what is stored, in bits per second; null before the first segment.
    average_bitrate: Option<u64>,
    /// RFC 6381, such as `avc1.64001f`; null until it is known, and of audio.
    codec: Option<String>,
    /// Codec of the audio that all qualities share; null until it is known, and without audio.
    audio_codec: Option<String>,
    /// Segments that are stored.
    segment_count: u32,
}

/// Captions of a stream, served as WebVTT.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CaptionRecord {
    /// BCP 47.
    language: String,
    label: String,
    is_default: bool,
    url: String,
}

/// An answer with one resource under its name.
#[derive(Debug, Serialize, ToSchema)]
pub struct StreamAnswer {
    stream: StreamRecord,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct CaptionAnswer {
    pub(crate) caption: CaptionRecord,
}

/// Returns the address of a stream's player, below the request's own address; `playback_id` is the playback id or a
/// token.
pub(crate) fn playback_url(reached: &Reached, playback_id: &str, name: &str) -> String {
    format!("{}/video/v1/{playback_id}/{name}", reached.address.base)
}

/// A stream's captions in an answer.
pub(crate) fn caption(
    reached: &Reached,
    playback_id: &str,
    caption: video::Caption,
) -> CaptionRecord {
    let name = format!("captions/{}.vtt", caption.language);
    CaptionRecord {
        url: playback_url(reached, playback_id, &name),
        language: caption.language,
        label: caption.label,
        is_default: caption.is_default,
    }
}

/// The record of a stream as it is now.
pub(crate) async fn answer(
    context: &VideoContext,
    reached: &Reached,
    stream: Stream,
) -> Result<StreamAnswer, ApiError> {
    let mut records = records(context, reached, vec![stream]).await?;
    let stream = records.pop().expect("a record for each stream");
    Ok(StreamAnswer { stream })
}

/// Returns the current records of streams, in the same order.
pub(crate) async fn records(
    context: &VideoContext,
    reached: &Reached,
    streams: Vec<Stream>,
) -> Result<Vec<StreamRecord>, ApiError> {
    let ids: Vec<Uuid> = streams.iter().map(|stream| stream.id).collect();
    let mut db = context.store.read().await?;
    let mut renditions = video::renditions_of(&mut db, &ids).await?;
    let mut captions = video::captions_of(&mut db, &ids).await?;
    drop(db);
    let record = |stream: Stream| {
        let renditions = renditions.remove(&stream.id).unwrap_or_default();
        let captions = captions.remove(&stream.id).unwrap_or_default();
        let progress = context.streams.progress(&stream);
        StreamRecord::of(reached, stream, progress, renditions, captions)
    };
    Ok(streams.into_iter().map(record).collect())
}

impl StreamRecord {
    fn of(
        reached: &Reached,
        stream: Stream,
        progress: StreamProgress,
        renditions: Vec<Rendition>,
        captions: Vec<video::Caption>,
    ) -> Self {
        let playback_id = stream.playback_id;
        let url =
            |is_there: bool, name| is_there.then(|| playback_url(reached, &playback_id, name));
        let captions = captions.into_iter();
        Self {
            manifest_url: url(progress.status != StreamStatus::Failed, "master.m3u8"),
            poster_url: url(stream.has_poster, "poster.jpg"),
            storyboard_url: url(stream.has_storyboard, "storyboard.vtt"),
            captions: captions
                .map(|each| caption(reached, &playback_id, each))
                .collect(),
            id: stream.id,
            source_file_id: stream.source_file_id,
            playback_id,
            title: stream.title,
            status: progress.status.as_str(),
            progress: progress.percent,
            queue_place: progress.queue_place,
            playable: progress.playable,
            profile: stream.profile,
            segment_duration: stream.segment_duration_s,
            duration: stream.duration_ms.map(|ms| ms as f64 / 1_000.0),
            width: stream.width,
            height: stream.height,
            renditions: qualities(renditions),
            access: stream.access.as_str(),
            token_ttl_seconds: stream.token_ttl_s,
            allowed_domains: stream.allowed_domains,
            error: stream.error,
            error_code: stream.error_code,
            created_at: Timestamp(stream.created_at),
            ready_at: stream.ready_at.map(Timestamp),
        }
    }
}

/// Returns the qualities that viewers choose between: audio is a part of each, and the only one without video.
fn qualities(renditions: Vec<Rendition>) -> Vec<RenditionRecord> {
    let (video, audio): (Vec<_>, Vec<_>) = renditions
        .into_iter()
        .partition(|rendition| rendition.kind == RenditionKind::Video);
    let audio_codec = audio.first().and_then(|audio| audio.codecs.clone());
    let shown = if video.is_empty() { audio } else { video };
    shown
        .into_iter()
        .map(|rendition| RenditionRecord {
            average_bitrate: rendition.average_bitrate(),
            id: rendition.name,
            width: rendition.width,
            height: rendition.height,
            bitrate: rendition.bitrate,
            codec: rendition
                .codecs
                .filter(|_| rendition.kind == RenditionKind::Video),
            audio_codec: audio_codec.clone(),
            segment_count: rendition.segment_count,
        })
        .collect()
}
