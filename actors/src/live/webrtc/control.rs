//! WebRTC sessions between requests and the gateway: offers and answers, permissions, ends (`SWEEP_EVERY`), health of inputs.
//!
//! Survives a restart of the gateway: this, with the names of sessions. May be lost: the sessions, whose pages connect again. One
//! lock holds all sessions; it is taken for moments, and before those of relays.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, atomic::AtomicU32, atomic::Ordering::Relaxed},
    time::Duration,
};

use parking_lot::Mutex;
use sluice_ingest::{
    publish::{Ended, Protocol, PublishAuthorizer as _, PublishRequest, Rejection},
    webrtc::{
        WebRtcSettings,
        message::{
            CloseReason, FromGateway, GoneReason, OfferError, Role, SessionId, SessionStatistics,
            ToGateway, Transport,
        },
    },
};
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, MissedTickBehavior, interval, timeout},
};
use tokio_util::task::TaskTracker;
use tracing::debug;
use uuid::Uuid;

use super::{
    Answer, Offer, PublisherOffer, ViewerOffer, WebRtcError,
    branch::Branches,
    candidates::Candidates,
    counters::{Counters, End, Join},
    outbox::Outbox,
    process::Sockets,
    publisher::{self, PublisherRoute},
    relay::{Relay, RelayContext, Takes},
    report::WebRtcHealth,
    sessions::{Answered, CountedViewer, Outcome, SessionKind, Stage, Table, Viewer},
};
use crate::{
    live::{Directory, LiveAuthorizer, Playback, inputs::named_by, unix_ms},
    metric::{Metric, Sample},
    network::NetworkLimit,
};

/// Longest wait for the gateway's answer to an offer.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Time beyond `webrtc.handshake_timeout` after which an unconnected session is ended, if the gateway has not done so.
const HANDSHAKE_GRACE: Duration = Duration::from_secs(5);
/// Interval at which permissions and broadcasts are looked at.
const SWEEP_EVERY: Duration = Duration::from_millis(250);
/// Sweeps after which the health of inputs is set.
const SWEEPS_TO_HEALTH: u32 = 4;
/// Time for which a relay without sessions stays.
const RELAY_FOR: Duration = Duration::from_secs(10);
/// Longest wait of an offer for a gateway that starts.
const START_WITHIN: Duration = Duration::from_secs(2);
/// Time for which a publisher that closed its connection may still end its session by DELETE: a page that is left sends both at once.
const DELETE_WITHIN: Duration = Duration::from_secs(1);
/// Longest wait of the service's end for the gateway to close its sessions.
const DRAIN_WITHIN: Duration = Duration::from_millis(500);

/// See the module documentation.
pub(super) struct Control {
    pub settings: Arc<WebRtcSettings>,
    pub directory: Arc<Directory>,
    pub authorizer: LiveAuthorizer,
    pub tasks: TaskTracker,
    pub candidates: Candidates,
    pub counters: Counters,
    branches: Option<Branches>,
    networks: Arc<NetworkLimit>,
    feed_ids: Arc<AtomicU32>,
    state: Mutex<State>,
    /// A gateway takes offers from now on.
    started: Notify,
    /// The ports in words, such as `UDP 8189 or TCP 8189`.
    ports: String,
    /// Reason why the gateway does not run.
    pub failure: Mutex<Option<String>>,
}

#[derive(Default)]
struct State {
    /// `None` while the gateway does not run.
    outbox: Option<Arc<Outbox>>,
    table: Table,
    relays: HashMap<Uuid, Arc<Relay>>,
    is_draining: bool,
}

/// A session whose offer is not answered yet; closed when dropped.
pub(super) struct OpenSession {
    control: Arc<Control>,
    pub id: SessionId,
    name: String,
    is_kept: bool,
}

impl OpenSession {
    /// Keeps the session and makes its answer.
    pub fn keep(mut self, sdp: String) -> Answer {
        self.is_kept = true;
        let session = std::mem::take(&mut self.name);
        Answer { sdp, session }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        if !self.is_kept {
            self.control.close(self.id, CloseReason::Over, End::Failed);
        }
    }
}

