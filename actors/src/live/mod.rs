//! Live inputs: handle for status, health, viewers and end of a broadcast; start from disk; metrics `live_inputs`,
//! `live_publishers`, `live_viewers`, `live_bitrate_bps`.
//!
//! `LiveInputs` owns admission and one `LiveInput` per stream on air or inside its reconnect window. Viewers never
//! send a message: they read the [`Playback`] of an input, whose state an actor publishes.
//!
//! ```text
//! session ── admit ──▶ LiveInputs ── spawns ──▶ LiveInput ── publishes ──▶ Playback ◀── viewers read
//!    └───────────── units (bounded mailbox) ───────▲  └── parts ──▶ disk thread (segment files, window journal)
//! ```

pub mod address;
mod admission;
mod batched_stream;
mod broadcast;
mod connections;
mod disk;
pub mod gateway;
mod health;
mod history;
mod input;
mod inputs;
mod ledger;
pub mod listener;
mod phase;
mod playback;
mod publisher;
pub mod pull;
pub(crate) mod recorded_media;
mod recording_folders;
mod recording_upload;
mod recording_writer;
mod recovery;
pub mod restream;
mod segment_store;
mod session;
mod settings;
pub mod srt;
mod sync;
#[cfg(test)]
mod tests;
mod viewers;
pub mod webrtc;

use std::{path::PathBuf, sync::Arc, time::Duration};

use futures_util::future::{BoxFuture, ready};
use kameo::{actor::ActorRef, error::SendError};
use parking_lot::Mutex;
use sluice_ingest::publish::Protocol;
use sluice_store::{Store, live_inputs::LiveInput as InputRow};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

pub use health::{Health, HealthIssue, InputStatus};
pub use history::{HISTORY_S, History, Sample};
pub use inputs::LiveInputs;
pub use phase::Phase;
pub use playback::{Directory, Playback, Policy, Published, View};
pub use recorded_media::RecordedMedia;
pub use recording_writer::RecordingWriter;
pub use segment_store::Body;
pub use session::{LiveAuthorizer, LiveSession};
pub use settings::LiveSettings;
pub use viewers::PlayId;

use recording_upload::Uploads;
use recording_writer::WriterContext;
pub(crate) use recording_writer::recording_folder;

use crate::{
    Error,
    component::{self, ActorHandle, Component, doubled},
    metric::Metric,
    subsystem::Subsystem,
};

/// Longest wait of a caller for `LiveInputs`, before it is answered as busy.
const ASK_TIMEOUT: Duration = Duration::from_secs(2);
/// Shortest pause between attempts at a source or a target, whatever the settings say.
const LEAST_PAUSE: Duration = Duration::from_millis(100);
/// Longest wait of a caller for the end of a broadcast.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// The handle of everything live: cheap to clone, safe to hold in a request handler.
#[derive(Clone, Debug)]
pub struct Live {
    directory: Arc<Directory>,
    inputs: ActorRef<LiveInputs>,
}

/// Begin and end of an input's newest broadcasts, as far as this process has seen (Unix milliseconds).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    pub last_started_ms: Option<i64>,
    pub last_ended_ms: Option<i64>,
}

/// The view of [`Live`] for requests, so that their tests need no actor tree. Reads are published state and cost no message.
pub trait LivePort: Subsystem {
    /// Returns the status of the input.
    fn status(&self, input_id: Uuid) -> InputStatus;

    /// Returns begin and end of the newest broadcasts. Newer than the row: the ledger writes these to the store a moment
    /// later.
    fn times(&self, input_id: Uuid) -> Times;

    /// Returns measurements and advice of a stream on air or inside its reconnect window; `None` when idle.
    fn health(&self, input_id: Uuid) -> Option<Arc<Health>>;

    /// Returns the number of viewers now.
    fn viewers(&self, input_id: Uuid) -> u64;

    /// Returns the playback of this input; `None` when there is no such input.
    fn playback_of(&self, input_id: Uuid) -> Option<Arc<Playback>>;

    /// Returns the playback with this playback id; `None` when no input has it.
    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>>;

    /// Returns the playbacks of all inputs.
    fn playbacks(&self) -> Vec<Arc<Playback>>;

    /// Returns the playbacks of inputs that are live or within their reconnect window.
    fn on_air(&self) -> Vec<Arc<Playback>>;

    /// Takes up a row whose creation or change is committed: admissions follow it from now on, and a running publish ends
    /// when the input was disabled or its key changed.
    fn changed(&self, input: InputRow) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends publish, broadcast and playback of an input whose row is gone.
    fn deleted(&self, input_id: Uuid) -> BoxFuture<'_, Result<(), Error>>;

    /// Ends the broadcast of an input as its encoder would: its publisher is disconnected and its playlist closed when this
    /// returns. False when nothing is on air. The encoder may begin another broadcast.
    fn end(&self, input_id: Uuid) -> BoxFuture<'_, Result<bool, Error>>;
}

impl LivePort for Live {
    fn status(&self, input_id: Uuid) -> InputStatus {
        self.directory
            .by_input(input_id)
            .map_or(InputStatus::Idle, |playback| playback.status())
    }

