//! Thread that drives a share of the sessions (`MAX_FEEDS`), all by itself: no session waits for another one's packets.
//!
//! A panic in a session's code ends that session alone. A panic elsewhere ends the thread, and with it the process.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{
    super::message::{FeedId, FromGateway, GoneReason, OfferError, Role, SessionId},
    Options,
    answer::{Answered, Answerer, Rejection},
    frame::FeedFrame,
    group::Group,
    inbox::{Datagram, Inbox, Job, Offer, Order},
    outbox::Outbox,
    peer::{Context, Peer},
    publisher::Publisher,
    routes::Routes,
    send::UdpSender,
    session::{Session, SessionRole},
    viewer::Viewer,
};

/// Video feeds whose groups are kept; frames of further ones are sent, but not kept.
const MAX_FEEDS: usize = 4_096;
/// Longest wait for work.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// State that all shards share.
pub(super) struct Shared {
    pub options: Options,
    pub answerer: Answerer,
    pub routes: Routes,
    pub outbox: Outbox,
    pub sessions: AtomicUsize,
    pub pending: AtomicUsize,
    pub is_over: AtomicBool,
}

pub(super) struct Shard {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    /// Rounds that the thread has made, for the heartbeat.
    rounds: Arc<AtomicU64>,
    udp: UdpSender,
    sessions: HashMap<SessionId, Session>,
    groups: HashMap<FeedId, Group>,
}

impl Shard {
    pub fn new(
        shared: Arc<Shared>,
        inbox: Arc<Inbox>,
        rounds: Arc<AtomicU64>,
        udp: UdpSender,
    ) -> Self {
        Self {
            shared,
            inbox,
            rounds,
            udp,
            sessions: HashMap::new(),
            groups: HashMap::new(),
        }
    }

    /// Drives sessions until the gateway ends; then closes them.
    pub fn run(&mut self) {
        while !self.shared.is_over.load(Ordering::Relaxed) {
            self.wait();
            for job in self.inbox.take() {
                self.work(job);
            }
            self.advance();
            self.rounds.fetch_add(1, Ordering::Relaxed);
        }
        let all: Vec<SessionId> = self.sessions.keys().copied().collect();
        for session in all {
            self.remove(session, GoneReason::Closed);
        }
    }

    fn wait(&self) {
        let now = Instant::now();
        let dues = self.sessions.values().map(Session::due);
        let due = dues.min().unwrap_or(now + LONGEST_WAIT);
        let wait = due.saturating_duration_since(now).min(LONGEST_WAIT);
        let timeout = Timespec::try_from(wait).unwrap_or_default();
        let bell = self.inbox.bell();
        let mut waiting = [PollFd::new(&bell, PollFlags::IN)];
        // Whatever the result, the queue and the deadlines are looked at.
        let _ = poll(&mut waiting, Some(&timeout));
    }

    fn work(&mut self, job: Job) {
        match job {
            Job::Order(Order::Offer(offer)) => self.offer(&offer),
            Job::Order(Order::Attach {
                session,
                video,
                audio,
            }) => self.attach(session, video, audio),
            Job::Order(Order::Forget(feed)) => self.forget(feed),
            Job::Order(Order::Close(session)) => self.remove(session, GoneReason::Closed),
            Job::Frame {
                frame,
                is_after_gap,
            } => self.frame(&frame, is_after_gap),
            Job::Datagram(datagram) => self.receive(&datagram),
        }
    }

    fn offer(&mut self, offer: &Offer) {
        let now = Instant::now();
        let answer = |()| self.shared.answerer.answer(offer, now);
        match self.admit(offer).and_then(answer) {
            Ok(answered) => self.begin(offer, answered, now),
            Err((reason, detail)) => {
                self.shared.outbox.push(&FromGateway::Rejected {
                    session: offer.session,
                    reason,
                    detail,
                });
            }
        }
    }

    /// Checks the numbers of sessions. Two shards may pass the last place at once, which is one session too many.
    fn admit(&self, offer: &Offer) -> Result<(), Rejection> {
        let options = &self.shared.options;
        if self.shared.sessions.load(Ordering::Relaxed) >= options.max_sessions {
            return Err((
                OfferError::Full,
                "there are as many sessions as may be".into(),
            ));
        }
        if self.shared.pending.load(Ordering::Relaxed) >= options.max_pending {
            return Err((
                OfferError::Full,
                "too many sessions wait for their connection".into(),
            ));
        }
        match self.sessions.contains_key(&offer.session) {
            true => Err((OfferError::Invalid, "the session is known already".into())),
            false => Ok(()),
        }
    }

