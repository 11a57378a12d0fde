//! Table of WebRTC sessions: names, bounds (`webrtc.max_sessions`, `max_sessions_per_input`, `max_pending`, `max_pending_per_address`,
//! `egress_limit`), deadlines, ends.
//!
//! Pure but for its clock: what follows from a change, orders to the gateway among them, is the caller's.

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use sluice_ingest::webrtc::{
    WebRtcSettings,
    message::{SessionId, SessionStatistics, Transport, VideoCodecs},
};
use sluice_store::credentials;
use tokio::{sync::oneshot, time::Instant};
use uuid::Uuid;

use super::{WebRtcError, publisher::PublisherRoute, relay::Relay, report::WebRtcViewers};
use crate::{
    live::{Playback, Policy},
    network::KeyedPermit,
};

/// Time for which a session is known after its end.
const KNOWN_FOR: Duration = Duration::from_secs(60);
/// Most ended sessions that are known.
const MOST_KNOWN: usize = 20_000;
/// Bytes of a session's name.
const NAME_BYTES: usize = 16;

/// Answer of the gateway to an offer.
#[derive(Debug)]
pub(super) struct Answered {
    pub video: VideoCodecs,
    pub audio: bool,
    pub sdp: String,
}

pub(super) type Outcome = Result<Answered, WebRtcError>;

/// One viewer or publisher.
pub(super) struct Session {
    pub name: String,
    pub input_id: Uuid,
    pub kind: SessionKind,
    pub stage: Stage,
    pub statistics: SessionStatistics,
}

impl Session {
    pub fn is_publisher(&self) -> bool {
        matches!(self.kind, SessionKind::Publisher(_))
    }
}

pub(super) enum SessionKind {
    Viewer(Viewer),
    Publisher(PublisherRoute),
}

/// Stage of a session before and after its handshake.
pub(super) enum Stage {
    Pending {
        /// Time up to which it has to be connected.
        until: Instant,
        /// The request that waits for the answer; `None` once it has come.
        answer: Option<oneshot::Sender<Outcome>>,
        /// Counts it among the unconnected sessions of its network.
        _permit: KeyedPermit<std::net::IpAddr>,
    },
    Connected {
        transport: Transport,
    },
    /// A publisher's, which closed its connection. The gateway no longer has it.
    Disconnected {
        /// Time up to which its DELETE is a clean end.
        until: Instant,
    },
}

/// A viewer's permission, and the relay that sends to it.
pub(super) struct Viewer {
    pub playback: Arc<Playback>,
    /// Terms under which it was admitted.
    pub policy: Arc<Policy>,
    pub until_ms: Option<i64>,
    pub has_permission: bool,
    pub relay: Option<Arc<Relay>>,
    /// Counts it among the input's viewers once it is connected.
    pub counted: Option<CountedViewer>,
}

/// Counts a connected viewer until it is dropped.
pub(super) struct CountedViewer(Arc<Playback>);

impl CountedViewer {
    pub fn new(playback: Arc<Playback>) -> Self {
        Self::of(&playback).connect();
        Self(playback)
    }

    fn of(playback: &Playback) -> &WebRtcViewers {
        playback.webrtc()
    }
}

impl Drop for CountedViewer {
    fn drop(&mut self) {
        Self::of(&self.0).disconnect();
    }
}

impl Viewer {
    /// Returns whether the terms have become stricter than those under which it was admitted.
    pub fn is_locked_out(&self) -> bool {
        let now = self.playback.policy();
        if Arc::ptr_eq(&now, &self.policy) {
            return false;
        }
        let needs_token = now.signed && !self.policy.signed && !self.has_permission;
        needs_token || is_narrower(&now.allowed_domains, &self.policy.allowed_domains)
    }
}

/// Returns whether pages that were allowed may no longer be; no domains allow all.
fn is_narrower(now: &[String], before: &[String]) -> bool {
    match (now.is_empty(), before.is_empty()) {
        (true, _) => false,
        (false, true) => true,
        (false, false) => before.iter().any(|domain| !now.contains(domain)),
    }
}

/// See the module documentation.
#[derive(Default)]
pub(super) struct Table {
    sessions: HashMap<SessionId, Session>,
    by_name: HashMap<String, SessionId>,
    /// Names of sessions that ended, oldest first.
    ended: VecDeque<(Instant, String)>,
    next: SessionId,
}