    fn times(&self, input_id: Uuid) -> Times {
        self.directory
            .by_input(input_id)
            .map_or_else(Times::default, |playback| playback.times())
    }

    fn health(&self, input_id: Uuid) -> Option<Arc<Health>> {
        self.directory.by_input(input_id)?.health()
    }

    fn viewers(&self, input_id: Uuid) -> u64 {
        self.directory
            .by_input(input_id)
            .map_or(0, |playback| playback.viewers(unix_ms()))
    }

    fn playback_of(&self, input_id: Uuid) -> Option<Arc<Playback>> {
        self.directory.by_input(input_id)
    }

    fn playback(&self, playback_id: &str) -> Option<Arc<Playback>> {
        self.directory.by_playback(playback_id)
    }

    fn playbacks(&self) -> Vec<Arc<Playback>> {
        self.directory.playbacks()
    }

    fn on_air(&self) -> Vec<Arc<Playback>> {
        self.directory.on_air()
    }

    fn changed(&self, input: InputRow) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.ask(inputs::Changed(input)))
    }

    fn deleted(&self, input_id: Uuid) -> BoxFuture<'_, Result<(), Error>> {
        Box::pin(self.ask(inputs::Deleted(input_id)))
    }

    fn end(&self, input_id: Uuid) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(async move {
            let Some(playback) = self.directory.by_input(input_id) else {
                return Ok(false);
            };
            let started_ms = playback.times().last_started_ms;
            if !self.ask(inputs::End(input_id)).await? {
                return Ok(false);
            }
            let has_ended = |published: &Arc<Published>| {
                matches!(published.phase, Phase::Idle | Phase::Ended)
                    || playback.times().last_started_ms != started_ms
            };
            let mut states = playback.follow();
            match tokio::time::timeout(END_TIMEOUT, states.wait_for(has_ended)).await {
                Ok(_) => Ok(true),
                Err(_) => Err(Error::Busy("live inputs")),
            }
        })
    }
}

impl Live {
    async fn ask<M, R>(&self, message: M) -> Result<R, Error>
    where
        LiveInputs: kameo::message::Message<M, Reply = R>,
        M: Send + 'static,
        R: kameo::Reply<Ok = R, Error = kameo::error::Infallible>,
    {
        match self
            .inputs
            .ask(message)
            .mailbox_timeout(ASK_TIMEOUT)
            .reply_timeout(ASK_TIMEOUT)
            .await
        {
            Ok(answer) => Ok(answer),
            Err(SendError::Timeout(_) | SendError::MailboxFull(_)) => {
                Err(Error::Busy("live inputs"))
            }
            Err(_) => Err(Error::Gone("live inputs")),
        }
    }
}

impl Subsystem for Live {
    fn name(&self) -> &'static str {
        "live inputs"
    }

    /// Closes every publisher session; the windows stay on disk for the next start to resume.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Err(error) = self.ask(inputs::Drain).await {
                warn!(%error, "publishers are cut off");
            }
        })
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        let now_ms = unix_ms();
        let (mut idle, mut live, mut reconnecting) = (0_u64, 0_u64, 0_u64);
        let (mut viewers, mut bitrate_bps) = (0, 0);
        let mut publishers = Protocol::ALL.map(|protocol| (protocol.as_str(), 0_u64));
        for playback in self.directory.playbacks() {
            let health = playback.health();
            match playback.status() {
                InputStatus::Idle => idle += 1,
                InputStatus::Live => {
                    live += 1;
                    let protocol = health.as_ref().and_then(|health| health.protocol);
                    let of_protocol = |(name, _): &&mut (&str, u64)| protocol == Some(*name);
                    if let Some((_, count)) = publishers.iter_mut().find(of_protocol) {
                        *count += 1;
                    }
                }
                InputStatus::Reconnecting => reconnecting += 1,
            }
            viewers += playback.viewers(now_ms);
            if let Some(health) = health {
                let measured = &health.measured;
                bitrate_bps += measured.video_bitrate_bps.unwrap_or(0)
                    + measured.audio_bitrate_bps.unwrap_or(0);
            }
        }
        let metrics = vec![
            Metric::by_label(
                "live_inputs",
                "Live inputs by what they do now",
                "status",
                [
                    ("idle", idle),
                    ("live", live),
                    ("reconnecting", reconnecting),
                ],
            ),
            Metric::by_label(
                "live_publishers",
                "Live inputs that receive media now, by protocol",
                "protocol",
                publishers,
            ),
            Metric::gauge("live_viewers", "Players that watch live streams", viewers),
            Metric::gauge(
                "live_bitrate_bps",
                "Media received now, all inputs together",
                bitrate_bps,
            ),
        ];
        Box::pin(ready(Ok(metrics)))
    }
}

/// Parts of the process that the live branch needs; shared by all its actors.
pub struct LiveServices {
    settings: LiveSettings,
    /// Bytes of the open group of pictures that an input with low latency keeps for viewers of WebRTC.
    join_cache_bytes: usize,
    /// `{data_dir}/live`
    folder: PathBuf,
    store: Store,
    boot_id: String,
    ledger: ledger::Ledger,
    /// Parts of the process that recordings need.
    writer_context: WriterContext,
}

