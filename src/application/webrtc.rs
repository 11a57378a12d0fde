//! WebRTC for viewers (WHEP) and publishers (WHIP): offers by the gateway's port, and the errors of their answers.

mod reached_at;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use sluice_actors::live::{
    Playback,
    webrtc::{Answer, Offer, PublisherOffer, ViewerOffer, WebRtcError},
};
use sluice_ingest::{
    publish::Rejection,
    webrtc::{WebRtcSettings, message::MAX_SDP},
};

use super::{context::LiveContext, error::ApiError};

pub(crate) use reached_at::{Reach, addresses, own_addresses};

/// Seconds after which a client that found every re-encoding in use may try again.
const BUSY_RETRY_AFTER_S: u64 = 10;
/// Seconds after which a client that found every session in use, or no gateway, may try again.
const RETRY_AFTER_S: u64 = 2;

/// A client's offer as it came.
pub(crate) struct RawOffer {
    pub sdp: Vec<u8>,
    pub reached_at: Vec<IpAddr>,
    pub client: Option<IpAddr>,
    /// Port of the connection that the offer came by.
    pub client_port: u16,
}

impl RawOffer {
    fn read(self) -> Result<Offer, ApiError> {
        if self.sdp.len() > MAX_SDP {
            return Err(too_large());
        }
        if self.sdp.trim_ascii().is_empty() {
            return Err(ApiError::InvalidSdp(
                "the body is empty: send the offer of RTCPeerConnection.createOffer".to_owned(),
            ));
        }
        let sdp = String::from_utf8(self.sdp)
            .map_err(|_| ApiError::InvalidSdp("the offer is not UTF-8 text".to_owned()))?;
        let client = self.client.unwrap_or(Ipv4Addr::UNSPECIFIED.into());
        Ok(Offer {
            sdp,
            reached_at: self.reached_at,
            remote: SocketAddr::new(client, self.client_port),
        })
    }
}

/// Error of a body that is larger than any session description.
pub(crate) fn too_large() -> ApiError {
    ApiError::TooLarge(format!(
        "an offer has at most {MAX_SDP} bytes: offer one audio and one video track"
    ))
}

/// An admitted viewer.
pub(crate) struct Viewer {
    pub playback: Arc<Playback>,
    /// Copy of [`ViewerOffer::until_ms`].
    pub until_ms: Option<i64>,
    /// Copy of [`ViewerOffer::has_permission`].
    pub has_permission: bool,
}

/// Opens a session of an admitted viewer.
pub(crate) async fn play(
    context: &LiveContext,
    viewer: Viewer,
    offer: RawOffer,
) -> Result<Answer, ApiError> {
    if !context.config.webrtc.enabled {
        return Err(ApiError::WebRtcOff);
    }
    let viewer = ViewerOffer {
        offer: offer.read()?,
        playback: viewer.playback,
        until_ms: viewer.until_ms,
        has_permission: viewer.has_permission,
    };
    let opened = context.webrtc.play(viewer).await;
    opened.map_err(|error| api_error(error, &context.config.webrtc))
}

/// Opens a session of a publisher; `stream` is `{inputSlug}.{streamKey}`.
pub(crate) async fn publish(
    context: &LiveContext,
    stream: &str,
    encoder: Option<String>,
    offer: RawOffer,
) -> Result<Answer, ApiError> {
    if !context.config.webrtc.enabled {
        return Err(ApiError::WebRtcOff);
    }
    let publisher = PublisherOffer {
        offer: offer.read()?,
        stream: stream.into(),
        encoder,
    };
    let opened = context.webrtc.publish(publisher).await;
    opened.map_err(|error| api_error(error, &context.config.webrtc))
}

fn api_error(error: WebRtcError, settings: &WebRtcSettings) -> ApiError {
    match error {
        WebRtcError::Off => ApiError::WebRtcOff,
        WebRtcError::InvalidOffer(_) => ApiError::InvalidSdp(error.to_string()),
        WebRtcError::NoCommonCodec(_) => ApiError::Unprocessable {
            code: "no_common_codec",
            message: error.to_string(),
        },
        // As of the playlist.
        WebRtcError::NotOnAir => ApiError::NotFound("live stream"),
        WebRtcError::Rejected(rejection) => rejected(rejection),
        WebRtcError::Busy => ApiError::Overloaded {
            code: "webrtc_busy",
            message: "as many streams are re-encoded for WebRTC as webrtc.max_branches allows: play hlsUrl",
            retry_after_s: BUSY_RETRY_AFTER_S,
        },
        WebRtcError::Full => ApiError::Overloaded {
            code: "webrtc_full",
            message: "as many WebRTC sessions are open as webrtc.max_sessions, max_pending or egress_limit allow: play hlsUrl",
            retry_after_s: RETRY_AFTER_S,
        },
        WebRtcError::TooManyPending => ApiError::TooMany {
            message: "too many offers of this address wait for their connection (webrtc.max_pending_per_address)",
            retry_after_s: settings.handshake_timeout.as_secs(),
        },
        WebRtcError::Unavailable => ApiError::Unavailable {
            what: "the WebRTC gateway",
            retry_after_s: RETRY_AFTER_S,
        },
    }
}

/// The error of a publisher who is not admitted, with the sentence that encoders of other protocols are given.
pub(crate) fn rejected(rejection: Rejection) -> ApiError {
    let message = rejection.message();
    match rejection {
        Rejection::Unauthorized => ApiError::Unauthenticated(message),
        Rejection::Disabled => ApiError::Forbidden(message),
        Rejection::Conflict => ApiError::WrongState {
            code: "another_encoder",
            message,
        },
        Rejection::Busy => ApiError::Overloaded {
            code: "ingest_busy",
            message: "the service cannot take a stream now",
            retry_after_s: RETRY_AFTER_S,
        },
    }
}
