//! Units by our multiplexer and our SRT caller to ffmpeg, as a listener.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, UdpSocket},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use bytes::BytesMut;
use sluice_ingest::{
    srt::caller::{CallFailure, CallOptions, Caller},
    ts::mux::Muxer,
};
use sluice_media::unit::Unit;
use tokio::time::{sleep, sleep_until};

use crate::{Demuxed, demux, ffmpeg, remux};

const WITHIN: Duration = Duration::from_secs(20);
/// Query with a latency that suits a busy machine, for late packets are lost.
const QUERY: &str = "passphrase=0123456789abcdef&latency=2000";

/// Ends with the test.
struct Listener(Child);

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// ffmpeg writes what it receives to a file.
fn listener(remote: SocketAddr, written: &Path) -> Listener {
    let from = format!("srt://{remote}?mode=listener&passphrase=0123456789abcdef");
    let child = Command::new("ffmpeg")
        .args(["-hide_banner", "-nostdin", "-y", "-loglevel", "error"])
        .args(["-i", &from, "-map", "0", "-c", "copy", "-f", "mpegts"])
        .arg(written)
        .stdin(Stdio::null())
        // It calls every end of a connection an error.
        .stderr(Stdio::null())
        .spawn()
        .expect("ffmpeg starts");
    Listener(child)
}

/// Calls until the listener answers.
async fn call(remote: SocketAddr) -> Caller {
    let end = Instant::now() + WITHIN;
    loop {
        let options = CallOptions::parse(QUERY).unwrap();
        match Caller::connect(remote, options, WITHIN).await {
            Err(CallFailure::PortClosed) if Instant::now() < end => {
                sleep(Duration::from_millis(20)).await;
            }
            called => return called.unwrap(),
        }
    }
}

/// Sends as an encoder does: each unit at its time.
async fn send(caller: &mut Caller, demuxed: &Demuxed) {
    let mut muxer = Muxer::new();
    let (video, audio) = (&demuxed.video_configs[0], &demuxed.audio_configs[0]);
    muxer.configure(Some(video), Some(audio)).unwrap();
    let start = tokio::time::Instant::now();
    let mut first_90k = None;
    let mut packets = BytesMut::new();
    for unit in remux::interleaved(demuxed) {
        let time_90k = match &unit {
            Unit::Video(it) => it.dts_90k,
            Unit::Audio(it) => it.pts_90k,
            Unit::VideoConfig(_) | Unit::AudioConfig(_) => continue,
        };
        let passed_90k = time_90k - *first_90k.get_or_insert(time_90k);
        let passed = Duration::from_micros(passed_90k.unsigned_abs() * 100 / 9);
        sleep_until(start + passed).await;
        muxer.push(&unit, &mut packets).unwrap();
        caller.send(packets.split().freeze()).await.unwrap();
    }
}

#[tokio::test]
async fn ffmpeg_receives_every_frame() {
    let folder = tempfile::tempdir().unwrap();
    let options = "-c:v libx264 -preset ultrafast -bf 2 -g 30 -c:a aac";
    let original = ffmpeg::stream(folder.path(), options);
    let demuxed = demux(&fs::read(&original).unwrap(), 1316);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let remote = socket.local_addr().unwrap();
    drop(socket);

    let written = folder.path().join("received.ts");
    let mut listener = listener(remote, &written);
    let mut caller = call(remote).await;
    send(&mut caller, &demuxed).await;
    caller.close().await;
    let ended = async {
        while listener.0.try_wait().unwrap().is_none() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(WITHIN, ended).await.unwrap();

    let (sent, received) = (
        ffmpeg::decoded_video_frames(&original),
        ffmpeg::decoded_video_frames(&written),
    );
    assert_eq!(received.len(), sent.len());
    assert_eq!(received, sent);
    let audio_packets = ffmpeg::packets(&written, "a").len();
    assert_eq!(audio_packets, demuxed.frames.len());
}
