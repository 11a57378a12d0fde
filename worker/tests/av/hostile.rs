//! Files that mean harm, or are damaged: a typed failure, in time, and nothing touched.

use std::{
    env, fs,
    io::{self, Write as _},
    net::TcpListener,
    path::Path,
    process::{self, Command},
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use sluice_media::{
    av::{MediaFacts, Report},
    task::{Failure, FailureCode},
};
use sluice_worker::av::{
    drive,
    graph::{Graph, Want},
    probe::probe,
};

use crate::clips::{self, AUDIO, H264, LIMITS, VIDEO};

/// Probes, and decodes all of it into nothing.
fn decode(name: &str, bytes: &[u8]) -> Result<MediaFacts, Failure> {
    let input = clips::input(&clips::bytes(name, bytes));
    let facts = probe(&input, &LIMITS)?;
    let want = Want {
        video: true,
        audio: true,
    };
    let graph = Graph::decode(&input, &facts, want, None)?;
    drive::run(&graph, 0.0, &mut |_: Report| {})?;
    Ok(facts)
}

#[test]
fn playlists_reach_neither_network_nor_files() {
    clips::start();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a socket");
    let host = listener.local_addr().expect("an address");
    let canary = if clips::can_be_made() {
        clips::usual()
    } else {
        clips::bytes("canary.ts", b"G")
    };
    let canary = format!("file://{}", canary.display());
    let remote = format!("http://{host}/a.ts");
    for address in [&remote, &canary] {
        let hls = format!(
            "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{address}\n#EXT-X-ENDLIST\n"
        );
        let master = format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n{address}\n");
        let dash = format!(
            "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
             mediaPresentationDuration=\"PT2S\" profiles=\"urn:mpeg:dash:profile:isoff-on-demand:2011\">\
             <Period><AdaptationSet mimeType=\"video/mp4\"><Representation id=\"1\" bandwidth=\"1\">\
             <BaseURL>{address}</BaseURL></Representation></AdaptationSet></Period></MPD>"
        );
        let smooth = format!(
            "<SmoothStreamingMedia MajorVersion=\"2\" Duration=\"1\"><StreamIndex Url=\"{address}\"/>\
             </SmoothStreamingMedia>"
        );
        let sdp = format!(
            "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=video {} RTP/AVP 96\n",
            host.port()
        );
        let uris = format!("text/uri-list\n{address}\n");
        let asx = format!("<ASX version=\"3\"><Entry><Ref href=\"{address}\"/></Entry></ASX>");
        let reference = quicktime_reference(address);
        for bytes in [
            hls.as_bytes(),
            master.as_bytes(),
            dash.as_bytes(),
            smooth.as_bytes(),
            sdp.as_bytes(),
            uris.as_bytes(),
            asx.as_bytes(),
            &reference,
        ] {
            let failure = decode("list.mp4", bytes).expect_err("no clip");
            let text = String::from_utf8_lossy(bytes);
            assert!(
                matches!(
                    failure.code,
                    FailureCode::UnsupportedType | FailureCode::Undecodable
                ),
                "{failure:?}: {text}"
            );
            assert!(!failure.message.contains("127.0.0.1"), "{failure:?}");
        }
    }
    let knocked = listener.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(
        knocked,
        Err(io::ErrorKind::WouldBlock),
        "something connected"
    );
}

/// A QuickTime file that says that its contents are elsewhere (`rmra`).
fn quicktime_reference(address: &str) -> Vec<u8> {
    fn atom(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let length = (content.len() as u32 + 8).to_be_bytes();
        [&length[..], kind, content].concat()
    }
    let mut place = b"\0\0\0\0url ".to_vec();
    place.extend((address.len() as u32 + 1).to_be_bytes());
    place.extend(address.as_bytes());
    place.push(0);
    let reference = atom(b"rmda", &atom(b"rdrf", &place));
    [
        atom(b"ftyp", b"qt  \0\0\0\0qt  "),
        atom(b"moov", &atom(b"rmra", &reference)),
    ]
    .concat()
}

#[test]
fn what_is_no_clip_is_refused() {
    clips::start();
    let declared = [&2_000_000_000_u32.to_be_bytes()[..], b"moov", &[0; 64]].concat();
    let moov = [&b"\0\0\0\x14ftypisom\0\0\0\0isom"[..], &declared].concat();
    let noise: Vec<u8> = (0..4_096_u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8)
        .collect();
    for (what, bytes) in [
        ("nothing", &b""[..]),
        (
            "text",
            b"It was a dark and stormy night; the rain fell in torrents.\n",
        ),
        ("zeros", &[0; 4_096]),
        ("noise", &noise),
        ("a moov of 2 GB", &moov),
        (
            "a frame",
            b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0\x90wS\xde",
        ),
        (
            "the head of a WAV",
            b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\x01\0\x01\0",
        ),
        ("the head of a FLV", b"FLV\x01\x05\0\0\0\x09\0\0\0\0"),
        (
            "the head of a Matroska",
            b"\x1a\x45\xdf\xa3\xa3\x42\x86\x81\x01\x42\xf7\x81\x01",
        ),
    ] {
        let begun = Instant::now();
        let failure = decode("no-clip.mp4", bytes).expect_err(what);
        assert!(
            matches!(
                failure.code,
                FailureCode::UnsupportedType | FailureCode::Undecodable
            ),
            "{what}: {failure:?}"
        );
        assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
    }
}

#[test]
fn cut_clips_end() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    for (name, codecs) in [
        ("cut.mp4", format!("{H264} -c:a aac -movflags +faststart")),
        ("cut.mkv", format!("{H264} -c:a aac")),
        ("cut.ts", format!("{H264} -c:a aac")),
        ("cut.avi", "-c:v mpeg4 -c:a libmp3lame".into()),
    ] {
        let whole = clips::clip(name, &format!("{VIDEO} {AUDIO} {codecs} -shortest"));
        let whole = fs::read(whole).expect("a clip");
        for share in [10, 50, 95] {
            let cut = &whole[..whole.len() * share / 100];
            match decode(&format!("short-{name}"), cut) {
                Ok(facts) => {
                    assert!(facts.video_track().is_some() || facts.audio_track().is_some())
                }
                Err(failure) => assert_ne!(failure.code, FailureCode::Internal, "{name} {share}"),
            }
        }
    }
}

