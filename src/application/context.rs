//! The handles and settings that the use cases act on.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU8, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use sluice_actors::{
    cdn::Images,
    component::ComponentStatuses,
    compute::Compute,
    convert::Conversions,
    live::{
        restream::{OutputContext, Restreams},
        srt::Passphrases,
    },
    outbound::{self, Outbound},
    recording::Recordings,
    subsystem::Subsystem,
    video::VideoStreams,
    webhooks::Webhooks,
    workflow::Workflows,
};
use sluice_store::Store;
use tokio::sync::{Mutex, OnceCell, Semaphore};
use tokio_util::sync::CancellationToken;

use super::{
    agent_calls::Calls, archive::limiter::ArchiveLimiter, events::Followers, live_port::LivePort,
    password_checks::PasswordChecks, playback_token::TokenKeys, rate_limit::RateLimit,
    share::Shares, sign_in::Attempts, suspension::Suspensions, tus::turns::Turns,
};
use crate::{config::Config, metrics::Metrics};

/// File name of GStreamer's registry of plug-ins, in the data folder.
const PLUGIN_REGISTRY: &str = "gstreamer-registry.bin";

/// Stage of the service's life, as `/readyz` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    Starting,
    Ready,
    Draining,
}

/// The handles of everything that works on files, and of what reports on it.
#[derive(Clone, Debug)]
pub struct MediaHandles {
    pub compute: Compute,
    pub conversions: Conversions,
    pub images: Images,
    pub outbound: Outbound,
    pub recordings: Recordings,
    pub restreams: Restreams,
    pub streams: VideoStreams,
    pub webhooks: Webhooks,
    pub workflows: Workflows,
}

impl MediaHandles {
    /// Starts the workers; the actors of `components` start with the tree. Fails when certificate authorities of
    /// `[outbound]` cannot be read.
    pub fn start(
        config: &Config,
        store: &Store,
        program: PathBuf,
        outputs: OutputContext,
    ) -> Result<Self, outbound::SetupError> {
        let outbound = Outbound::new(&config.outbound)?;
        let compute = Compute::start(
            &config.image_workers,
            &config.av_workers,
            program,
            config.store.data_dir.join(PLUGIN_REGISTRY),
        );
        let webhooks = Webhooks::new(config.webhooks.clone(), store.clone(), outbound.clone());
        let streams = VideoStreams::new(
            config.vod.clone(),
            store.clone(),
            compute.clone(),
            config.http.base_url.clone(),
        );
        let plans = config.clone();
        Ok(Self {
            recordings: Recordings::new(
                config.recordings.clone(),
                store.clone(),
                streams.clone(),
                Arc::new(move |plan| plans.plan(plan).allowance()),
                crate::application::filename::clean,
            ),
            workflows: Workflows::new(
                config.workflows.clone(),
                store.clone(),
                compute.clone(),
                streams.clone(),
                crate::application::filename::clean,
            ),
            streams,
            webhooks,
            restreams: Restreams::new(
                config.restream.clone(),
                store.clone(),
                outbound.clone(),
                outputs,
            ),
            outbound,
            conversions: Conversions::new(
                config.convert.clone(),
                store.clone(),
                compute.clone(),
                crate::application::filename::clean,
            ),
            images: Images::new(
                config.cdn.clone(),
                store.clone(),
                compute.clone(),
                config.delivery_caps(),
                config.live.still_every,
            ),
            compute,
        })
    }

    /// Every part with a life cycle of its own, in the order in which they are loaded, drained and closed.
    pub fn subsystems(&self) -> Vec<Arc<dyn Subsystem>> {
        vec![
            Arc::new(self.compute.clone()),
            Arc::new(self.images.clone()),
            Arc::new(self.restreams.clone()),
            Arc::new(self.webhooks.clone()),
            Arc::new(self.workflows.clone()),
            Arc::new(self.recordings.clone()),
            Arc::new(self.streams.clone()),
            Arc::new(self.conversions.clone()),
        ]
    }
}

/// The SRT port and the source of its passphrases, as records show them.
#[derive(Clone, Debug)]
pub struct SrtAccess {
    /// The UDP port that is listened on.
    pub port: u16,
    pub passphrases: Passphrases,
}

