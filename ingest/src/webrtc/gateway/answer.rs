//! Answers to offers: the library's instance for a session, with the codecs and extensions that this gateway sends or receives.

use std::{
    net::SocketAddr,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant},
};

use sluice_media::codec::VideoCodec;
use str0m::{
    Candidate, IceCreds, Rtc, RtcConfig,
    change::SdpOffer,
    config::{CryptoProvider, DtlsCert},
    format::{Codec, FormatParams, PayloadParams},
    media::{Frequency, Mid, Pt},
    net::TcpType,
    rtp::Extension,
};

use super::{
    super::message::{OfferError, Role, VideoCodecs},
    crypto,
    inbox::Offer,
    sdp::{self, CheckedOffer},
};

/// Packets and time for which a viewer may ask for one again, and most of its share of what is sent. The packets are most of
/// what a viewer holds; at 6 Mbit/s they last almost a second.
const RTX_PACKETS: usize = 600;
const RTX_AGE: Duration = Duration::from_secs(3);
const RTX_SHARE: f32 = 0.15;
/// Interval of the library's statistics.
const STATISTICS_EVERY: Duration = Duration::from_secs(1);
/// Payload types of Opus and of H.264, H.265 and AV1 with their retransmission in offers; those of the peer's offer replace them.
const OPUS: u8 = 111;
/// Profiles of H.264 in the order in which they are chosen for sending: browsers decode all profiles under any of them.
const H264_PROFILES: [u32; 4] = [0x42e0, 0x4d00, 0x4200, 0x6400];

/// Makes the library's instances.
pub(super) struct Answerer {
    provider: Arc<CryptoProvider>,
    certificate: DtlsCert,
    has_tcp: bool,
}

/// An answered offer.
pub(super) struct Answered {
    pub rtc: Rtc,
    pub ufrag: String,
    pub sdp: String,
    pub video: Option<NegotiatedVideo>,
    pub audio: Option<NegotiatedAudio>,
    /// Local candidates by UDP and by TCP: what packets are said to have arrived at.
    pub local_udp: Vec<SocketAddr>,
    pub local_tcp: Vec<SocketAddr>,
}

#[derive(Clone, Debug)]
pub(super) struct NegotiatedVideo {
    pub mid: Mid,
    /// Payload type of each codec that can be sent.
    pub payload_types: Vec<(VideoCodec, Pt)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct NegotiatedAudio {
    pub mid: Mid,
    pub payload_type: Pt,
}

/// Reason for a rejection, with its detail.
pub(super) type Rejection = (OfferError, String);

impl NegotiatedVideo {
    pub fn codecs(&self) -> VideoCodecs {
        self.payload_types.iter().map(|(codec, _)| *codec).collect()
    }

    pub fn payload_type(&self, codec: VideoCodec) -> Option<Pt> {
        let find = |(of, payload_type): &(VideoCodec, Pt)| (*of == codec).then_some(*payload_type);
        self.payload_types.iter().find_map(find)
    }
}

impl Answerer {
    pub fn new(has_tcp: bool) -> Self {
        Self {
            provider: crypto::provider(),
            certificate: crypto::certificate(),
            has_tcp,
        }
    }

    /// Answers an offer, or rejects it. The library takes some contradictions of an offer for mistakes of its own and panics; that is a
    /// rejection, too.
    pub fn answer(&self, offer: &Offer, now: Instant) -> Result<Answered, Rejection> {
        catch_unwind(AssertUnwindSafe(|| self.try_answer(offer, now)))
            .unwrap_or_else(|_| Err((OfferError::Invalid, "the offer contradicts itself".into())))
    }

    fn try_answer(&self, offer: &Offer, now: Instant) -> Result<Answered, Rejection> {
        let checked = sdp::check_offer(&offer.sdp, offer.role)
            .map_err(|error| (OfferError::Invalid, error.to_string()))?;
        let invalid = |error: &dyn std::fmt::Display| (OfferError::Invalid, error.to_string());
        let parsed = SdpOffer::from_sdp_string(&checked.sdp).map_err(|error| invalid(&error))?;
        let creds = IceCreds::new();
        let ufrag = creds.ufrag.clone();
        let mut rtc = self.config(offer.role, creds).build(now);
        let (local_udp, local_tcp) = self.add_candidates(&mut rtc, &offer.candidates);
        let answer = rtc
            .sdp_api()
            .accept_offer(parsed)
            .map_err(|error| invalid(&error))?;
        let video = checked
            .video_mid
            .as_deref()
            .and_then(|mid| video(&rtc, mid.into(), offer.role));
        let audio = checked
            .audio_mid
            .as_deref()
            .and_then(|mid| audio(&rtc, mid.into()));
        if video.is_none() && audio.is_none() {
            return Err((OfferError::NoCommonCodec, no_common_codec(&checked)));
        }
        if let Some(video) = &video
            && let Some(stream) = rtc.direct_api().stream_tx_by_mid(video.mid, None)
        {
            stream.set_rtx_cache(RTX_PACKETS, RTX_AGE, Some(RTX_SHARE));
        }
        Ok(Answered {
            rtc,
            ufrag,
            sdp: sdp::finish_answer(&checked, &answer.to_sdp_string()),
            video,
            audio,
            local_udp,
            local_tcp,
        })
    }