impl Control {
    pub fn new(
        settings: Arc<WebRtcSettings>,
        directory: Arc<Directory>,
        authorizer: LiveAuthorizer,
        tasks: TaskTracker,
        sockets: &Sockets,
        branches: Option<Branches>,
    ) -> Self {
        let port_of = |address: Option<SocketAddr>| address.map_or(0, |address| address.port());
        let udp = port_of(sockets.udp_address());
        Self {
            candidates: Candidates::new(&settings, udp),
            ports: match sockets.tcp_address() {
                Some(tcp) => format!("UDP {udp} or TCP {}", tcp.port()),
                None => format!("UDP {udp}"),
            },
            networks: NetworkLimit::new(settings.max_pending_per_address),
            counters: Counters::default(),
            feed_ids: Arc::new(AtomicU32::new(1)),
            state: Mutex::default(),
            started: Notify::new(),
            failure: Mutex::default(),
            settings,
            directory,
            authorizer,
            tasks,
            branches,
        }
    }

    /// Opens a viewer's session.
    pub async fn play(self: &Arc<Self>, viewer: ViewerOffer) -> Result<Answer, WebRtcError> {
        let played = self.try_play(viewer).await;
        self.count(&played);
        played
    }

    async fn try_play(self: &Arc<Self>, viewer: ViewerOffer) -> Result<Answer, WebRtcError> {
        let playback = viewer.playback;
        if playback.is_idle() {
            return Err(WebRtcError::NotOnAir);
        }
        let kind = SessionKind::Viewer(Viewer {
            policy: playback.policy(),
            playback: playback.clone(),
            until_ms: viewer.until_ms,
            has_permission: viewer.has_permission,
            relay: None,
            counted: None,
        });
        self.until_ready().await;
        let (open, answered) = self.open(playback.input_id, kind, viewer.offer)?;
        let Answered { video, audio, sdp } = answer_of(answered).await?;
        let relay = self.relay_for(open.id, &playback)?;
        let joined = timeout(ANSWER_WITHIN, relay.join(open.id, Takes { video, audio })).await;
        let joined = joined.unwrap_or(Err(WebRtcError::Unavailable));
        if joined.is_err() || !self.is_open(open.id) {
            relay.leave(open.id);
        }
        joined?;
        Ok(open.keep(sdp))
    }

    /// Opens a publisher's session. The key is checked before the offer is read, and the publisher admitted, which displaces another
    /// one, when the offer is answered.
    pub async fn publish(
        self: &Arc<Self>,
        publisher: PublisherOffer,
    ) -> Result<Answer, WebRtcError> {
        let published = self.try_publish(publisher).await;
        self.count(&published);
        published
    }

    async fn try_publish(
        self: &Arc<Self>,
        publisher: PublisherOffer,
    ) -> Result<Answer, WebRtcError> {
        let entry = named_by(&self.directory, &publisher.stream).map_err(WebRtcError::Rejected)?;
        if !entry.row.enabled {
            return Err(WebRtcError::Rejected(Rejection::Disabled));
        }
        let request = PublishRequest {
            protocol: Protocol::Whip,
            remote: publisher.offer.remote,
            stream: publisher.stream,
            encoder: publisher.encoder,
        };
        self.until_ready().await;
        let (route, arrivals) = PublisherRoute::new();
        let kind = SessionKind::Publisher(route);
        let (open, answered) = self.open(entry.row.id, kind, publisher.offer)?;
        let sdp = answer_of(answered).await?.sdp;
        let admitted = timeout(ANSWER_WITHIN, self.authorizer.admit(request)).await;
        let admitted = admitted.unwrap_or(Err(Rejection::Busy));
        let session = admitted.map_err(WebRtcError::Rejected)?;
        let (control, id) = (self.clone(), open.id);
        self.tasks.spawn(async move {
            if publisher::run(session, arrivals).await {
                control.close(id, CloseReason::Forbidden, End::Forbidden);
            }
        });
        Ok(open.keep(sdp))
    }

    /// Waits a moment for a gateway that starts: at the start of the service, and after its end.
    async fn until_ready(&self) {
        // Made before the look at the state, so that no start is missed between both.
        let started = self.started.notified();
        let may_start = {
            let state = self.state.lock();
            state.outbox.is_none() && !state.is_draining
        };
        if may_start && self.failure.lock().is_none() {
            let _ = timeout(START_WITHIN, started).await;
        }
    }

