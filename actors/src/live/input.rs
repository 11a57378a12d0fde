//! `LiveInput`: one live input on air: publisher sessions, reconnect window (`reconnectWindowSeconds`), end of a broadcast,
//! health every second.
//!
//! Owns the input's timeline: publisher sessions change, the broadcast continues. Survives a restart: the
//! published view (window, bytes, folder). May be lost: the running session, whose encoder reconnects. Mailbox
//! [`MAILBOX`] deliveries, each of one socket read; when it is full the session does not read its socket.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use kameo::{
    Actor,
    actor::{ActorRef, WeakActorRef},
    error::{ActorStopReason, Infallible},
    message::{Context, Message},
};
use sluice_ingest::publish::{Ended, PublishRequest, SessionReport};
use sluice_media::{hls::Header, meter::Meter, unit::Unit};
use sluice_store::{
    broadcasts::Totals,
    live_inputs::{LiveInput as InputRow, RecordMode},
};
use tracing::{error, info, warn};

use super::{
    Health, LiveInputs, LiveServices, Phase, Playback, View,
    broadcast::Broadcast,
    health::Facts,
    history::Sample,
    inputs::Quiet,
    ledger::Entry,
    playback::is_low_latency,
    publisher::{Publisher, Ticket},
    recording_writer::RecordingWriter,
    unix_ms,
};
use crate::events::Parting;

/// Deliveries that may wait for this actor.
pub(super) const MAILBOX: usize = 64;
/// Target duration of an input's first broadcast, in seconds.
const FIRST_TARGET_DURATION_S: u32 = 4;
/// Interval at which deadlines are checked.
const TICK: Duration = Duration::from_millis(500);
/// Interval at which health is published.
const HEALTH_EVERY_MS: i64 = 1_000;
/// Interval at which the totals of a broadcast are noted; a killed process loses the rest.
const TOTALS_EVERY_MS: i64 = 10_000;
/// Longest wait of a stopping input for its last parts to be written.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);
/// Time after which an ended session whose end was not reported counts as dropped.
const LOST_END_MS: i64 = 3_000;
/// Most addresses of rejected encoders shown in advice.
const SHOWN_CONFLICTS: usize = 3;

/// Arguments of a live input.
pub(super) struct Args {
    pub services: Arc<LiveServices>,
    pub row: Arc<InputRow>,
    pub playback: Arc<Playback>,
    pub owner: WeakActorRef<LiveInputs>,
}

/// The actor; see the module documentation.
pub(super) struct LiveInput {
    args: Args,
    me: WeakActorRef<Self>,
    broadcast: Option<Broadcast>,
    view: Option<Arc<View>>,
    phase: Phase,
    /// End of the reconnect window, or of the time an ended playlist stays.
    deadline_ms: Option<i64>,
    session: Option<Publisher>,
    meter: Meter,
    /// Generation of the newest session, running or not.
    generation: u64,
    sessions: u64,
    conflicts: u64,
    conflict_addresses: Vec<String>,
    health_due_ms: i64,
    /// Packets lost up to the last sample, by the session of that generation.
    lost_before: (u64, u64),
    /// Since they were last noted.
    totals: Totals,
    totals_due_ms: i64,
}

impl Actor for LiveInput {
    type Args = Args;
    type Error = Infallible;

    async fn on_start(args: Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let mut this = Self {
            me: me.downgrade(),
            broadcast: None,
            view: None,
            phase: Phase::Idle,
            deadline_ms: None,
            session: None,
            meter: Meter::new(),
            generation: 0,
            sessions: 0,
            conflicts: 0,
            conflict_addresses: Vec::new(),
            health_due_ms: 0,
            lost_before: (0, 0),
            totals: Totals::default(),
            totals_due_ms: 0,
            args,
        };
        this.take_up_published();
        if this.broadcast.is_none() {
            // A publisher that was admitted and never begins must not leave an actor behind.
            this.deadline_ms = Some(unix_ms() + LOST_END_MS);
        }
        tokio::spawn(tick(me.downgrade()));
        Ok(this)
    }

