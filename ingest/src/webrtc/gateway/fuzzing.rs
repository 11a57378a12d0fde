//! Fuzz targets of what strangers send to the gateway: offers, datagrams and the frames of TCP.

use std::{
    io::{self, Read},
    net::SocketAddr,
    time::Instant,
};

use str0m::{
    Candidate, IceCreds, Input, Output, Rtc, RtcConfig,
    change::SdpOffer,
    net::{Protocol, Receive},
};

use super::{
    super::message::Role,
    crypto,
    routes::Routes,
    sdp::{check_offer, finish_answer},
    tcp::{FrameReader, MAX_FRAME},
};

const OFFER: &str = include_str!("sdp/offers/chromium_viewer.sdp");
/// Local credentials, so that a seed can have a check with the right integrity.
const UFRAG: &str = "fuzz";
const PASSWORD: &str = "fuzzfuzzfuzzfuzzfuzzfuzz";

/// Reads an offer behind a byte for the role, checks it, and gives what passed to the library's parser.
pub(crate) fn offer(bytes: &[u8]) {
    let Some((role, sdp)) = bytes.split_first() else {
        return;
    };
    let role = match role % 2 {
        0 => Role::Viewer,
        _ => Role::Publisher,
    };
    let sdp = String::from_utf8_lossy(sdp);
    if let Ok(checked) = check_offer(&sdp, role) {
        assert!(checked.sdp.len() <= 2 * sdp.len() + 64);
        let _ = SdpOffer::from_sdp_string(&checked.sdp);
        let answer = finish_answer(&checked, &sdp);
        assert!(answer.len() <= 4 * sdp.len() + 1024);
    }
}

/// Reads frames in pieces; each is within its bounds.
pub(crate) fn tcp_frames(bytes: &[u8]) {
    let read: usize = frames(bytes).iter().map(|frame| frame.len() + 2).sum();
    assert!(read <= bytes.len());
}

/// Passes datagrams, each in a frame, to a session by its routes; the first known address is that of the session.
pub(crate) fn datagrams(bytes: &[u8]) {
    receive(bytes);
}

/// Returns how many packets the session has answered with.
fn receive(bytes: &[u8]) -> usize {
    let local = SocketAddr::from(([192, 0, 2, 1], 8189));
    let source = SocketAddr::from(([192, 0, 2, 2], 9));
    let routes = Routes::default();
    routes.insert_ufrag(UFRAG, 1);
    routes.insert_address(source, 1);
    let now = Instant::now();
    let mut rtc = answered(local, now);
    let mut sent = 0;
    for datagram in frames(bytes) {
        if routes.of_datagram(source, &datagram).is_none() {
            continue;
        }
        let Ok(receive) = Receive::new(Protocol::Udp, source, local, &datagram) else {
            continue;
        };
        if rtc.handle_input(Input::Receive(now, receive)).is_err() {
            return sent;
        }
        loop {
            match rtc.poll_output() {
                Ok(Output::Timeout(_)) => break,
                Ok(Output::Transmit(_)) => sent += 1,
                Ok(Output::Event(_)) => {}
                Err(_) => return sent,
            }
        }
    }
    sent
}

/// A session that has answered an offer of Chromium.
fn answered(local: SocketAddr, now: Instant) -> Rtc {
    static CERTIFICATE: std::sync::LazyLock<str0m::config::DtlsCert> =
        std::sync::LazyLock::new(crypto::certificate);
    let credentials = IceCreds {
        ufrag: UFRAG.to_owned(),
        pass: PASSWORD.to_owned(),
    };
    let mut rtc = RtcConfig::new()
        .set_crypto_provider(crypto::provider())
        .set_dtls_cert(CERTIFICATE.clone())
        .set_local_ice_credentials(credentials)
        .set_ice_lite(true)
        .set_rtp_mode(true)
        .build(now);
    rtc.add_local_candidate(Candidate::host(local, "udp").expect("an address of a host"));
    let checked = check_offer(OFFER, Role::Viewer).expect("an offer of Chromium");
    let offer = SdpOffer::from_sdp_string(&checked.sdp).expect("an offer of Chromium");
    rtc.sdp_api()
        .accept_offer(offer)
        .expect("an offer of Chromium");
    rtc
}

fn frames(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut stream = Pieces {
        rest: bytes,
        blocks: false,
    };
    let mut reader = FrameReader::default();
    let mut frames = Vec::new();
    while let Ok(frame) = reader.next(&mut stream) {
        if let Some(frame) = frame {
            assert!((1..=MAX_FRAME).contains(&frame.len()));
            frames.push(frame);
        }
    }
    frames
}

/// A stream that would block at every second read.
struct Pieces<'a> {
    rest: &'a [u8],
    blocks: bool,
}

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.blocks = !self.blocks;
        if self.blocks {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let most = buffer.len().min(61);
        self.rest.read(&mut buffer[..most])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seed(name: &str) -> Vec<u8> {
        let seeds = concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/seeds");
        std::fs::read(format!("{seeds}/{name}")).unwrap()
    }

    #[test]
    fn seeds_reach_the_session_behind_the_routes() {
        let check = seed("webrtc_datagrams/check");
        assert_eq!(receive(&check), 1, "the check is answered");
        let answers = receive(&seed("webrtc_datagrams/session"));
        assert!(answers > 2, "the handshake begins: {answers} packets");
        assert_eq!(receive(&check[..check.len() - 1]), 0);
    }
}
