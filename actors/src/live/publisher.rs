//! Publisher of a live input: its ticket (open, displaced, ended, age of its media), shared by session and actors, and its
//! facts for health and events.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use sluice_ingest::publish::{Ended, PublishRequest, SessionReport};
use sluice_media::hls::Header;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::{
    admission::Identity,
    connections::{Connection, Disconnection},
    unix_ms,
};
use crate::events::Parting;

/// Longest wait of a newer publisher for the last units of the one it displaces, whose last read takes at most 100 ms.
pub(super) const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(500);

/// State that a session and the tree share without messages.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Grows with each admission to one input; units of an older session are left out.
    pub generation: u64,
    pub identity: Identity,
    /// Cancelled when the service ends this publish.
    pub closed: CancellationToken,
    /// Cancelled when the session has delivered its last units.
    handed_over: CancellationToken,
    /// A newer publisher continues: the broadcast does not notice the end of this session.
    taken_over: AtomicBool,
    /// Unix milliseconds of the session's end; `i64::MIN` before.
    ended_ms: AtomicI64,
    last_media_ms: AtomicI64,
}

impl Ticket {
    pub fn new(generation: u64, identity: Identity) -> Self {
        Self {
            generation,
            identity,
            closed: CancellationToken::new(),
            handed_over: CancellationToken::new(),
            taken_over: AtomicBool::new(false),
            ended_ms: AtomicI64::new(i64::MIN),
            last_media_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// Returns whether the publisher may still send.
    pub fn is_open(&self) -> bool {
        self.ended_for_ms(0).is_none() && !self.closed.is_cancelled()
    }

    /// Returns the milliseconds since the session ended; `None` while it has not.
    pub fn ended_for_ms(&self, now_ms: i64) -> Option<i64> {
        let ended_ms = self.ended_ms.load(Ordering::Acquire);
        (ended_ms != i64::MIN).then(|| now_ms - ended_ms)
    }

    /// Closes the session for a newer one, which begins after what this one still has.
    pub fn hand_over(&self) {
        self.taken_over.store(true, Ordering::Release);
        self.closed.cancel();
    }

    /// Waits until everything that had arrived is delivered, or for [`HAND_OVER_TIMEOUT`].
    pub async fn handed_over(&self) {
        let handed_over = self.handed_over.cancelled();
        if tokio::time::timeout(HAND_OVER_TIMEOUT, handed_over)
            .await
            .is_err()
        {
            warn!("a displaced publisher did not hand over in time");
        }
    }

    /// Notes the end of the session; returns whether the input has to know of it: not when a newer publisher took over.
    pub fn end(&self) -> bool {
        self.ended_ms.store(unix_ms(), Ordering::Release);
        self.handed_over.cancel();
        !self.taken_over.load(Ordering::Acquire)
    }

    /// Notes that media came just now.
    pub fn note_media(&self) {
        self.last_media_ms.store(unix_ms(), Ordering::Relaxed);
    }

    /// Returns the age of the newest media; `None` before the first.
    pub fn media_age_ms(&self, now_ms: i64) -> Option<i64> {
        let last = self.last_media_ms.load(Ordering::Relaxed);
        (last != i64::MIN).then(|| now_ms - last)
    }
}

/// The present publisher of an input.
pub(super) struct Publisher {
    /// Id of this connection in events.
    pub id: Uuid,
    pub ticket: Arc<Ticket>,
    pub request: PublishRequest,
    pub report: SessionReport,
    pub connected_ms: i64,
}

impl Publisher {
    pub fn new(ticket: Arc<Ticket>, request: PublishRequest, connected_ms: i64) -> Self {
        Self {
            id: Uuid::now_v7(),
            ticket,
            request,
            report: SessionReport::default(),
            connected_ms,
        }
    }

    /// Returns the connection in the form of its events.
    pub fn connection(&self, input_id: Uuid, broadcast: &Header) -> Connection {
        Connection {
            id: self.id,
            input_id,
            broadcast: broadcast.broadcast.clone(),
            protocol: self.request.protocol.as_str(),
            remote: self.request.remote.ip(),
            encoder: self.encoder(),
            connected_ms: self.connected_ms,
        }
    }

    /// Returns its end in the form of its events.
    pub fn disconnection(&self, input_id: Uuid, reason: Parting, at_ms: i64) -> Disconnection {
        Disconnection {
            input_id,
            connection_id: self.id,
            reason,
            encoder: self.encoder(),
            at_ms,
        }
    }

    /// Returns the name that the encoder gives itself: in its media, else when it connected.
    pub fn encoder(&self) -> Option<String> {
        let reported = self.report.encoder.as_ref();
        reported.or(self.request.encoder.as_ref()).cloned()
    }

    /// Returns the reason of its end, from its own report.
    pub fn reason_for(&self, how: Ended) -> Parting {
        match how {
            // The service had closed it; the report of that comes later.
            _ if self.ticket.closed.is_cancelled() => Parting::Closed,
            Ended::Clean => Parting::Ended,
            Ended::Dropped => Parting::Dropped,
        }
    }
}
