//! Recordings of broadcasts (`recordMode`): kept while on air, then stored as files and video streams by an owner; clips.
//!
//! ```text
//! disk thread ─▶ RecordingWriter (a second name for each segment, an index) ─▶ row, when the broadcast is over
//!                  └─▶ DVR: ?dvr=1                                    └─▶ Registry<Recording> ─▶ SegmentList ─▶ blob, file, stream
//! ```
//!
//! While it is on air nothing is copied but to the object store, if there is one. Afterwards an owner under a lease writes flat
//! MP4 files of the stored fragments; when it dies, its successor continues behind the last stored file.

mod clip;
pub(crate) mod segment_list;
mod settings;
pub(crate) mod stored_media;
mod storing;
mod task;

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::future::{BoxFuture, ready};
use sluice_store::{
    Error as StoreError, Store, Tx, Work, jobs::Allowance, recordings, work::Lease,
};
use tokio::sync::Semaphore;
use uuid::Uuid;

pub use clip::{Clip, ClipError, Moment, NewClip};
pub use settings::RecordingSettings;
use task::RecordingOwner;

use crate::{
    component::Component,
    durable::{owner::RowTask, registry_handle::RegistryHandle, shutdown::WorkGuard},
    live::{recorded_media::blocking, recording_folder},
    registry::Entity,
    subsystem::Subsystem,
    video::VideoStreams,
};

/// Limits of an account's plan, by the plan's name.
pub type Allowances = Arc<dyn Fn(&str) -> Allowance + Send + Sync>;

/// The handle of recordings for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Recordings {
    services: Arc<RecordingServices>,
}

/// State that all recordings share.
pub(crate) struct RecordingServices {
    settings: RecordingSettings,
    store: Store,
    /// `{data_dir}/recordings`
    folder: PathBuf,
    streams: VideoStreams,
    allowances: Allowances,
    /// Makes a safe file name.
    clean: fn(&str) -> String,
    /// Permits for clips that are cut at a time.
    clips: Semaphore,
    registry: RegistryHandle<Recording>,
}

impl Recordings {
    /// `clean` makes a safe file name.
    pub fn new(
        settings: RecordingSettings,
        store: Store,
        streams: VideoStreams,
        allowances: Allowances,
        clean: fn(&str) -> String,
    ) -> Self {
        Self {
            services: Arc::new(RecordingServices {
                clips: Semaphore::new(settings.max_clips),
                settings,
                folder: recording_folder(&store),
                store,
                streams,
                allowances,
                clean,
                registry: RegistryHandle::new(),
            }),
        }
    }
}

impl Subsystem for Recordings {
    fn name(&self) -> &'static str {
        "recordings"
    }

    fn components(&self) -> Vec<Component> {
        let services = &self.services;
        vec![services.registry.component(
            self.name(),
            Recording(services.clone()),
            &services.store,
            services.settings.max_active,
            services.settings.lease,
        )]
    }

    /// Recordings in flight stop, and continue behind their last stored file at the next start.
    fn drain(&self) -> BoxFuture<'_, ()> {
        self.services.registry.drain();
        Box::pin(ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.services.registry.close())
    }
}

/// Recordings, as their registry sees them.
#[derive(Clone)]
pub(crate) struct Recording(Arc<RecordingServices>);

impl Entity for Recording {
    const KIND: &'static str = recordings::KIND;
    type Owner = RecordingOwner;

    fn owner(&self, lease: Lease, guard: WorkGuard) -> RowTask<RecordingServices> {
        RowTask::new(self.0.clone(), lease, guard)
    }

    fn begin<'t>(&self, _: &'t mut Tx<'_>, _: Uuid, _: i64) -> Work<'t, ()> {
        Box::pin(async { Ok(()) })
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(async move { recordings::give_up(tx, id, now_ms).await })
    }

    /// Names the recordings whose media are in the object store, or in this node's data folder: another node would find none,
    /// and fail them.
    fn here(&self) -> BoxFuture<'_, Result<Option<Vec<Uuid>>, StoreError>> {
        Box::pin(async {
            let folder = self.0.folder.clone();
            let broadcasts = blocking(move || names(&folder)).await?;
            let mut reader = self.0.store.read().await?;
            Ok(Some(recordings::unstored(&mut reader, &broadcasts).await?))
        })
    }
}

/// Returns the names of the entries of a folder, none when it is missing.
fn names(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}
