//! WebRTC in the service: sessions of viewers (WHEP) and publishers (WHIP), admission, what the gateway process is sent.
//!
//! ```text
//! request ── offer ──▶ Control ═══ orders, media ══▶ gateway process      one Relay for each watched input
//! LiveInput ─▶ UnitWindow ─▶ Relay ───────╯    ╰◀══ reports ══
//!                              ╰──▶ Branch (worker) ──▶╯
//! ```

pub mod branch;
mod candidates;
mod control;
mod counters;
mod frame;
mod line;
mod outbox;
mod process;
mod publisher;
mod relay;
mod report;
mod sessions;
#[cfg(test)]
mod tests;

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use futures_util::future::{BoxFuture, ready};
use sluice_ingest::{
    publish::{Rejection, Secret},
    webrtc::WebRtcSettings,
};
use tokio_util::task::TaskTracker;

use self::{branch::Branches, control::Control, process::RtcGateway};
use super::{
    Directory, LiveAuthorizer, Playback,
    gateway::{self, Gateway as _, GatewayHost},
};
use crate::{
    Error,
    component::Component,
    metric::Metric,
    subsystem::{Degradation, Subsystem},
};

pub use process::Sockets;
pub(super) use report::WebRtcViewers;
pub use report::{BranchHealth, WebRtcHealth};

/// An offer of a client, with the addresses at which it may reach the gateway.
#[derive(Clone, Debug)]
pub struct Offer {
    pub sdp: String,
    /// Addresses for candidates, best first, without ports; those of the settings come before them.
    pub reached_at: Vec<IpAddr>,
    /// The client's address, for the bound on unconnected sessions of one address.
    pub remote: SocketAddr,
}

/// An offer of an admitted viewer.
#[derive(Clone, Debug)]
pub struct ViewerOffer {
    pub offer: Offer,
    pub playback: Arc<Playback>,
    /// Unix milliseconds at which the viewer's token expires and the session is closed.
    pub until_ms: Option<i64>,
    /// True for a viewer who was admitted by a token, or as the stream's owner: the session outlives `requireSignedPlayback`.
    pub has_permission: bool,
}

/// An offer of a publisher.
#[derive(Clone, Debug)]
pub struct PublisherOffer {
    pub offer: Offer,
    /// Stream name in the authorizer's form: `{inputSlug}.{streamKey}`.
    pub stream: Secret,
    /// `User-Agent` of the publisher.
    pub encoder: Option<String>,
}

/// The gateway's answer to an offer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub sdp: String,
    /// Name of the session in its address (`Location`): 128 random bits in hexadecimal digits.
    pub session: String,
}

/// Error of an offer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WebRtcError {
    /// `webrtc.enabled` is false.
    #[error("WebRTC is turned off (webrtc.enabled)")]
    Off,
    /// The offer breaks a rule; the text names it.
    #[error("the offer is not accepted: {0}")]
    InvalidOffer(String),
    #[error("no codec of the offer can be used: {0}")]
    NoCommonCodec(String),
    /// Nothing is on air.
    #[error("nothing is on air")]
    NotOnAir,
    /// The publisher is not admitted.
    #[error("{}", .0.message())]
    Rejected(Rejection),
    /// All re-encodings (`webrtc.max_branches`) are in use.
    #[error("as many streams are re-encoded for WebRTC as webrtc.max_branches allows")]
    Busy,
    /// A bound of sessions or of bytes (`webrtc.max_sessions`, `webrtc.egress_limit`) is reached.
    #[error("as many WebRTC sessions are open as the settings of webrtc allow")]
    Full,
    /// The client's address has `webrtc.max_pending_per_address` unconnected sessions.
    #[error("too many offers of this address wait for their connection")]
    TooManyPending,
    /// The gateway process is down or does not answer.
    #[error("the WebRTC gateway is starting: try again in a second")]
    Unavailable,
}

