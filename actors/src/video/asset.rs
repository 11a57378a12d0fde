//! `VideoAsset`: work on one video stream: probe, renditions, poster, segments, storyboard, end (empty renditions).
//!
//! ```text
//! probe ─► renditions (rows) ─► poster ─► segments, group by group ─► storyboard ─► ready
//! ```
//!
//! Nothing survives a restart but the rows, and the files as far as rows describe them ([`crate::durable::owner`] holds
//! the task). Each step is one transaction under the stream's lease, after the media that it describes were flushed;
//! the next owner continues behind the last one. The end of the actor ends its tasks in the workers.

use std::{fs::File, sync::Arc};

use sluice_media::{
    av::{
        AvTask, MediaFacts,
        ladder::{self, Profile, Rung},
    },
    task::{Failure, FailureCode, Task},
};
use sluice_store::{
    Error as StoreError, Store, now_ms, video,
    video::{Folder, MediaFile, Plan, PlannedRendition, RenditionKind, Stream},
    work::Lease,
};

use super::{
    VideoServices, events,
    files::lengths,
    playback::{Playback, Track},
    progress::StreamProgress,
};
use crate::{
    compute::{Assignment, Follow, Output},
    durable::{
        owner::{RowOwner, RowServices, RowTask},
        step_error::{CodedFailure, OwnerError, RowError, with_patience},
        workers,
    },
};

/// The actor of one stream.
pub(crate) type VideoAsset = RowOwner<VideoServices>;

/// The live progress of a stream that is worked on.
struct LiveProgress<'t>(&'t RowTask<VideoServices>);

impl Drop for LiveProgress<'_> {
    /// Removes it: the row has the final one from now on.
    fn drop(&mut self) {
        self.0.services.latest.remove(self.0.lease.id);
    }
}

impl RowServices for VideoServices {
    fn store(&self) -> &Store {
        &self.store
    }

    async fn work(task: &RowTask<Self>) -> Result<(), OwnerError> {
        let _progress = LiveProgress(task);
        let (services, lease) = (&*task.services, &task.lease);
        let worked = tokio::select! {
            biased;
            worked = work(services, lease) => worked,
            () = task.guard.drained() => Err(RowError::Stop(OwnerError::Drained)),
        };
        match worked {
            Ok(()) => Ok(()),
            Err(RowError::Failed(failure)) => fail(services, lease, failure).await,
            Err(RowError::Stop(stop)) => Err(stop),
        }
    }
}

async fn work(services: &VideoServices, lease: &Lease) -> Result<(), RowError> {
    let mut asset = Asset::open(services, lease).await?;
    asset.plan().await?;
    asset.take_poster().await?;
    asset.make().await?;
    asset.take_storyboard().await?;
    asset.finish().await
}

/// A stream that is worked on.
pub(super) struct Asset<'s> {
    pub(super) services: &'s VideoServices,
    pub(super) lease: &'s Lease,
    pub(super) folder: Folder,
    pub(super) source: Arc<File>,
    /// Playback in its rows' state, as players shall see it.
    pub(super) playback: Playback,
    pub(super) progress: StreamProgress,
}

impl<'s> Asset<'s> {
    async fn open(services: &'s VideoServices, lease: &'s Lease) -> Result<Self, RowError> {
        ensure_room(services)?;
        let stream = video::by_id(&mut services.store.read().await?, lease.id).await?;
        let blob = stream
            .source_blob
            .ok_or_else(|| StoreError::Internal("a stream in progress has its source".into()))?;
        let asset = Self {
            services,
            lease,
            folder: Folder::of(&services.store, stream.id),
            source: Arc::new(services.store.blobs().open(&blob).await?),
            progress: StreamProgress::of(&stream),
            playback: Playback::load(&services.store, stream).await?,
        };
        asset.publish_progress();
        Ok(asset)
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.playback.stream
    }

    /// Publishes the progress.
    pub(super) fn publish_progress(&self) {
        self.services
            .publish_progress(self.lease.account_id, self.lease.id, self.progress);
    }

    /// Builds a task for the source, in the lane without a waiting caller.
    pub(super) fn assignment(&self, task: AvTask, outputs: Vec<File>) -> Assignment {
        let size = self.stream().width.zip(self.stream().height);
        Assignment {
            account_id: self.lease.account_id,
            task: Task::Av(Box::new(task)),
            inputs: vec![self.source.clone()],
            output: Output::Files(outputs.into()),
            limits: self.services.workers.limits(),
            follow: Follow::none(),
            pixels: size.map(|(width, height)| u64::from(width) * u64::from(height)),
        }
    }

