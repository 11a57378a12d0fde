//! Renders a variant: inspects the source, resolves the request, runs the task in a worker, keeps the result; also
//! `format=json`, covers of audio, frames of clips.

use std::{fs::File, io::Write as _, sync::Arc};

use bytes::Bytes;
use serde_json::json;
use sluice_media::{
    av::MediaFacts,
    format::{Class, Format},
    task::{Failure, FailureCode, ImageFacts, Render, Task},
    variant::{AcceptClass, FRAME, Kind, SourceFacts, VariantRequest},
};
use tracing::{debug, warn};
use uuid::Uuid;

use super::{
    ImageServices,
    disk::{self, name_of},
    entry::Entry,
    mezzanine,
    source::{ImageSource, Material},
};
use crate::compute::{self, Assignment, Finished, Follow, Lane, Output};

/// A request for a variant, as far as it determines the variant.
#[derive(Clone, Debug)]
pub struct VariantJob {
    pub source: Arc<ImageSource>,
    pub request: Arc<VariantRequest>,
    pub accept: AcceptClass,
    /// [`VariantRequest::cache_key`]
    pub cache_key: Arc<str>,
}

/// Reason why there is no variant.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file or the request; remembered for a while.
    #[error(transparent)]
    Failed(#[from] Failure),
    #[error("image delivery is busy")]
    Busy,
    /// The text is for the operator.
    #[error("{0}")]
    Unavailable(String),
    /// The file changed meanwhile: ask again from the beginning.
    #[error("the file has changed")]
    Stale,
    /// The delivery key has caused as many new variants as it may in a minute.
    #[error("too many new variants")]
    TooManyNew { retry_after_s: u64 },
}

impl From<compute::Error> for Problem {
    fn from(error: compute::Error) -> Self {
        match error {
            compute::Error::Failed(failure) => Self::Failed(failure),
            compute::Error::Busy => Self::Busy,
            compute::Error::Unavailable(reason) => Self::Unavailable(reason),
        }
    }
}

impl From<sluice_store::Error> for Problem {
    fn from(error: sluice_store::Error) -> Self {
        if error.is_retryable() {
            Self::Busy
        } else {
            Self::Unavailable(error.to_string())
        }
    }
}

/// Renders what is wanted, without asking any tier for it.
pub(super) async fn render(
    services: &ImageServices,
    wanted: &VariantJob,
) -> Result<Entry, Problem> {
    let source = &wanted.source;
    let facts = facts(services, source, &wanted.request).await?;
    let resolved = wanted.request.resolve(wanted.accept, &facts)?;
    services.count(|counters| &counters.renders);
    let body = match (resolved.task, resolved.frame_ms) {
        (Task::Inspect { format }, _) => describe(source, inspect(services, source, format).await?),
        (Task::Av(task), _) => {
            let finished = run(services, source, Task::Av(task)).await?;
            describe_clip(source, &finished.done.media.ok_or_else(no_facts)?)
        }
        (task, Some(at_ms)) => {
            let frame = frame_of(services, source, at_ms).await?;
            let finished =
                assign(services, source.account_id, task, in_memory(&frame.body)?).await?;
            only_output(finished)?
        }
        (Task::Render(render), None) => render_image(services, source, *render).await?,
        (task, None) => perform(services, source, task).await?,
    };
    Ok(entry(source, resolved.mime, body))
}

fn entry(source: &ImageSource, content_type: &str, body: Bytes) -> Entry {
    Entry::new(
        source.id,
        source.account_id,
        content_type,
        body,
        source.changed_at,
    )
}

/// Returns the facts of the source. A JPEG has neither alpha nor frames; others are inspected once.
async fn facts(
    services: &ImageServices,
    source: &ImageSource,
    request: &VariantRequest,
) -> Result<SourceFacts, Problem> {
    let format = source.format.ok_or_else(|| {
        Failure::new(
            FailureCode::UnsupportedType,
            format!("a file of type {} is no image", source.mime_type),
        )
    })?;
    let focal_point = source.focal_point.map(|(x, y)| (x as f32, y as f32));
    let mut facts = SourceFacts {
        format,
        has_alpha: false,
        animated: false,
        focal_point,
    };
    let is_image = matches!(
        format.class(),
        Class::Raster | Class::Vector | Class::Document
    );
    let has_secrets = format.class() == Class::Raster && format != Format::Jpg;
    if has_secrets || (is_image && request.kind() == Kind::Json) {
        let inspected = inspect(services, source, format).await?;
        facts.has_alpha = inspected.has_alpha;
        facts.animated = inspected.animated;
    } else {
        facts.has_alpha = format == Format::Svg;
    }
    Ok(facts)
}