    fn begin(&mut self, offer: &Offer, answered: Answered, now: Instant) {
        let shared = &self.shared;
        let (video, audio) = (answered.video.clone(), answered.audio);
        shared.routes.insert_ufrag(&answered.ufrag, offer.session);
        shared.outbox.push(&FromGateway::Answered {
            session: offer.session,
            video: video
                .as_ref()
                .map(|video| video.codecs())
                .unwrap_or_default(),
            audio: audio.is_some(),
            sdp: answered.sdp.clone(),
        });
        let role = match offer.role {
            Role::Viewer => SessionRole::Viewer(Box::new(Viewer::new(
                video,
                audio,
                shared.options.is_playout_adaptive,
                now,
            ))),
            Role::Publisher => SessionRole::Publisher(Box::new(Publisher::new(
                video.map(|video| video.mid),
                shared.options.keyframe_interval,
                now,
            ))),
        };
        let session = Session {
            peer: Peer::new(
                offer.session,
                answered,
                now,
                shared.options.handshake_timeout,
            ),
            role,
            has_panicked: false,
        };
        shared.sessions.fetch_add(1, Ordering::Relaxed);
        shared.pending.fetch_add(1, Ordering::Relaxed);
        self.sessions.insert(offer.session, session);
    }

    fn attach(&mut self, session: SessionId, video: Option<FeedId>, audio: Option<FeedId>) {
        if let Some(viewer) = self.sessions.get_mut(&session).and_then(Session::viewer) {
            viewer.attach(video, audio);
            self.call(session, |session, now, context| {
                session.advance(now, context)
            });
        }
    }

    fn forget(&mut self, feed: FeedId) {
        self.groups.remove(&feed);
        for session in self.sessions.values_mut() {
            if let Some(viewer) = session.viewer() {
                viewer.forget(feed);
            }
        }
    }

    fn frame(&mut self, frame: &Arc<FeedFrame>, is_after_gap: bool) {
        if !frame.packets().is_empty() {
            let is_known = self.groups.contains_key(&frame.feed);
            if is_known || self.groups.len() < MAX_FEEDS {
                let group = self.groups.entry(frame.feed).or_default();
                group.push(frame, is_after_gap, self.shared.options.join_cache_bytes);
            }
        }
        let takes = |session: &mut Session| {
            session
                .viewer()
                .is_some_and(|viewer| viewer.takes(frame.feed))
        };
        let taking: Vec<SessionId> = self
            .sessions
            .iter_mut()
            .filter_map(|(id, session)| takes(session).then_some(*id))
            .collect();
        for session in taking {
            self.call(session, |session, now, context| {
                session.frame(frame, is_after_gap, now, context);
            });
        }
    }

    fn receive(&mut self, datagram: &Datagram) {
        match self.sessions.contains_key(&datagram.session) {
            true => self.call(datagram.session, |session, now, context| {
                session.receive(datagram, now, context);
            }),
            false => {
                if let Some(tcp) = &datagram.tcp {
                    tcp.close();
                }
            }
        }
    }

    /// Calls the sessions whose deadline has come.
    fn advance(&mut self) {
        let now = Instant::now();
        let due: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.due() <= now)
            .map(|(id, _)| *id)
            .collect();
        for session in due {
            self.call(session, |session, now, context| {
                session.advance(now, context)
            });
        }
    }

    /// Calls a session and follows what came of it.
    fn call(&mut self, id: SessionId, call: impl FnOnce(&mut Session, Instant, &mut Context<'_>)) {
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let was_pending = session.peer.connected_at.is_none();
        let mut context = Context {
            udp: &mut self.udp,
            outbox: &self.shared.outbox,
            routes: &self.shared.routes,
        };
        let now = Instant::now();
        let called = catch_unwind(AssertUnwindSafe(|| {
            call(session, now, &mut context);
            follow_up(session, &mut self.groups, now, &mut context);
        }));
        if called.is_err() {
            session.has_panicked = true;
            session.peer.end(GoneReason::Failed);
        }
        let (is_pending, gone) = (session.peer.connected_at.is_none(), session.peer.gone());
        if was_pending && !is_pending {
            self.shared.pending.fetch_sub(1, Ordering::Relaxed);
        }
        if let Some(reason) = gone {
            self.remove(id, reason);
        }
    }

    fn remove(&mut self, id: SessionId, reason: GoneReason) {
        let Some(mut session) = self.sessions.remove(&id) else {
            return;
        };
        self.shared.sessions.fetch_sub(1, Ordering::Relaxed);
        if session.peer.connected_at.is_none() {
            self.shared.pending.fetch_sub(1, Ordering::Relaxed);
        }
        let mut context = Context {
            udp: &mut self.udp,
            outbox: &self.shared.outbox,
            routes: &self.shared.routes,
        };
        let now = Instant::now();
        let closed = catch_unwind(AssertUnwindSafe(|| {
            session.close(reason, now, &mut context)
        }));
        if closed.is_err() {
            session.has_panicked = true;
            session.close(GoneReason::Failed, now, &mut context);
        }
    }
}

/// Begins the video of a viewer that has just connected, and asks for key frames.
fn follow_up(
    session: &mut Session,
    groups: &mut HashMap<FeedId, Group>,
    now: Instant,
    context: &mut Context<'_>,
) {
    let SessionRole::Viewer(viewer) = &mut session.role else {
        return;
    };
    let Some(feed) = viewer.wanted_feed() else {
        return;
    };
    if viewer.wants_group(&session.peer) {
        viewer.join(groups.get(&feed), now);
    }
    if viewer.take_needs_key_frame() && groups.entry(feed).or_default().ask(now) {
        context.outbox.push(&FromGateway::KeyFrameWanted(feed));
    }
}