    /// Probes the source and plans its renditions, once.
    async fn plan(&mut self) -> Result<(), RowError> {
        if !self.playback.tracks.is_empty() {
            return Ok(());
        }
        let probe = self.assignment(AvTask::Probe, Vec::new());
        let done = workers::run(&*self.services.workers, self.lease.lane, probe).await?;
        let facts = done
            .media
            .ok_or_else(|| Failure::internal("a probe came back without facts"))?;
        let plan = Arc::new(planned(&facts, self.stream())?);
        let (store, lease) = (&self.services.store, self.lease);
        let stream = with_patience(|| {
            let (plan, lease) = (plan.clone(), lease.clone());
            store.write_for(lease.account_id, move |tx| {
                Box::pin(async move { video::plan(tx, &lease, &plan, now_ms()).await })
            })
        });
        let stream = stream.await?;
        self.playback = Playback::load(store, stream).await?;
        Ok(())
    }

    /// Ends the stream as ready, once all is made.
    async fn finish(mut self) -> Result<(), RowError> {
        self.verify().await?;
        let (services, lease) = (self.services, self.lease);
        let made = with_patience(|| {
            let (lease, base_url) = (lease.clone(), services.base_url.clone());
            services.store.write_for(lease.account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let stream = video::finish(tx, &lease, now).await?;
                    events::ready(tx, &stream, &base_url, now).await?;
                    Ok(stream)
                })
            })
        });
        let stream = made.await?;
        services.ended(&stream);
        self.playback.stream = stream;
        Ok(())
    }

    /// Returns whether a rendition is an empty audio track beside video: containers name tracks without content.
    fn is_silent(&self, track: &Track) -> bool {
        let is_audio = track.rendition.kind == RenditionKind::Audio;
        is_audio && track.segments.is_empty() && self.playback.tracks.len() > 1
    }

    /// Checks that the files hold what the worker reported.
    async fn verify(&self) -> Result<(), Failure> {
        let incomplete = |what: String| Failure::internal(what);
        let files = self.playback.tracks.iter().map(file_of).collect();
        let lengths = lengths(&self.folder, files)
            .await
            .map_err(|error| incomplete(format!("what was made cannot be looked at: {error}")))?;
        for (track, length) in self.playback.tracks.iter().zip(lengths) {
            let name = &track.rendition.name;
            let Some(last) = track.segments.last() else {
                if self.is_silent(track) {
                    continue;
                }
                return Err(incomplete(format!("rendition {name} came out empty")));
            };
            let count = track.segments.len();
            let is_whole = usize::try_from(last.number).is_ok_and(|number| number + 1 == count);
            if !is_whole || length < last.end() {
                return Err(incomplete(format!("rendition {name} came out with a hole")));
            }
        }
        Ok(())
    }
}

/// Returns the file of a rendition.
pub(super) fn file_of(track: &Track) -> MediaFile {
    MediaFile::Rendition(track.rendition.name.clone())
}

/// Fails while the disk is below `store.min_free`, so that the work waits.
pub(super) fn ensure_room(services: &VideoServices) -> Result<(), OwnerError> {
    match services.store.disk_space()?.is_low() {
        true => Err(StoreError::Full.into()),
        false => Ok(()),
    }
}

/// Plans the renditions of a source with these facts.
fn planned(facts: &MediaFacts, stream: &Stream) -> Result<Plan, Failure> {
    let rungs: Vec<Rung> = stream
        .custom_renditions
        .iter()
        .map(|asked| Rung {
            height: asked.height,
            bitrate: asked.bitrate,
        })
        .collect();
    let profile = Profile::parse(&stream.profile, &rungs, rungs.len())
        .map_err(|error| Failure::new(FailureCode::Impossible, error.to_string()))?;
    let planned = ladder::plan(facts, &profile, stream.segment_duration_s)?;
    let renditions = planned.renditions.iter().enumerate().map(|(number, it)| {
        let video = planned.ladder.video.get(number);
        PlannedRendition {
            name: it.name.clone(),
            kind: match video {
                Some(_) => RenditionKind::Video,
                None => RenditionKind::Audio,
            },
            width: video.map(|video| video.width),
            height: video.map(|video| video.height),
            bitrate: it.bitrate,
            max_bitrate: video.map_or(it.bitrate, |video| video.max_bitrate),
            is_copy: it.copy,
        }
    });
    Ok(Plan {
        duration_ms: facts.duration_ms.and_then(|it| i64::try_from(it).ok()),
        size: facts.video_track().map(|track| track.shown_size()),
        renditions: renditions.collect(),
    })
}

/// Ends the stream as failed, with one event, and removes its files.
async fn fail(
    services: &VideoServices,
    lease: &Lease,
    failure: CodedFailure,
) -> Result<(), OwnerError> {
    let failure = Arc::new(failure);
    let ended = with_patience(|| {
        let (lease, failure) = (lease.clone(), failure.clone());
        services.store.write_for(lease.account_id, move |tx| {
            Box::pin(async move {
                let now = now_ms();
                let stream = video::fail(tx, &lease, &failure, now).await?;
                events::failed(tx, &stream, now).await?;
                Ok(stream)
            })
        })
    });
    let stream = ended.await?;
    services.ended(&stream);
    services.clear(stream.id).await;
    Ok(())
}