/// WebRTC for requests, so that their tests need no gateway.
pub trait WebRtcPort: Send + Sync {
    /// Opens a viewer's session.
    fn play(&self, viewer: ViewerOffer) -> BoxFuture<'_, Result<Answer, WebRtcError>>;

    /// Opens a publisher's session: its key is checked before the offer is read.
    fn publish(&self, publisher: PublisherOffer) -> BoxFuture<'_, Result<Answer, WebRtcError>>;

    /// True while the session is open, and for a minute after its end.
    fn is_known(&self, session: &str) -> bool;

    /// Ends a session as its client asked; returns [`WebRtcPort::is_known`] from before. A publisher's end is a clean one.
    fn end(&self, session: &str) -> bool;
}

/// The handle of WebRTC: cheap to clone, safe to hold in a request handler.
#[derive(Clone, Default)]
pub struct WebRtc(Option<RtcGateway>);

/// Parts of the process that WebRTC needs.
pub struct WebRtcContext {
    pub directory: Arc<Directory>,
    pub authorizer: LiveAuthorizer,
    pub host: GatewayHost,
    /// `None` where nothing can be re-encoded.
    pub branches: Option<Branches>,
    /// Tasks of sessions and relays.
    pub sessions: TaskTracker,
}

impl WebRtc {
    /// `sockets`: `None` when WebRTC is turned off, and every offer is answered so.
    pub fn new(
        settings: Arc<WebRtcSettings>,
        sockets: Option<Sockets>,
        context: WebRtcContext,
    ) -> Self {
        let Some(sockets) = sockets else {
            return Self(None);
        };
        let WebRtcContext {
            directory,
            authorizer,
            host,
            branches,
            sessions,
        } = context;
        let control = Control::new(
            settings, directory, authorizer, sessions, &sockets, branches,
        );
        Self(Some(RtcGateway {
            sockets,
            control: Arc::new(control),
            host,
        }))
    }

    fn control(&self) -> Result<&Arc<Control>, WebRtcError> {
        let gateway = self.0.as_ref().ok_or(WebRtcError::Off)?;
        Ok(&gateway.control)
    }
}

impl WebRtcPort for WebRtc {
    fn play(&self, viewer: ViewerOffer) -> BoxFuture<'_, Result<Answer, WebRtcError>> {
        Box::pin(async { self.control()?.play(viewer).await })
    }

    fn publish(&self, publisher: PublisherOffer) -> BoxFuture<'_, Result<Answer, WebRtcError>> {
        Box::pin(async { self.control()?.publish(publisher).await })
    }

    fn is_known(&self, session: &str) -> bool {
        self.control()
            .is_ok_and(|control| control.is_known(session))
    }

    fn end(&self, session: &str) -> bool {
        self.control().is_ok_and(|control| control.end(session))
    }
}

impl Subsystem for WebRtc {
    fn name(&self) -> &'static str {
        "WebRTC"
    }

    /// The component that keeps the gateway running.
    fn components(&self) -> Vec<Component> {
        let Some(gateway) = self.0.clone() else {
            return Vec::new();
        };
        vec![Component::of_task(RtcGateway::NAMES.component, move || {
            let gateway = gateway.clone();
            async move {
                let control = gateway.control.clone();
                tokio::select! {
                    () = gateway::keep_running(gateway) => {}
                    () = control.candidates.keep_looked_up() => {}
                }
            }
        })]
    }

    /// Accepts no offer from now on and closes all sessions.
    fn drain(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            if let Ok(control) = self.control() {
                control.drain().await;
            }
        })
    }

    /// A gateway that does not start: streams continue by HLS.
    fn degradations(&self) -> Vec<Degradation> {
        let failure = self.control().ok().and_then(|it| it.failure.lock().clone());
        let name = RtcGateway::NAMES.component;
        let degradation = failure.map(|reason| Degradation { name, reason });
        degradation.into_iter().collect()
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        let metrics = self.control().map(|control| control.metrics());
        Box::pin(ready(Ok(metrics.unwrap_or_default())))
    }
}
