//! Session of one viewer or publisher: its transport and what it does with media.

use std::{sync::Arc, time::Instant};

use super::{
    super::message::{FromGateway, GoneReason, SessionId},
    frame::FeedFrame,
    inbox::Datagram,
    peer::{Context, Peer},
    publisher::Publisher,
    viewer::Viewer,
};

pub(super) struct Session {
    pub peer: Peer,
    pub role: SessionRole,
    /// True after a panic in this session's code: its state means nothing any more.
    pub has_panicked: bool,
}

pub(super) enum SessionRole {
    Viewer(Box<Viewer>),
    Publisher(Box<Publisher>),
}

impl Session {
    pub fn id(&self) -> SessionId {
        self.peer.session
    }

    pub fn viewer(&mut self) -> Option<&mut Viewer> {
        match &mut self.role {
            SessionRole::Viewer(viewer) => Some(viewer),
            SessionRole::Publisher(_) => None,
        }
    }

    /// Returns the time of the next deadline.
    pub fn due(&self) -> Instant {
        let of_role = match &self.role {
            SessionRole::Viewer(viewer) => viewer.due(),
            SessionRole::Publisher(publisher) => publisher.due(),
        };
        self.peer.due().min(of_role)
    }

    pub fn receive(&mut self, datagram: &Datagram, now: Instant, context: &mut Context<'_>) {
        self.peer.receive(datagram, now);
        self.drive(now, context);
    }

    pub fn frame(
        &mut self,
        frame: &Arc<FeedFrame>,
        is_after_gap: bool,
        now: Instant,
        context: &mut Context<'_>,
    ) {
        #[cfg(test)]
        super::tests::panic_at_frame(self.id());
        if let SessionRole::Viewer(viewer) = &mut self.role {
            let outbox = context.outbox;
            if viewer.frame(&mut self.peer, frame, is_after_gap, outbox, now) {
                self.drive(now, context);
            }
        }
    }

    /// Does what is due.
    pub fn advance(&mut self, now: Instant, context: &mut Context<'_>) {
        match &mut self.role {
            SessionRole::Viewer(viewer) => {
                viewer.report(&mut self.peer, context.outbox, now);
                viewer.advance(&mut self.peer, context.outbox, now);
            }
            SessionRole::Publisher(publisher) => {
                publisher.advance(&mut self.peer, context.outbox, now)
            }
        }
        self.drive(now, context);
    }

    fn drive(&mut self, now: Instant, context: &mut Context<'_>) {
        let outbox = context.outbox;
        match &mut self.role {
            SessionRole::Viewer(viewer) => {
                self.peer
                    .drive(now, context, |_, event| viewer.follow(event));
                if self.peer.take_full() {
                    viewer.note_full();
                }
            }
            SessionRole::Publisher(publisher) => {
                self.peer.drive(now, context, |peer, event| {
                    publisher.follow(peer, event, outbox, now)
                });
            }
        }
    }

    /// Says goodbye and reports the end.
    pub fn close(&mut self, reason: GoneReason, now: Instant, context: &mut Context<'_>) {
        self.peer.close(now, context, self.has_panicked);
        context.outbox.push(&FromGateway::Gone {
            session: self.id(),
            reason,
        });
    }
}