    fn count(&self, opened: &Result<Answer, WebRtcError>) {
        self.counters.join(match opened {
            Ok(_) => Join::Answered,
            Err(WebRtcError::Full | WebRtcError::TooManyPending) => Join::Full,
            Err(WebRtcError::Busy) => Join::Busy,
            Err(WebRtcError::Unavailable) => Join::Unavailable,
            Err(_) => Join::Rejected,
        });
    }

    /// Adds a session and sends its offer to the gateway.
    pub fn open(
        self: &Arc<Self>,
        input_id: Uuid,
        kind: SessionKind,
        offer: Offer,
    ) -> Result<(OpenSession, oneshot::Receiver<Outcome>), WebRtcError> {
        let candidates = self.candidates.of(&offer.reached_at);
        let role = match kind {
            SessionKind::Viewer(_) => Role::Viewer,
            SessionKind::Publisher(_) => Role::Publisher,
        };
        let mut state = self.state.lock();
        let outbox = state.outbox.clone().filter(|_| !state.is_draining);
        let outbox = outbox.ok_or(WebRtcError::Unavailable)?;
        let is_viewer = role == Role::Viewer;
        state
            .table
            .check_room(&self.settings, input_id, is_viewer)?;
        let permit = self.networks.take_for(offer.remote.ip());
        let (answer, answered) = oneshot::channel();
        let stage = Stage::Pending {
            until: Instant::now() + self.settings.handshake_timeout + HANDSHAKE_GRACE,
            answer: Some(answer),
            _permit: permit.ok_or(WebRtcError::TooManyPending)?,
        };
        let (session, name) = state.table.open(input_id, kind, stage);
        outbox.order(ToGateway::Offer {
            session,
            role,
            candidates,
            sdp: offer.sdp,
        });
        let open = OpenSession {
            control: self.clone(),
            id: session,
            name,
            is_kept: false,
        };
        Ok((open, answered))
    }