async fn inspect<'s>(
    services: &ImageServices,
    source: &'s ImageSource,
    format: Format,
) -> Result<&'s ImageFacts, Problem> {
    source
        .inspected
        .get_or_try_init(|| async {
            let finished = run(services, source, Task::Inspect { format }).await?;
            finished.done.image.ok_or_else(no_facts)
        })
        .await
}

fn no_facts() -> Problem {
    Problem::Unavailable("a worker gave no facts of a file".to_owned())
}

/// Returns the answer to `format=json`: facts of the source in the API's fields.
fn describe(source: &ImageSource, inspected: &ImageFacts) -> Bytes {
    let (width, height) = inspected.shown_size();
    let focal_point = source.focal_point.map(|(x, y)| json!({"x": x, "y": y}));
    let facts = json!({
        "fileId": source.id,
        "width": width,
        "height": height,
        "format": inspected.format.name(),
        "mimeType": source.mime_type,
        "sizeBytes": source.size_bytes,
        "pages": inspected.pages,
        "animated": inspected.animated,
        "hasAlpha": inspected.has_alpha,
        "focalPoint": focal_point,
    });
    facts.to_string().into()
}

/// Returns the answer to `format=json` of a clip, whose width and height are those of its upright frame.
fn describe_clip(source: &ImageSource, probed: &MediaFacts) -> Bytes {
    let video = probed.video_track();
    let (width, height) = video.map(|track| track.shown_size()).unzip();
    let facts = json!({
        "fileId": source.id,
        "width": width,
        "height": height,
        "format": probed.format.or(source.format).map(Format::name),
        "mimeType": source.mime_type,
        "sizeBytes": source.size_bytes,
        "duration": probed.duration_s(),
        "frameRate": video.and_then(|track| track.frames_per_second()),
        "videoCodec": video.map(|track| &track.codec),
        "audioCodec": probed.audio_track().map(|track| &track.codec),
    });
    facts.to_string().into()
}

/// Renders an image, from the mezzanine where that suffices, else from the source.
async fn render_image(
    services: &ImageServices,
    source: &Arc<ImageSource>,
    wanted: Render,
) -> Result<Bytes, Problem> {
    if let Some(facts) = source.inspected.get()
        && let Some(format) = mezzanine::format_for(facts)
        && let Some(reduced) = mezzanine::from_mezzanine(&wanted, facts, format)
    {
        let original = source.format.unwrap_or(format);
        let make = Task::Render(Box::new(mezzanine::rendition(original, format)));
        let mezzanine = mezzanine_of(services, source, mezzanine::REQUEST, format, make).await?;
        let input = in_memory(&mezzanine.body)?;
        let task = Task::Render(Box::new(reduced));
        let finished = assign(services, source.account_id, task, input).await?;
        return only_output(finished);
    }
    perform(services, source, Task::Render(Box::new(wanted))).await
}

/// Returns the clip's frame at that time. Audio has its cover; audio without one cannot be delivered.
async fn frame_of(
    services: &ImageServices,
    source: &Arc<ImageSource>,
    at_ms: u32,
) -> Result<Arc<Entry>, Problem> {
    let is_audio = source.format.map(Format::class) == Some(Class::Audio);
    let at_ms = if is_audio { 0 } else { at_ms };
    let request = mezzanine::frame_request(at_ms);
    let made = mezzanine_of(services, source, &request, FRAME, mezzanine::frame(at_ms)).await;
    made.map_err(|problem| match problem {
        Problem::Failed(failure) if is_audio && failure.code == FailureCode::Impossible => {
            Problem::Failed(Failure::new(
                FailureCode::UnsupportedType,
                "images are delivered, and this audio file has no cover",
            ))
        }
        other => other,
    })
}

