//! WebRTC in the service, with real inputs and a gateway that is a task at the other end of its socket.

use std::{path::Path, time::Duration};

use bytes::{Bytes, BytesMut};
use sluice_ingest::{
    publish::{Ended, PublishSession as _},
    webrtc::message::{
        AudioFrame, CloseReason, FeedId, FromGateway, GoneReason, OfferError, Role, SessionId,
        SessionStatistics, ToGateway, Transport, VideoCodecs, VideoFrame,
    },
};
use sluice_media::{
    codec::{AudioCodec, AudioConfig, VideoCodec, VideoConfig},
    unit::{AudioUnit, Unit, VideoUnit},
};
use sluice_store::{FirstCredentials, now_ms};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::UnixStream,
    task::JoinHandle,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{
    component::ComponentStatuses,
    compute::Sandbox,
    live::{
        LivePort as _, LiveSession, LiveSettings, Phase,
        tests::{Service, eventually, start_with, stream},
    },
    metric::{MetricValue, Sample},
};

/// x264's constrained baseline, which never reorders.
const AVCC: &[u8] = b"\x01\x42\xc0\x1e\xff\xe1\0\x17\x67\x42\xc0\x1e\xda\x02\x80\xbf\xe5\xc0\x44\0\0\x0f\xa4\0\x03\xa9\x80\x3c\x58\xba\x80\x01\0\x04\x68\xce\x0f\xc8";
const OPUS_HEAD: &[u8] = b"OpusHead\x01\x02\x38\x01\x80\xbb\0\0\0\0\0";
const FRAME_90K: i64 = 3_000;
const KEY_EVERY: i64 = 30;
/// Longest wait for a message of the service.
const DEADLINE: Duration = Duration::from_secs(10);

struct Site {
    service: Service,
    first: FirstCredentials,
    webrtc: WebRtc,
    gateway: FakeGateway,
    serving: JoinHandle<()>,
    _dir: tempfile::TempDir,
}

/// The gateway's end of the socket.
struct FakeGateway {
    socket: UnixStream,
    input: BytesMut,
    media: Vec<ToGateway>,
}

