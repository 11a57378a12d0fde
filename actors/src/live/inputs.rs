//! `LiveInputs`: admission of publishers (stream key, disabled input, `live.max_streams`, take-over), one actor for each
//! input on air, drain.
//!
//! Survives a restart (in `Args`): the directory with every input's row and playback. May be lost: which encoders were
//! displaced lately, and the running sessions, whose encoders reconnect. Mailbox 128; an encoder that finds it full for
//! 2 s is rejected as busy. Losing this actor for good ends the process.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    ops::ControlFlow,
    sync::Arc,
    time::{Duration, Instant},
};

use kameo::{
    Actor,
    actor::{ActorId, ActorRef, Spawn, WeakActorRef},
    error::{ActorStopReason, Infallible, SendError},
    mailbox,
    message::{Context, Message},
};
use sluice_ingest::publish::{Protocol, PublishRequest, Rejection};
use sluice_store::live_inputs::LiveInput as InputRow;
use tracing::{error, info, warn};
use uuid::Uuid;

use super::{
    LiveServices, Phase,
    admission::{CurrentPublisher, Displaced, Identity, would_flap},
    disk::Job,
    input::{self, LiveInput, Revoke},
    ledger,
    playback::{Directory, Entry},
    publisher::Ticket,
    recording_writer::WriterJob,
    restream::unit_window::UnitWindow,
    unix_ms,
};
use crate::tree::OwnedActor;

pub(super) const MAILBOX: usize = 128;
/// Panics of an input's actor within [`CRASH_WINDOW`] after which its broadcast is given up, and its publishers are rejected
/// for a while.
const CRASH_BUDGET: u32 = 5;
const CRASH_WINDOW: Duration = Duration::from_secs(60);
/// Longest wait of the service's end for all inputs to write their last parts.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Arguments of `LiveInputs`, the same after each restart.
#[derive(Clone)]
pub struct Args {
    pub services: Arc<LiveServices>,
    pub directory: Arc<Directory>,
}

/// The actor; see the module documentation.
pub struct LiveInputs {
    args: Args,
    /// Kept, since a weak one would die ([`crate::component`]).
    me: ActorRef<Self>,
    on_air: HashMap<Uuid, OnAir>,
    by_actor: HashMap<ActorId, Uuid>,
    crashed: HashMap<Uuid, Crashes>,
    generation: u64,
    draining: bool,
}

struct OnAir {
    actor: OwnedActor<LiveInput>,
    ticket: Option<Arc<Ticket>>,
    displaced: Displaced,
}

impl OnAir {
    fn has_publisher(&self) -> bool {
        self.ticket.as_ref().is_some_and(|ticket| ticket.is_open())
    }

    /// Sends a message to the input; at once when its mailbox has room, so that messages keep their order.
    fn send<M>(&self, message: M)
    where
        LiveInput: Message<M, Reply = ()>,
        M: Send + 'static,
    {
        let actor = self.actor.get().clone();
        if let Err(SendError::MailboxFull(message)) = actor.tell(message).try_send() {
            tokio::spawn(async move {
                let _ = actor.tell(message).await;
            });
        }
    }
}

#[derive(Debug)]
struct Crashes {
    count: u32,
    first: Instant,
}

impl Actor for LiveInputs {
    type Args = Args;
    type Error = Infallible;

    /// Takes up every broadcast that is published: those of the last process, and those of a restarted predecessor.
    async fn on_start(args: Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let mut this = Self {
            args,
            me,
            on_air: HashMap::new(),
            by_actor: HashMap::new(),
            crashed: HashMap::new(),
            generation: unix_ms() as u64,
            draining: false,
        };
        for playback in this.args.directory.playbacks() {
            if playback.now().phase != Phase::Idle
                && let Some(entry) = this.args.directory.entry(playback.input_id)
            {
                this.start_input(&entry).await;
            }
        }
        Ok(this)
    }

