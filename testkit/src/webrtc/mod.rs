//! WebRTC clients of tests: viewers by WHEP, publishers by WHIP (RFC 9725), and many light viewers in one thread.
//!
//! Each has its own socket, UDP or ICE-TCP alone, with loss and delay as wanted. They speak ICE, DTLS and SRTP with the service by
//! str0m; that browsers understand it too is for the tests with browsers.

mod annex_b;
mod crowd;
mod line;
mod offer;
mod publisher;
mod session;
#[cfg(test)]
mod tests;
mod viewer;

use std::{sync::Arc, time::Instant};

use sluice_ingest::webrtc::gateway::crypto;
use str0m::{
    Rtc, RtcConfig,
    change::{SdpAnswer, SdpPendingOffer},
};

pub use annex_b::{AccessUnit, access_units};
pub use crowd::{Crowd, Seat};
pub use line::{Link, Transport};
pub use offer::{OfferError, Resource};
pub use publisher::{Broadcast, PublishReport, Publisher};
pub use session::Ended;
pub use str0m::format::Codec;
pub use viewer::{Viewer, ViewerOptions, ViewerReport};

use crate::Failure;

/// A configuration of str0m with these codecs and our cryptography.
fn config(codecs: &[Codec]) -> RtcConfig {
    let config = RtcConfig::new()
        .set_crypto_provider(crypto::provider())
        .set_dtls_cert(certificate())
        .clear_codecs();
    codecs.iter().fold(config, |config, codec| match codec {
        Codec::H264 => config.enable_h264(true),
        Codec::H265 => config.enable_h265(true),
        Codec::Av1 => config.enable_av1(true),
        Codec::Vp8 => config.enable_vp8(true),
        Codec::Opus => config.enable_opus(true, false),
        _ => config,
    })
}

/// One certificate for all clients of the process: a hundred of them shall not make a hundred keys.
fn certificate() -> str0m::config::DtlsCert {
    static CERTIFICATE: std::sync::OnceLock<str0m::config::DtlsCert> = std::sync::OnceLock::new();
    CERTIFICATE.get_or_init(crypto::certificate).clone()
}

/// Takes the answer, opens a socket to the first address that it names for this transport, and names that socket to `rtc`.
fn accept(
    rtc: &mut Rtc,
    pending: SdpPendingOffer,
    answer: &str,
    transport: Transport,
    link: Link,
) -> Result<line::Line, Failure> {
    let parsed = SdpAnswer::from_sdp_string(answer)?;
    rtc.sdp_api().accept_answer(pending, parsed)?;
    let remote = offer::candidate(answer, transport)
        .ok_or_else(|| format!("the answer has no candidate for {transport:?}:\n{answer}"))?;
    let line = line::Line::open(remote, transport, link)?;
    rtc.add_local_candidate(line.candidate()?);
    Ok(line)
}

/// State that a client's thread and its owner share.
#[derive(Debug, Default)]
struct Shared<T>(Arc<std::sync::Mutex<T>>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Shared<T> {
    fn update<R>(&self, update: impl FnOnce(&mut T) -> R) -> R {
        update(&mut self.0.lock().expect("no holder panics"))
    }
}

/// Time since `start`, noted once.
fn note(time: &mut Option<std::time::Duration>, start: Instant) {
    time.get_or_insert_with(|| start.elapsed());
}
