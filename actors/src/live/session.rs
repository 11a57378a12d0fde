//! The publisher's side: the authorizer it asks, and the session it feeds.
//!
//! A session never waits for anything but room in its input's mailbox; that wait is the back-pressure to the encoder.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use kameo::actor::ActorRef;
use sluice_ingest::publish::{
    Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession, Rejection,
    SessionReport,
};
use sluice_media::{hls::Header, unit::Unit};
use tokio_util::sync::CancellationToken;
use tracing::warn;
use uuid::Uuid;

use super::{
    LiveInputs,
    admission::Identity,
    connections::Connection,
    input::{Begin, Deliver, Finish, LiveInput, Report},
    inputs::{Admit, Admitted, Contested, NoteConflict},
    unix_ms,
};
use crate::events::Parting;

/// How long an encoder waits for admission before it is refused as [`Rejection::Busy`].
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a newer publisher waits for what has arrived of the one it displaces. Its last read takes at most 100 ms.
const HAND_OVER_TIMEOUT: Duration = Duration::from_millis(500);

/// What a session and the tree know of each other, shared without messages.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Grows with each admission to one input; units of an older session are left out.
    pub generation: u64,
    pub identity: Identity,
    /// Cancelled when the service ends this publish.
    pub closed: CancellationToken,
    /// Cancelled when the session has delivered the last it had.
    handed_over: CancellationToken,
    /// A newer publisher goes on: the broadcast does not notice the end of this session.
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

    /// Whether the publisher may still send.
    pub fn is_open(&self) -> bool {
        self.ended_for_ms(0).is_none() && !self.closed.is_cancelled()
    }

    /// How long ago the session ended; `None` while it has not.
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
    async fn handed_over(&self) {
        let handed_over = self.handed_over.cancelled();
        if tokio::time::timeout(HAND_OVER_TIMEOUT, handed_over)
            .await
            .is_err()
        {
            warn!("a displaced publisher did not hand over in time");
        }
    }

    /// Notes the end; what is to be told of it, if anything.
    fn end(&self, how: Ended) -> Option<Finish> {
        self.ended_ms.store(unix_ms(), Ordering::Release);
        let generation = self.generation;
        (!self.taken_over.load(Ordering::Acquire)).then_some(Finish { generation, how })
    }

    /// Age of the newest media; `None` before the first.
    pub fn media_age_ms(&self, now_ms: i64) -> Option<i64> {
        let last = self.last_media_ms.load(Ordering::Relaxed);
        (last != i64::MIN).then(|| now_ms - last)
    }
}

/// The publisher of this moment, as its input knows it.
pub(super) struct Publisher {
    /// Of this connection in events.
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

    /// As events tell it.
    pub fn connection(&self, input_id: Uuid, broadcast: &Header) -> Connection {
        Connection {
            id: self.id,
            input_id,
            broadcast: broadcast.broadcast.clone(),
            protocol: self.request.protocol.as_str(),
            remote: self.request.remote.ip(),
        }
    }

    /// Why it is gone, when it says itself how it ended.
    pub fn reason_for(&self, how: Ended) -> Parting {
        match how {
            // The service had told it to leave; the word of that comes behind.
            _ if self.ticket.closed.is_cancelled() => Parting::Closed,
            Ended::Clean => Parting::Ended,
            Ended::Dropped => Parting::Dropped,
        }
    }
}

/// Admits publishers of every protocol.
#[derive(Clone, Debug)]
pub struct LiveAuthorizer {
    inputs: ActorRef<LiveInputs>,
}

impl LiveAuthorizer {
    pub fn new(inputs: ActorRef<LiveInputs>) -> Self {
        Self { inputs }
    }

    /// From where SRT encoders would be refused as in conflict now, by input; `None` when no one answers.
    pub(super) async fn contested(&self) -> Option<HashMap<Uuid, Vec<IpAddr>>> {
        self.inputs
            .ask(Contested(Protocol::Srt))
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .reply_timeout(ADMISSION_TIMEOUT)
            .await
            .ok()
    }

    /// Counts an encoder that was refused as in conflict. Lost when no one has time: it is for health alone.
    pub(super) fn note_conflict(&self, input_id: Uuid, remote: IpAddr) {
        let remote = SocketAddr::new(remote, 0);
        let _ = self
            .inputs
            .tell(NoteConflict { input_id, remote })
            .try_send();
    }
}

/// Admits what the service itself fetches for an input.
#[derive(Clone, Debug)]
pub(super) struct PullAuthorizer {
    authorizer: LiveAuthorizer,
    input_id: Uuid,
}