    /// Ends every input in order, so that the last parts are written.
    async fn on_stop(
        &mut self,
        _: WeakActorRef<Self>,
        reason: ActorStopReason,
    ) -> Result<(), Infallible> {
        if matches!(reason, ActorStopReason::Panicked(_)) {
            return Ok(());
        }
        let actors: Vec<_> = self
            .on_air
            .drain()
            .map(|(_, on_air)| on_air.actor.release())
            .collect();
        for actor in &actors {
            let _ = actor.stop_gracefully().await;
        }
        let stopped =
            futures_util::future::join_all(actors.iter().map(|actor| actor.wait_for_shutdown()));
        if tokio::time::timeout(STOP_TIMEOUT, stopped).await.is_err() {
            warn!("some live inputs did not stop in time");
        }
        Ok(())
    }

    async fn on_link_died(
        &mut self,
        _: WeakActorRef<Self>,
        id: ActorId,
        reason: ActorStopReason,
    ) -> Result<ControlFlow<ActorStopReason>, Infallible> {
        let Some(input_id) = self.by_actor.remove(&id) else {
            return Ok(ControlFlow::Continue(()));
        };
        self.on_air.remove(&input_id);
        if matches!(reason, ActorStopReason::Normal | ActorStopReason::Killed) {
            return Ok(ControlFlow::Continue(()));
        }
        error!(input = %input_id, %reason, "a live input crashed; its encoder may reconnect");
        if let Some(entry) = self.args.directory.entry(input_id) {
            if self.may_restart(input_id) {
                self.start_input(&entry).await;
            } else {
                error!(input = %input_id, "the broadcast is given up: it crashed {CRASH_BUDGET} times within a minute");
                self.give_up(&entry);
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl LiveInputs {
    async fn start_input(&mut self, entry: &Entry) {
        let prepared = LiveInput::prepare_with_mailbox(mailbox::bounded(input::MAILBOX));
        let actor = prepared.actor_ref().clone();
        self.me.link(&actor).await;
        prepared.spawn(input::Args {
            services: self.args.services.clone(),
            row: entry.row.clone(),
            playback: entry.playback.clone(),
            owner: self.me.downgrade(),
        });
        self.by_actor.insert(actor.id(), entry.row.id);
        let on_air = OnAir {
            actor: OwnedActor::new(actor),
            ticket: None,
            displaced: Displaced::default(),
        };
        self.on_air.insert(entry.row.id, on_air);
    }

    fn may_restart(&mut self, input_id: Uuid) -> bool {
        let crashes = self.crashed.entry(input_id).or_insert(Crashes {
            count: 0,
            first: Instant::now(),
        });
        if crashes.first.elapsed() > CRASH_WINDOW {
            *crashes = Crashes {
                count: 0,
                first: Instant::now(),
            };
        }
        crashes.count += 1;
        crashes.count <= CRASH_BUDGET
    }

    /// Forgets a broadcast that no actor survives: its playlist, its folder and its row.
    fn give_up(&self, entry: &Entry) {
        let Some(view) = entry.playback.now().view.clone() else {
            return entry.playback.publish(Phase::Idle, None, None);
        };
        let header = view.window.header();
        let now_ms = unix_ms();
        self.args.services.ledger.note(ledger::Entry::Ended {
            input_id: entry.row.id,
            broadcast: header.broadcast.clone(),
            at_ms: now_ms,
            target_duration_s: None,
            fence: header.fence as i64,
        });
        entry.playback.set_ended(now_ms);
        entry.playback.publish(Phase::Idle, None, None);
        self.args.directory.keep_history(&entry.playback, now_ms);
        if let Some(recording_writer) = view.segment_store.recording_writer() {
            let job = Job::Recording(recording_writer.clone(), WriterJob::End(now_ms));
            view.segment_store.disk().submit(job);
        }
        view.segment_store.disk().submit(Job::Discard);
    }

    fn is_given_up(&self, input_id: Uuid) -> bool {
        self.crashed
            .get(&input_id)
            .is_some_and(|it| it.count > CRASH_BUDGET && it.first.elapsed() < CRASH_WINDOW)
    }

    /// Returns the input whose key the publisher named, if it may be published to.
    fn authorise(&self, request: &PublishRequest) -> Result<Entry, Rejection> {
        let entry = named_by(&self.args.directory, &request.stream)?;
        self.open_to_publishers(entry)
    }

    /// Returns the input of a source, which needs no key and gives way to every publisher.
    fn authorise_pull(&self, input_id: Uuid) -> Result<Entry, Rejection> {
        let entry = self.args.directory.entry(input_id);
        let entry = entry
            .filter(|entry| entry.row.pull_url.is_some())
            .ok_or(Rejection::Unauthorized)?;
        let on_air = self.on_air.get(&input_id);
        if on_air.is_some_and(OnAir::has_publisher) {
            return Err(Rejection::Conflict);
        }
        self.open_to_publishers(entry)
    }

    fn open_to_publishers(&self, entry: Entry) -> Result<Entry, Rejection> {
        if !entry.row.enabled {
            return Err(Rejection::Disabled);
        }
        if self.draining || self.is_given_up(entry.row.id) {
            return Err(Rejection::Busy);
        }
        Ok(entry)
    }

    fn sessions(&self) -> usize {
        self.on_air
            .values()
            .filter(|on_air| on_air.has_publisher())
            .count()
    }

    async fn admit(
        &mut self,
        request: &PublishRequest,
        pulled: Option<Uuid>,
    ) -> Result<Admitted, Rejection> {
        let entry = match pulled {
            None => self.authorise(request)?,
            Some(input_id) => self.authorise_pull(input_id)?,
        };
        let settings = &self.args.services.settings;
        let identity = Identity::from(request);
        let now_ms = unix_ms();
        let mut displaced = None;
        let takes_over = self
            .on_air
            .get(&entry.row.id)
            .is_some_and(OnAir::has_publisher);
        // A takeover ends as many sessions as it begins: the bound does not apply to it.
        if !takes_over && self.sessions() >= settings.max_streams {
            warn!(
                limit = settings.max_streams,
                "a publisher was rejected: live.max_streams is reached"
            );
            return Err(Rejection::Busy);
        }
        if let Some(on_air) = self.on_air.get_mut(&entry.row.id) {
            let open = on_air.ticket.as_ref().filter(|ticket| ticket.is_open());
            let current = open.map(|ticket| CurrentPublisher {
                media_age_ms: ticket.media_age_ms(now_ms),
            });
            let (within, fresh) = (settings.displaced_for, settings.fresh_for);
            if would_flap(&on_air.displaced, &identity, current, now_ms, within, fresh) {
                let _ = on_air
                    .actor
                    .get()
                    .tell(input::Conflict(request.remote))
                    .try_send();
                return Err(Rejection::Conflict);
            }
            if let Some(ticket) = open {
                if ticket
                    .media_age_ms(now_ms)
                    .is_some_and(|age| age < fresh.as_millis() as i64)
                {
                    // Only an encoder that was sending would come back and displace this one in turn.
                    on_air.displaced.remember(ticket.identity.clone(), now_ms);
                }
                info!(input = %entry.row.id, remote = %request.remote, "a newer publisher takes over");
                ticket.hand_over();
                displaced = Some(ticket.clone());
            }
        }
        self.generation += 1;
        let ticket = Arc::new(Ticket::new(self.generation, identity));
        if !self.on_air.contains_key(&entry.row.id) {
            self.start_input(&entry).await;
        }
        let on_air = self.on_air.get_mut(&entry.row.id).expect("started above");
        on_air.ticket = Some(ticket.clone());
        Ok(Admitted {
            input: on_air.actor.get().clone(),
            ticket,
            displaced,
            tap: entry.playback.tap(),
        })
    }

    /// Ends the running publish of an input, if any.
    fn revoke(&mut self, input_id: Uuid, revoke: Revoke) {
        let Some(on_air) = self.on_air.get_mut(&input_id) else {
            return;
        };
        if let Some(ticket) = on_air.ticket.take() {
            ticket.closed.cancel();
        }
        on_air.send(revoke);
    }
}

/// Returns the input that a stream name leads to, `{inputSlug}.{streamKey}` or the key.
pub(super) fn named_by(directory: &Directory, stream: &str) -> Result<Entry, Rejection> {
    let (slug, key) = match stream.split_once('.') {
        Some((slug, key)) => (Some(slug), key),
        None => (None, stream),
    };
    let hash = sluice_store::credentials::hash(key);
    let entry = directory
        .by_key_hash(&hash)
        .ok_or(Rejection::Unauthorized)?;
    match slug.is_some_and(|slug| slug != entry.row.input_slug) {
        true => Err(Rejection::Unauthorized),
        false => Ok(entry),
    }
}

/// A publisher that may begin.
#[derive(Debug)]
pub(super) struct Admitted {
    pub input: ActorRef<LiveInput>,
    pub ticket: Arc<Ticket>,
    /// The session it takes over from, whose last units belong before its own.
    pub displaced: Option<Arc<Ticket>>,
    pub tap: Arc<UnitWindow>,
}

/// Admit a publisher, or reject it.
pub(super) struct Admit {
    pub request: PublishRequest,
    /// The input whose source is pulled; `None` for publishers that came by themselves, with a key.
    pub pulled: Option<Uuid>,
}

impl Message<Admit> for LiveInputs {
    type Reply = Result<Admitted, Rejection>;

    async fn handle(
        &mut self,
        Admit { request, pulled }: Admit,
        _: &mut Context<Self, Self::Reply>,
    ) -> Self::Reply {
        let admitted = self.admit(&request, pulled).await;
        match &admitted {
            Ok(_) => {
                info!(remote = %request.remote, protocol = request.protocol.as_str(), "publisher admitted")
            }
            Err(rejection) => {
                info!(remote = %request.remote, reason = rejection.message(), "publisher rejected")
            }
        }
        admitted
    }
}

/// Return the addresses whose encoders of a protocol would be rejected as in conflict at the moment, by input: for a protocol
/// that must decide before it can ask.
pub(super) struct Contested(pub Protocol);

impl Message<Contested> for LiveInputs {
    type Reply = HashMap<Uuid, Vec<IpAddr>>;

    async fn handle(
        &mut self,
        Contested(protocol): Contested,
        _: &mut Context<Self, Self::Reply>,
    ) -> Self::Reply {
        let (settings, now_ms) = (&self.args.services.settings, unix_ms());
        let is_sending = |on_air: &OnAir| {
            let open = on_air.ticket.as_ref().filter(|ticket| ticket.is_open());
            open.and_then(|ticket| ticket.media_age_ms(now_ms))
                .is_some_and(|age| age < settings.fresh_for.as_millis() as i64)
        };
        self.on_air
            .iter()
            .filter(|(_, on_air)| is_sending(on_air))
            .map(|(id, on_air)| {
                let within = settings.displaced_for;
                (*id, on_air.displaced.addresses(protocol, now_ms, within))
            })
            .filter(|(_, addresses)| !addresses.is_empty())
            .collect()
    }
}

/// An encoder was rejected because another one has the input, before it could ask.
pub(super) struct NoteConflict {
    pub input_id: Uuid,
    pub remote: SocketAddr,
}

impl Message<NoteConflict> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, conflict: NoteConflict, _: &mut Context<Self, ()>) {
        if let Some(on_air) = self.on_air.get(&conflict.input_id) {
            let actor = on_air.actor.get();
            let _ = actor.tell(input::Conflict(conflict.remote)).try_send();
        }
    }
}

/// A row was created or changed, and that is committed. The same row again changes nothing.
pub(super) struct Changed(pub InputRow);

impl Message<Changed> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, Changed(row): Changed, _: &mut Context<Self, ()>) {
        let (input_id, enabled, key_hash) = (row.id, row.enabled, row.stream_key_hash.clone());
        // The change log of a cluster brings this node's own changes, too.
        let known = self.args.directory.entry(input_id);
        if known.is_some_and(|entry| *entry.row == row) {
            return;
        }
        let old = self.args.directory.put(row);
        if let (Some(on_air), Some(entry)) = (
            self.on_air.get(&input_id),
            self.args.directory.entry(input_id),
        ) {
            on_air.send(input::Reconfigure(entry.row));
        }
        let rotated = old.is_some_and(|old| old.stream_key_hash != key_hash);
        if !enabled {
            self.revoke(input_id, Revoke::EndBroadcast);
        } else if rotated {
            self.revoke(input_id, Revoke::KeepWindow);
        }
    }
}

