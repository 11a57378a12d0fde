//! SRT connections in the service: a session task for each, bounded queue of arrivals, log of rejected callers,
//! `srt.max_connections`.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use sluice_ingest::{
    publish::{Ended, PublishAuthorizer, PublishRequest, Rejection},
    srt::{
        message::{FromGateway, SessionId, ToGateway},
        session::{Caller, GatewayEvent, serve},
        stream_id::Reject,
    },
};
use tokio::sync::mpsc;
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::Args;
use crate::live::{LiveAuthorizer, LiveSession, restream::unit_window::UnitWindow};

/// Most arrivals that wait for a session: about as many bytes as an input's mailbox holds of a socket's reads. When they
/// are full the next ones are dropped, and the session continues at a key frame.
const ARRIVALS: usize = 64;

/// Feeds sessions with the gateway's reports.
pub(super) struct Calls<'a> {
    args: &'a Args,
    orders: mpsc::Sender<ToGateway>,
    routes: HashMap<SessionId, Route>,
    rejections: RejectionLog,
}

/// Most rejections that are logged in a minute; encoders with a wrong setting try again for ever.
const REJECTIONS_A_MINUTE: u32 = 30;

/// Bounds the log lines about rejected callers.
#[derive(Default)]
struct RejectionLog {
    minute_from: Option<Instant>,
    logged: u32,
    suppressed: u64,
}

impl RejectionLog {
    /// Returns the number of rejections that were not logged since the last one if this one is logged; else `None`.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let is_over = |from: Instant| now.duration_since(from) >= Duration::from_secs(60);
        if self.minute_from.is_none_or(is_over) {
            (self.minute_from, self.logged) = (Some(now), 0);
        }
        if self.logged == REJECTIONS_A_MINUTE {
            self.suppressed += 1;
            return None;
        }
        self.logged += 1;
        Some(std::mem::take(&mut self.suppressed))
    }
}

struct Route {
    arrivals: mpsc::Sender<GatewayEvent>,
    ended: Arc<OnceLock<Ended>>,
    /// Payloads were discarded since the last that the session took.
    gap: bool,
    discarded: u64,
}

impl<'a> Calls<'a> {
    pub fn new(args: &'a Args, orders: mpsc::Sender<ToGateway>) -> Self {
        Self {
            args,
            orders,
            routes: HashMap::new(),
            rejections: RejectionLog::default(),
        }
    }

    pub fn take(&mut self, report: FromGateway) {
        match report {
            FromGateway::Ready { .. } | FromGateway::Alive { .. } => {}
            FromGateway::Opened {
                session,
                stream,
                remote,
                latency_ms,
            } => {
                debug!(%remote, session, latency_ms, "an SRT caller is connected");
                self.open(session, stream, remote);
            }
            FromGateway::Data {
                session,
                gap,
                bytes,
            } => self.data(session, gap, bytes),
            FromGateway::Line { session, mut line } => {
                if let Some(route) = self.routes.get_mut(&session) {
                    line.discarded += route.discarded;
                    // Left out when the queue is full: the next one has the same totals.
                    let _ = route.arrivals.try_send(GatewayEvent::Line(line));
                }
            }
            FromGateway::Closed { session, how } => {
                if let Some(route) = self.routes.remove(&session) {
                    let _ = route.ended.set(how);
                }
            }
            FromGateway::Refused {
                input,
                remote,
                code,
            } => {
                let reject = Reject::from_code(code);
                let reason = reject.map_or("an unknown reason", Reject::reason);
                if let Some(suppressed) = self.rejections.admit(Instant::now()) {
                    let input = input.map(Uuid::from_bytes).map(tracing::field::display);
                    info!(%remote, input, code, reason, suppressed, "an SRT caller was rejected");
                }
                if let (Some(input), Some(Reject::Conflict)) = (input, reject) {
                    self.args
                        .authorizer
                        .note_conflict(Uuid::from_bytes(input), remote);
                }
            }
        }
    }

