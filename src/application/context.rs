//! Contexts of the use cases, one for each resource: handles, settings, limits; the list of subsystems.

use std::{
    ops::Deref,
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
    cluster::Peers,
    component::ComponentStatuses,
    compute::Compute,
    convert::Conversions,
    live::{
        LivePort,
        restream::{OutputContext, Restreams},
        srt::Passphrases,
        webrtc::{WebRtc, WebRtcPort},
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
    agent_calls::Calls,
    archive::limiter::ArchiveLimiter,
    capabilities::CapabilitiesDocument,
    changes::permits::FollowerLimiter,
    events::Followers,
    files::previews::Previews,
    owner_sessions::OwnerSessions,
    password_checks::PasswordChecks,
    playback_token::TokenKeys,
    rate_limit::RateLimit,
    share::Shares,
    shared_attempts,
    sign_in::Attempts,
    suspension::Suspensions,
    system::state::{Startup, SystemState},
    tus::turns::Turns,
};
use crate::{config::Config, log::LogRing, metrics::Metrics};

/// File name of GStreamer's registry of plug-ins, in the data folder.
pub(crate) const PLUGIN_REGISTRY: &str = "gstreamer-registry.bin";

/// Stage of the service's life, as `/readyz` reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    Starting,
    Ready,
    Draining,
}

