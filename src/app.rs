//! Start and stop of the service: order of store, recovery, actor tree, listeners, HTTP and drain; `addresses.json`, first
//! credentials, sweep of expired rows.

use std::{
    borrow::Cow,
    collections::HashSet,
    net::{SocketAddr, TcpListener},
    path::Path,
    sync::Arc,
    time::Duration,
};

use actix_web::dev::ServerHandle;
use kameo::actor::ActorRef;
use serde::Serialize;
use sluice_actors::{
    cluster::{PeerError, Peers},
    component::ComponentStatuses,
    compute,
    live::{
        Branch, LiveAuthorizer,
        gateway::GatewayHost,
        restream,
        srt::Passphrases,
        webrtc::{Sockets, WebRtc, WebRtcContext, branch::Branches},
    },
    network::NetworkLimit,
    outbound,
    tree::{self, Add, Root},
};
use sluice_ingest::publish::Protocol;
use sluice_store::{
    Bootstrap, FirstCredentials, Secret, Store, accounts, cluster::NodeState, installation,
    live_inputs, webhooks, workflows,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::Semaphore,
    task::JoinHandle,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{error, info, warn};

use crate::{
    application::{
        address::{PublicAddress, Seen},
        change_feed,
        context::{AppContext, LiveAccess, MediaHandles, PLUGIN_REGISTRY, SrtAccess, Stage},
        members, readiness, shared_counts, suspension,
        system::state::Listener,
    },
    config::Config,
    http,
    peer::{self, PeerContext},
    protocols::{self, IngestContext, Listening},
    tls::{Certificates, TlsError},
};

pub use crate::application::system::state::Startup;

/// Longest time for the tree and the background work to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);
/// Path of this same program for workers, also when another one has replaced it on the disk (proc_pid_exe(5)).
const OWN_PROGRAM: &str = "/proc/self/exe";
/// Time for which a node that drains still takes requests: balancers that ask `/readyz` each second send none any more after it.
const BALANCER_NOTICE: Duration = Duration::from_secs(3);
/// Pause between two sweeps of expired rows.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// Reason why the service cannot start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Store(#[from] sluice_store::Error),
    #[error(transparent)]
    Actors(#[from] sluice_actors::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Outbound(#[from] outbound::SetupError),
    #[error(transparent)]
    Http(#[from] http::StartError),
    #[error(transparent)]
    Peers(#[from] PeerError),
    #[error("{what}: {source}")]
    Io {
        what: String,
        source: std::io::Error,
    },
    #[error("live inputs failed for good; the log says why")]
    LiveInputsLost,
}

/// The addresses in use, as written to `{data_dir}/addresses.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Addresses {
    pub http: SocketAddr,
    pub https: bool,
    #[serde(flatten)]
    pub ingest: Listening,
    /// UDP address of WebRTC; `null` when it is turned off.
    pub webrtc: Option<SocketAddr>,
    /// TCP address of WebRTC.
    pub webrtc_tcp: Option<SocketAddr>,
}

impl Addresses {
    /// Returns the service's address as this machine itself, or the configuration, knows it.
    fn public(&self, config: &Config) -> PublicAddress {
        let seen = Seen::local(self.http.port(), self.https);
        PublicAddress::of(&config.http.base_url, &seen, &[])
    }
}

impl Addresses {
    /// Returns all addresses with the components that serve them.
    fn listeners(&self) -> Vec<Listener> {
        let http = match self.https {
            true => "https",
            false => "http",
        };
        let listener = |protocol, transport, address, component| Listener {
            protocol,
            transport,
            address,
            component,
        };
        let mut listeners = vec![listener(http, "tcp", Some(self.http), None)];
        for (protocol, address) in self.ingest.addresses() {
            let (transport, component) = protocols::component_of(protocol);
            listeners.push(listener(protocol.as_str(), transport, address, component));
        }
        let gateway = Some("WebRTC gateway");
        listeners.push(listener("webrtc", "udp", self.webrtc, gateway));
        if self.webrtc_tcp.is_some() {
            listeners.push(listener("webrtc", "tcp", self.webrtc_tcp, gateway));
        }
        listeners
    }
}

/// A running service.
pub struct Service {
    app: AppContext,
    addresses: Addresses,
    first: Option<FirstCredentials>,
    root: ActorRef<Root>,
    http: ServerHandle,
    /// Listener for other nodes.
    peers: Option<ServerHandle>,
    sessions: TaskTracker,
    /// Ends publisher sessions.
    stop: CancellationToken,
    /// Ends the background work, once nothing gives it work any more.
    done: CancellationToken,
    lost: CancellationToken,
    background: Vec<JoinHandle<()>>,
}

impl Service {
    /// Starts everything; when this returns, `/readyz` answers 200.
    pub async fn start(config: Config, startup: Startup) -> Result<Self, Error> {
        let store = Store::open_node(&config.store, &config.cluster).await?;
        let certificates = match config.http.tls() {
            Some((cert, key)) => Some(Certificates::load(cert, key)?),
            None => None,
        };
        // All sockets are bound before anything is made that only this start can show.
        let http_socket = http::bind(config.http.listen).await?;
        let protocols = protocols::bind(&config).await?;
        let rtc_sockets = Sockets::bind(&config.webrtc).await?;
        let peer_socket = bind_for_nodes(&config).await?;
        let first =
            sluice_store::bootstrap(&store, fixed_credentials(&config), sluice_store::now_ms())
                .await?;
        let suspended = accounts::suspended(&mut store.read().await?).await?;
        let suspended: HashSet<_> = suspended.into_iter().collect();
        let inputs = live_inputs::all(&mut store.read().await?).await?;
        let inputs = inputs.into_iter();
        let inputs = inputs.map(|input| suspension::in_force(input, &suspended));

        let branch = Branch::prepare(
            config.live.clone(),
            config.webrtc.join_cache_bytes(),
            store.clone(),
            inputs.collect(),
        )
        .await?;
        let (stop, done, lost, component_statuses) = (
            CancellationToken::new(),
            CancellationToken::new(),
            CancellationToken::new(),
            ComponentStatuses::default(),
        );
        let root = Root::start(tree::Args {
            components: Vec::new(),
            component_statuses: component_statuses.clone(),
            lost: lost.clone(),
        });
        let (component, started) = branch.component();
        add(&root, component).await;
        let inputs = started.await.map_err(|_| Error::LiveInputsLost)?;
        let live = branch.live(inputs.clone());
        let sessions = TaskTracker::new();
        let outputs = restream::OutputContext {
            directory: branch.directory(),
            sessions: sessions.clone(),
            stop: stop.child_token(),
        };
        let authorizer = LiveAuthorizer::new(inputs);
        let webrtc = WebRtcContext {
            directory: branch.directory(),
            authorizer: authorizer.clone(),
            host: GatewayHost {
                program: OWN_PROGRAM.into(),
                sandbox: config.image_workers.sandbox,
                component_statuses: component_statuses.clone(),
                stop: stop.child_token(),
            },
            branches: Some(branches(&config)),
            sessions: sessions.clone(),
        };
        let rtc_settings = Arc::new(config.webrtc.clone());
        let webrtc = WebRtc::new(rtc_settings, rtc_sockets.clone(), webrtc);
        let media = MediaHandles::start(&config, &store, OWN_PROGRAM.into(), outputs, webrtc)?;
        for subsystem in media.subsystems() {
            subsystem.load().await?;
            for component in subsystem.components() {
                add(&root, component).await;
            }
        }

        let installation = installation::get(&mut store.read().await?).await?;
        let ingest = IngestContext {
            config: Arc::new(config.clone()),
            authorizer,
            directory: branch.directory(),
            passphrases: Passphrases::new(installation.key()),
            certificates: certificates.clone(),
            peers: media.peers.clone(),
            outbound: media.outbound.clone(),
            program: OWN_PROGRAM.into(),
            component_statuses: component_statuses.clone(),
            rtmp_permits: Arc::new(Semaphore::new(config.rtmp.max_connections)),
            rtmp_unadmitted: NetworkLimit::new(config.rtmp.max_unadmitted),
            sessions: sessions.clone(),
            stop: stop.clone(),
        };
        let listening = Listening::of(&protocols);
        for protocol in protocols {
            add(&root, protocol.component(&ingest)?).await;
        }
        let retention = Retention::of(&config);
        let srt = listening.port(Protocol::Srt).map(|port| SrtAccess {
            port,
            passphrases: ingest.passphrases.clone(),
        });
        let webrtc = Arc::new(media.webrtc.clone());
        let peers = media.peers.clone();
        let app = AppContext::new(
            config,
            store.clone(),
            Arc::new(live.clone()),
            component_statuses,
            media,
            LiveAccess {
                rtmp_port: listening
                    .port(Protocol::Rtmp)
                    .expect("RTMP cannot be turned off"),
                srt,
                webrtc,
            },
            startup,
        );
        app.platform.suspensions.set(suspended.clone());
        let peers = match peer_socket {
            Some(socket) => Some(serve_nodes(&app, &peers, socket).await?),
            None => None,
        };
        let server = http::server(app.clone(), http_socket, certificates.clone())?;
        let addresses = Addresses {
            http: server.address,
            https: server.is_https,
            ingest: listening,
            webrtc: rtc_sockets.as_ref().and_then(Sockets::udp_address),
            webrtc_tcp: rtc_sockets.as_ref().and_then(Sockets::tcp_address),
        };
        app.service.system.set_listeners(addresses.listeners());
        let background = vec![
            tokio::spawn(branch.run_background(done.clone())),
            tokio::spawn(sweep(store.clone(), retention, done.clone())),
            tokio::spawn(follow_hangups(certificates, done.clone())),
            tokio::spawn(readiness::follow(app.service.clone(), done.clone())),
            tokio::spawn(change_feed::follow(app.clone(), done.clone())),
            tokio::spawn(shared_counts::follow(
                app.accounts.clone(),
                app.shares.clone(),
                done.clone(),
            )),
            tokio::spawn(suspension::follow(
                app.live.clone(),
                suspended,
                done.clone(),
            )),
        ];
        let http = server.server.handle();
        actix_rt::spawn(server.server);
        write_addresses(store.data_dir(), &addresses)?;
        app.service.set_stage(Stage::Ready);
        store.cluster().set_state(NodeState::Up);
        let public = addresses.public(&app.platform.config);
        for (protocol, server) in addresses.ingest.servers(&app.platform.config, &public) {
            info!(protocol = protocol.as_str(), server, "encoders can connect");
        }
        info!(http = %addresses.http, "ready");
        Ok(Self {
            app,
            addresses,
            first,
            root,
            http,
            peers,
            sessions,
            stop,
            done,
            lost,
            background,
        })
    }

    pub fn addresses(&self) -> &Addresses {
        &self.addresses
    }

    /// Returns the addresses and first credentials, for the terminal after a start.
    pub fn greeting(&self) -> String {
        let config = &self.app.platform.config;
        let base = &config.http.base_url;
        let web = browser_url(base, self.addresses.http, self.addresses.https);
        let mut text = format!("\n  Sluice is running: {web}\n");
        if let Some(first) = &self.first {
            let public = self.addresses.public(config);
            let server = protocols::RTMP.server(config, &public, self.app.service.rtmp_port);
            let (slug, playback_id) = (&first.live_input.input_slug, &first.live_input.playback_id);
            let bootstrap = &config.bootstrap;
            let password = or_set_by(
                &first.admin_password,
                "admin_password",
                &bootstrap.admin_password,
            );
            let api_key = or_set_by(&first.api_key, "api_key", &bootstrap.api_key);
            text.push_str(&format!(
                "\n  This is shown once:\n\
                 \n    user          {}\n    password      {password}\n    API key       {api_key}\n\
                 \n  OBS, Settings -> Stream, Service \"Custom...\":\n\
                 \n    Server        {server}\n    Stream Key    {slug}.{}\n\
                 \n  Watch at {web}/live/{playback_id}\n",
                first.username,
                first.stream_key.expose(),
            ));
            text.push_str(&match &first.welcome_code {
                Some(code) => format!("\n  Open {}\n", members::welcome_url(&web, code)),
                None => format!("\n  Open {web}/app\n"),
            });
        }
        text.push('\n');
        text
    }

    /// Notes that the first credentials were shown; else the next start makes others and shows those.
    async fn note_greeted(&self) {
        if self.first.is_some()
            && let Err(error) =
                sluice_store::first_credentials_shown(&self.app.platform.store).await
        {
            warn!(%error, "the next start shows other first credentials, and those of this one end");
        }
    }

    /// Runs until SIGTERM or SIGINT, then drains; a second signal ends the process at once. `is_greeted`: [`Service::greeting`]
    /// was shown.
    pub async fn run_until_signal(self, is_greeted: bool) -> Result<(), Error> {
        let hook = |kind| {
            signal(kind).map_err(|source| Error::Io {
                what: "listening for signals".into(),
                source,
            })
        };
        let (mut terminate, mut interrupt) = (
            hook(SignalKind::terminate())?,
            hook(SignalKind::interrupt())?,
        );
        if is_greeted {
            self.note_greeted().await;
        }
        let lost = self.lost.clone();
        tokio::select! {
            () = either(&mut terminate, &mut interrupt) => {}
            () = lost.cancelled() => {}
        }
        info!("stopping: no new work, sessions end, windows stay for the next start");
        tokio::select! {
            () = self.stop() => {}
            () = either(&mut terminate, &mut interrupt) => warn!("a second signal: ending at once"),
        }
        if lost.is_cancelled() {
            Err(Error::LiveInputsLost)
        } else {
            Ok(())
        }
    }

    /// Ends in reverse of the start: publishers, viewers, tree, rows. Webhooks, workflow runs and video streams claim nothing
    /// from the first moment on; attempts end meanwhile, runs stop at their next step, and streams where they are.
    pub async fn stop(self) {
        self.app.service.set_stage(Stage::Draining);
        let store = &self.app.platform.store;
        store.cluster().set_state(NodeState::Draining);
        for subsystem in &self.app.service.subsystems {
            subsystem.drain().await;
        }
        if !store.cluster().is_solo() {
            tokio::time::sleep(BALANCER_NOTICE).await;
        }
        self.stop.cancel();
        self.sessions.close();
        bounded("publisher sessions", self.sessions.wait()).await;
        self.app.platform.closing.cancel();
        self.http.stop(true).await;
        if let Some(peers) = &self.peers {
            peers.stop(true).await;
        }
        bounded(
            "links",
            self.app.shares.shares.flush(&self.app.platform.store),
        )
        .await;
        for subsystem in &self.app.service.subsystems {
            let (name, longest) = (subsystem.name(), subsystem.close_timeout());
            within(longest, name, subsystem.close()).await;
        }
        let _ = self.root.stop_gracefully().await;
        bounded("the actor tree", self.root.wait_for_shutdown()).await;
        self.done.cancel();
        for task in self.background {
            bounded("background work", async { drop(task.await) }).await;
        }
        self.app.platform.store.close().await;
        info!("stopped");
    }
}

/// Binds `cluster.listen`, if it is set.
async fn bind_for_nodes(config: &Config) -> Result<Option<TcpListener>, Error> {
    let Some(address) = config.cluster.listen_address() else {
        return Ok(None);
    };
    match peer::bind(address).await {
        Ok(socket) => Ok(Some(socket)),
        Err(source) => Err(Error::Io {
            what: format!("cluster.listen: {address} cannot be used"),
            source,
        }),
    }
}

/// Begins to answer the other nodes.
async fn serve_nodes(
    app: &AppContext,
    peers: &Peers,
    socket: TcpListener,
) -> Result<ServerHandle, Error> {
    let unusable = |source| Error::Io {
        what: "cluster.listen".into(),
        source,
    };
    let address = socket.local_addr().map_err(unusable)?;
    let images = app.delivery.images.clone();
    let server = peer::server(PeerContext::new(peers, images).await?, socket);
    let server = server.map_err(unusable)?;
    let handle = server.handle();
    actix_rt::spawn(server);
    let cluster = &app.platform.config.cluster;
    let took_free_port = cluster
        .listen_address()
        .is_some_and(|listen| listen.port() == 0);
    if took_free_port && cluster.advertise.is_empty() {
        let store = &app.platform.store;
        store.cluster().set_address(&format!("http://{address}"));
    }
    info!(%address, "other nodes are answered");
    Ok(handle)
}

/// Returns the re-encodings for viewers by WebRTC.
fn branches(config: &Config) -> Branches {
    let registry = config.store.data_dir.join(PLUGIN_REGISTRY);
    let launch = compute::launch_av(&config.av_workers, OWN_PROGRAM.into(), registry);
    let (webrtc, sandbox) = (&config.webrtc, config.image_workers.sandbox);
    Branches::new(launch, sandbox, webrtc.max_branches, webrtc.branch_bitrate)
}

/// Returns where a browser on this machine finds the service; without a slash at its end.
pub(crate) fn browser_url(base_url: &str, http: SocketAddr, is_https: bool) -> String {
    match (base_url.is_empty(), is_https) {
        (false, _) => base_url.trim_end_matches('/').to_owned(),
        (true, true) => format!("https://localhost:{}", http.port()),
        (true, false) => format!("http://localhost:{}", http.port()),
    }
}

/// A first credential for the terminal, or where it comes from: what the operator set is known already and may be a secret that
/// logs of the terminal should not hold.
fn or_set_by<'a>(secret: &'a Secret, key: &str, set: &str) -> Cow<'a, str> {
    match set {
        "" => secret.expose().into(),
        _ => format!("as the setting bootstrap.{key} says").into(),
    }
}