impl Table {
    /// Returns an error where a bound of the settings forbids another session.
    pub fn check_room(
        &self,
        settings: &WebRtcSettings,
        input_id: Uuid,
        is_viewer: bool,
    ) -> Result<(), WebRtcError> {
        let of_input = || {
            let viewers = self.viewers();
            viewers
                .filter(|(_, session, _)| session.input_id == input_id)
                .count()
        };
        let per_input = settings.max_sessions_per_input;
        let egress = settings.egress_limit.as_u64();
        let is_full = self.sessions.len() >= settings.max_sessions
            || self.pending() >= settings.max_pending
            || (is_viewer && per_input > 0 && of_input() >= per_input)
            || (is_viewer && egress > 0 && self.egress() >= egress);
        match is_full {
            true => Err(WebRtcError::Full),
            false => Ok(()),
        }
    }

    /// Adds a session; returns its number and its name.
    pub fn open(&mut self, input_id: Uuid, kind: SessionKind, stage: Stage) -> (SessionId, String) {
        self.next = self.next.wrapping_add(1);
        let bytes = credentials::random_bytes::<NAME_BYTES>();
        let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let session = Session {
            name: name.clone(),
            input_id,
            kind,
            stage,
            statistics: SessionStatistics::default(),
        };
        self.sessions.insert(self.next, session);
        self.by_name.insert(name.clone(), self.next);
        (self.next, name)
    }

    pub fn get_mut(&mut self, session: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&session)
    }

    pub fn by_name(&self, name: &str) -> Option<SessionId> {
        self.by_name.get(name).copied()
    }

    /// Removes a session; its name is known for a while.
    pub fn close(&mut self, session: SessionId, now: Instant) -> Option<Session> {
        let closed = self.sessions.remove(&session)?;
        self.by_name.remove(&closed.name);
        if self.ended.len() == MOST_KNOWN {
            self.ended.pop_front();
        }
        self.ended.push_back((now, closed.name.clone()));
        Some(closed)
    }

    /// Returns whether the session is open, or ended within the last minute.
    pub fn is_known(&self, name: &str, now: Instant) -> bool {
        let is_recent =
            |(at, ended): &&(Instant, String)| ended == name && now.duration_since(*at) < KNOWN_FOR;
        self.by_name.contains_key(name) || self.ended.iter().rev().any(|it| is_recent(&it))
    }

    pub fn forget_ended(&mut self, now: Instant) {
        while self
            .ended
            .front()
            .is_some_and(|(at, _)| now.duration_since(*at) >= KNOWN_FOR)
        {
            self.ended.pop_front();
        }
    }

    pub fn ids(&self) -> Vec<SessionId> {
        self.sessions.keys().copied().collect()
    }

    pub fn sessions(&self) -> impl Iterator<Item = (SessionId, &Session)> {
        self.sessions.iter().map(|(id, session)| (*id, session))
    }

    pub fn viewers(&self) -> impl Iterator<Item = (SessionId, &Session, &Viewer)> {
        self.sessions()
            .filter_map(|(id, session)| match &session.kind {
                SessionKind::Viewer(viewer) => Some((id, session, viewer)),
                SessionKind::Publisher(_) => None,
            })
    }

    fn pending(&self) -> usize {
        let is_pending = |session: &&Session| matches!(session.stage, Stage::Pending { .. });
        self.sessions.values().filter(is_pending).count()
    }

    /// Returns the bytes that were sent in the last second.
    fn egress(&self) -> u64 {
        let viewers = self.viewers();
        viewers
            .map(|(_, session, _)| u64::from(session.statistics.bytes))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_narrower_when_a_page_loses_them() {
        let domains = |names: &[&str]| -> Vec<String> {
            names.iter().map(|name| (*name).to_owned()).collect()
        };
        for (now, before, expected) in [
            (&[][..], &[][..], false),
            (&["a.example"], &[], true),
            (&[], &["a.example"], false),
            (&["a.example", "b.example"], &["a.example"], false),
            (&["b.example"], &["a.example"], true),
        ] {
            let narrower = is_narrower(&domains(now), &domains(before));
            assert_eq!(narrower, expected, "{before:?} -> {now:?}");
        }
    }
}