    async fn on_stop(
        &mut self,
        _: WeakActorRef<Self>,
        reason: ActorStopReason,
    ) -> Result<(), Infallible> {
        if let Some(broadcast) = self.broadcast.as_mut().filter(|_| reason.is_normal()) {
            let now_ms = unix_ms();
            broadcast.end_session();
            broadcast.settle(now_ms);
            let last = broadcast.flush(now_ms);
            let Some(broadcast) = &self.broadcast else {
                return Ok(());
            };
            let written = broadcast.disk().wait_for(last);
            if tokio::time::timeout(FLUSH_TIMEOUT, written).await.is_err() {
                warn!(input = %self.args.row.id, "the last parts could not be written before the stop");
            }
        }
        Ok(())
    }
}

/// Nudges an input until it is gone. A tick that finds the mailbox full is left out: the input is awake anyway.
async fn tick(input: WeakActorRef<LiveInput>) {
    let mut interval = tokio::time::interval(TICK);
    interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
    loop {
        interval.tick().await;
        let Some(input) = input.upgrade().filter(|input| input.is_alive()) else {
            return;
        };
        let _ = input.tell(Tick).try_send();
    }
}

impl LiveInput {
    /// Continues the broadcast that a predecessor or an earlier process left.
    fn take_up_published(&mut self) {
        let published = self.args.playback.now();
        let Some(view) = published.view.clone() else {
            return;
        };
        let now_ms = unix_ms();
        let broadcast = Broadcast::resume(&self.args.services.settings, &view, now_ms);
        self.view = Some(Arc::new(broadcast.view()));
        if published.phase != Phase::Ended {
            broadcast.announce_recording();
        }
        self.adopt(broadcast);
        if published.phase == Phase::Ended {
            self.phase = Phase::Ended;
            self.deadline_ms = Some(now_ms + self.args.services.settings.linger.as_millis() as i64);
        } else {
            self.wait_for_encoder(now_ms);
        }
        self.publish();
    }

    fn adopt(&mut self, broadcast: Broadcast) {
        let me = self.me.clone();
        broadcast.disk().set_nudge(move || {
            if let Some(me) = me.upgrade() {
                let _ = me.tell(Persisted).try_send();
            }
        });
        self.broadcast = Some(broadcast);
    }

    fn begin_broadcast(&mut self, now_ms: i64) -> std::io::Result<()> {
        let Args {
            services,
            row,
            playback,
            ..
        } = &self.args;
        let header = Header {
            broadcast: new_broadcast_id(),
            started_ms: now_ms,
            target_duration_s: playback
                .target_duration_s()
                .unwrap_or(FIRST_TARGET_DURATION_S),
            low_latency: is_low_latency(row),
            fence: playback.next_fence() as u64,
            boot_id: services.boot_id.clone(),
        };
        let started = Entry::Started {
            input_id: row.id,
            broadcast: header.broadcast.clone(),
            at_ms: now_ms,
            fence: header.fence as i64,
        };
        let folder = services.folder.join(row.id.to_string());
        let is_recorded = row.record_mode == RecordMode::Automatic;
        let recording_writer = is_recorded
            .then(|| RecordingWriter::new(services.writer_context.clone(), row.id, &header));
        let broadcast = Broadcast::begin(&services.settings, header, &folder, recording_writer)?;
        info!(input = %row.id, broadcast = broadcast.header().broadcast, "broadcast begins");
        services.ledger.note(started);
        broadcast.announce_recording();
        playback.set_started(now_ms);
        self.forget_broadcast();
        self.adopt(broadcast);
        self.sessions = 0;
        self.meter = Meter::new();
        Ok(())
    }

    fn wait_for_encoder(&mut self, now_ms: i64) {
        self.phase = Phase::Reconnecting;
        self.deadline_ms = Some(now_ms + i64::from(self.args.row.reconnect_window_s) * 1000);
    }

    /// Ends the session of a publisher that is gone: whole units go out, and the reconnect window opens or the broadcast
    /// ends.
    fn finish_session(&mut self, how: Ended, reason: Parting) {
        let now_ms = unix_ms();
        if let Some(session) = self.session.take() {
            session.ticket.closed.cancel();
            self.note_disconnected(&session, reason);
            info!(input = %self.args.row.id, remote = %session.request.remote, ?how, "publisher gone");
        }
        let Some(broadcast) = self
            .broadcast
            .as_mut()
            .filter(|_| self.phase != Phase::Ended)
        else {
            return;
        };
        broadcast.end_session();
        broadcast.settle(now_ms);
        if how == Ended::Clean || self.args.row.reconnect_window_s == 0 {
            self.end_broadcast(now_ms);
        } else {
            broadcast.note_session_end(now_ms);
            self.note_totals(now_ms);
            self.wait_for_encoder(now_ms);
            self.publish();
        }
    }