impl FakeGateway {
    async fn next(&mut self) -> Option<ToGateway> {
        loop {
            if let Some(message) = ToGateway::decode(&mut self.input).unwrap() {
                return Some(message);
            }
            if self.socket.read_buf(&mut self.input).await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// Returns the next order; media before it are kept.
    async fn order(&mut self) -> ToGateway {
        let next = async {
            loop {
                match self.next().await.expect("the service holds its socket") {
                    media @ (ToGateway::Video(_) | ToGateway::Audio(_)) => self.media.push(media),
                    order => return order,
                }
            }
        };
        timeout(DEADLINE, next).await.expect("an order")
    }

    /// Returns the next video frame, of those that were kept first.
    async fn video(&mut self) -> VideoFrame {
        let next = async {
            loop {
                let message = match self.media.is_empty() {
                    false => self.media.remove(0),
                    true => self.next().await.expect("the service holds its socket"),
                };
                if let ToGateway::Video(frame) = message {
                    return frame;
                }
            }
        };
        timeout(DEADLINE, next).await.expect("a frame")
    }

    async fn report(&mut self, report: FromGateway) {
        let mut bytes = Vec::new();
        report.encode(&mut bytes);
        self.socket.write_all(&bytes).await.unwrap();
    }

    /// Takes an offer and answers it.
    async fn answer(&mut self, video: &[VideoCodec]) -> SessionId {
        let order = self.order().await;
        let ToGateway::Offer { session, sdp, .. } = order else {
            panic!("{order:?}");
        };
        assert_eq!(sdp, "offer");
        let video: VideoCodecs = video.iter().copied().collect();
        self.report(FromGateway::Answered {
            session,
            video,
            audio: true,
            sdp: "answer".into(),
        })
        .await;
        session
    }

    async fn connect(&mut self, session: SessionId) {
        self.report(FromGateway::Connected {
            session,
            transport: Transport::Udp,
            remote: ([10, 0, 0, 9], 50_000).into(),
            after_ms: 70,
        })
        .await;
    }

    async fn attached(&mut self, of: SessionId) -> (Option<FeedId>, Option<FeedId>) {
        match self.order().await {
            ToGateway::Attach {
                session,
                video,
                audio,
            } if session == of => (video, audio),
            other => panic!("{other:?}"),
        }
    }

    async fn closed(&mut self, of: SessionId) -> CloseReason {
        match self.order().await {
            ToGateway::Close { session, reason } if session == of => reason,
            other => panic!("{other:?}"),
        }
    }
}

impl Site {
    async fn start(change: impl FnOnce(&mut WebRtcSettings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        // A publisher counts as sending also where the machine pauses for seconds.
        let live_settings = LiveSettings {
            fresh_for: Duration::from_secs(60),
            ..LiveSettings::default()
        };
        let (service, first) = start_with(dir.path(), live_settings).await;
        let mut settings = WebRtcSettings {
            listen: ([127, 0, 0, 1], 0).into(),
            tcp_listen: Some(([127, 0, 0, 1], 0).into()),
            ..WebRtcSettings::default()
        };
        change(&mut settings);
        let sockets = Sockets::bind(&settings).await.unwrap();
        let context = WebRtcContext {
            directory: service.live.directory.clone(),
            authorizer: service.authorizer.clone(),
            host: GatewayHost {
                program: Path::new("/nonexistent").into(),
                sandbox: Sandbox::BestEffort,
                component_statuses: ComponentStatuses::default(),
                stop: CancellationToken::new(),
            },
            branches: None,
            sessions: TaskTracker::new(),
        };
        let webrtc = WebRtc::new(Arc::new(settings), sockets, context);
        let (gateway, serving) = run_gateway(&webrtc).await;
        Self {
            service,
            first: first.unwrap(),
            webrtc,
            gateway,
            serving,
            _dir: dir,
        }
    }

    /// Opens a publisher's session; returns its number and its name.
    async fn publish(&mut self) -> (SessionId, String) {
        let (answer, session) = tokio::join!(
            self.webrtc.publish(publisher(&stream(&self.first), 2)),
            self.gateway.answer(&[VideoCodec::Avc])
        );
        (session, answer.unwrap().session)
    }

    fn playback(&self) -> Arc<Playback> {
        self.service.playback(&self.first)
    }

    fn viewer(&self, octet: u8) -> ViewerOffer {
        ViewerOffer {
            offer: offer(octet),
            playback: self.playback(),
            until_ms: None,
            has_permission: false,
        }
    }

    /// Opens a viewer's session that is not connected yet.
    async fn open(&mut self, viewer: ViewerOffer) -> (SessionId, String) {
        let (answer, session) = tokio::join!(
            self.webrtc.play(viewer),
            self.gateway.answer(&[VideoCodec::Avc])
        );
        let answer = answer.unwrap();
        assert_eq!(answer.sdp, "answer");
        (session, answer.session)
    }

    /// Opens a viewer's session and connects it.
    async fn watch(&mut self, viewer: ViewerOffer) -> (SessionId, String) {
        let playback = self.playback();
        let before = playback.webrtc().count();
        let (session, name) = self.open(viewer).await;
        self.gateway.connect(session).await;
        eventually("the viewer counts", || {
            playback.webrtc().count() == before + 1
        })
        .await;
        (session, name)
    }

    async fn on_air(&self) -> LiveSession {
        let mut session = self.service.publish(&self.first, 1).await;
        send(&mut session, 0..5).await;
        let playback = self.playback();
        eventually("it is on air", || !playback.is_idle()).await;
        session
    }

    async fn stop(self) {
        drop(self.gateway);
        self.serving.await.unwrap();
        self.service.stop().await;
    }
}

async fn run_gateway(webrtc: &WebRtc) -> (FakeGateway, JoinHandle<()>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let gateway = webrtc.0.clone().unwrap();
    let control = gateway.control.clone();
    let serving = tokio::spawn(async move {
        let _ = gateway.serve(ours).await;
    });
    let mut fake = FakeGateway {
        socket: theirs,
        input: BytesMut::new(),
        media: Vec::new(),
    };
    fake.report(FromGateway::Ready).await;
    eventually("the gateway is ready", || control.is_running()).await;
    (fake, serving)
}

fn offer(octet: u8) -> Offer {
    Offer {
        sdp: "offer".into(),
        reached_at: vec![[192, 0, 2, 1].into()],
        remote: ([10, 0, 0, octet], 40_000).into(),
    }
}

fn video_frame(index: i64) -> Unit {
    let key = index % KEY_EVERY == 0;
    let data: &'static [u8] = match key {
        true => b"\0\0\0\x03\x65\x88\x80",
        false => b"\0\0\0\x03\x41\x9a\x80",
    };
    Unit::Video(VideoUnit {
        dts_90k: index * FRAME_90K,
        cts_90k: 0,
        key,
        data: Bytes::from_static(data),
    })
}

/// Sends configurations and frames of both tracks.
async fn send(session: &mut LiveSession, range: std::ops::Range<i64>) {
    let video = VideoConfig::parse(VideoCodec::Avc, Bytes::from_static(AVCC)).unwrap();
    let audio = AudioConfig::parse(AudioCodec::Opus, Bytes::from_static(OPUS_HEAD)).unwrap();
    let mut units = vec![
        Unit::VideoConfig(Arc::new(video)),
        Unit::AudioConfig(Arc::new(audio)),
    ];
    for index in range {
        units.push(video_frame(index));
        units.push(Unit::Audio(AudioUnit {
            pts_90k: index * FRAME_90K,
            data: Bytes::from_static(&[0xf8, 0xff, 0xfe]),
        }));
        session.deliver(&mut units).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_is_sent_the_open_group_and_what_follows() {
    let mut site = Site::start(|_| {}).await;
    let mut encoder = site.on_air().await;
    let (session, name) = site.watch(site.viewer(2)).await;
    let (video, audio) = site.gateway.attached(session).await;
    assert!(video.is_some() && audio.is_some() && video != audio);
    send(&mut encoder, 5..40).await;
    let mut last_90k = i64::MIN;
    for index in 0..40 {
        let frame = site.gateway.video().await;
        assert_eq!((Some(frame.of), frame.codec), (video, VideoCodec::Avc));
        assert_eq!(frame.key, index % KEY_EVERY == 0, "{index}");
        assert!(frame.pts_90k > last_90k && frame.wallclock_us > 0);
        last_90k = frame.pts_90k;
        if frame.key {
            assert_eq!(
                frame.data[..5],
                [0, 0, 0, 0x17, 0x67],
                "parameter sets first"
            );
        }
    }
    let playback = site.playback();
    assert_eq!(playback.viewers(now_ms()), 1);
    assert!(site.webrtc.is_known(&name) && name.len() == 32);
    assert!(site.webrtc.end(&name));
    assert_eq!(site.gateway.closed(session).await, CloseReason::Asked);
    assert_eq!(playback.webrtc().count(), 0);
    assert!(site.webrtc.is_known(&name), "known for a minute");
    assert!(site.webrtc.end(&name) && !site.webrtc.end("unknown"));
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_are_rejected_by_the_gateway_the_bounds_and_without_a_broadcast() {
    let mut site = Site::start(|settings| {
        settings.max_pending_per_address = 1;
        settings.max_sessions = 2;
    })
    .await;
    let nothing = site.webrtc.play(site.viewer(2)).await;
    assert!(matches!(nothing, Err(WebRtcError::NotOnAir)), "{nothing:?}");
    let _encoder = site.on_air().await;

    let rejecting = async {
        let ToGateway::Offer {
            session,
            role,
            candidates,
            ..
        } = site.gateway.order().await
        else {
            panic!("no offer");
        };
        assert_eq!((role, candidates.len()), (Role::Viewer, 1));
        let (reason, detail) = (OfferError::NoCommonCodec, "VP8".to_owned());
        let rejected = FromGateway::Rejected {
            session,
            reason,
            detail,
        };
        site.gateway.report(rejected).await;
    };
    let viewer = ViewerOffer {
        offer: offer(2),
        playback: site.service.playback(&site.first),
        until_ms: None,
        has_permission: false,
    };
    let (rejected, ()) = tokio::join!(site.webrtc.play(viewer), rejecting);
    assert!(matches!(rejected, Err(WebRtcError::NoCommonCodec(codec)) if codec == "VP8"));

    let (first, _) = site.open(site.viewer(2)).await;
    let same_address = site.webrtc.play(site.viewer(2)).await;
    assert!(
        matches!(same_address, Err(WebRtcError::TooManyPending)),
        "{same_address:?}"
    );
    site.open(site.viewer(3)).await;
    let beyond = site.webrtc.play(site.viewer(4)).await;
    assert!(matches!(beyond, Err(WebRtcError::Full)), "{beyond:?}");

    let gone = FromGateway::Gone {
        session: first,
        reason: GoneReason::Unreachable,
    };
    site.gateway.report(gone).await;
    let playback = site.playback();
    eventually("an unreachable port is noted", || {
        playback.webrtc().health(now_ms()).unreachable == 1
    })
    .await;
    // The bounds have room again.
    site.open(site.viewer(2)).await;
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_ends_with_its_permission() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let expiring = ViewerOffer {
        until_ms: Some(now_ms() + 300),
        has_permission: true,
        ..site.viewer(2)
    };
    let (session, _) = site.watch(expiring).await;
    site.gateway.attached(session).await;
    assert_eq!(site.gateway.closed(session).await, CloseReason::Forbidden);

    let permitted = ViewerOffer {
        has_permission: true,
        ..site.viewer(3)
    };
    let (permitted, _) = site.watch(permitted).await;
    site.gateway.attached(permitted).await;
    let (open, _) = site.watch(site.viewer(4)).await;
    site.gateway.attached(open).await;
    let mut row = site.first.live_input.clone();
    row.require_signed_playback = true;
    site.service.live.changed(row.clone()).await.unwrap();
    assert_eq!(site.gateway.closed(open).await, CloseReason::Forbidden);

    row.enabled = false;
    site.service.live.changed(row).await.unwrap();
    assert_eq!(site.gateway.closed(permitted).await, CloseReason::Forbidden);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_input_has_no_viewers() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let (session, _) = site.watch(site.viewer(2)).await;
    site.gateway.attached(session).await;
    let id = site.first.live_input.id;
    site.service.live.deleted(id).await.unwrap();
    assert_eq!(site.gateway.closed(session).await, CloseReason::Forbidden);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_encoder_continues_the_feeds_and_the_end_of_the_broadcast_closes() {
    let mut site = Site::start(|_| {}).await;
    let encoder = site.on_air().await;
    let (session, _) = site.watch(site.viewer(2)).await;
    let (video, _) = site.gateway.attached(session).await;
    let mut last_90k = i64::MIN;
    for _ in 0..5 {
        last_90k = site.gateway.video().await.pts_90k;
    }
    encoder.end(Ended::Dropped).await;
    let playback = site.playback();
    eventually("it reconnects", || {
        playback.now().phase == Phase::Reconnecting
    })
    .await;
    let mut encoder = site.service.publish(&site.first, 1).await;
    // The first key frame is number 30.
    send(&mut encoder, 28..33).await;
    for index in 30..33 {
        let frame = site.gateway.video().await;
        assert_eq!((Some(frame.of), frame.key), (video, index == 30));
        assert!(frame.pts_90k > last_90k);
        last_90k = frame.pts_90k;
    }
    encoder.end(Ended::Clean).await;
    assert_eq!(site.gateway.closed(session).await, CloseReason::Over);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_gateway_ends_all_sessions_and_another_takes_offers() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let (session, name) = site.watch(site.viewer(2)).await;
    site.gateway.attached(session).await;
    let webrtc = site.webrtc.clone();
    let waiting = webrtc.play(site.viewer(3));
    let lost = async {
        assert!(matches!(
            site.gateway.order().await,
            ToGateway::Offer { .. }
        ));
        site.gateway.socket.shutdown().await.unwrap();
    };
    let (unanswered, ()) = tokio::join!(waiting, lost);
    assert!(
        matches!(unanswered, Err(WebRtcError::Unavailable)),
        "{unanswered:?}"
    );
    let playback = site.playback();
    eventually("no one watches", || playback.webrtc().count() == 0).await;
    assert!(site.webrtc.is_known(&name));
    let refused = site.webrtc.play(site.viewer(3)).await;
    assert!(
        matches!(refused, Err(WebRtcError::Unavailable)),
        "{refused:?}"
    );

    (site.gateway, site.serving) = run_gateway(&site.webrtc).await;
    let (session, _) = site.watch(site.viewer(2)).await;
    let (video, _) = site.gateway.attached(session).await;
    let frame = site.gateway.video().await;
    assert!(video == Some(frame.of) && frame.key);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewer_who_takes_no_codec_of_the_stream_is_rejected() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let (answer, session) = tokio::join!(
        site.webrtc.play(site.viewer(2)),
        site.gateway.answer(&[VideoCodec::Av1])
    );
    assert!(
        matches!(answer, Err(WebRtcError::NoCommonCodec(_))),
        "{answer:?}"
    );
    assert_eq!(site.gateway.closed(session).await, CloseReason::Over);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lines_lose_is_shown_in_health_and_metrics() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let (session, _) = site.watch(site.viewer(2)).await;
    site.gateway.attached(session).await;
    let statistics = SessionStatistics {
        rtt_ms: 40.0,
        loss: 0.05,
        bytes: 1_000,
        is_thin: true,
        ..SessionStatistics::default()
    };
    site.gateway
        .report(FromGateway::Statistics {
            session,
            statistics,
        })
        .await;
    let playback = site.playback();
    eventually("health has the line", || {
        let health = playback.webrtc().health(now_ms());
        health.thin == 1 && health.loss_percent == Some(5.0) && health.rtt_ms == Some(40.0)
    })
    .await;
    let health = playback.webrtc().health(now_ms());
    assert_eq!(
        (
            health.branch.video,
            health.branch.audio,
            health.branch.reason
        ),
        (Some("copied"), Some("copied"), None)
    );
    let metrics = site.webrtc.metrics().await.unwrap();
    assert!(metrics.iter().any(|metric| metric.name == "webrtc_egress"));
    site.stop().await;
}

fn publisher(stream: &str, octet: u8) -> PublisherOffer {
    PublisherOffer {
        offer: offer(octet),
        stream: stream.into(),
        encoder: Some("test".into()),
    }
}

/// A frame of a browser: parameter sets in a key frame.
fn published(of: SessionId, index: i64) -> FromGateway {
    let key = index % KEY_EVERY == 0;
    let sets = b"\0\0\0\x17\x67\x42\xc0\x1e\xda\x02\x80\xbf\xe5\xc0\x44\0\0\x0f\xa4\0\x03\xa9\x80\x3c\x58\xba\x80\0\0\0\x04\x68\xce\x0f\xc8";
    let data = match key {
        true => [&sets[..], b"\0\0\0\x03\x65\x88\x80"].concat(),
        false => b"\0\0\0\x03\x41\x9a\x80".to_vec(),
    };
    FromGateway::Video(VideoFrame {
        of,
        codec: VideoCodec::Avc,
        key,
        pts_90k: index * FRAME_90K,
        wallclock_us: 0,
        data: data.into(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_is_admitted_by_its_key_and_ends_cleanly() {
    let mut site = Site::start(|_| {}).await;
    let wrong = site.webrtc.publish(publisher("slug.wrong", 2)).await;
    assert!(
        matches!(wrong, Err(WebRtcError::Rejected(Rejection::Unauthorized))),
        "{wrong:?}"
    );
    let (session, name) = site.publish().await;
    site.gateway.connect(session).await;
    for index in 0..100 {
        site.gateway.report(published(session, index)).await;
        let audio = AudioFrame {
            of: session,
            pts_90k: index * FRAME_90K,
            wallclock_us: 0,
            data: Bytes::from_static(&[0xf8, 0xff, 0xfe]),
        };
        site.gateway.report(FromGateway::Audio(audio)).await;
    }
    let playback = site.playback();
    eventually("it is live", || playback.now().phase == Phase::Live).await;
    eventually("health names the protocol", || {
        playback
            .health()
            .is_some_and(|health| health.protocol == Some("whip"))
    })
    .await;
    assert!(site.webrtc.end(&name));
    assert_eq!(site.gateway.closed(session).await, CloseReason::Asked);
    eventually("the broadcast ends", || {
        playback.now().phase == Phase::Ended
    })
    .await;
    site.stop().await;
}

/// Number of sessions that are connected.
fn connected(webrtc: &WebRtc) -> f64 {
    let metrics = webrtc.control().unwrap().metrics();
    let sessions = metrics.iter().find(|it| it.name == "webrtc_sessions");
    let MetricValue::Gauge(samples) = &sessions.unwrap().value else {
        panic!("a gauge");
    };
    let is_connected = |it: &&Sample| it.labels[0].1 == "connected";
    samples.iter().filter(is_connected).map(|it| it.value).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publisher_that_closes_its_connection_ends_by_delete_alone() {
    for (deletes, expected) in [(true, Phase::Ended), (false, Phase::Reconnecting)] {
        let mut site = Site::start(|_| {}).await;
        let (session, name) = site.publish().await;
        site.gateway.connect(session).await;
        for index in 0..100 {
            site.gateway.report(published(session, index)).await;
        }
        let playback = site.playback();
        eventually("it is live", || playback.now().phase == Phase::Live).await;
        eventually("it is connected", || connected(&site.webrtc) > 0.0).await;
        let gone = FromGateway::Gone {
            session,
            reason: GoneReason::Peer,
        };
        site.gateway.report(gone).await;
        eventually("it is disconnected", || connected(&site.webrtc) == 0.0).await;
        if deletes {
            assert!(site.webrtc.end(&name));
        }
        eventually("the publish is over", || playback.now().phase == expected).await;
        site.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_publisher_opens_the_window_and_a_newer_one_takes_over() {
    let mut site = Site::start(|_| {}).await;
    let (lost, _) = site.publish().await;
    site.gateway.connect(lost).await;
    for index in 0..100 {
        site.gateway.report(published(lost, index)).await;
    }
    let playback = site.playback();
    eventually("it is live", || playback.now().phase == Phase::Live).await;
    let gone = FromGateway::Gone {
        session: lost,
        reason: GoneReason::Silent,
    };
    site.gateway.report(gone).await;
    eventually("the window is open", || {
        playback.now().phase == Phase::Reconnecting
    })
    .await;

    let (displaced, _) = site.publish().await;
    for index in 0..60 {
        site.gateway.report(published(displaced, index)).await;
    }
    // It is live as soon as it is admitted, without the tracks of the one before; displaced is only one that was sending.
    eventually("it is live again", || playback.now().phase == Phase::Live).await;
    let tap = playback.tap();
    eventually("it sends", || tap.tracks().video.is_some()).await;
    let mut newer = site.service.publish(&site.first, 3).await;
    assert_eq!(site.gateway.closed(displaced).await, CloseReason::Forbidden);
    send(&mut newer, 0..60).await;
    // The one that was displaced does not take the input back from one that sends.
    let key = stream(&site.first);
    let (conflict, session) = tokio::join!(
        site.webrtc.publish(publisher(&key, 2)),
        site.gateway.answer(&[VideoCodec::Avc])
    );
    assert!(
        matches!(conflict, Err(WebRtcError::Rejected(Rejection::Conflict))),
        "{conflict:?}"
    );
    assert_eq!(site.gateway.closed(session).await, CloseReason::Over);
    site.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_the_service_closes_all_sessions() {
    let mut site = Site::start(|_| {}).await;
    let _encoder = site.on_air().await;
    let (session, _) = site.watch(site.viewer(2)).await;
    site.gateway.attached(session).await;
    site.webrtc.drain().await;
    assert_eq!(site.gateway.closed(session).await, CloseReason::Stopping);
    let refused = site.webrtc.play(site.viewer(2)).await;
    assert!(
        matches!(refused, Err(WebRtcError::Unavailable)),
        "{refused:?}"
    );
    site.stop().await;
}

#[tokio::test]
async fn what_is_turned_off_says_so() {
    let webrtc = WebRtc::default();
    assert!(webrtc.components().is_empty() && webrtc.metrics().await.unwrap().is_empty());
    let answer = webrtc.publish(publisher("slug.key", 1)).await;
    assert!(matches!(answer, Err(WebRtcError::Off)), "{answer:?}");
}

#[tokio::test]
async fn tcp_has_the_port_of_udp_where_both_are_free_ones() {
    let settings = WebRtcSettings {
        listen: ([127, 0, 0, 1], 0).into(),
        tcp_listen: Some(([127, 0, 0, 1], 0).into()),
        ..WebRtcSettings::default()
    };
    let sockets = Sockets::bind(&settings).await.unwrap().unwrap();
    let (udp, tcp) = (
        sockets.udp_address().unwrap(),
        sockets.tcp_address().unwrap(),
    );
    assert_eq!(udp.port(), tcp.port());
}
