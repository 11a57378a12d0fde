//! Tests of the checks of offers and the changes of answers, with offers of Chromium, aiortc and ffmpeg, and broken ones.

use std::{net::SocketAddr, time::Instant};

use sluice_media::codec::VideoCodec;

use super::{
    super::{
        super::message::{OfferError, VideoCodecs},
        answer::Answerer,
        inbox::Offer,
    },
    *,
};

const CHROMIUM_VIEWER: &str = include_str!("offers/chromium_viewer.sdp");
const CHROMIUM_DATA_CHANNEL: &str = include_str!("offers/chromium_data_channel.sdp");
const CHROMIUM_PUBLISHER: &str = include_str!("offers/chromium_publisher.sdp");
const AIORTC_VIEWER: &str = include_str!("offers/aiortc_viewer.sdp");
const FFMPEG_PUBLISHER: &str = include_str!("offers/ffmpeg_publisher.sdp");

const OFFERS: [(&str, Role); 5] = [
    (CHROMIUM_VIEWER, Role::Viewer),
    (CHROMIUM_DATA_CHANNEL, Role::Viewer),
    (CHROMIUM_PUBLISHER, Role::Publisher),
    (AIORTC_VIEWER, Role::Viewer),
    (FFMPEG_PUBLISHER, Role::Publisher),
];

fn offer(sdp: &str, role: Role) -> Offer {
    Offer {
        session: 1,
        role,
        candidates: vec![SocketAddr::from(([192, 0, 2, 9], 8189))],
        sdp: sdp.to_owned(),
    }
}

fn answer(sdp: &str, role: Role) -> (VideoCodecs, bool, String) {
    let answered = Answerer::new(true).answer(&offer(sdp, role), Instant::now());
    let answered = answered
        .map_err(|rejection| format!("{rejection:?}"))
        .unwrap();
    let video = answered
        .video
        .map(|video| video.codecs())
        .unwrap_or_default();
    (video, answered.audio.is_some(), answered.sdp)
}

fn rejection(sdp: &str, role: Role) -> (OfferError, String) {
    let answered = Answerer::new(true).answer(&offer(sdp, role), Instant::now());
    answered.err().expect("a rejection")
}

#[test]
fn offers_of_real_clients_are_answered() {
    for (sdp, role) in OFFERS {
        for sdp in [sdp.to_owned(), sdp.replace('\n', "\r\n")] {
            let (video, audio, answer) = answer(&sdp, role);
            assert!(video.contains(VideoCodec::Avc) && audio, "{answer}");
            let direction = match role {
                Role::Viewer => "a=sendonly",
                Role::Publisher => "a=recvonly",
            };
            let count = |line: &str| answer.lines().filter(|of| *of == line).count();
            assert_eq!((count(direction), count("a=sendrecv")), (2, 0), "{answer}");
            assert!(answer.contains("a=ice-lite\r\n"));
            assert!(answer.contains(" udp ") && answer.contains("192.0.2.9 8189 typ host"));
            assert!(answer.contains("tcptype passive"));
        }
    }
    let (video, ..) = answer(CHROMIUM_VIEWER, Role::Viewer);
    assert!(video.contains(VideoCodec::Av1) && !video.contains(VideoCodec::Hevc));
}

#[test]
fn both_tracks_of_an_answer_are_in_one_stream_with_stereo() {
    for sdp in [CHROMIUM_VIEWER, AIORTC_VIEWER] {
        let (.., answer) = answer(sdp, Role::Viewer);
        let streams: Vec<&str> = answer
            .lines()
            .filter_map(|line| line.split_once("msid:")?.1.split(' ').next())
            .collect();
        assert!(
            streams.len() >= 2 && streams.iter().all(|stream| *stream == STREAM),
            "{answer}"
        );
        assert!(
            answer.contains("stereo=1") && answer.contains("sprop-stereo=1"),
            "{answer}"
        );
    }
}