#[test]
fn chains_that_break_off_end() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let one = clips::chain("broken-chain.opus", &["-c:a libopus"]);
    let one = fs::read(one).expect("a clip");
    let other = clips::chain("broken-chain.ogg", &["-c:a libvorbis", "-c:a flac"]);
    let other = fs::read(other).expect("a clip");
    let unknown: Vec<u8> = [&other[..], &one[..]].concat();
    // The header of the Opus stream, whose checksum does not hold then.
    let place = other.len() + 28;
    let unknown = [&unknown[..place], b"Unknown!", &unknown[place + 8..]].concat();
    for (name, bytes) in [
        ("unknown", unknown),
        ("header", [&other[..], &one[..60]].concat()),
        ("tags", [&other[..], &one[..200]].concat()),
        ("audio", [&other[..], &one[..one.len() / 2]].concat()),
        (
            "damaged",
            [&other[..], &one[..300], &[0; 5_000], &one[300..]].concat(),
        ),
    ] {
        let begun = Instant::now();
        if let Err(failure) = decode(&format!("broken-{name}.ogg"), &bytes) {
            assert_ne!(failure.code, FailureCode::Internal, "{name}: {failure}");
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{name}");
    }
}

#[test]
fn tracks_without_content_are_refused() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    for (name, codecs) in [
        ("empty.mp4", format!("{H264} -c:a aac")),
        ("empty.mkv", format!("{H264} -c:a aac")),
        ("empty.wav", "-map 1 -c:a pcm_s16le".into()),
    ] {
        let clip = clips::clip(name, &format!("{VIDEO} {AUDIO} {codecs} -t 0"));
        let begun = Instant::now();
        if let Err(failure) = decode("nothing.bin", &fs::read(clip).expect("a clip")) {
            assert_ne!(failure.code, FailureCode::Internal, "{name}: {failure}");
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "{name}");
    }
}