async fn add(root: &ActorRef<Root>, component: sluice_actors::component::Component) {
    let name = component.name;
    if let Err(error) = root.ask(Add(component)).await {
        error!(name, %error, "a component could not be started");
    }
}

fn fixed_credentials(config: &Config) -> Bootstrap {
    let fixed = |text: &str| (!text.is_empty()).then(|| Secret::new(text));
    Bootstrap {
        admin_password: fixed(&config.bootstrap.admin_password),
        api_key: fixed(&config.bootstrap.api_key),
        plan: Some(config.account.plan.clone()),
    }
}

/// Writes `addresses.json`, for scripts and tests that asked for port 0; replaced by rename, so that no one reads half of it.
fn write_addresses(data_dir: &Path, addresses: &Addresses) -> Result<(), Error> {
    let json = serde_json::to_vec_pretty(addresses).expect("addresses are plain data");
    let (path, fresh) = (
        data_dir.join("addresses.json"),
        data_dir.join("addresses.json.new"),
    );
    std::fs::write(&fresh, json)
        .and_then(|()| std::fs::rename(&fresh, &path))
        .map_err(|source| Error::Io {
            what: format!("writing {}", path.display()),
            source,
        })
}

/// Retention of rows, which the settings determine; older ones are swept.
struct Retention {
    events: webhooks::Retention,
    runs: workflows::Retention,
    audit: Duration,
    audit_entries: u32,
}