impl PublishAuthorizer for PullAuthorizer {
    type Session = LiveSession;

    async fn admit(&self, request: PublishRequest) -> Result<LiveSession, Rejection> {
        self.authorizer.admit_as(request, Some(self.input_id)).await
    }
}

impl PublishAuthorizer for LiveAuthorizer {
    type Session = LiveSession;

    async fn admit(&self, request: PublishRequest) -> Result<LiveSession, Rejection> {
        self.admit_as(request, None).await
    }
}

impl LiveAuthorizer {
    /// The authorizer for the source of an input.
    pub(super) fn pulled(&self, input_id: Uuid) -> PullAuthorizer {
        PullAuthorizer {
            authorizer: self.clone(),
            input_id,
        }
    }

    async fn admit_as(
        &self,
        request: PublishRequest,
        pulled: Option<Uuid>,
    ) -> Result<LiveSession, Rejection> {
        let asked = self.inputs.ask(Admit {
            request: request.clone(),
            pulled,
        });
        let admitted = asked
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .reply_timeout(ADMISSION_TIMEOUT)
            .await;
        let Admitted {
            input,
            ticket,
            displaced,
        } = match admitted {
            Ok(admitted) => admitted,
            Err(kameo::error::SendError::HandlerError(rejection)) => return Err(rejection),
            Err(error) => {
                warn!(?error, "a publisher could not be admitted");
                return Err(Rejection::Busy);
            }
        };
        let session = LiveSession {
            input,
            ticket,
            finished: false,
        };
        let begin = Begin {
            ticket: session.ticket.clone(),
            request,
        };
        if let Some(displaced) = displaced {
            displaced.handed_over().await;
        }
        match session
            .input
            .tell(begin)
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .await
        {
            Ok(()) => Ok(session),
            Err(_) => Err(Rejection::Busy),
        }
    }
}

/// One admitted publisher.
#[derive(Debug)]
pub struct LiveSession {
    input: ActorRef<LiveInput>,
    ticket: Arc<Ticket>,
    finished: bool,
}

impl PublishSession for LiveSession {
    /// A closed session may still deliver what had arrived, and learns by [`Closed`] that it is over.
    async fn deliver(&mut self, units: &mut Vec<Unit>) -> Result<(), Closed> {
        let carries_media = units
            .iter()
            .any(|unit| matches!(unit, Unit::Video(_) | Unit::Audio(_)));
        if carries_media {
            self.ticket
                .last_media_ms
                .store(unix_ms(), Ordering::Relaxed);
        }
        let deliver = Deliver {
            generation: self.ticket.generation,
            units: std::mem::take(units),
        };
        let deliver = match self.input.tell(deliver).try_send() {
            Ok(()) => return self.go_on(),
            Err(kameo::error::SendError::MailboxFull(deliver)) => deliver,
            Err(_) => return Err(Closed),
        };
        let overdue = async {
            self.ticket.closed.cancelled().await;
            tokio::time::sleep(HAND_OVER_TIMEOUT).await;
        };
        tokio::select! {
            sent = self.input.tell(deliver).send() => sent.map_err(|_| Closed)?,
            () = overdue => return Err(Closed),
        }
        self.go_on()
    }

    fn report(&mut self, report: SessionReport) {
        // A report may be lost when the mailbox is full; the next one carries the same totals.
        let _ = self
            .input
            .tell(Report {
                generation: self.ticket.generation,
                report,
            })
            .try_send();
    }

    async fn closed(&self) -> Closed {
        self.ticket.closed.cancelled().await;
        Closed
    }

    async fn end(mut self, how: Ended) {
        self.finished = true;
        let finish = self.ticket.end(how);
        self.ticket.handed_over.cancel();
        let Some(finish) = finish else {
            return;
        };
        if self
            .input
            .tell(finish)
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .await
            .is_err()
        {
            warn!("the end of a publish could not be delivered; the input notices by itself");
        }
    }
}

impl LiveSession {
    fn go_on(&self) -> Result<(), Closed> {
        match self.ticket.closed.is_cancelled() {
            false => Ok(()),
            true => Err(Closed),
        }
    }
}

impl Drop for LiveSession {
    /// A session whose task panicked or was aborted counts as dropped.
    fn drop(&mut self) {
        if !self.finished {
            let finish = self.ticket.end(Ended::Dropped);
            self.ticket.handed_over.cancel();
            if let Some(finish) = finish {
                let _ = self.input.tell(finish).try_send();
            }
        }
    }
}