#[test]
fn a_day_of_silence_is_probed() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let silence = clips::clip(
        "day.flac",
        "-f lavfi -i anullsrc=sample_rate=1000:channel_layout=mono -t 86400 -c:a flac -frame_size 65535",
    );
    let input = clips::input(&silence);
    let failure = probe(&input, &LIMITS).expect_err("a day is longer than half of it");
    assert_eq!(failure.code, FailureCode::TooLarge);
    assert!(failure.message.contains("86400 seconds"), "{failure:?}");
}

/// Input of a child: the clip, and the number of its first mutation.
const MUTATED_CLIP: &str = "SLUICE_TEST_MUTATED_CLIP";
const FIRST_MUTATION: &str = "SLUICE_TEST_FIRST_MUTATION";
const MUTATIONS: u64 = 12;
/// After which a service would have ended the process.
const STALL: Duration = Duration::from_secs(15);

/// In the service a process that dies or hangs is ended, and costs no other anything; it must be rare.
#[test]
fn mutated_clips_end() {
    if !clips::can_be_made() {
        return;
    }
    clips::start();
    let mut lost = Vec::new();
    for (name, codecs) in [
        ("mutated.mp4", format!("{H264} -c:a aac")),
        ("mutated.mkv", format!("{H264} -c:a libopus")),
        ("mutated.ts", format!("{H264} -c:a aac")),
        ("mutated.avi", "-c:v mpeg4 -c:a libmp3lame".into()),
    ] {
        let clip = clips::clip(name, &format!("{VIDEO} {AUDIO} {codecs} -shortest"));
        let mut next = 0;
        while next < MUTATIONS {
            match decode_in_a_child(&clip, next) {
                None => break,
                Some(victim) => {
                    lost.push((name, victim));
                    next = victim + 1;
                }
            }
        }
    }
    assert!(lost.len() <= 2, "these end their process: {lost:?}");
}

/// Decodes mutations from that on; the one that ended the child.
fn decode_in_a_child(clip: &Path, first: u64) -> Option<u64> {
    let output = Command::new(env::current_exe().expect("a program"))
        .args([
            "--exact",
            "hostile::mutations_in_a_child",
            "--ignored",
            "--nocapture",
        ])
        .env(MUTATED_CLIP, clip)
        .env(FIRST_MUTATION, first.to_string())
        .output()
        .expect("a child");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(!printed.contains("internal: "), "{clip:?}: {printed}");
    if output.status.success() {
        assert!(printed.contains("1 passed"), "{printed}");
        return None;
    }
    let mut begun = printed
        .lines()
        .filter_map(|line| line.strip_prefix("mutation "));
    let last = begun.next_back().and_then(|number| number.parse().ok());
    Some(last.unwrap_or_else(|| panic!("{clip:?}: {printed}")))
}

#[test]
#[ignore = "runs in a process of its own, for another test"]
fn mutations_in_a_child() {
    clips::start();
    let clip = env::var_os(MUTATED_CLIP).expect("a clip");
    let first = env::var(FIRST_MUTATION).expect("a number");
    let whole = fs::read(clip).expect("a clip");
    for number in first.parse().expect("a number")..MUTATIONS {
        print(&format!("\nmutation {number}"));
        let (done, waits) = mpsc::channel::<()>();
        thread::spawn(move || {
            if waits.recv_timeout(STALL) == Err(RecvTimeoutError::Timeout) {
                process::abort();
            }
        });
        if let Err(failure) = decode("mutation.bin", &mutated(&whole, number)) {
            let is_internal = failure.code == FailureCode::Internal;
            let kind = if is_internal { "internal" } else { "refused" };
            print(&format!("{kind}: {failure}"));
        }
        drop(done);
    }
}

/// For anyone who started this process; it is there even when the next step ends it.
fn print(line: &str) {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")
        .and_then(|()| out.flush())
        .expect("someone reads");
}

/// A few bytes changed, or a stretch of them made zero; the same for the same number.
fn mutated(whole: &[u8], number: u64) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |bound: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % bound
    };
    if number % 4 == 3 {
        let start = below(bytes.len());
        let end = (start + 200).min(bytes.len());
        bytes[start..end].fill(0);
    }
    for _ in 0..=number % 12 {
        // Every other one near the beginning, where headers are.
        let bound = if number.is_multiple_of(2) {
            bytes.len()
        } else {
            bytes.len().min(1_500)
        };
        let place = below(bound);
        bytes[place] ^= 1 << below(8);
    }
    bytes
}