    fn note_connected(&self, session: &Publisher) {
        let Some(broadcast) = &self.broadcast else {
            return;
        };
        let connection = session.connection(self.args.row.id, broadcast.header());
        self.args.services.ledger.note(Entry::Connected(connection));
    }

    fn note_disconnected(&self, session: &Publisher, reason: Parting) {
        let gone = session.disconnection(self.args.row.id, reason, unix_ms());
        self.args.services.ledger.note(Entry::Disconnected(gone));
    }

    fn note_totals(&mut self, now_ms: i64) {
        let totals = std::mem::take(&mut self.totals);
        self.totals_due_ms = now_ms + TOTALS_EVERY_MS;
        if let Some(broadcast) = &self.broadcast {
            let header = broadcast.header();
            self.args.services.ledger.note(Entry::Totals {
                broadcast: header.broadcast.clone(),
                fence: header.fence as i64,
                totals,
                at_ms: broadcast.last_media_ms().unwrap_or(now_ms),
            });
        }
    }

    fn end_broadcast(&mut self, now_ms: i64) {
        let Some(broadcast) = self.broadcast.as_mut() else {
            return;
        };
        let ended_ms = broadcast.last_media_ms().unwrap_or(now_ms);
        broadcast.end(ended_ms, now_ms);
        let target_duration_s = broadcast.next_target_duration_s();
        self.note_totals(now_ms);
        let Some(broadcast) = &self.broadcast else {
            return;
        };
        let header = broadcast.header();
        info!(input = %self.args.row.id, broadcast = header.broadcast, "broadcast ended");
        self.args.services.ledger.note(Entry::Ended {
            input_id: self.args.row.id,
            broadcast: header.broadcast.clone(),
            at_ms: ended_ms,
            target_duration_s,
            fence: header.fence as i64,
        });
        self.args.playback.set_ended(ended_ms);
        self.args.playback.set_target_duration_s(target_duration_s);
        // Nothing of a very short broadcast may be published yet: its parts are on their way to the disk.
        let is_empty = broadcast.window().segments().next().is_none();
        let linger_ms = self.args.services.settings.linger.as_millis() as i64;
        self.phase = Phase::Ended;
        self.deadline_ms = Some(if is_empty { now_ms } else { now_ms + linger_ms });
        self.publish();
    }

    fn forget_broadcast(&mut self) {
        if let Some(broadcast) = self.broadcast.take() {
            broadcast.discard();
        }
        self.view = None;
    }

    /// Carries out the packager's outputs and publishes what viewers may see; after every message.
    fn catch_up(&mut self) {
        let now_ms = unix_ms();
        let Some(broadcast) = self.broadcast.as_mut() else {
            return;
        };
        broadcast.settle(now_ms);
        if let Some(view) = broadcast.advance(now_ms) {
            self.view = Some(Arc::new(view.following(self.view.as_ref())));
            if self.phase == Phase::Starting
                && self.view.as_ref().is_some_and(|view| view.is_playable())
            {
                self.phase = Phase::Live;
            }
            self.publish();
        }
    }

    fn publish(&self) {
        let until = self
            .deadline_ms
            .filter(|_| self.phase == Phase::Reconnecting);
        self.args
            .playback
            .publish(self.phase, until, self.view.clone());
    }

    fn accepts(&self, generation: u64) -> bool {
        self.session
            .as_ref()
            .is_some_and(|session| session.ticket.generation == generation)
    }

