//! Pulls from a real RTSP server (GStreamer's), with an authorizer that only records.

use std::{net::SocketAddr, process::Stdio, sync::Arc, time::Duration};

use parking_lot::Mutex;
use sluice_ingest::{
    publish::{
        Closed, Ended, PublishAuthorizer, PublishRequest, PublishSession, Rejection, SessionReport,
    },
    rtsp::{Failure, Orders, RtspSettings, RtspSource, RtspTransport, pull},
};
use sluice_media::{
    codec::{AudioCodec, VideoCodec},
    unit::Unit,
};
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    net::{TcpListener, TcpStream},
    process::{Child, Command},
    sync::Notify,
};
use tokio_util::sync::CancellationToken;
use url::Url;

const DEADLINE: Duration = Duration::from_secs(60);
const VIDEO: &str =
    "videotestsrc is-live=true ! video/x-raw,format=I420,width=320,height=180,framerate=30/1";
const AUDIO: &str = "audiotestsrc is-live=true ! audio/x-raw,rate=48000,channels=2";

struct Server {
    child: Child,
    port: u16,
}

impl Server {
    async fn start(protocols: &str, launch: &str, login: &str) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/rtsp/serve.py");
        let mut child = Command::new("/usr/bin/python3")
            .args([script, protocols, launch])
            .env("RTSP_LOGIN", login)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("python3 starts");
        let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = tokio::time::timeout(DEADLINE, said.next_line()).await;
        let line = line.expect("it starts in time").unwrap();
        let line = line.expect("GStreamer's RTSP server is installed (scripts/install.sh test)");
        let port = line.trim().parse().unwrap();
        Self { child, port }
    }

    fn source(&self, credentials: Option<(&str, &str)>) -> RtspSource {
        let url = format!("rtsp://127.0.0.1:{}/stream", self.port);
        RtspSource {
            url: Url::parse(&url).unwrap(),
            credentials: credentials.map(|(name, word)| (name.to_owned(), word.to_owned())),
            remote: SocketAddr::from(([127, 0, 0, 1], self.port)),
        }
    }

    async fn line(&self) -> TcpStream {
        TcpStream::connect(("127.0.0.1", self.port)).await.unwrap()
    }
}

/// Records of what a publisher delivered.
#[derive(Debug, Default)]
struct Notes {
    units: Vec<Unit>,
    report: SessionReport,
    ended: Option<Ended>,
}

impl Notes {
    /// Returns of each frame the decode time and the composition offset.
    fn times(&self) -> Vec<(i64, i32)> {
        let times = self.units.iter().filter_map(|unit| match unit {
            Unit::Video(video_frame) => Some((video_frame.dts_90k, video_frame.cts_90k)),
            _ => None,
        });
        times.collect()
    }
}

#[derive(Clone, Default)]
struct RecordingAuthorizer {
    notes: Arc<Mutex<Notes>>,
    changed: Arc<Notify>,
}

impl RecordingAuthorizer {
    /// Waits until enough frames came.
    async fn video_frames(&self, count: usize) {
        loop {
            let video_frames = |unit: &&Unit| matches!(unit, Unit::Video(_));
            if self.notes.lock().units.iter().filter(video_frames).count() >= count {
                return;
            }
            self.changed.notified().await;
        }
    }
}

impl PublishAuthorizer for RecordingAuthorizer {
    type Session = RecordingAuthorizer;

    async fn admit(&self, _: PublishRequest) -> Result<Self, Rejection> {
        Ok(self.clone())
    }
}

impl PublishSession for RecordingAuthorizer {
    async fn deliver(&mut self, units: &mut Vec<Unit>) -> Result<(), Closed> {
        self.notes.lock().units.append(units);
        self.changed.notify_one();
        Ok(())
    }

    fn report(&mut self, report: SessionReport) {
        self.notes.lock().report = report;
    }

    async fn closed(&self) -> Closed {
        std::future::pending().await
    }

    async fn end(self, how: Ended) {
        self.notes.lock().ended = Some(how);
    }
}

fn orders() -> Orders {
    Orders {
        stop: CancellationToken::new(),
        over: CancellationToken::new(),
    }
}

/// Pulls until the given number of frames arrived.
async fn pulled(
    source: RtspSource,
    transport: RtspTransport<TcpStream>,
    video_frames: usize,
) -> Result<Notes, Failure> {
    let (authorizer, settings, orders) = (
        RecordingAuthorizer::default(),
        RtspSettings::default(),
        orders(),
    );
    let enough = async {
        authorizer.video_frames(video_frames).await;
        orders.over.cancel();
        std::future::pending::<()>().await;
    };
    let pulling = pull(source, transport, &settings, &authorizer, &orders);
    let ended = tokio::select! {
        ended = tokio::time::timeout(DEADLINE, pulling) => ended.expect("in time"),
        () = enough => unreachable!("it waits for the pull"),
    };
    ended?;
    let notes = std::mem::take(&mut *authorizer.notes.lock());
    assert_eq!(notes.ended, Some(Ended::Clean));
    Ok(notes)
}

/// Decode times grow, and no frame is decoded after it is shown; returns how many are shown out of order.
fn check_times(notes: &Notes) -> usize {
    let times = notes.times();
    for pair in times.windows(2) {
        assert!(pair[0].0 < pair[1].0, "{times:?}");
    }
    assert!(times.iter().all(|(_, cts_90k)| *cts_90k >= 0), "{times:?}");
    times.iter().filter(|(_, cts_90k)| *cts_90k > 0).count()
}