    fn open(&mut self, session: SessionId, stream: String, remote: SocketAddr) {
        if self.routes.len() >= self.args.settings.max_connections {
            warn!("the SRT gateway has more connections than srt.max_connections");
            let _ = self.orders.try_send(ToGateway::Close(session));
            return;
        }
        let (arrivals, receiver) = mpsc::channel(ARRIVALS);
        let ended = Arc::new(OnceLock::new());
        let caller = Caller {
            stream,
            remote,
            arrivals: receiver,
            ended: ended.clone(),
        };
        let (authorizer, stop, orders) = (
            self.args.authorizer.clone(),
            self.args.host.stop.clone(),
            self.orders.clone(),
        );
        self.args.sessions.spawn(async move {
            let (admitted, tap) = mpsc::channel(1);
            let authorizer = PromptAuthorizer {
                authorizer,
                admitted,
            };
            let served = tokio::select! {
                served = serve(caller, &authorizer, stop) => served,
                never = order_prompt_reads(session, tap, &orders) => never,
            };
            if let Err(rejection) = served {
                debug!(%remote, reason = rejection.message(), "an SRT connection is closed again");
            }
            // One that the peer has closed is unknown to the gateway by now, and is no error.
            let _ = orders.send(ToGateway::Close(session)).await;
        });
        let route = Route {
            arrivals,
            ended,
            gap: false,
            discarded: 0,
        };
        self.routes.insert(session, route);
    }

    fn data(&mut self, session: SessionId, gap: bool, bytes: Bytes) {
        use mpsc::error::TrySendError::{Closed, Full};
        let Some(route) = self.routes.get_mut(&session) else {
            return;
        };
        let (gap, len) = (gap || route.gap, bytes.len());
        match route.arrivals.try_send(GatewayEvent::Data { gap, bytes }) {
            Ok(()) => route.gap = false,
            Err(Full(_)) => {
                route.gap = true;
                route.discarded += (len / TYPICAL_PAYLOAD).max(1) as u64;
            }
            Err(Closed(_)) => drop(self.routes.remove(&session)),
        }
    }
}

/// Admits as the authorizer behind it, and passes on the window of the input's units.
#[derive(Clone)]
struct PromptAuthorizer {
    authorizer: LiveAuthorizer,
    admitted: mpsc::Sender<Arc<UnitWindow>>,
}

impl PublishAuthorizer for PromptAuthorizer {
    type Session = LiveSession;

    async fn admit(&self, request: PublishRequest) -> Result<LiveSession, Rejection> {
        let admitted = self.authorizer.admit(request).await;
        if let Ok(session) = &admitted {
            // One connection is admitted once.
            let _ = self.admitted.try_send(session.tap());
        }
        admitted
    }
}

/// Orders the gateway to read a connection at short intervals while a follower of its input wants that. Never ends.
async fn order_prompt_reads<T>(
    session: SessionId,
    mut tap: mpsc::Receiver<Arc<UnitWindow>>,
    orders: &mpsc::Sender<ToGateway>,
) -> T {
    if let Some(tap) = tap.recv().await {
        let mut is_prompt = true;
        loop {
            tap.until_prompt(is_prompt).await;
            if orders
                .send(ToGateway::Prompt { session, is_prompt })
                .await
                .is_err()
            {
                // The gateway is gone, and its connections end.
                break;
            }
            is_prompt = !is_prompt;
        }
    }
    std::future::pending().await
}

/// Bytes of a live message: seven packets of a transport stream.
const TYPICAL_PAYLOAD: usize = 1316;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_connection_is_read_promptly_while_a_follower_wants_it() {
        let (orders, mut ordered) = mpsc::channel(1);
        let (admitted, receiver) = mpsc::channel(1);
        let tap = Arc::new(UnitWindow::default());
        let ordering = order_prompt_reads::<()>(7, receiver, &orders);
        let order = |is_prompt| {
            Some(ToGateway::Prompt {
                session: 7,
                is_prompt,
            })
        };
        let watching = async {
            admitted.send(Arc::clone(&tap)).await.unwrap();
            for _ in 0..2 {
                let follower = tap.follow(Duration::ZERO).promptly();
                assert_eq!(ordered.recv().await, order(true));
                drop(follower);
                assert_eq!(ordered.recv().await, order(false));
            }
        };
        tokio::select! {
            () = ordering => {}
            () = watching => {}
        }
    }

    #[test]
    fn rejections_are_logged_within_bounds_and_counted_beyond() {
        let mut log = RejectionLog::default();
        let start = Instant::now();
        for _ in 0..REJECTIONS_A_MINUTE {
            assert_eq!(log.admit(start), Some(0));
        }
        for second in 1..4 {
            assert_eq!(log.admit(start + Duration::from_secs(second)), None);
        }
        assert_eq!(log.admit(start + Duration::from_secs(60)), Some(3));
        assert_eq!(log.admit(start + Duration::from_secs(61)), Some(0));
    }
}
