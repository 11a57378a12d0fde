//! Video streams (`/api/video/streams`): creating, changing, deleting, captions, progress; metrics `video_streams`,
//! `video_streams_ended`, `video_streams_failed`.
//!
//! One actor makes each stream under a registry; rows and leases are the truth.
//!
//! A stream is committed first, with its charge and its source, and then announced. Its owner cuts the source into segments
//! ([`asset`]); players read snapshots that the owner publishes, or the rows ([`playback`]), and never ask an actor.

mod asset;
mod boundary;
mod events;
mod files;
mod images;
mod playback;
mod progress;
mod segments;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use sluice_store::{
    Store, Tx, Work,
    blob::Sealed,
    now_ms, video,
    video::{Caption, Folder, NewCaption, NewStream, Stream, StreamPatch, Submitted},
    work::Lease,
};
use tracing::warn;
use uuid::Uuid;

use crate::{
    Error,
    component::Component,
    compute::Compute,
    durable::{
        elsewhere::SharedProgress,
        in_flight::TaskShares,
        outcome_counters::OutcomeCounters,
        owner::RowTask,
        progress_channels::{self, Followers},
        registry_handle::RegistryHandle,
        shutdown::WorkGuard,
        workers::Workers,
    },
    events::recording_ready::stream_ended,
    metric::Metric,
    registry::Entity,
    subsystem::Subsystem,
};
use asset::VideoAsset;
use playback::Playbacks;
use progress::LatestProgress;

pub use playback::{Playback, Track};
pub use progress::{StreamProgress, StreamTotals};
pub use settings::StreamSettings;

/// Length of a segment in seconds, by default.
pub const SEGMENT_DURATION_S: u32 = 6;

/// A follower of a stream.
pub type Follower = progress_channels::Follower<StreamProgress>;

/// The handle of video streams for the façade and for workflows. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct VideoStreams {
    services: Arc<VideoServices>,
}

/// State that all assets share.
pub(crate) struct VideoServices {
    settings: StreamSettings,
    store: Store,
    workers: Arc<dyn Workers>,
    /// `http.base_url`, for addresses in events; empty: unknown.
    base_url: String,
    followers: Followers<StreamProgress>,
    latest: LatestProgress,
    playbacks: Playbacks,
    counters: OutcomeCounters<StreamTotals>,
    registry: RegistryHandle<Video>,
}

impl VideoServices {
    /// Publishes the progress of a stream.
    fn publish_progress(&self, account_id: Uuid, id: Uuid, progress: StreamProgress) {
        self.latest.set(id, &progress);
        self.followers.publish(account_id, id, progress);
    }

    /// Removes the folder and the objects of a stream that is gone or has failed; after an error the sweep removes them.
    async fn clear(&self, id: Uuid) {
        video::delete_objects(&self.store, id);
        let folder = Folder::of(&self.store, id);
        if let Err(error) = files::blocking(move || folder.remove()).await {
            warn!(stream = %id, %error, "its folder is removed by the next sweep");
        }
    }
}

impl VideoStreams {
    /// `base_url`: the service's public address, for events; empty when it is not known.
    pub fn new(settings: StreamSettings, store: Store, compute: Compute, base_url: String) -> Self {
        Self::over(settings, store, Arc::new(compute), base_url)
    }

    /// [`Self::new`] with other workers than the compute pool's, for tests.
    pub fn over(
        settings: StreamSettings,
        store: Store,
        workers: Arc<dyn Workers>,
        base_url: String,
    ) -> Self {
        Self {
            services: Arc::new(VideoServices {
                followers: Followers::new(
                    store.clone(),
                    settings.max_followers,
                    "vod.max_followers is reached: following streams",
                ),
                playbacks: Playbacks::new(store.clone(), settings.max_cached),
                settings,
                store,
                workers,
                base_url,
                latest: LatestProgress::default(),
                counters: OutcomeCounters::default(),
                registry: RegistryHandle::new(),
            }),
        }
    }