/// The handles, settings and limits of the running service.
pub struct AppState {
    pub config: Config,
    pub store: Store,
    pub live: Arc<dyn LivePort>,
    pub components: ComponentStatuses,
    /// In the order of [`MediaHandles::subsystems`], live inputs last.
    pub subsystems: Vec<Arc<dyn Subsystem>>,
    pub compute: Compute,
    pub conversions: Conversions,
    pub images: Images,
    pub outbound: Outbound,
    pub recordings: Recordings,
    pub restreams: Restreams,
    pub streams: VideoStreams,
    pub webhooks: Webhooks,
    pub workflows: Workflows,
    /// Accounts that nothing is served for.
    pub suspensions: Suspensions,
    /// The port that the RTMP listener is bound to.
    pub rtmp_port: u16,
    /// `None` when SRT is not listened for.
    pub srt: Option<SrtAccess>,
    pub metrics: Metrics,
    /// OpenAPI document with this configuration's plans, made at the first request.
    pub(crate) description: OnceLock<Bytes>,
    /// The keys of playback tokens, read at the first token.
    pub(crate) playback_keys: OnceCell<TokenKeys>,
    /// Held from a change's commit until live inputs have it, so that they receive changes in the order of commits.
    pub(crate) live_changes: Mutex<()>,
    /// Places for archives that are sent.
    pub(crate) archives: ArchiveLimiter,
    /// Permits for viewers that wait for a part or a state.
    pub(crate) waiting_viewers: Semaphore,
    /// Places for clients that follow events.
    pub(crate) followers: Followers,
    /// Places for calls of agents.
    pub(crate) calls: Calls,
    /// Permits for requests that receive files.
    pub(crate) uploading: Arc<Semaphore>,
    /// The request that works on each resumable upload.
    pub(crate) turns: Arc<Turns>,
    /// Cancelled when the service stops: waiting viewers are answered at once.
    pub closing: CancellationToken,
    pub(crate) rate_limit: RateLimit,
    pub(crate) attempts: Attempts,
    /// State that the handlers of share links have in common.
    pub(crate) shares: Shares,
    pub(crate) password_checks: PasswordChecks,
    stage: AtomicU8,
}

impl AppState {
    /// Begins in [`Stage::Starting`].
    pub fn new(
        config: Config,
        store: Store,
        live: Arc<dyn LivePort>,
        components: ComponentStatuses,
        media: MediaHandles,
        rtmp_port: u16,
    ) -> Self {
        let now = Instant::now();
        let mut subsystems = media.subsystems();
        subsystems.push(live.clone());
        Self {
            rate_limit: RateLimit::new(now),
            attempts: Attempts::new(
                config.sign_in.attempts,
                config.sign_in.network_attempts,
                config.sign_in.window,
            ),
            shares: Shares::new(&config.shares),
            password_checks: PasswordChecks::new(config.sign_in.max_waiting),
            stage: AtomicU8::new(Stage::Starting as u8),
            metrics: Metrics::default(),
            description: OnceLock::new(),
            playback_keys: OnceCell::new(),
            live_changes: Mutex::new(()),
            followers: Followers::new(config.webhooks.max_followers),
            calls: Calls::new(config.mcp.max_calls),
            archives: ArchiveLimiter::new(&config.archive),
            uploading: Arc::new(Semaphore::new(config.uploads.max_active)),
            turns: Arc::default(),
            waiting_viewers: Semaphore::new(config.live.max_waiting_viewers),
            closing: CancellationToken::new(),
            config,
            store,
            live,
            components,
            subsystems,
            compute: media.compute,
            conversions: media.conversions,
            images: media.images,
            outbound: media.outbound,
            recordings: media.recordings,
            restreams: media.restreams,
            streams: media.streams,
            webhooks: media.webhooks,
            workflows: media.workflows,
            suspensions: Suspensions::default(),
            rtmp_port,
            srt: None,
        }
    }

    /// Sets the SRT access shown to people.
    pub fn with_srt(mut self, srt: SrtAccess) -> Self {
        self.srt = Some(srt);
        self
    }

    /// Sets the stage that `/readyz` reports.
    pub fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Starting as u8 => Stage::Starting,
            stage if stage == Stage::Ready as u8 => Stage::Ready,
            _ => Stage::Draining,
        }
    }
}