#[test]
fn a_data_channel_is_answered_as_rejected() {
    let (.., answer) = answer(CHROMIUM_DATA_CHANNEL, Role::Viewer);
    let media: Vec<&str> = answer
        .lines()
        .filter(|line| line.starts_with("m="))
        .collect();
    assert_eq!(media.len(), 3, "{answer}");
    assert_eq!(media[2], "m=application 0 UDP/DTLS/SCTP webrtc-datachannel");
    assert!(answer.contains("a=group:BUNDLE 0 1\r\n"), "{answer}");
    assert!(answer.ends_with("a=mid:2\r\n"), "{answer}");
}

#[test]
fn an_offer_without_a_codec_that_can_be_sent_names_its_own() {
    let only_audio = CHROMIUM_VIEWER.replace("H264", "X264").replace("AV1", "X1");
    let (video, audio, _) = answer(&only_audio, Role::Viewer);
    assert!(video.is_empty() && audio);
    let nothing = only_audio.replace("opus", "X");
    let (error, detail) = rejection(&nothing, Role::Viewer);
    assert_eq!(error, OfferError::NoCommonCodec, "{detail}");
    assert_eq!(detail, "X, G722, PCMU, PCMA, VP8, VP9, X264, X1");
}

#[test]
fn an_offer_of_one_track_is_answered() {
    let begin = |kind: &str| CHROMIUM_VIEWER.find(&format!("m={kind} ")).unwrap();
    let (audio, video) = (begin("audio"), begin("video"));
    let session = CHROMIUM_VIEWER[..audio].replace("BUNDLE 0 1", "BUNDLE 1");
    let (codecs, has_audio, _) = answer(
        &format!("{session}{}", &CHROMIUM_VIEWER[video..]),
        Role::Viewer,
    );
    assert!(!codecs.is_empty() && !has_audio);
    let session = CHROMIUM_VIEWER[..audio].replace("BUNDLE 0 1", "BUNDLE 0");
    let (codecs, has_audio, _) = answer(
        &format!("{session}{}", &CHROMIUM_VIEWER[audio..video]),
        Role::Viewer,
    );
    assert!(codecs.is_empty() && has_audio);
}

#[test]
fn candidates_of_an_offer_are_not_read() {
    let mdns = "a=candidate:1 1 udp 2113937151 5e0ac2d8-9d2d-4e3a-8a44-2c1b7c0a2f5e.local 50000 typ host generation 0";
    let broken = "a=candidate:x";
    for candidate in [mdns, broken] {
        let in_section = format!("{CHROMIUM_VIEWER}{candidate}\n");
        let in_session = CHROMIUM_VIEWER.replace("t=0 0\n", &format!("t=0 0\n{candidate}\n"));
        for sdp in [in_section, in_session] {
            let (video, ..) = answer(&sdp, Role::Viewer);
            assert!(video.contains(VideoCodec::Avc));
        }
    }
}

#[test]
fn simulcast_of_a_publisher_is_not_taken() {
    let video = CHROMIUM_PUBLISHER.find("m=video").unwrap();
    let layers = "a=rid:h send\na=rid:l send\na=simulcast:send h;l\n";
    let offer = format!("{CHROMIUM_PUBLISHER}{layers}");
    assert!(video > 0);
    let (codecs, _, answer) = answer(&offer, Role::Publisher);
    assert!(codecs.contains(VideoCodec::Avc));
    assert!(
        !answer.contains("simulcast") && !answer.contains("a=rid:"),
        "{answer}"
    );
}