/// A row is gone.
pub(super) struct Deleted(pub Uuid);

impl Message<Deleted> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, Deleted(input_id): Deleted, _: &mut Context<Self, ()>) {
        let entry = self.args.directory.remove(input_id);
        self.revoke(input_id, Revoke::Forget);
        if let Some(entry) = entry {
            entry.playback.publish(Phase::Idle, None, None);
        }
    }
}

/// End the broadcast of an input, its reconnect window included; false when nothing is on air.
pub(super) struct End(pub Uuid);

impl Message<End> for LiveInputs {
    type Reply = bool;

    async fn handle(&mut self, End(input_id): End, _: &mut Context<Self, bool>) -> bool {
        let playback = self.args.directory.by_input(input_id);
        let is_on_air = playback.is_some_and(|playback| !playback.is_idle());
        if is_on_air {
            self.revoke(input_id, Revoke::EndBroadcast);
        }
        is_on_air
    }
}

/// Close every session; windows stay open for the next process.
pub(super) struct Drain;

impl Message<Drain> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, _: Drain, _: &mut Context<Self, ()>) {
        self.draining = true;
        let ids: Vec<Uuid> = self.on_air.keys().copied().collect();
        ids.into_iter()
            .for_each(|input_id| self.revoke(input_id, Revoke::KeepWindow));
    }
}