    /// Returns the relay of the input, which is started if there is none, and notes it in the session.
    fn relay_for(
        &self,
        session: SessionId,
        playback: &Arc<Playback>,
    ) -> Result<Arc<Relay>, WebRtcError> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let outbox = state.outbox.as_ref().ok_or(WebRtcError::Unavailable)?;
        let open = state.table.get_mut(session);
        let Some(SessionKind::Viewer(viewer)) = open.map(|session| &mut session.kind) else {
            return Err(WebRtcError::Unavailable);
        };
        let relay = state.relays.entry(playback.input_id).or_insert_with(|| {
            let context = RelayContext {
                outbox: outbox.clone(),
                branches: self.branches.clone(),
                feed_ids: self.feed_ids.clone(),
                join_cache: self.settings.join_cache.as_u64() as usize,
            };
            Relay::start(playback.clone(), context, &self.tasks)
        });
        viewer.relay = Some(relay.clone());
        Ok(relay.clone())
    }

    /// Returns whether a gateway takes offers.
    #[cfg(test)]
    pub fn is_running(&self) -> bool {
        self.state.lock().outbox.is_some()
    }

    fn is_open(&self, session: SessionId) -> bool {
        self.state.lock().table.get_mut(session).is_some()
    }

    pub fn is_known(&self, name: &str) -> bool {
        self.state.lock().table.is_known(name, Instant::now())
    }

    /// Ends a session as its client asked.
    pub fn end(&self, name: &str) -> bool {
        let mut state = self.state.lock();
        let is_known = state.table.is_known(name, Instant::now());
        if let Some(session) = state.table.by_name(name) {
            self.close_in(&mut state, session, CloseReason::Asked, End::Client);
        }
        is_known
    }

    /// Ends a session.
    pub fn close(&self, session: SessionId, reason: CloseReason, end: End) {
        self.close_in(&mut self.state.lock(), session, reason, end);
    }

    fn close_in(&self, state: &mut State, session: SessionId, reason: CloseReason, end: End) {
        if state.table.get_mut(session).is_none() {
            return;
        }
        if let Some(outbox) = &state.outbox {
            outbox.order(ToGateway::Close { session, reason });
        }
        self.finish(state, session, end);
    }

    /// Removes a session that the gateway no longer has.
    fn finish(&self, state: &mut State, session: SessionId, end: End) {
        let Some(closed) = state.table.close(session, Instant::now()) else {
            return;
        };
        debug!(session, ?end, "a WebRTC session is over");
        self.counters.end(end);
        match closed.kind {
            SessionKind::Viewer(viewer) => {
                if let Some(relay) = viewer.relay {
                    relay.leave(session);
                }
            }
            SessionKind::Publisher(route) => route.end(match end {
                End::Client => Ended::Clean,
                _ => Ended::Dropped,
            }),
        }
        if let Stage::Pending {
            answer: Some(answer),
            ..
        } = closed.stage
        {
            let _ = answer.send(Err(WebRtcError::Unavailable));
        }
    }

    /// Takes offers from now on, for a gateway that reads this queue.
    pub fn gateway_is_ready(&self, outbox: Arc<Outbox>) {
        self.counters.starts.fetch_add(1, Relaxed);
        self.state.lock().outbox = Some(outbox);
        self.started.notify_waiters();
    }

    /// Ends all sessions and relays, whose gateway is gone.
    pub fn gateway_is_gone(&self) {
        let mut state = self.state.lock();
        state.outbox = None;
        for session in state.table.ids() {
            self.finish(&mut state, session, End::Gateway);
        }
        for (_, relay) in state.relays.drain() {
            relay.end();
        }
    }

    /// Takes a message of the gateway.
    pub fn take(&self, report: FromGateway) {
        let mut state = self.state.lock();
        let state = &mut *state;
        match report {
            FromGateway::Ready | FromGateway::Alive { .. } => {}
            FromGateway::Answered {
                session,
                video,
                audio,
                sdp,
            } => answer(state, session, Ok(Answered { video, audio, sdp })),
            FromGateway::Rejected {
                session,
                reason,
                detail,
            } => {
                let error = match reason {
                    OfferError::Invalid => WebRtcError::InvalidOffer(detail),
                    OfferError::NoCommonCodec => WebRtcError::NoCommonCodec(detail),
                    OfferError::Full => WebRtcError::Full,
                };
                answer(state, session, Err(error));
                self.finish(state, session, End::Failed);
            }
            FromGateway::Connected {
                session,
                transport,
                remote,
                after_ms,
            } => {
                debug!(session, %remote, after_ms, "a WebRTC session is connected");
                self.counters.connect(after_ms);
                connect(state, session, transport);
            }
            FromGateway::FirstFrame { after_ms, .. } => self.counters.first_frame(after_ms),
            FromGateway::KeyFrameWanted(feed) => {
                let mut relays = state.relays.values();
                let _ = relays.any(|relay| relay.want_key_frame(feed));
            }
            FromGateway::Statistics {
                session,
                statistics,
            } => self.take_statistics(state, session, statistics),
            FromGateway::Video(frame) => {
                if let Some(SessionKind::Publisher(route)) = kind_of(state, frame.of) {
                    route.take_video(frame);
                }
            }
            FromGateway::Audio(frame) => {
                if let Some(SessionKind::Publisher(route)) = kind_of(state, frame.of) {
                    route.take_audio(frame);
                }
            }
            FromGateway::Gone { session, reason } => {
                if let (GoneReason::Unreachable, Some(SessionKind::Viewer(viewer))) =
                    (reason, kind_of(state, session))
                {
                    let unreached = viewer.playback.webrtc();
                    unreached.note_unreachable(unix_ms(), &self.ports);
                }
                match state.table.get_mut(session) {
                    Some(open) if reason == GoneReason::Peer && open.is_publisher() => {
                        let until = Instant::now() + DELETE_WITHIN;
                        open.stage = Stage::Disconnected { until };
                    }
                    _ => self.finish(state, session, end_of(reason)),
                }
            }
        }
    }

    fn take_statistics(&self, state: &mut State, id: SessionId, statistics: SessionStatistics) {
        let Some(session) = state.table.get_mut(id) else {
            return;
        };
        session.statistics = statistics;
        match &mut session.kind {
            SessionKind::Viewer(_) => self.counters.add(&statistics),
            SessionKind::Publisher(route) => route.take_statistics(statistics),
        }
    }

    /// Ends sessions whose permission or broadcast is over, and relays that no session uses, for ever.
    pub async fn keep_swept(&self) {
        let mut due = interval(SWEEP_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for sweep in 0_u32.. {
            due.tick().await;
            self.sweep(sweep % SWEEPS_TO_HEALTH == 0);
        }
    }

    fn sweep(&self, sets_health: bool) {
        let mut state = self.state.lock();
        let (now, now_ms) = (Instant::now(), unix_ms());
        state.table.forget_ended(now);
        let over: Vec<_> = {
            let sessions = state.table.sessions();
            let judged = sessions.filter_map(|(id, session)| {
                let (reason, end) = match &session.stage {
                    Stage::Pending { until, .. } if *until <= now => {
                        (CloseReason::Over, End::Handshake)
                    }
                    Stage::Disconnected { until } if *until <= now => {
                        (CloseReason::Over, End::Disconnected)
                    }
                    _ => match &session.kind {
                        SessionKind::Viewer(viewer) => self.judge(viewer, now_ms)?,
                        SessionKind::Publisher(_) => return None,
                    },
                };
                Some((id, reason, end))
            });
            judged.collect()
        };
        for (session, reason, end) in over {
            self.close_in(&mut state, session, reason, end);
        }
        let relays: Vec<_> = state.relays.values().cloned().collect();
        for session in relays.iter().flat_map(|relay| relay.take_unserved()) {
            self.close_in(&mut state, session, CloseReason::Over, End::Over);
        }
        if sets_health {
            self.set_health(&state);
        }
        state.relays.retain(|input_id, relay| {
            self.counters.drop_frames(relay.take_dropped());
            let is_used = relay.empty_for().is_none_or(|it| it < RELAY_FOR);
            if !is_used {
                relay.end();
                if let Some(playback) = self.directory.by_input(*input_id) {
                    playback.webrtc().set(WebRtcHealth::default());
                }
            }
            is_used
        });
    }

    /// Returns why a viewer may watch no longer.
    fn judge(&self, viewer: &Viewer, now_ms: i64) -> Option<(CloseReason, End)> {
        let is_expired = viewer.until_ms.is_some_and(|until_ms| until_ms <= now_ms);
        let row = self.directory.entry(viewer.playback.input_id);
        let is_enabled = row.is_some_and(|entry| entry.row.enabled);
        if is_expired || !is_enabled || viewer.is_locked_out() {
            return Some((CloseReason::Forbidden, End::Forbidden));
        }
        // One whose encoder is gone waits for it.
        viewer
            .playback
            .is_idle()
            .then_some((CloseReason::Over, End::Over))
    }

    fn set_health(&self, state: &State) {
        let mut lines: HashMap<Uuid, Vec<SessionStatistics>> = HashMap::new();
        for (_, session, viewer) in state.table.viewers() {
            if viewer.counted.is_some() {
                let line = lines.entry(session.input_id).or_default();
                line.push(session.statistics);
            }
        }
        for (input_id, relay) in &state.relays {
            if let Some(playback) = self.directory.by_input(*input_id) {
                let lines = lines.remove(input_id).unwrap_or_default();
                playback.webrtc().set(WebRtcHealth {
                    branch: relay.health(),
                    ..line_health(&lines)
                });
            }
        }
    }

    /// Accepts no offer from now on and closes all sessions.
    pub async fn drain(&self) {
        let outbox = {
            let mut state = self.state.lock();
            state.is_draining = true;
            for session in state.table.ids() {
                self.close_in(&mut state, session, CloseReason::Stopping, End::Stopping);
            }
            state.outbox.clone()
        };
        if let Some(outbox) = outbox {
            let _ = timeout(DRAIN_WITHIN, outbox.until_written()).await;
        }
    }

    pub fn metrics(&self) -> Vec<Metric> {
        let state = self.state.lock();
        let (mut pending, mut connected, mut thin) = (0_u64, [0_u64; 2], [0_u64; 2]);
        for (_, session) in state.table.sessions() {
            match session.stage {
                Stage::Pending { .. } => pending += 1,
                Stage::Disconnected { .. } => {}
                Stage::Connected { transport } if session.statistics.is_thin => {
                    thin[transport as usize] += 1;
                }
                Stage::Connected { transport } => connected[transport as usize] += 1,
            }
        }
        let relays: Vec<_> = state.relays.values().map(|relay| relay.health()).collect();
        drop(state);
        let sample = |state: &'static str, transport: &'static str, count: u64| {
            let labels = vec![("state", state.into()), ("transport", transport.into())];
            Sample::new(labels, count)
        };
        let mut samples = vec![sample("pending", "", pending)];
        for (at, transport) in ["udp", "tcp"].into_iter().enumerate() {
            samples.push(sample("connected", transport, connected[at]));
            samples.push(sample("thin", transport, thin[at]));
        }
        let branches = |is_of: fn(&super::report::BranchHealth) -> Option<&'static str>| {
            let reencoded = |it: &&super::report::BranchHealth| is_of(it) == Some("reencoded");
            relays.iter().filter(reencoded).count()
        };
        let mut metrics = vec![
            Metric::samples(
                "webrtc_sessions",
                "WebRTC sessions by what they do now",
                samples,
            ),
            Metric::by_label(
                "webrtc_branches",
                "Tracks that are re-encoded for viewers by WebRTC now",
                "kind",
                [
                    ("video", branches(|it| it.video)),
                    ("audio", branches(|it| it.audio)),
                ],
            ),
        ];
        metrics.extend(self.counters.metrics());
        metrics
    }
}

