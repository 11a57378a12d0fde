//! Clips that no one should send: each costs its sender a typed error, at most one process, and no other anything.

use std::{io, net::TcpListener, time::Duration};

use super::nothing_is_left;
use crate::{
    events::all_events,
    support::{
        Failure,
        clips::clip,
        dice::{Dice, seed},
        neighbour::Neighbour,
        server::{Api, Form, Server, Settings},
    },
};

/// A hanging task is ended soon.
const STALL: &str = "15s";
const SETTLED_WITHIN: Duration = Duration::from_secs(30);
/// Mutations of each container; `SLUICE_TEST_MUTATIONS` sets another number, for long runs.
const MUTATIONS: usize = 6;
/// Packet of a transport stream, in bytes (ISO/IEC 13818-1 §2.4.3.2).
const PACKET: usize = 188;

async fn guarded() -> Result<Server, Failure> {
    Settings::new()
        .env("SLUICE_AV_WORKERS__STALL", STALL)
        .env("SLUICE_CONVERT__INLINE_WAIT", "80s")
        .start()
        .await
}

fn made(name: &str, arguments: &str) -> Result<Vec<u8>, Failure> {
    Ok(std::fs::read(clip(name, arguments)?)?)
}

/// Audio clips of the containers that are spoilt here.
fn audio() -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    Ok(vec![
        ("a.mp4", made("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?),
        (
            "a.mkv",
            made("bframes.mkv", "VIDEO AUDIO H264 -bf 2 -c:a libvorbis")?,
        ),
        (
            "a.avi",
            made("old.avi", "VIDEO AUDIO -c:v mpeg4 -c:a libmp3lame")?,
        ),
        (
            "a.ts",
            made("broadcast.ts", "VIDEO AUDIO H264 -bf 2 -c:a aac")?,
        ),
    ])
}

fn cut(bytes: &[u8], percent: usize) -> Vec<u8> {
    bytes[..bytes.len() * percent / 100].to_vec()
}

/// Replaces every `from` by `to`, which has the same length.
fn replaced(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len().saturating_sub(from.len()) {
        if bytes[at..].starts_with(from) {
            bytes[at..at + to.len()].copy_from_slice(to);
        }
    }
    bytes
}

/// A file, and the statuses that it may get.
type Case = (&'static str, Vec<u8>, &'static [u16]);

fn cases() -> Result<Vec<Case>, Failure> {
    const DAMAGED: &[u16] = &[415, 422];
    let [mp4, mkv, avi, ts] = &audio()?[..] else {
        unreachable!("four are made");
    };
    let fast = made("fast.mp4", "VIDEO AUDIO H264 -c:a aac -movflags +faststart")?;
    let mut moov = b"\0\0\0\x14ftypisom\0\0\0\0isom".to_vec();
    moov.extend(2_000_000_000_u32.to_be_bytes());
    moov.extend(b"moov");
    moov.extend([0; 64]);
    // AVIMAINHEADER and BITMAPINFOHEADER say 65 535 instead of 160 and 90 (little endian); the frames know better.
    let size = [&160_u32.to_le_bytes()[..], &90_u32.to_le_bytes()].concat();
    let giant = [&65_535_u32.to_le_bytes()[..], &65_535_u32.to_le_bytes()].concat();
    Ok(vec![
        ("index-lost.mp4", cut(&mp4.1, 60), DAMAGED),
        ("cut.mp4", cut(&fast, 60), DAMAGED),
        ("cut.mkv", cut(&mkv.1, 50), DAMAGED),
        // A transport stream does not state its duration, so the cut is not detected.
        ("cut.ts", cut(&ts.1, 50), &[200]),
        ("cut.avi", cut(&avi.1, 50), &[200, 415, 422]),
        ("head.mp4", fast[..64].to_vec(), DAMAGED),
        (
            "index.avi",
            replaced(&avi.1, b"00dc", b"99zz"),
            // Without its frames it is audio, on which nothing can be written.
            &[400, 415, 422],
        ),
        (
            "giant.avi",
            replaced(&avi.1, &size, &giant),
            &[200, 413, 415, 422],
        ),
        (
            "giant.mkv",
            replaced(
                &made("jpeg.mkv", "VIDEO -c:v mjpeg")?,
                // The frame header of each JPEG: height, then width (ITU-T T.81 §B.2.2).
                b"\0\x5a\0\xa0",
                b"\xff\xff\xff\xff",
            ),
            &[413, 415, 422],
        ),
        (
            "giant.mov",
            replaced(
                &made("jpeg.mov", "VIDEO -c:v mjpeg")?,
                // The sample entry (ISO/IEC 14496-12 §12.1.3): width, then height; each JPEG knows better.
                b"\0\xa0\0\x5a",
                b"\xff\xff\xff\xff",
            ),
            &[200, 413, 415, 422],
        ),
        (
            "wide.mov",
            made(
                "wide.mov",
                "-f lavfi -i color=red:size=65535x2:rate=1:duration=1 -c:v png",
            )?,
            &[413],
        ),
        (
            "empty-tracks.mp4",
            made("empty.mp4", "VIDEO AUDIO H264 -c:a aac -t 0")?,
            DAMAGED,
        ),
        (
            "empty-tracks.mkv",
            made("empty.mkv", "VIDEO AUDIO H264 -c:a aac -t 0")?,
            DAMAGED,
        ),
        ("moov.mp4", moov, DAMAGED),
        (
            "text.mp4",
            b"It was a dark and stormy night; the rain fell in torrents.\n".to_vec(),
            &[415],
        ),
        ("zeros.mp4", vec![0; 4_096], &[415]),
        ("nothing.mp4", Vec::new(), &[400, 415]),
    ])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_clips_fail_in_kind_and_are_reported_once() -> Result<(), Failure> {
    let server = guarded().await?;
    let api = server.api();
    let neighbour = neighbour(&server);
    let mut wrong = Vec::new();
    let mut failures = 0;
    for (name, bytes, allowed) in cases()? {
        // All of it is decoded.
        let form = Form::new()
            .file("file", name, &bytes)
            .fields(&[("text", "x"), ("watermarkWidth", "32")]);
        let answer = api.post_form("/api/media/watermark", form).await?;
        if !allowed.contains(&answer.status.as_u16()) {
            wrong.push(format!("{name}: {}: {}", answer.status, answer.text()));
        } else if let Err(failure) = answer.check_typed() {
            wrong.push(format!("{name}: {failure}"));
        }
        failures += usize::from(answer.status != 200);
        let events = all_events(&api).await?;
        let count = events.iter().filter(|it| it.0 == "media.tool.failed");
        let count = count.count();
        if count != failures {
            wrong.push(format!(
                "{name}: {count} failures are reported of {failures}"
            ));
            failures = count;
        }
    }
    neighbour.leave().await?;
    check_settled(server).await?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_day_of_silence_is_refused_by_its_length() -> Result<(), Failure> {
    let arguments = "-f lavfi -i anullsrc=sample_rate=1000:channel_layout=mono -t 86400 -c:a flac -frame_size 65535";
    let silence = made("day.flac", arguments)?;
    assert!(silence.len() < 300_000, "{}", silence.len());
    let server = guarded().await?;
    let form = Form::new()
        .file("files", "day.flac", &silence)
        .field("format", "wav");
    let answer = server.api().post_form("/api/convert", form).await?;
    let answer = answer.expect(413)?;
    answer.check_typed()?;
    assert!(
        answer.text().contains("av_workers.max_duration"),
        "{}",
        answer.text()
    );
    check_settled(server).await
}

/// One logical stream behind the other (RFC 3533 §4), like recordings of radio.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chained_ogg_does_not_continue_for_ever() -> Result<(), Failure> {
    let chained = [
        made("radio.ogg", "AUDIO -c:a libvorbis")?,
        made("later.ogg", "AUDIO -ar 22050 -c:a libvorbis")?,
    ]
    .concat();
    let server = guarded().await?;
    let form = Form::new()
        .file("files", "chained.ogg", &chained)
        .field("format", "wav");
    let answer = server.api().post_form("/api/convert", form).await?;
    assert!(
        matches!(answer.status.as_u16(), 200 | 415 | 422),
        "{}",
        answer.status
    );
    check_settled(server).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_playlist_by_another_name_reaches_nothing() -> Result<(), Failure> {
    let canary = TcpListener::bind("127.0.0.1:0")?;
    canary.set_nonblocking(true)?;
    let host = canary.local_addr()?;
    let secret = clip("plain.mp4", "VIDEO AUDIO H264 -c:a aac")?;
    let server = guarded().await?;
    let api = server.api();
    for address in [
        format!("http://{host}/a.ts"),
        format!("file://{}", secret.display()),
    ] {
        let lists = [
            format!("#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2,\n{address}\n#EXT-X-ENDLIST\n"),
            format!("#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000\n{address}\n"),
            format!(
                "<?xml version=\"1.0\"?><MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" type=\"static\" \
                 mediaPresentationDuration=\"PT2S\"><Period><AdaptationSet mimeType=\"video/mp4\">\
                 <Representation id=\"1\" bandwidth=\"1\"><BaseURL>{address}</BaseURL></Representation>\
                 </AdaptationSet></Period></MPD>"
            ),
            format!("ffconcat version 1.0\nfile '{address}'\n"),
        ];
        for list in lists {
            for path in ["/api/convert", "/api/media/thumbnail"] {
                let form = Form::new()
                    .file("file", "clip.mp4", list.as_bytes())
                    .field("format", if path.ends_with('t') { "mkv" } else { "png" });
                let answer = api.post_form(path, form).await?.expect(415)?;
                answer.check_typed()?;
                assert!(!answer.text().contains("127.0.0.1"), "{}", answer.text());
            }
        }
    }
    let knocked = canary.accept().map(drop).map_err(|error| error.kind());
    assert_eq!(
        knocked,
        Err(io::ErrorKind::WouldBlock),
        "something connected"
    );
    check_settled(server).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mutated_clips_are_answered_in_kind() -> Result<(), Failure> {
    let server = guarded().await?;
    let api = server.api();
    let neighbour = neighbour(&server);
    let mut wrong = Vec::new();
    let mut dice = Dice::new(seed()? ^ 6);
    let mutations = match std::env::var("SLUICE_TEST_MUTATIONS") {
        Ok(number) => number.parse()?,
        Err(_) => MUTATIONS,
    };
    for (name, bytes) in audio()? {
        for number in 0..mutations {
            let bytes = mutated(&bytes, number, &mut dice);
            let form = Form::new().file("files", name, &bytes);
            let (path, form) = match number % 3 {
                0 => ("/api/compress", form.field("compression", "40")),
                1 => (
                    "/api/convert",
                    form.fields(&[("format", "mp4"), ("compression", "40")]),
                ),
                _ => ("/api/convert", form.field("format", "mkv")),
            };
            let answer = api.post_form(path, form).await?;
            let is_expected = matches!(answer.status.as_u16(), 200 | 413 | 415 | 422);
            if !is_expected || answer.check_typed().is_err() {
                wrong.push(format!(
                    "{name} {number}: {}: {}",
                    answer.status,
                    answer.text()
                ));
            }
        }
    }
    neighbour.leave().await?;
    check_settled(server).await?;
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

/// Headers promise a track that does not decode to its end: what is made of it lacks the track, or cannot be played.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_track_that_turns_to_noise_is_the_files_fault() -> Result<(), Failure> {
    let broadcast = made("broadcast.ts", "VIDEO AUDIO H264 -bf 2 -c:a aac")?;
    let server = guarded().await?;
    let mut dice = Dice::new(9);
    let mut wrong = Vec::new();
    // ffmpeg's packet ids of the tracks: frames, audio.
    for packet_id in [0x100, 0x101] {
        for percent in [2, 5, 10, 25, 50, 75] {
            let bytes = with_noise(&broadcast, packet_id, percent, &mut dice);
            let form = Form::new().file("files", "a.ts", &bytes);
            let form = form.field("compression", "40");
            let answer = server.api().post_form("/api/compress", form).await?;
            let is_expected = matches!(answer.status.as_u16(), 200 | 413 | 415 | 422);
            if !is_expected || answer.check_typed().is_err() {
                let text = answer.text();
                wrong.push(format!(
                    "{packet_id:#x} {percent} %: {}: {text}",
                    answer.status
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    check_settled(server).await
}

/// The payload of a track of a transport stream is noise from a place on.
fn with_noise(whole: &[u8], packet_id: u16, percent: usize, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let start = whole.len() / PACKET * percent / 100;
    for packet in bytes.chunks_exact_mut(PACKET).skip(start) {
        if u16::from_be_bytes([packet[1], packet[2]]) & 0x1fff == packet_id {
            packet[4..].fill_with(|| dice.below(256) as u8);
        }
    }
    bytes
}

/// Some bytes changed, every other time near the beginning, where headers are; of each fourth a stretch is zero, of
/// each fifth packets are lost, doubled and changed for others.
fn mutated(whole: &[u8], number: usize, dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    let mut below = |bound: usize| dice.below(bound as u64) as usize;
    if number % 4 == 3 {
        let start = below(bytes.len());
        let end = (start + 200).min(bytes.len());
        bytes[start..end].fill(0);
    }
    if number % 5 == 4 && bytes.len() > 4 * PACKET {
        for _ in 0..=number % 8 {
            let mut packet = || below(bytes.len() / PACKET - 1) * PACKET;
            let (from, to) = (packet(), packet());
            match below(3) {
                0 => drop(bytes.drain(from..from + PACKET)),
                1 => bytes.copy_within(from..from + PACKET, to),
                _ => {
                    let doubled = bytes[from..from + PACKET].to_vec();
                    bytes.splice(to..to, doubled);
                }
            }
        }
    }
    for _ in 0..=number % 16 {
        let bound = match number % 2 {
            0 => bytes.len().min(4_096),
            _ => bytes.len(),
        };
        bytes[below(bound)] = below(256) as u8;
    }
    bytes
}

/// Checks that no temporary files are left, and the service still serves.
async fn check_settled(mut server: Server) -> Result<(), Failure> {
    nothing_is_left(&server, SETTLED_WITHIN).await?;
    assert!(server.is_running());
    convert_tone(&server.api()).await
}

async fn convert_tone(api: &Api) -> Result<(), Failure> {
    let tone = made("tone.wav", "AUDIO -c:a pcm_s16le")?;
    let (record, _) = api
        .convert("tone.wav", &tone, &[("format", "flac")])
        .await?;
    match record["duration"].as_f64() {
        Some(2.0) => Ok(()),
        _ => Err(format!("not 2 s: {record}").into()),
    }
}

/// A client that converts a good clip.
fn neighbour(server: &Server) -> Neighbour {
    let api = server.api();
    Neighbour::start(move || {
        let api = api.clone();
        async move { convert_tone(&api).await }
    })
}