    fn publish_health(&mut self, now_ms: i64) {
        let Some(broadcast) = self
            .broadcast
            .as_ref()
            .filter(|_| self.phase != Phase::Ended)
        else {
            self.args.playback.set_health(None);
            return;
        };
        let failure = self.args.services.store.write_failure();
        let is_counted = self.args.services.settings.count_viewers;
        let viewers = is_counted.then(|| self.args.playback.viewers(now_ms));
        self.totals.peak_viewers = self.totals.peak_viewers.max(viewers);
        let measured = self.meter.snapshot(now_ms);
        let sample = match &self.session {
            Some(session) => {
                let (generation, line) = (session.ticket.generation, session.report.line);
                let (of, lost) = self.lost_before;
                let lost_before = if of == generation { lost } else { 0 };
                self.lost_before = (generation, line.map_or(0, |line| line.lost));
                Sample::on_air(now_ms, &measured, line, lost_before)
            }
            None => Sample::off_air(now_ms),
        };
        self.args
            .playback
            .history()
            .push(sample.watched_by(viewers));
        self.args.playback.set_health(Some(Health::of(Facts {
            session: self.session.as_ref(),
            broadcast,
            measured,
            viewers,
            webrtc: self.args.playback.webrtc(),
            now_ms,
            sessions: self.sessions,
            conflicts: self.conflicts,
            conflict_addresses: &self.conflict_addresses,
            database_error: failure.map(|failure| failure.reason),
        })));
    }
}

/// A publisher was admitted: it owns the timeline from now on.
pub(super) struct Begin {
    pub ticket: Arc<Ticket>,
    pub request: PublishRequest,
}

impl Message<Begin> for LiveInput {
    type Reply = ();

    /// A ticket that was closed meanwhile begins all the same: the units that its publisher sent before are queued
    /// behind this message, and belong to the broadcast.
    async fn handle(&mut self, begin: Begin, _: &mut Context<Self, ()>) {
        if begin.ticket.generation < self.generation {
            return;
        }
        self.generation = begin.ticket.generation;
        let now_ms = unix_ms();
        if let Some(displaced) = self.session.take() {
            displaced.ticket.closed.cancel();
            self.note_disconnected(&displaced, Parting::TakenOver);
        }
        if (self.broadcast.is_none() || self.phase == Phase::Ended)
            && let Err(error) = self.begin_broadcast(now_ms)
        {
            error!(input = %self.args.row.id, %error, "a broadcast cannot begin");
            begin.ticket.closed.cancel();
            return;
        }
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.begin_session(now_ms);
        }
        self.meter.begin_session(now_ms);
        let tap = self.args.playback.tap();
        tap.begin_session();
        tap.keep_group(match is_low_latency(&self.args.row) {
            true => self.args.services.join_cache_bytes,
            false => 0,
        });
        self.sessions += 1;
        self.deadline_ms = None;
        self.phase = if self.view.as_ref().is_some_and(|view| view.is_playable()) {
            Phase::Live
        } else {
            Phase::Starting
        };
        let session = Publisher::new(begin.ticket, begin.request, now_ms);
        self.note_connected(&session);
        self.session = Some(session);
        self.catch_up();
        self.publish();
        self.publish_health(now_ms);
    }
}

/// Units of one socket read.
pub(super) struct Deliver {
    pub generation: u64,
    pub units: Vec<Unit>,
}

impl Message<Deliver> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, deliver: Deliver, _: &mut Context<Self, ()>) {
        if !self.accepts(deliver.generation) {
            return;
        }
        let now_ms = unix_ms();
        self.args.playback.tap().put(&deliver.units);
        if let Some(broadcast) = &mut self.broadcast {
            for unit in deliver.units {
                self.meter.observe(&unit, now_ms);
                self.totals.bytes += unit.media_len();
                broadcast.push(unit, now_ms);
            }
        }
        self.catch_up();
    }
}

/// Facts that the protocol layer learned beside the media.
pub(super) struct Report {
    pub generation: u64,
    pub report: SessionReport,
}

impl Message<Report> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, report: Report, _: &mut Context<Self, ()>) {
        if let Some(session) = self
            .session
            .as_mut()
            .filter(|it| it.ticket.generation == report.generation)
        {
            session.report = report.report;
        }
    }
}

/// A publisher session is over.
pub(super) struct Finish {
    pub generation: u64,
    pub how: Ended,
}

impl Message<Finish> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, finish: Finish, _: &mut Context<Self, ()>) {
        let session = self.session.as_ref();
        let Some(session) = session.filter(|it| it.ticket.generation == finish.generation) else {
            return;
        };
        let reason = session.reason_for(finish.how);
        self.finish_session(finish.how, reason);
        self.catch_up();
    }
}