    /// Returns the section `[vod]`.
    pub fn settings(&self) -> &StreamSettings {
        &self.services.settings
    }

    /// Commits a stream with its charge and its captions, and announces it; see [`video::create`] and
    /// [`video::add_caption`]. The contents may go once this has returned.
    pub async fn create(
        &self,
        new: NewStream,
        captions: Vec<(NewCaption, Sealed)>,
    ) -> Result<Submitted, Error> {
        let submitted = self
            .services
            .store
            .write_for(new.account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let submitted = video::create(tx, &new, now).await?;
                    if let Submitted::New(stream) = &submitted {
                        for (caption, content) in &captions {
                            let (account_id, id) = (stream.account_id, stream.id);
                            video::add_caption(tx, account_id, id, caption, content, now).await?;
                        }
                    }
                    Ok(submitted)
                })
            })
            .await?;
        if let Submitted::New(_) = submitted {
            self.announce();
        }
        Ok(submitted)
    }

    /// Announces that streams may be due. May be lost: the registry scans.
    pub fn announce(&self) {
        self.services.registry.nudge();
    }

    /// Changes a stream; players see it at once. Errors as [`video::update`].
    pub async fn update(
        &self,
        account_id: Uuid,
        id: Uuid,
        patch: StreamPatch,
    ) -> Result<Stream, Error> {
        let stream = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move { video::update(tx, account_id, id, patch, now_ms()).await })
            })
            .await?;
        self.services.playbacks.forget(&stream.playback_id);
        Ok(stream)
    }

    /// Deletes a stream, ends its work at once, and returns it as it was. Errors as [`video::delete`].
    pub async fn delete(&self, account_id: Uuid, id: Uuid) -> Result<Stream, Error> {
        let services = &self.services;
        let stream = services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    // A recording waits for it no longer; of another account's there is none to be deleted.
                    video::get(tx, account_id, id).await?;
                    stream_ended(tx, id, now_ms()).await?;
                    video::delete(tx, account_id, id).await
                })
            })
            .await?;
        services.registry.withdraw(id);
        services.latest.remove(id);
        services.playbacks.forget(&stream.playback_id);
        services.clear(id).await;
        Ok(stream)
    }

    /// Adds captions to a stream. The content may go once this has returned. Errors as [`video::add_caption`].
    pub async fn add_caption(
        &self,
        account_id: Uuid,
        stream_id: Uuid,
        new: NewCaption,
        content: Sealed,
    ) -> Result<Caption, Error> {
        let added = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    let caption =
                        video::add_caption(tx, account_id, stream_id, &new, &content, now_ms())
                            .await?;
                    Ok((caption, video::by_id(tx, stream_id).await?))
                })
            })
            .await?;
        let (caption, stream) = added;
        self.services.playbacks.forget(&stream.playback_id);
        Ok(caption)
    }

    /// Removes captions of a stream. Errors as [`video::remove_caption`].
    pub async fn remove_caption(
        &self,
        account_id: Uuid,
        stream_id: Uuid,
        id: Uuid,
    ) -> Result<Caption, Error> {
        let removed = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    let caption = video::remove_caption(tx, account_id, stream_id, id).await?;
                    Ok((caption, video::by_id(tx, stream_id).await?))
                })
            })
            .await?;
        let (caption, stream) = removed;
        self.services.playbacks.forget(&stream.playback_id);
        Ok(caption)
    }

    /// Returns the playback of a playback id, as of its last change: costs no message, and a read of the rows only when
    /// it was not played lately. `Error::Store(NotFound)` for an unknown one.
    pub async fn playback(&self, playback_id: &str) -> Result<Arc<Playback>, Error> {
        Ok(self.services.playbacks.get(playback_id).await?)
    }

    /// Takes note of a commit of any node that changed streams; `None`: any of them may have changed.
    pub fn changed(&self, ids: Option<&[Uuid]>) {
        self.services.playbacks.forget_streams(ids);
    }

    /// Returns the progress of a stream at this moment.
    pub fn progress(&self, stream: &Stream) -> StreamProgress {
        let at_rest = StreamProgress::of(stream);
        match stream.status.has_ended() {
            true => at_rest,
            false => match self.services.latest.get(stream.id) {
                Some(latest) => latest,
                None => self.services.followers.seen(stream.id, at_rest),
            },
        }
    }

    /// Follows a stream from its present state on. [`Error::Busy`] when `vod.max_followers` do so already.
    pub fn follow(&self, id: Uuid) -> Result<Follower, Error> {
        self.services.followers.follow(id)
    }

    /// Returns the reason why no stream would make progress at present, for the operator.
    pub fn refused(&self) -> Option<String> {
        self.services.workers.refused()
    }

    /// Returns the counts of streams since the start.
    pub fn counts(&self) -> StreamTotals {
        self.services.counters.now()
    }
}