/// The live branch before its actors run: every input is known, and what was on air is served again.
#[derive(Clone)]
pub struct Branch {
    services: Arc<LiveServices>,
    directory: Arc<Directory>,
    /// Broadcasts that continue.
    recovered: Vec<String>,
}

impl Branch {
    /// Reads what an earlier process left below `{data_dir}/live`. Inputs with low latency keep `join_cache_bytes` of their open
    /// group of pictures.
    pub async fn prepare(
        settings: LiveSettings,
        join_cache_bytes: usize,
        store: Store,
        rows: Vec<InputRow>,
    ) -> Result<Self, Error> {
        let folder = store.data_dir().join("live");
        let ledger = ledger::Ledger::new();
        let writer_context = WriterContext {
            folder: recording_folder(&store),
            store: store.clone(),
            ledger: ledger.clone(),
            uploads: store.blobs().has_objects().then(Uploads::default),
        };
        let directory = Arc::new(Directory::new(store.changes().clone()));
        let services = LiveServices {
            settings,
            join_cache_bytes,
            folder,
            store,
            boot_id: boot_id(),
            ledger,
            writer_context,
        };
        let mut branch = Self {
            services: Arc::new(services),
            directory,
            recovered: Vec::new(),
        };
        for row in rows {
            branch.directory.put(row);
        }
        let recovering = branch.clone();
        tokio::task::spawn_blocking(move || {
            recovery::recover(&recovering.services, &recovering.directory)
        })
        .await
        .expect("recovery does not panic")
        .map_err(Error::io("reading the live folder"))?;
        let views = branch
            .directory
            .playbacks()
            .into_iter()
            .map(|playback| playback.now())
            .filter(|published| published.phase != Phase::Ended)
            .filter_map(|published| published.view.clone());
        branch.recovered = views
            .map(|view| view.window.header().broadcast.clone())
            .collect();
        let (writer_context, on_air) = (
            branch.services.writer_context.clone(),
            branch.recovered.clone(),
        );
        tokio::task::spawn_blocking(move || recording_folders::recover(&writer_context, &on_air))
            .await
            .expect("recovery does not panic")
            .map_err(Error::io("reading the folder of recordings"))?;
        Ok(branch)
    }

    /// Makes the component that runs this branch, and the channel on which its reference arrives once it has started.
    pub fn component(&self) -> (Component, oneshot::Receiver<ActorRef<LiveInputs>>) {
        let args = inputs::Args {
            services: self.services.clone(),
            directory: self.directory.clone(),
        };
        let handle = ActorHandle::default();
        let component = Component::new("live inputs", args, inputs::MAILBOX, handle.clone());
        let (started, receiver) = oneshot::channel();
        let started = Arc::new(Mutex::new(Some(started)));
        let begin = component.start.clone();
        let start: component::Start = Arc::new(move |supervisor| {
            let (beginning, started, handle) = (begin(supervisor), started.clone(), handle.clone());
            Box::pin(async move {
                beginning.await;
                if let (Some(started), Some(inputs)) = (started.lock().take(), handle.get()) {
                    let _ = started.send(ActorRef::clone(&inputs));
                }
            })
        });
        let component = Component {
            vital: true,
            start,
            ..component
        };
        (component, receiver)
    }

    /// Returns the directory of all inputs.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.clone()
    }

    /// Makes the handle of this branch.
    pub fn live(&self, inputs: ActorRef<LiveInputs>) -> Live {
        Live {
            directory: self.directory.clone(),
            inputs,
        }
    }

    /// Runs the tasks beside the actors: the ledger, uploads of recorded media and the sync for power loss. Ends after `stop`, with
    /// all rows written.
    pub async fn run_background(self, stop: CancellationToken) {
        let ledger = self.services.ledger.clone().run(
            self.services.store.clone(),
            self.recovered,
            stop.clone(),
        );
        let folders = recording_folders::run(
            self.services.writer_context.clone(),
            self.directory.clone(),
            self.services.settings.linger,
            stop.clone(),
        );
        let deaths = ledger::follow_deaths(self.services.store.clone(), stop.clone());
        let uploads = run_uploads(self.services.writer_context.clone(), stop.clone());
        let sync = sync::run(self.services.folder.clone(), self.directory.clone(), stop);
        tokio::join!(ledger, folders, deaths, uploads, sync);
    }
}

/// Uploads recorded media until `stop`; without an object store there is nothing to do.
async fn run_uploads(context: WriterContext, stop: CancellationToken) {
    if let Some(uploads) = context.uploads {
        uploads.run(context.store, context.ledger, stop).await;
    }
}

/// Returns the id of the machine's boot, which distinguishes a power loss from a killed process.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// Returns the pause before a source or a target is tried again after so many failures.
fn retry_pause(first: Duration, longest: Duration, failures: u32) -> Duration {
    doubled(first.max(LEAST_PAUSE), longest.max(LEAST_PAUSE), failures)
}

/// Returns the machine's time in Unix milliseconds.
fn unix_ms() -> i64 {
    sluice_store::now_ms()
}