/// Waits for the gateway's answer.
pub(super) async fn answer_of(answered: oneshot::Receiver<Outcome>) -> Outcome {
    match timeout(ANSWER_WITHIN, answered).await {
        Ok(Ok(outcome)) => outcome,
        _ => Err(WebRtcError::Unavailable),
    }
}

fn kind_of(state: &mut State, session: SessionId) -> Option<&mut SessionKind> {
    state
        .table
        .get_mut(session)
        .map(|session| &mut session.kind)
}

fn answer(state: &mut State, session: SessionId, outcome: Outcome) {
    let open = state.table.get_mut(session);
    if let Some(Stage::Pending { answer, .. }) = open.map(|session| &mut session.stage)
        && let Some(answer) = answer.take()
    {
        let _ = answer.send(outcome);
    }
}

fn connect(state: &mut State, id: SessionId, transport: Transport) {
    let Some(session) = state.table.get_mut(id) else {
        return;
    };
    session.stage = Stage::Connected { transport };
    if let SessionKind::Viewer(viewer) = &mut session.kind {
        viewer.counted = Some(CountedViewer::new(viewer.playback.clone()));
        if let Some(relay) = &viewer.relay {
            relay.connect(id);
        }
    }
}

fn end_of(reason: GoneReason) -> End {
    match reason {
        GoneReason::Closed | GoneReason::Failed => End::Failed,
        GoneReason::Peer => End::Client,
        GoneReason::Unreachable => End::Unreachable,
        GoneReason::Handshake => End::Handshake,
        GoneReason::Silent => End::Silent,
        GoneReason::TooSlow => End::TooSlow,
    }
}

fn line_health(lines: &[SessionStatistics]) -> WebRtcHealth {
    let mean = |of: fn(&SessionStatistics) -> f64, counts: fn(&f64) -> bool| {
        let known: Vec<f64> = lines.iter().map(of).filter(counts).collect();
        let rounded = |mean: f64| (mean * 10.0).round() / 10.0;
        (!known.is_empty()).then(|| rounded(known.iter().sum::<f64>() / known.len() as f64))
    };
    WebRtcHealth {
        thin: lines.iter().filter(|line| line.is_thin).count() as u64,
        loss_percent: mean(|line| line.loss * 100.0, |_| true),
        // Zero until it is known.
        rtt_ms: mean(|line| line.rtt_ms, |rtt_ms| *rtt_ms > 0.0),
        ..WebRtcHealth::default()
    }
}