impl Retention {
    fn of(config: &Config) -> Self {
        Self {
            events: webhooks::Retention {
                keep: config.webhooks.keep,
                keep_bytes: config.webhooks.keep_bytes.as_u64(),
            },
            runs: workflows::Retention {
                keep_runs: config.workflows.keep_runs,
                max_active: config.workflows.max_active_per_workflow,
            },
            audit: config.account.keep_audit,
            audit_entries: config.account.max_audit,
        }
    }
}

async fn sweep(store: Store, retention: Retention, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(SWEEP_EVERY) => {}
            () = stop.cancelled() => return,
        }
        let now_ms = sluice_store::now_ms();
        if let Err(error) = store.sweep(now_ms).await {
            warn!(%error, "expired rows are swept later");
        }
        if !store.cluster().is_janitor() {
            continue;
        }
        for swept in [
            store.sweep_events(&retention.events, now_ms).await,
            store.sweep_runs(&retention.runs, now_ms).await,
            store
                .sweep_audit(retention.audit, retention.audit_entries, now_ms)
                .await,
        ] {
            if let Err(error) = swept {
                warn!(%error, "expired rows are swept later");
            }
        }
    }
}

/// Reads the certificate again at SIGHUP. Without one the signal is listened for too: its default action would end the service.
async fn follow_hangups(certificates: Option<Arc<Certificates>>, stop: CancellationToken) {
    let following = async {
        match certificates {
            Some(certificates) => certificates.follow_hangups().await,
            None => ignore_hangups().await,
        }
    };
    tokio::select! {
        ended = following => {
            if let Err(error) = ended {
                warn!(%error, "SIGHUP cannot be listened for: certificates are read at start only");
            }
        }
        () = stop.cancelled() => {}
    }
}