impl Subsystem for VideoStreams {
    fn name(&self) -> &'static str {
        "video streams"
    }

    fn components(&self) -> Vec<Component> {
        let services = &self.services;
        vec![services.registry.component(
            self.name(),
            Video(services.clone()),
            &services.store,
            services.settings.max_active,
            services.settings.lease,
        )]
    }

    /// Streams in flight stop where they are, and continue there at the next start.
    fn drain(&self) -> BoxFuture<'_, ()> {
        self.services.registry.drain();
        Box::pin(ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.services.registry.close())
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        Box::pin(async {
            let unfinished = video::count_by_status(&mut self.services.store.read().await?).await?;
            let ended = self.counts();
            let failed: u64 = ended.failed.values().sum();
            Ok(vec![
                Metric::by_label(
                    "video_streams",
                    "Video streams that have not ended, by status",
                    "status",
                    [
                        ("pending", unfinished.pending),
                        ("processing", unfinished.processing),
                    ],
                ),
                Metric::by_label(
                    "video_streams_ended",
                    "Video streams that ended since the start, by outcome",
                    "status",
                    [("ready", ended.ready), ("failed", failed)],
                ),
                Metric::by_label(
                    "video_streams_failed",
                    "Video streams that failed since the start, by error code",
                    "code",
                    ended.failed,
                ),
            ])
        })
    }
}

/// Video streams, as their registry sees them.
#[derive(Clone)]
pub(crate) struct Video(Arc<VideoServices>);

impl Entity for Video {
    const KIND: &'static str = video::KIND;
    type Owner = VideoAsset;

    fn owner(&self, lease: Lease, guard: WorkGuard) -> RowTask<VideoServices> {
        RowTask::new(self.0.clone(), lease, guard)
    }

    fn begin<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(async move {
            if let Some(stream) = video::begin(tx, id, now_ms).await? {
                events::started(tx, &stream, now_ms).await?;
            }
            Ok(())
        })
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        let services = self.0.clone();
        Box::pin(async move {
            if let Some(stream) = video::give_up(tx, id, now_ms).await? {
                events::failed(tx, &stream, now_ms).await?;
                // The sweep removes its folder.
                services.ended(&stream);
            }
            Ok(())
        })
    }

    fn startable(&self) -> usize {
        self.0.workers.startable()
    }

    fn progress(&self) -> Option<&dyn SharedProgress> {
        Some(&self.0.followers)
    }

    fn shares(&self, id: Uuid) -> Option<TaskShares> {
        self.0.latest.get(id).map(StreamProgress::shares)
    }
}

impl VideoServices {
    /// Publishes and counts the end of a stream.
    fn ended(&self, stream: &Stream) {
        self.playbacks.forget(&stream.playback_id);
        self.publish_progress(stream.account_id, stream.id, StreamProgress::of(stream));
        self.counters.note(|counts| counts.ended(stream));
    }
}