fn codecs(notes: &Notes) -> (Option<VideoCodec>, Option<AudioCodec>) {
    let video = notes.units.iter().find_map(|unit| match unit {
        Unit::VideoConfig(config) => Some(config.codec),
        _ => None,
    });
    let audio = notes.units.iter().find_map(|unit| match unit {
        Unit::AudioConfig(config) => Some(config.codec),
        _ => None,
    });
    (video, audio)
}

#[tokio::test]
async fn h264_with_b_frames_and_aac_over_tcp() {
    let launch = format!(
        "( {VIDEO} ! x264enc bframes=3 b-adapt=false b-pyramid=true ref=4 key-int-max=30 speed-preset=veryfast ! \
         video/x-h264,profile=main ! h264parse ! rtph264pay name=pay0 pt=96 config-interval=-1 {AUDIO} ! avenc_aac ! rtpmp4gpay name=pay1 pt=97 )"
    );
    let server = Server::start("tcp", &launch, "").await;
    let transport = RtspTransport::Tcp(server.line().await);
    let notes = pulled(server.source(None), transport, 90).await.unwrap();
    let expected = (Some(VideoCodec::Avc), Some(AudioCodec::Aac));
    assert_eq!(codecs(&notes), expected);
    let reordered = check_times(&notes);
    assert!(reordered > 30, "{reordered} of {:?}", notes.times());
    assert_eq!(notes.report.damaged, 0, "{:?}", notes.report);
}

/// Audio that is not set up has no sink in the server: `errorignore` keeps that error from ending the whole pipeline.
#[tokio::test]
async fn hevc_over_udp_with_other_audio_left_out() {
    let launch = format!(
        "( {VIDEO} ! x265enc key-int-max=30 speed-preset=ultrafast tune=zerolatency ! \
         rtph265pay name=pay0 pt=96 config-interval=-1 {AUDIO} ! audioresample ! audioconvert ! \
         audio/x-raw,rate=8000,channels=1 ! alawenc ! errorignore ignore-notlinked=true convert-to=ok ! rtppcmapay name=pay1 pt=8 )"
    );
    let server = Server::start("udp", &launch, "").await;
    let over_tcp = pulled(
        server.source(None),
        RtspTransport::Tcp(server.line().await),
        1,
    )
    .await;
    assert!(matches!(over_tcp, Err(Failure::WantsUdp)), "{over_tcp:?}");

    let notes = pulled(server.source(None), RtspTransport::Udp, 60)
        .await
        .unwrap();
    assert_eq!(codecs(&notes), (Some(VideoCodec::Hevc), None));
    check_times(&notes);
    let words = "audio codec PCMA is not carried: choose AAC";
    assert_eq!(notes.report.last_damage.as_deref(), Some(words));
}

#[tokio::test]
async fn a_password_is_asked_for() {
    let launch = format!(
        "( {VIDEO} ! x264enc tune=zerolatency speed-preset=ultrafast key-int-max=30 ! rtph264pay name=pay0 pt=96 )"
    );
    let server = Server::start("tcp", &launch, "cam:secret").await;
    let source = server.source(Some(("cam", "secret")));
    let notes = pulled(source, RtspTransport::Tcp(server.line().await), 10)
        .await
        .unwrap();
    assert_eq!(codecs(&notes), (Some(VideoCodec::Avc), None));

    let source = server.source(Some(("cam", "wrong")));
    let refused = pulled(source, RtspTransport::Tcp(server.line().await), 1).await;
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("user name and password"), "{error}");
}

#[tokio::test]
async fn a_source_that_dies_is_noticed() {
    let launch = format!(
        "( {VIDEO} ! x264enc tune=zerolatency speed-preset=ultrafast ! rtph264pay name=pay0 pt=96 )"
    );
    let mut server = Server::start("tcp", &launch, "").await;
    let (authorizer, settings, orders) = (
        RecordingAuthorizer::default(),
        RtspSettings::default(),
        orders(),
    );
    let transport = RtspTransport::Tcp(server.line().await);
    let kill = async {
        authorizer.video_frames(20).await;
        server.child.kill().await.unwrap();
        std::future::pending::<()>().await;
    };
    let source = server_source(server.port);
    tokio::select! {
        ended = tokio::time::timeout(DEADLINE, pull(source, transport, &settings, &authorizer, &orders)) => {
            let _ = ended.expect("it ends");
        }
        () = kill => unreachable!("it waits for the pull"),
    }
    assert_eq!(authorizer.notes.lock().ended, Some(Ended::Dropped));
}

fn server_source(port: u16) -> RtspSource {
    RtspSource {
        url: Url::parse(&format!("rtsp://127.0.0.1:{port}/stream")).unwrap(),
        credentials: None,
        remote: SocketAddr::from(([127, 0, 0, 1], port)),
    }
}

#[tokio::test]
async fn hostile_answers_end_the_pull() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\n\r\n"[..],
        b"RTSP/1.0 200 OK\r\nContent-Length: 9999999999\r\n\r\n",
        b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Type: application/sdp\r\nContent-Length: 4\r\n\r\nv=9\n",
        b"$\x00\xff\xff",
        b"",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let line = TcpStream::connect(address).await.unwrap();
        let (mut peer, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut peer, answer).await.unwrap();
        tokio::io::AsyncWriteExt::shutdown(&mut peer).await.unwrap();
        let ended = pulled(server_source(address.port()), RtspTransport::Tcp(line), 1).await;
        assert!(ended.is_err(), "{answer:?}");
    }
}