    fn config(&self, role: Role, creds: IceCreds) -> RtcConfig {
        let mut config = RtcConfig::new()
            .set_crypto_provider(self.provider.clone())
            .set_dtls_cert(self.certificate.clone())
            .set_local_ice_credentials(creds)
            .set_ice_lite(true)
            .set_stats_interval(Some(STATISTICS_EVERY))
            .clear_codecs()
            .enable_h264(true)
            .enable_h265(true)
            .enable_av1(true);
        config.codec_config().add_config(
            OPUS.into(),
            None,
            Codec::Opus,
            Frequency::FORTY_EIGHT_KHZ,
            Some(2),
            FormatParams {
                min_p_time: Some(10),
                stereo: Some(true),
                sprop_stereo: Some(true),
                ..FormatParams::default()
            },
        );
        match role {
            // No feedback about arrival times: nothing here reads it, and it costs both sides.
            Role::Viewer => config
                .set_rtp_mode(true)
                .clear_extension_map()
                .set_extension(4, Extension::RtpMid)
                .set_extension(6, Extension::PlayoutDelay),
            Role::Publisher => config,
        }
    }

    fn add_candidates(
        &self,
        rtc: &mut Rtc,
        addresses: &[SocketAddr],
    ) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let (mut udp, mut tcp) = (Vec::new(), Vec::new());
        for address in addresses {
            let host = Candidate::host(*address, "udp");
            if host.is_ok_and(|candidate| rtc.add_local_candidate(candidate).is_some()) {
                udp.push(*address);
            }
        }
        for address in addresses.iter().filter(|_| self.has_tcp) {
            let host = Candidate::builder()
                .tcp()
                .host(*address)
                .tcptype(TcpType::Passive);
            if host
                .build()
                .is_ok_and(|candidate| rtc.add_local_candidate(candidate).is_some())
            {
                tcp.push(*address);
            }
        }
        (udp, tcp)
    }
}

fn video(rtc: &Rtc, mid: Mid, role: Role) -> Option<NegotiatedVideo> {
    let payload_types = video_payload_types(&agreed(rtc, mid), role);
    (!payload_types.is_empty()).then_some(NegotiatedVideo { mid, payload_types })
}

fn audio(rtc: &Rtc, mid: Mid) -> Option<NegotiatedAudio> {
    let params = agreed(rtc, mid);
    let opus = params
        .iter()
        .find(|params| params.spec().codec == Codec::Opus)?;
    Some(NegotiatedAudio {
        mid,
        payload_type: opus.pt(),
    })
}

/// Returns the payload types of a section that both sides know, in the peer's order.
fn agreed(rtc: &Rtc, mid: Mid) -> Vec<PayloadParams> {
    let known = rtc.codec_config().params();
    let Some(media) = rtc.media(mid) else {
        return Vec::new();
    };
    let find = |pt: &Pt| known.iter().find(|params| params.pt() == *pt).copied();
    media.remote_pts().iter().filter_map(find).collect()
}

fn video_payload_types(params: &[PayloadParams], role: Role) -> Vec<(VideoCodec, Pt)> {
    let mut payload_types = Vec::new();
    let first = |codec: Codec| params.iter().find(|params| params.spec().codec == codec);
    let h264 = match role {
        Role::Viewer => h264_for_sending(params),
        Role::Publisher => first(Codec::H264).map(PayloadParams::pt),
    };
    payload_types.extend(h264.map(|pt| (VideoCodec::Avc, pt)));
    payload_types.extend(first(Codec::H265).map(|params| (VideoCodec::Hevc, params.pt())));
    payload_types.extend(first(Codec::Av1).map(|params| (VideoCodec::Av1, params.pt())));
    payload_types
}

/// Returns the payload type that H.264 is sent with: units are fragmented, so packetisation mode 1 is needed.
fn h264_for_sending(params: &[PayloadParams]) -> Option<Pt> {
    let rank = |params: &PayloadParams| {
        let profile = params.spec().format.profile_level_id.map(|id| id >> 8);
        H264_PROFILES
            .iter()
            .position(|known| Some(*known) == profile)
            .unwrap_or(H264_PROFILES.len())
    };
    params
        .iter()
        .filter(|params| {
            let spec = params.spec();
            spec.codec == Codec::H264 && spec.format.packetization_mode == Some(1)
        })
        .min_by_key(|params| rank(params))
        .map(PayloadParams::pt)
}

fn no_common_codec(offer: &CheckedOffer) -> String {
    match offer.codecs.is_empty() {
        true => "the offer names no codec".into(),
        false => offer.codecs.join(", "),
    }
}
