//! The publisher's side: the gate it asks, and the session it feeds.
//!
//! A session never waits for anything but room in its input's mailbox; that wait is the back-pressure to the encoder.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, Ordering},
    },
    time::Duration,
};

use kameo::actor::ActorRef;
use sluice_ingest::gate::{
    Closed, Ended, Gate, PublishRequest, PublishSession, Refusal, SessionReport,
};
use sluice_media::unit::Unit;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::{
    LiveInputs,
    admission::Identity,
    input::{Begin, Deliver, Finish, LiveInput, Report},
    inputs::Admit,
    unix_ms,
};

/// How long an encoder waits for admission before it is refused as [`Refusal::Busy`].
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(2);

/// What a session and the tree know of each other, shared without messages.
#[derive(Debug)]
pub(super) struct Ticket {
    /// Grows with each admission to one input; units of an older session are left out.
    pub generation: u64,
    pub identity: Identity,
    /// Cancelled when the service ends this publish.
    pub closed: CancellationToken,
    ended: AtomicBool,
    last_media_ms: AtomicI64,
}

impl Ticket {
    pub fn new(generation: u64, identity: Identity) -> Self {
        Self {
            generation,
            identity,
            closed: CancellationToken::new(),
            ended: AtomicBool::new(false),
            last_media_ms: AtomicI64::new(i64::MIN),
        }
    }

    /// Whether the publisher may still send.
    pub fn is_open(&self) -> bool {
        !self.ended.load(Ordering::Acquire) && !self.closed.is_cancelled()
    }

    /// Age of the newest media; `None` before the first.
    pub fn media_age_ms(&self, now_ms: i64) -> Option<i64> {
        let last = self.last_media_ms.load(Ordering::Relaxed);
        (last != i64::MIN).then(|| now_ms - last)
    }
}

/// Admits publishers of every protocol.
#[derive(Clone, Debug)]
pub struct LiveGate {
    inputs: ActorRef<LiveInputs>,
}

impl LiveGate {
    pub fn new(inputs: ActorRef<LiveInputs>) -> Self {
        Self { inputs }
    }
}

impl Gate for LiveGate {
    type Session = LiveSession;

    async fn admit(&self, request: PublishRequest) -> Result<LiveSession, Refusal> {
        let asked = self.inputs.ask(Admit(request.clone()));
        let admitted = asked
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .reply_timeout(ADMISSION_TIMEOUT)
            .await;
        let (input, ticket) = match admitted {
            Ok(admitted) => admitted,
            Err(kameo::error::SendError::HandlerError(refusal)) => return Err(refusal),
            Err(error) => {
                warn!(?error, "a publisher could not be admitted");
                return Err(Refusal::Busy);
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
        match session
            .input
            .tell(begin)
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .await
        {
            Ok(()) => Ok(session),
            Err(_) => Err(Refusal::Busy),
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
    async fn deliver(&mut self, units: &mut Vec<Unit>) -> Result<(), Closed> {
        if self.ticket.closed.is_cancelled() {
            return Err(Closed);
        }
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
            Ok(()) => return Ok(()),
            Err(kameo::error::SendError::MailboxFull(deliver)) => deliver,
            Err(_) => return Err(Closed),
        };
        tokio::select! {
            sent = self.input.tell(deliver).send() => sent.map_err(|_| Closed),
            () = self.ticket.closed.cancelled() => Err(Closed),
        }
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
        self.ticket.ended.store(true, Ordering::Release);
        let finish = Finish {
            generation: self.ticket.generation,
            how,
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

impl Drop for LiveSession {
    /// A session whose task panicked or was aborted counts as dropped.
    fn drop(&mut self) {
        if !self.finished {
            self.ticket.ended.store(true, Ordering::Release);
            let _ = self
                .input
                .tell(Finish {
                    generation: self.ticket.generation,
                    how: Ended::Dropped,
                })
                .try_send();
        }
    }
}