#[test]
fn offers_beyond_the_bounds_are_rejected_with_the_rule() {
    let long_line = CHROMIUM_VIEWER.replace("s=-", &format!("s={}", "x".repeat(MAX_LINE)));
    let many_lines = format!("{CHROMIUM_VIEWER}{}", "a=x\n".repeat(MAX_LINES));
    let too_long = format!(
        "{CHROMIUM_VIEWER}{}",
        "a=candidate:0123456789\n".repeat(3_000)
    );
    let sections = format!("{CHROMIUM_VIEWER}{}", "m=application 9 X y\n".repeat(3));
    let two_videos = format!(
        "{CHROMIUM_VIEWER}{}",
        &CHROMIUM_VIEWER[CHROMIUM_VIEWER.find("m=video").unwrap()..]
    );
    for (sdp, rule) in [
        (String::new(), "v=0"),
        ("v=0\n".into(), "no media section"),
        ("{\"type\":\"offer\"}".into(), "v=0"),
        (long_line, "more than 300 bytes"),
        (many_lines, "more than 1000 lines"),
        (too_long, "too long"),
        (sections, "more than 4 media sections"),
        (two_videos, "more than one audio or more than one video"),
        (
            CHROMIUM_VIEWER.replace("s=-", "s=\u{7}"),
            "control characters",
        ),
        (
            CHROMIUM_VIEWER.replace("UDP/TLS/RTP/SAVPF", "RTP/AVP"),
            "profile",
        ),
        (CHROMIUM_VIEWER.replace("sha-256", "sha-1"), "fingerprint"),
        (
            CHROMIUM_VIEWER.replace("a=ice-ufrag:", "a=ice-ufrag:x\na=y:"),
            "ice-ufrag",
        ),
        (CHROMIUM_VIEWER.replace("a=ice-pwd:", "a=x:"), "ice-pwd"),
        (
            CHROMIUM_VIEWER.replace("a=recvonly", "a=sendonly"),
            "must be recvonly",
        ),
        (
            CHROMIUM_VIEWER.replace("m=video 9", "m=video x"),
            "without a port",
        ),
        (
            CHROMIUM_VIEWER.replace("SAVPF 111", "SAVPF 300"),
            "payload type",
        ),
        (
            CHROMIUM_VIEWER.replace("m=video", "m=text"),
            "neither audio nor video",
        ),
    ] {
        let (error, detail) = rejection(&sdp, Role::Viewer);
        assert_eq!(error, OfferError::Invalid);
        assert!(detail.contains(rule), "{detail:?} does not say {rule:?}");
    }
    let (_, detail) = rejection(CHROMIUM_VIEWER, Role::Publisher);
    assert!(detail.contains("must be sendonly"));
}

/// Broken offers that are tried; the first 20 000 were, too.
const ROUNDS: usize = 600;

/// Pseudo-random numbers (xorshift), the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }
}

/// Changes a few lines of an offer: left out, repeated, swapped, cut, or with other characters and numbers in them.
fn mutated(sdp: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = sdp.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(4) {
        let (at, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(7) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(other, lines[at].clone()),
            2 => lines.swap(at, other),
            3 => {
                let end = random.below(lines[at].len());
                let end = lines[at].floor_char_boundary(end);
                lines[at].truncate(end);
            }
            4 => {
                let place = random.below(lines[at].len() + 1);
                let place = lines[at].floor_char_boundary(place);
                let insert = [
                    "-1",
                    "99999999999999999999",
                    " ",
                    ":",
                    "=",
                    "/",
                    "\u{e9}",
                    ";;",
                    "0",
                ];
                lines[at].insert_str(place, insert[random.below(insert.len())]);
            }
            5 => {
                let digit = lines[at].find(|c: char| c.is_ascii_digit());
                if let Some(digit) = digit {
                    lines[at].replace_range(
                        digit..=digit,
                        ["9", "", "4294967296", "-"][random.below(4)],
                    );
                }
            }
            _ => {
                let value = lines[at].split_once(':').map(|(name, _)| name.to_owned());
                lines[at] = format!("{}:", value.unwrap_or_default());
            }
        }
        if lines.is_empty() {
            lines.push(String::new());
        }
    }
    lines.join("\r\n")
}

#[test]
fn broken_offers_are_answered_or_rejected() {
    let answerer = Answerer::new(true);
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut answered = 0;
    for round in 0..ROUNDS {
        let (sdp, role) = OFFERS[round % OFFERS.len()];
        let offer = offer(&mutated(sdp, &mut random), role);
        let now = Instant::now();
        answered += usize::from(answerer.answer(&offer, now).is_ok());
    }
    // Both kinds are tried.
    assert!(
        (ROUNDS / 20..ROUNDS * 19 / 20).contains(&answered),
        "{answered} answered"
    );
}