async fn ignore_hangups() -> std::io::Result<()> {
    let mut hangups = signal(SignalKind::hangup())?;
    while hangups.recv().await.is_some() {
        info!("SIGHUP: there is no certificate to read again");
    }
    Ok(())
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

async fn bounded(what: &str, stopping: impl Future<Output = ()>) {
    within(STOP_TIMEOUT, what, stopping).await;
}

async fn within(longest: Duration, what: &str, stopping: impl Future<Output = ()>) {
    if tokio::time::timeout(longest, stopping).await.is_err() {
        warn!(what, "did not stop in time");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Time for the attempts of webhooks beside `webhooks.timeout`.
    const WEBHOOKS: Duration = Duration::from_secs(3);

    #[test]
    fn packages_of_nodes_give_a_stop_the_time_of_its_stages() {
        let config = Config::default();
        let of_nodes = BALANCER_NOTICE + Duration::from_secs(peer::STOP_WITHIN_S);
        let of_settings = config.http.drain + config.webhooks.timeout;
        let stages = of_nodes + STOP_TIMEOUT + of_settings + WEBHOOKS + STOP_TIMEOUT;
        for (text, name) in [
            (
                include_str!("../packaging/sluice-node.conf"),
                "TimeoutStopSec=",
            ),
            (
                include_str!("../packaging/compose.cluster.yaml"),
                "stop_grace_period: ",
            ),
        ] {
            let (_, value) = text.split_once(name).expect("it is set");
            let digits: String = value.chars().take_while(char::is_ascii_digit).collect();
            let given = Duration::from_secs(digits.parse().unwrap());
            assert!(given >= stages, "{name}{given:?}: a stop takes {stages:?}");
        }
    }
}