/// An input has nothing left to serve: its last broadcast's playlist has stayed long enough.
pub(super) struct Quiet {
    pub input_id: Uuid,
    pub generation: u64,
}

impl Message<Quiet> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, quiet: Quiet, _: &mut Context<Self, ()>) {
        let newer = |on_air: &OnAir| {
            on_air
                .ticket
                .as_ref()
                .is_some_and(|ticket| ticket.is_open() && ticket.generation > quiet.generation)
        };
        if self.on_air.get(&quiet.input_id).is_none_or(newer) {
            return;
        }
        if let Some(playback) = self.args.directory.by_input(quiet.input_id) {
            playback.publish(Phase::Idle, None, None);
            playback.set_health(None);
            self.args.directory.keep_history(&playback, unix_ms());
        }
        if let Some(on_air) = self.on_air.remove(&quiet.input_id) {
            let actor = on_air.actor.release();
            self.by_actor.remove(&actor.id());
            let _ = actor.tell(input::Forget).try_send();
        }
    }
}

/// Makes the actor of an input panic, behind what is in its mailbox.
#[cfg(test)]
pub(super) struct Crash(pub Uuid);

#[cfg(test)]
impl Message<Crash> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, Crash(input_id): Crash, _: &mut Context<Self, ()>) {
        if let Some(on_air) = self.on_air.get(&input_id) {
            let actor = on_air.actor.get().clone();
            tokio::spawn(async move { actor.tell(input::Panic).send().await });
        }
    }
}

/// Makes this actor panic.
#[cfg(test)]
pub(super) struct Panic;

#[cfg(test)]
impl Message<Panic> for LiveInputs {
    type Reply = ();

    async fn handle(&mut self, _: Panic, _: &mut Context<Self, ()>) {
        panic!("asked to panic");
    }
}