/// Another encoder with this key was rejected.
pub(super) struct Conflict(pub SocketAddr);

impl Message<Conflict> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, Conflict(remote): Conflict, _: &mut Context<Self, ()>) {
        self.conflicts += 1;
        let address = remote.ip().to_string();
        if !self.conflict_addresses.contains(&address)
            && self.conflict_addresses.len() < SHOWN_CONFLICTS
        {
            self.conflict_addresses.push(address);
        }
    }
}

/// The owner of the input ends the running publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Revoke {
    /// Disabled, or ended by its owner: the broadcast ends now.
    EndBroadcast,
    /// Key rotated, or the service drains: an encoder may come back.
    KeepWindow,
    /// Deleted: nothing is kept.
    Forget,
}

impl Message<Revoke> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, revoke: Revoke, context: &mut Context<Self, ()>) {
        match revoke {
            Revoke::EndBroadcast if self.phase == Phase::Reconnecting => {
                self.end_broadcast(unix_ms())
            }
            Revoke::EndBroadcast => self.finish_session(Ended::Clean, Parting::Closed),
            Revoke::KeepWindow if self.session.is_some() => {
                self.finish_session(Ended::Dropped, Parting::Closed)
            }
            Revoke::KeepWindow => {}
            Revoke::Forget => {
                self.finish_session(Ended::Clean, Parting::Deleted);
                self.forget_broadcast();
                context.stop();
                return;
            }
        }
        self.catch_up();
    }
}

/// The row changed.
pub(super) struct Reconfigure(pub Arc<InputRow>);

impl Message<Reconfigure> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, Reconfigure(row): Reconfigure, _: &mut Context<Self, ()>) {
        self.args.row = row;
    }
}

/// Nothing is served any more and no one has been admitted since: delete the folder and stop.
pub(super) struct Forget;

impl Message<Forget> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, _: Forget, context: &mut Context<Self, ()>) {
        self.forget_broadcast();
        context.stop();
    }
}

/// The disk thread has come further.
struct Persisted;

impl Message<Persisted> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, _: Persisted, _: &mut Context<Self, ()>) {
        self.catch_up();
    }
}

struct Tick;

impl Message<Tick> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, _: Tick, _: &mut Context<Self, ()>) {
        let now_ms = unix_ms();
        if self.has_lost_its_end(now_ms) {
            self.finish_session(Ended::Dropped, Parting::Dropped);
        }
        if let Some(broadcast) = &mut self.broadcast {
            broadcast.tick(now_ms);
        }
        self.catch_up();
        if self
            .deadline_ms
            .is_some_and(|deadline_ms| deadline_ms <= now_ms)
        {
            match self.phase {
                Phase::Reconnecting => self.end_broadcast(now_ms),
                _ => self.report_quiet(),
            }
        }
        if now_ms >= self.health_due_ms {
            self.publish_health(now_ms);
            // With the beginning of the next second, so that each has its sample.
            self.health_due_ms = (now_ms / HEALTH_EVERY_MS + 1) * HEALTH_EVERY_MS;
        }
        if now_ms >= self.totals_due_ms && self.session.is_some() {
            self.note_totals(now_ms);
        }
    }
}

impl LiveInput {
    /// Returns whether the session is over although its end never arrived: the mailbox was full, or its successor never
    /// began.
    fn has_lost_its_end(&self, now_ms: i64) -> bool {
        let ended_for_ms = |session: &Publisher| session.ticket.ended_for_ms(now_ms);
        self.session
            .as_ref()
            .and_then(ended_for_ms)
            .is_some_and(|ended_for_ms| ended_for_ms > LOST_END_MS)
    }

    /// Reports to [`LiveInputs`] that nothing is left to serve.
    fn report_quiet(&self) {
        if let Some(owner) = self.args.owner.upgrade() {
            let _ = owner
                .tell(Quiet {
                    input_id: self.args.row.id,
                    generation: self.generation,
                })
                .try_send();
        }
    }
}

/// Makes a random name that no cache has seen before.
fn new_broadcast_id() -> String {
    sluice_store::credentials::random_bytes::<6>()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Makes the actor panic.
#[cfg(test)]
pub(super) struct Panic;

#[cfg(test)]
impl Message<Panic> for LiveInput {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}