/// The handles of everything that works on files, and of what reports on it.
#[derive(Clone)]
pub struct MediaHandles {
    pub compute: Compute,
    pub conversions: Conversions,
    pub images: Images,
    pub outbound: Outbound,
    /// Calls to the other nodes of a cluster.
    pub peers: Peers,
    pub recordings: Recordings,
    pub restreams: Restreams,
    pub streams: VideoStreams,
    pub webhooks: Webhooks,
    pub webrtc: WebRtc,
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
        webrtc: WebRtc,
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
        let peers = Peers::new(store);
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
            webrtc,
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
                peers.clone(),
            ),
            peers,
            compute,
        })
    }

    /// Every part with a life cycle of its own, in the order in which they are loaded, drained and closed.
    pub fn subsystems(&self) -> Vec<Arc<dyn Subsystem>> {
        vec![
            Arc::new(self.compute.clone()),
            Arc::new(self.images.clone()),
            Arc::new(self.restreams.clone()),
            Arc::new(self.webrtc.clone()),
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

/// Ways to live inputs besides HTTP.
pub struct LiveAccess {
    /// The port that the RTMP listener is bound to.
    pub rtmp_port: u16,
    /// `None` when SRT is not listened for.
    pub srt: Option<SrtAccess>,
    pub webrtc: Arc<dyn WebRtcPort>,
}

/// Settings, storage and shutdown: what the use cases of every resource act on.
pub struct Platform {
    pub config: Config,
    pub store: Store,
    /// Accounts that nothing is served for.
    pub suspensions: Suspensions,
    /// Cancelled when the service stops: requests that wait are answered at once.
    pub closing: CancellationToken,
}

/// Lets the use cases of a resource use the platform's fields as their own.
macro_rules! on_the_platform {
    ($($context:ty, $($field:ident).+;)+) => {$(
        impl Deref for $context {
            type Target = Platform;

            fn deref(&self) -> &Platform {
                &self.$($field).+
            }
        }
    )+};
}

on_the_platform! {
    AccountContext, platform;
    AgentContext, files.platform;
    ChangeContext, platform;
    DeliveryContext, platform;
    EventContext, platform;
    FileContext, platform;
    JobContext, files.platform;
    LiveContext, platform;
    PlaybackTokens, platform;
    ServiceContext, platform;
    ShareContext, files.platform;
    VideoContext, files.platform;
    WorkflowContext, files.platform;
}

/// Credentials: sign-in, sessions, API keys, and the rate limit of accounts.
pub struct AccountContext {
    platform: Arc<Platform>,
    pub(crate) rate_limit: RateLimit,
    pub(crate) attempts: Attempts,
    pub(crate) password_checks: Arc<PasswordChecks>,
}

/// Tools for agents.
pub struct AgentContext {
    pub files: Arc<FileContext>,
    pub jobs: Arc<JobContext>,
    pub live: Arc<LiveContext>,
    pub workflows: Arc<WorkflowContext>,
    /// Permits for calls of agents.
    pub(crate) calls: Calls,
}

/// Changes of accounts, for clients that follow them.
pub struct ChangeContext {
    platform: Arc<Platform>,
    /// For the health of an input.
    pub live: Arc<LiveContext>,
    pub(crate) limiter: Arc<FollowerLimiter>,
}

/// Image delivery: its addresses, keys, presets and statistics.
pub struct DeliveryContext {
    platform: Arc<Platform>,
    /// Held from the commit of a change of a key or preset until image delivery knows it, so that both have the same order.
    pub(crate) key_changes: Mutex<()>,
    pub images: Images,
    pub live: Arc<dyn LivePort>,
    pub(crate) shares: Arc<Shares>,
}

/// Events, and the webhooks that deliver them.
pub struct EventContext {
    platform: Arc<Platform>,
    pub webhooks: Webhooks,
    pub outbound: Outbound,
    /// Permits for clients that follow events.
    pub(crate) followers: Followers,
}

/// Stored files and folders, their uploads, downloads and archives.
pub struct FileContext {
    platform: Arc<Platform>,
    pub compute: Compute,
    pub images: Images,
    pub outbound: Outbound,
    /// A stored file may begin runs.
    pub workflows: Workflows,
    /// A deleted folder ends its share links.
    pub(crate) shares: Arc<Shares>,
    /// Permits for archives that are sent.
    pub(crate) archives: ArchiveLimiter,
    /// Permits to render previews for owners.
    pub(crate) previews: Previews,
    /// Permits for requests that receive files.
    pub(crate) uploading: Arc<Semaphore>,
    /// The request that works on each resumable upload.
    pub(crate) turns: Arc<Turns>,
}

/// Conversion jobs.
pub struct JobContext {
    pub files: Arc<FileContext>,
    pub conversions: Conversions,
}

/// Live inputs, their outputs and recordings.
pub struct LiveContext {
    platform: Arc<Platform>,
    pub live: Arc<dyn LivePort>,
    pub outbound: Outbound,
    pub recordings: Recordings,
    pub restreams: Restreams,
    /// The port that the RTMP listener is bound to.
    pub rtmp_port: u16,
    /// `None` when SRT is not listened for.
    pub srt: Option<SrtAccess>,
    /// Sessions of viewers and publishers by WebRTC.
    pub webrtc: Arc<dyn WebRtcPort>,
    /// Held from a change's commit until live inputs have it, so that they receive changes in the order of commits.
    pub(crate) live_changes: Mutex<()>,
    /// Permits for viewers that wait for a part or a state.
    pub(crate) waiting_viewers: Semaphore,
}

/// Playback tokens of live inputs and video streams, and the sessions of their owners, who need none.
pub struct PlaybackTokens {
    platform: Arc<Platform>,
    /// Read at the first token.
    pub(crate) keys: OnceCell<TokenKeys>,
    /// Held from the commit of a key's change until the keys have it, so that both have the same order.
    pub(crate) key_changes: Mutex<()>,
    pub(crate) owner_sessions: OwnerSessions,
}

/// The service as those who run it see it: stage, components, metrics, and the description of its API.
pub struct ServiceContext {
    platform: Arc<Platform>,
    pub components: ComponentStatuses,
    /// In the order of [`MediaHandles::subsystems`], live inputs last.
    pub subsystems: Vec<Arc<dyn Subsystem>>,
    pub metrics: Metrics,
    pub compute: Compute,
    pub live: Arc<dyn LivePort>,
    /// The port that the RTMP listener is bound to.
    pub rtmp_port: u16,
    pub(crate) system: SystemState,
    /// OpenAPI document with this configuration's plans, made at the first request.
    pub(crate) description: OnceLock<Bytes>,
    /// Operations, formats, plans and so on for forms, made at the first request.
    pub(crate) capabilities: OnceLock<CapabilitiesDocument>,
    stage: AtomicU8,
}

impl ServiceContext {
    /// The newest lines of the log.
    pub(crate) fn log(&self) -> &LogRing {
        &self.system.startup.log
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

/// Share links of folders, for their owners and their readers.
pub struct ShareContext {
    pub files: Arc<FileContext>,
    pub delivery: Arc<DeliveryContext>,
    /// State that the handlers of share links have in common.
    pub(crate) shares: Arc<Shares>,
    pub(crate) password_checks: Arc<PasswordChecks>,
    /// Videos of a shared folder play by a token.
    pub(crate) playback_tokens: Arc<PlaybackTokens>,
}

/// Video-on-demand streams.
pub struct VideoContext {
    pub files: Arc<FileContext>,
    pub streams: VideoStreams,
}

/// Workflows and their runs.
pub struct WorkflowContext {
    pub files: Arc<FileContext>,
    pub workflows: Workflows,
    pub webhooks: Webhooks,
    pub outbound: Outbound,
}

/// The contexts of all resources. Handlers take the one of their own resource.
#[derive(Clone)]
pub struct AppContext {
    pub platform: Arc<Platform>,
    pub accounts: Arc<AccountContext>,
    pub agents: Arc<AgentContext>,
    pub changes: Arc<ChangeContext>,
    pub delivery: Arc<DeliveryContext>,
    pub events: Arc<EventContext>,
    pub files: Arc<FileContext>,
    pub jobs: Arc<JobContext>,
    pub live: Arc<LiveContext>,
    pub playback_tokens: Arc<PlaybackTokens>,
    pub service: Arc<ServiceContext>,
    pub shares: Arc<ShareContext>,
    pub video: Arc<VideoContext>,
    pub workflows: Arc<WorkflowContext>,
}

impl AppContext {
    /// Begins in [`Stage::Starting`].
    pub fn new(
        config: Config,
        store: Store,
        live: Arc<dyn LivePort>,
        components: ComponentStatuses,
        media: MediaHandles,
        access: LiveAccess,
        startup: Startup,
    ) -> Self {
        let rtmp_port = access.rtmp_port;
        let platform = Arc::new(Platform {
            config,
            store,
            suspensions: Suspensions::default(),
            closing: CancellationToken::new(),
        });
        let config = &platform.config;
        let mut subsystems = media.subsystems();
        subsystems.push(live.clone());
        let (compute, live_port) = (media.compute.clone(), live.clone());
        let is_solo = platform.store.cluster().is_solo();
        let shares = Arc::new(Shares::new(&config.shares, &platform.store));
        let password_checks = Arc::new(PasswordChecks::new(config.sign_in.max_waiting));
        let files = Arc::new(FileContext {
            platform: platform.clone(),
            compute: media.compute,
            images: media.images.clone(),
            outbound: media.outbound.clone(),
            workflows: media.workflows.clone(),
            shares: shares.clone(),
            archives: ArchiveLimiter::new(&config.archive),
            previews: Previews::new(config.files.previews_per_account),
            uploading: Arc::new(Semaphore::new(config.uploads.max_active)),
            turns: Arc::default(),
        });
        let playback_tokens = Arc::new(PlaybackTokens {
            platform: platform.clone(),
            keys: OnceCell::new(),
            key_changes: Mutex::new(()),
            owner_sessions: OwnerSessions::default(),
        });
        let delivery = Arc::new(DeliveryContext {
            platform: platform.clone(),
            key_changes: Mutex::new(()),
            images: media.images,
            live: live.clone(),
            shares: shares.clone(),
        });
        let jobs = Arc::new(JobContext {
            files: files.clone(),
            conversions: media.conversions,
        });
        let workflows = Arc::new(WorkflowContext {
            files: files.clone(),
            workflows: media.workflows,
            webhooks: media.webhooks.clone(),
            outbound: media.outbound.clone(),
        });
        let live = Arc::new(LiveContext {
            platform: platform.clone(),
            live,
            outbound: media.outbound.clone(),
            recordings: media.recordings,
            restreams: media.restreams,
            rtmp_port,
            srt: access.srt,
            webrtc: access.webrtc,
            live_changes: Mutex::new(()),
            waiting_viewers: Semaphore::new(config.live.max_waiting_viewers),
        });
        Self {
            accounts: Arc::new(AccountContext {
                platform: platform.clone(),
                rate_limit: match is_solo {
                    true => RateLimit::new(Instant::now()),
                    false => RateLimit::of_node(),
                },
                attempts: Attempts::new(
                    config.sign_in.attempts,
                    config.sign_in.network_attempts,
                    config.sign_in.window,
                )
                .shared_by_nodes(&platform.store, shared_attempts::SIGN_IN),
                password_checks: password_checks.clone(),
            }),
            agents: Arc::new(AgentContext {
                files: files.clone(),
                jobs: jobs.clone(),
                live: live.clone(),
                workflows: workflows.clone(),
                calls: Calls::new(config.mcp.max_calls),
            }),
            changes: Arc::new(ChangeContext {
                platform: platform.clone(),
                live: live.clone(),
                limiter: Arc::new(FollowerLimiter::new(config.changes.clone())),
            }),
            events: Arc::new(EventContext {
                platform: platform.clone(),
                webhooks: media.webhooks,
                outbound: media.outbound,
                followers: Followers::new(config.webhooks.max_followers),
            }),
            service: Arc::new(ServiceContext {
                platform: platform.clone(),
                components,
                subsystems,
                metrics: Metrics::default(),
                compute,
                live: live_port,
                system: SystemState::new(startup),
                rtmp_port,
                description: OnceLock::new(),
                capabilities: OnceLock::new(),
                stage: AtomicU8::new(Stage::Starting as u8),
            }),
            shares: Arc::new(ShareContext {
                files: files.clone(),
                delivery: delivery.clone(),
                shares,
                password_checks,
                playback_tokens: playback_tokens.clone(),
            }),
            video: Arc::new(VideoContext {
                files: files.clone(),
                streams: media.streams,
            }),
            delivery,
            files,
            jobs,
            live,
            playback_tokens,
            workflows,
            platform,
        }
    }
}