/// Returns a mezzanine by its name: kept, or made now by one request while the others of the file wait.
async fn mezzanine_of(
    services: &ImageServices,
    source: &Arc<ImageSource>,
    request: &str,
    format: Format,
    make: Task,
) -> Result<Arc<Entry>, Problem> {
    let request: Arc<str> = request.into();
    let _turn = source.mezzanine_turn.lock().await;
    if let Some(kept) = services.memory.get(source.id, &request) {
        return Ok(kept);
    }
    if let Some(kept) = load(services, source, &request).await {
        return Ok(kept);
    }
    let body = perform(services, source, make).await?;
    services.count(|counters| &counters.mezzanines);
    let made = Arc::new(entry(source, format.mime(), body));
    services.memory.put(source, &request, made.clone());
    keep(services, source, &request, &made).await;
    Ok(made)
}

/// Reads a variant from the disk tier, and publishes it in memory.
pub(super) async fn load(
    services: &ImageServices,
    source: &Arc<ImageSource>,
    request: &Arc<str>,
) -> Option<Arc<Entry>> {
    if source.is_live() || !services.disk.holds(&name_of(source.id, request)) {
        return None;
    }
    let (key, of) = (request.clone(), source.clone());
    let entry = disk::blocking(&services.disk, move |disk| disk.get(&of, &key)).await??;
    let entry = Arc::new(entry);
    services.memory.put(source, request, entry.clone());
    services.count(|counters| &counters.disk_hits);
    Some(entry)
}

/// Writes a variant to the disk tier, unless the disk is nearly full; a failure costs another render and nothing else.
pub(super) async fn keep(
    services: &ImageServices,
    source: &Arc<ImageSource>,
    request: &Arc<str>,
    entry: &Arc<Entry>,
) {
    if source.is_live() {
        return;
    }
    let (key, of, entry, store) = (
        request.clone(),
        source.clone(),
        entry.clone(),
        services.store.clone(),
    );
    let written = disk::blocking(&services.disk, move |disk| {
        if store.disk_space().is_ok_and(|space| space.is_low()) {
            return Ok(());
        }
        disk.put(&of, &key, &entry)
    });
    match written.await {
        Some(Ok(())) => {}
        Some(Err(error)) => warn!(%error, "a variant could not be kept on disk"),
        None => debug!("the disk tier's work was lost"),
    }
}

/// Runs a task on the source, and returns its only output.
async fn perform(
    services: &ImageServices,
    source: &ImageSource,
    task: Task,
) -> Result<Bytes, Problem> {
    only_output(run(services, source, task).await?)
}

async fn run(
    services: &ImageServices,
    source: &ImageSource,
    task: Task,
) -> Result<Finished, Problem> {
    let input = match &source.material {
        Material::Stored(blob) => services.store.blobs().open(blob).await?,
        Material::Live(frame) => in_memory(&frame.video_frame)?,
    };
    assign(services, source.account_id, task, input).await
}

pub(super) async fn assign(
    services: &ImageServices,
    account_id: Uuid,
    task: Task,
    input: File,
) -> Result<Finished, Problem> {
    let assignment = Assignment {
        account_id,
        task,
        inputs: vec![Arc::new(input)],
        output: Output::Memory,
        limits: services.workers.limits(),
        follow: Follow::default(),
        pixels: None,
    };
    Ok(services.workers.run(Lane::Delivery, assignment).await?)
}

pub(super) fn only_output(finished: Finished) -> Result<Bytes, Problem> {
    finished
        .bytes
        .into_iter()
        .next()
        .ok_or_else(|| Problem::Unavailable("a worker gave no output".to_owned()))
}

/// Makes a file in memory that holds the bytes.
pub(super) fn in_memory(bytes: &[u8]) -> Result<File, Problem> {
    let make = || {
        let fd = rustix::fs::memfd_create("mezzanine", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = File::from(fd);
        file.write_all(bytes)?;
        Ok::<_, std::io::Error>(file)
    };
    make().map_err(|error| Problem::Unavailable(format!("no memory for an input: {error}")))
}
