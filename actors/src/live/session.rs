//! Session of a publisher: admission within 2 s (else busy), delivery of units, end; authorizer of RTMP, SRT and RTSP.
//!
//! A session never waits for anything but room in its input's mailbox; that wait is the back-pressure to the encoder.

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use kameo::actor::ActorRef;
use sluice_ingest::publish::{
    Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession, Rejection,
    SessionReport,
};
use sluice_media::unit::Unit;
use tracing::warn;
use uuid::Uuid;

use super::{
    LiveInputs,
    input::{Begin, Deliver, Finish, LiveInput, Report},
    inputs::{Admit, Admitted, Contested, NoteConflict},
    publisher::{HAND_OVER_TIMEOUT, Ticket},
    restream::unit_window::UnitWindow,
};

/// Longest wait of an encoder for admission, after which it is rejected as [`Rejection::Busy`].
const ADMISSION_TIMEOUT: Duration = Duration::from_secs(2);

/// Admits publishers of every protocol.
#[derive(Clone, Debug)]
pub struct LiveAuthorizer {
    inputs: ActorRef<LiveInputs>,
}

impl LiveAuthorizer {
    pub fn new(inputs: ActorRef<LiveInputs>) -> Self {
        Self { inputs }
    }

    /// Returns the addresses whose SRT encoders would be rejected as in conflict now, by input; `None` without an answer.
    pub(super) async fn contested(&self) -> Option<HashMap<Uuid, Vec<IpAddr>>> {
        self.inputs
            .ask(Contested(Protocol::Srt))
            .mailbox_timeout(ADMISSION_TIMEOUT)
            .reply_timeout(ADMISSION_TIMEOUT)
            .await
            .ok()
    }

    /// Counts an encoder that was rejected as in conflict. Lost when the mailbox is full: it is for health alone.
    pub(super) fn note_conflict(&self, input_id: Uuid, remote: IpAddr) {
        let remote = SocketAddr::new(remote, 0);
        let _ = self
            .inputs
            .tell(NoteConflict { input_id, remote })
            .try_send();
    }
}

/// Admits the source that the service itself pulls for an input.
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
    /// Makes the authorizer for the source of an input.
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
            tap,
        } = match admitted {
            Ok(admitted) => admitted,
            Err(kameo::error::SendError::HandlerError(rejection)) => return Err(rejection),
            Err(error) => {
                warn!(?error, "a publisher could not be admitted");
                return Err(Rejection::Busy);
            }
        };
        // Made before the hand-over: dropped with this future, it reports the session as finished.
        let session = LiveSession {
            input,
            ticket,
            tap,
            finished: false,
        };
        let begin = Begin {
            ticket: session.ticket.clone(),
            request,
        };
        if let Some(displaced) = displaced {
            // Its last units have to be queued before `begin`, which ends its right to send.
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

/// An admitted publisher.
#[derive(Debug)]
pub struct LiveSession {
    input: ActorRef<LiveInput>,
    ticket: Arc<Ticket>,
    tap: Arc<UnitWindow>,
    finished: bool,
}

impl PublishSession for LiveSession {
    /// A closed session may still deliver what had arrived, and learns by [`Closed`] that it is over.
    async fn deliver(&mut self, units: &mut Vec<Unit>) -> Result<(), Closed> {
        let carries_media = units
            .iter()
            .any(|unit| matches!(unit, Unit::Video(_) | Unit::Audio(_)));
        if carries_media {
            self.ticket.note_media();
        }
        let deliver = Deliver {
            generation: self.ticket.generation,
            units: std::mem::take(units),
        };
        let deliver = match self.input.tell(deliver).try_send() {
            Ok(()) => return self.check_open(),
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
        self.check_open()
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
        let Some(finish) = self.finish(how) else {
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
    /// Returns the window of the input's units, which knows whether a follower wants them without delay.
    pub(super) fn tap(&self) -> Arc<UnitWindow> {
        Arc::clone(&self.tap)
    }

    /// Notes the end; returns the report to the input, unless a newer publisher took over.
    fn finish(&self, how: Ended) -> Option<Finish> {
        let generation = self.ticket.generation;
        self.ticket.end().then_some(Finish { generation, how })
    }

    fn check_open(&self) -> Result<(), Closed> {
        match self.ticket.closed.is_cancelled() {
            false => Ok(()),
            true => Err(Closed),
        }
    }
}

impl Drop for LiveSession {
    /// A session whose task panicked or was aborted counts as dropped.
    fn drop(&mut self) {
        if !self.finished
            && let Some(finish) = self.finish(Ended::Dropped)
        {
            let _ = self.input.tell(finish).try_send();
        }
    }
}
