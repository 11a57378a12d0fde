//! Recordings: a broadcast as it came, kept as stored files and video streams, and clips of what is on air.
//!
//! ```text
//! disk thread ─▶ RecordingWriter (a second name for each segment, an index) ─▶ row, when the broadcast is over
//!                  └─▶ DVR: ?dvr=1                                    └─▶ Registry<Recording> ─▶ SegmentList ─▶ blob, file, stream
//! ```
//!
//! While it is on air nothing is copied. Afterwards an owner under a lease writes flat MP4 files of the stored fragments,
//! and anyone who dies over it is followed by another, who goes on behind the last stored file.

mod announcement;
mod clip;
mod segment_list;
mod settings;
mod storing;
mod sweep;
mod task;
mod writer;

use std::{fmt, path::PathBuf, sync::Arc};

use sluice_store::{Store, Tx, Work, jobs::Allowance, recordings, work::Lease};
use tokio::sync::Semaphore;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::debug;
use uuid::Uuid;

use crate::{
    component::{ActorHandle, Component},
    registry::{self, Entity, Registry},
    video::VideoStreams,
};
use task::{RecordingOwner, RecordingTask};

pub(crate) use announcement::stream_ended;
pub use clip::{Clip, ClipError, Moment, NewClip};
pub use settings::RecordingSettings;
pub(super) use sweep::{recover, run as run_sweep};
pub use writer::RecordingWriter;
pub(super) use writer::{WriterContext, WriterJob};

/// Below the data folder.
const FOLDER: &str = "recordings";

/// What an account's plan allows, by the plan's name.
pub type Allowances = Arc<dyn Fn(&str) -> Allowance + Send + Sync>;

/// The handle of recordings for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Recordings {
    services: Arc<RecordingServices>,
}

/// What all recordings share.
struct RecordingServices {
    settings: RecordingSettings,
    store: Store,
    /// `{data_dir}/recordings`
    folder: PathBuf,
    streams: VideoStreams,
    allowances: Allowances,
    /// Makes a file name of what people write.
    clean: fn(&str) -> String,
    /// For clips cut at a time.
    clips: Semaphore,
    draining: CancellationToken,
    /// Recordings that are worked on.
    walks: TaskTracker,
    handle: ActorHandle<Registry<Recording>>,
}

impl fmt::Debug for Recordings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recordings")
            .field("handle", &self.services.handle)
            .finish_non_exhaustive()
    }
}

impl Recordings {
    /// `clean` makes a file name of what people write.
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
                folder: folder_of(&store),
                store,
                streams,
                allowances,
                clean,
                draining: CancellationToken::new(),
                walks: TaskTracker::new(),
                handle: ActorHandle::default(),
            }),
        }
    }

    /// The components that run it.
    pub fn components(&self) -> Vec<Component> {
        let args = registry::Args {
            entity: Recording(self.services.clone()),
            store: self.services.store.clone(),
            max_active: self.services.settings.max_active,
            lease: self.services.settings.lease,
        };
        vec![Component::new(
            "recordings",
            args,
            registry::MAILBOX,
            self.services.handle.clone(),
        )]
    }

    /// No recording is begun to be stored any more, and those under way stop; the next start goes on.
    pub fn drain(&self) {
        self.services.draining.cancel();
    }

    /// Returns when no recording is worked on any more, after [`Self::drain`].
    pub async fn close(&self) {
        self.services.walks.close();
        self.services.walks.wait().await;
        debug!("no recording is under way");
    }
}

/// Where the folders of all recordings lie.
pub(super) fn folder_of(store: &Store) -> PathBuf {
    store.data_dir().join(FOLDER)
}

/// Recordings, as their registry sees them.
#[derive(Clone)]
pub(crate) struct Recording(Arc<RecordingServices>);

impl Entity for Recording {
    const KIND: &'static str = recordings::KIND;
    type Owner = RecordingOwner;

    fn takes_work(&self) -> bool {
        !self.0.draining.is_cancelled()
    }

    fn owner(&self, lease: Lease) -> RecordingTask {
        RecordingTask {
            services: self.0.clone(),
            lease,
            _walking: self.0.walks.token(),
        }
    }

    fn begin<'t>(&self, _: &'t mut Tx<'_>, _: Uuid, _: i64) -> Work<'t, ()> {
        Box::pin(async { Ok(()) })
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(async move { recordings::give_up(tx, id, now_ms).await })
    }
}
