//! The live branch with real actors, disk and store, and a publisher made of units.

mod events;
mod history;
mod recorded;
mod restarts;

use std::{path::Path, sync::Arc, time::Duration};

use bytes::Bytes;
use kameo::actor::ActorRef;
use sluice_ingest::publish::{
    Closed, Ended, Protocol, PublishAuthorizer, PublishRequest, PublishSession, Rejection,
};
use sluice_media::{
    codec::{VideoCodec, VideoConfig},
    unit::{Unit, VideoUnit},
};
use sluice_store::{Bootstrap, FirstCredentials, Store, StoreSettings, live_inputs};
use tokio_util::sync::CancellationToken;

use super::{
    Branch, Live, LiveAuthorizer, LiveInputs, LivePort as _, LiveSession, LiveSettings, Phase,
    Playback, inputs::Crash,
};
use crate::{
    component::ComponentStatuses,
    subsystem::Subsystem as _,
    tree::{Add, Args, Root},
};

/// x264's configuration of a 320×180 frame, without cropping.
const AVCC: &[u8] = &[
    0x01, 0x64, 0x00, 0x0d, 0xff, 0xe1, 0x00, 0x18, 0x67, 0x64, 0x00, 0x0d, 0xac, 0xb4, 0x0a, 0x0c,
    0xfc, 0xf8, 0x08, 0x80, 0x00, 0x00, 0x03, 0x00, 0x80, 0x00, 0x00, 0x1e, 0x07, 0x8a, 0x15, 0x50,
    0x01, 0x00, 0x04, 0x68, 0xef, 0x0f, 0xcb, 0xfd, 0xf8, 0xf8, 0x00,
];
const FRAME_90K: i64 = 3000;
const JOIN_CACHE_BYTES: usize = 1 << 20;
const KEY_EVERY: i64 = 60;

pub(super) struct Service {
    pub live: Live,
    pub authorizer: LiveAuthorizer,
    root: ActorRef<Root>,
    inputs: ActorRef<LiveInputs>,
    store: Store,
    stop: CancellationToken,
}

/// Starts the live branch over a data folder; returns the credentials when the folder is new.
pub(super) async fn start(data_dir: &Path) -> (Service, Option<FirstCredentials>) {
    start_with(data_dir, LiveSettings::default()).await
}

pub(super) async fn start_with(
    data_dir: &Path,
    live_settings: LiveSettings,
) -> (Service, Option<FirstCredentials>) {
    start_on(StoreSettings::without_reserve(data_dir), live_settings).await
}

async fn start_on(
    settings: StoreSettings,
    live_settings: LiveSettings,
) -> (Service, Option<FirstCredentials>) {
    let store = Store::open(&settings).await.unwrap();
    let first = sluice_store::bootstrap(&store, Bootstrap::default(), sluice_store::now_ms())
        .await
        .unwrap();
    let rows = live_inputs::all(&mut store.read().await.unwrap())
        .await
        .unwrap();
    let branch = Branch::prepare(live_settings, JOIN_CACHE_BYTES, store.clone(), rows)
        .await
        .unwrap();
    let args = Args {
        components: Vec::new(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    };
    let root = Root::start(args);
    let (component, started) = branch.component();
    root.ask(Add(component)).await.unwrap();
    let inputs = started.await.unwrap();
    let stop = CancellationToken::new();
    tokio::spawn(branch.clone().run_background(stop.clone()));
    let authorizer = LiveAuthorizer::new(inputs.clone());
    (
        Service {
            live: branch.live(inputs.clone()),
            authorizer,
            root,
            inputs,
            store,
            stop,
        },
        first,
    )
}

impl Service {
    pub fn playback(&self, first: &FirstCredentials) -> Arc<Playback> {
        self.live
            .playback(&first.live_input.playback_id)
            .expect("the input exists")
    }

    /// Admits an encoder at 10.0.0.`octet` with the right key.
    pub async fn publish(&self, first: &FirstCredentials, octet: u8) -> LiveSession {
        self.authorizer
            .admit(request(&stream(first), octet))
            .await
            .expect("the key is right")
    }

    /// Lets the input's actor die in the midst of a broadcast.
    async fn crash(&self, first: &FirstCredentials) {
        let id = first.live_input.id;
        self.inputs.ask(Crash(id)).await.unwrap();
        let playback = self.playback(first);
        eventually("the window stays open", || {
            playback.now().phase == Phase::Reconnecting
        })
        .await;
    }

    pub async fn stop(self) {
        self.live.drain().await;
        self.root.stop_gracefully().await.unwrap();
        self.root.wait_for_shutdown().await;
        self.stop.cancel();
        self.store.close().await;
    }
}

fn request(stream: &str, last_octet: u8) -> PublishRequest {
    PublishRequest {
        protocol: Protocol::Rtmp,
        remote: ([10, 0, 0, last_octet], 40_000).into(),
        stream: stream.into(),
        encoder: Some("test".into()),
    }
}

fn config() -> Unit {
    Unit::VideoConfig(Arc::new(
        VideoConfig::parse(VideoCodec::Avc, Bytes::from_static(AVCC)).unwrap(),
    ))
}

fn video_frame(index: i64) -> Unit {
    let key = index % KEY_EVERY == 0;
    let payload: &'static [u8] = if key {
        &[0, 0, 0, 3, 0x65, 0x88, 0x80]
    } else {
        &[0, 0, 0, 3, 0x41, 0x9a, 0x80]
    };
    Unit::Video(VideoUnit {
        dts_90k: index * FRAME_90K,
        cts_90k: 0,
        key,
        data: Bytes::from_static(payload),
    })
}

/// Sends a configuration and the frames of `range`.
async fn send(
    session: &mut impl PublishSession,
    range: std::ops::Range<i64>,
) -> Result<(), Closed> {
    let mut units = vec![config()];
    for index in range {
        units.push(video_frame(index));
        session.deliver(&mut units).await?;
    }
    Ok(())
}

pub(super) async fn eventually(what: &str, met: impl Fn() -> bool) {
    let waiting = async {
        while !met() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(
        tokio::time::timeout(Duration::from_secs(20), waiting)
            .await
            .is_ok(),
        "{what}"
    );
}

/// Frames listed, by the time line of a 30 frame stream.
fn listed_video_frames(playback: &Playback) -> i64 {
    let now = playback.now();
    let Some(view) = &now.view else { return 0 };
    view.window
        .segments()
        .flat_map(|segment| &segment.parts)
        .map(|part| i64::from(part.duration_90k) / FRAME_90K)
        .sum()
}

/// The newest listed frame's number, by the time line of a 30 frame stream.
fn last_video_frame(playback: &Playback) -> i64 {
    let now = playback.now();
    let last = now
        .view
        .as_ref()
        .and_then(|view| view.window.segments().next_back());
    last.map_or(0, |segment| {
        (segment.start_90k + i64::from(segment.duration_90k)) / FRAME_90K
    })
}

fn msns(playback: &Playback) -> Vec<u64> {
    playback
        .now()
        .view
        .as_ref()
        .map(|view| view.window.segments().map(|segment| segment.msn).collect())
        .unwrap_or_default()
}

pub(super) fn stream(first: &FirstCredentials) -> String {
    format!(
        "{}.{}",
        first.live_input.input_slug,
        first.stream_key.expose()
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_publish_is_listed_reconnects_and_ends() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    assert_eq!(playback.now().phase, Phase::Idle);

    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    eventually("whole segments are listed", || {
        playback.now().phase == Phase::Live
    })
    .await;
    session.end(Ended::Dropped).await;
    eventually("the window is open", || {
        playback.now().phase == Phase::Reconnecting
    })
    .await;
    eventually("every frame that arrived is listed", || {
        listed_video_frames(&playback) == 100
    })
    .await;
    let before = msns(&playback);

    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..70).await.unwrap();
    session.end(Ended::Clean).await;
    eventually("the broadcast ends", || {
        playback.now().phase == Phase::Ended
    })
    .await;
    eventually("ENDLIST is listed", || {
        playback
            .now()
            .view
            .as_ref()
            .is_some_and(|view| view.window.is_ended())
    })
    .await;
    assert_eq!(listed_video_frames(&playback), 170);
    let discontinuities = playback
        .now()
        .view
        .as_ref()
        .map(|view| view.window.segments().filter(|it| it.discontinuity).count());
    assert_eq!(
        discontinuities,
        Some(1),
        "one new session, one discontinuity"
    );
    assert!(msns(&playback).starts_with(&before));
    assert!(playback.times().last_ended_ms.is_some());
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_rotated_disabled_and_deleted_are_refused_and_end_what_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut row = first.live_input.clone();
    let rejection = |stream: String| {
        let authorizer = service.authorizer.clone();
        async move { authorizer.admit(request(&stream, 1)).await.err() }
    };
    let key = first.stream_key.expose();
    assert_eq!(
        rejection(format!("{}.svc_live_wrong", row.input_slug)).await,
        Some(Rejection::Unauthorized)
    );
    assert_eq!(
        rejection(format!("otherslug.{key}")).await,
        Some(Rejection::Unauthorized)
    );
    assert_eq!(
        rejection(String::new()).await,
        Some(Rejection::Unauthorized)
    );

    let mut session = service.authorizer.admit(request(key, 1)).await.unwrap();
    send(&mut session, 0..10).await.unwrap();
    row.enabled = false;
    service.live.changed(row.clone()).await.unwrap();
    tokio::time::timeout(Duration::from_secs(5), session.closed())
        .await
        .expect("disabling ends a running publish");
    assert_eq!(rejection(stream(&first)).await, Some(Rejection::Disabled));

    row.enabled = true;
    row.stream_key_hash = sluice_store::credentials::hash("svc_live_another");
    service.live.changed(row.clone()).await.unwrap();
    assert_eq!(
        rejection(stream(&first)).await,
        Some(Rejection::Unauthorized)
    );
    assert_eq!(rejection("svc_live_another".into()).await, None);

    service.live.deleted(row.id).await.unwrap();
    assert!(service.live.playback(&row.playback_id).is_none());
    assert_eq!(
        rejection("svc_live_another".into()).await,
        Some(Rejection::Unauthorized)
    );
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_joins_with_the_open_group_of_an_input_on_air() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..KEY_EVERY + 3).await.unwrap();
    let tap = service.playback(&first).tap();
    eventually("the open group is kept", || tap.kept() == (3, 3 * 7)).await;

    let mut follower = tap.follow_from_key_frame(Duration::ZERO).promptly();
    let mut items = Vec::new();
    follower.next(&mut items).await;
    assert!(matches!(&items[0].unit, Unit::Video(it) if it.dts_90k == KEY_EVERY * FRAME_90K));
    assert!(items[0].tracks.video.is_some() && items.len() == 3);
    assert!(session.tap().is_prompt());

    drop(follower);
    assert!(!session.tap().is_prompt());
    session.end(Ended::Clean).await;
    eventually("nothing is kept", || tap.kept() == (0, 0)).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_publisher_takes_over_and_two_encoders_do_not_flap() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let playback = service.playback(&first);

    let mut older = service.publish(&first, 1).await;
    send(&mut older, 0..40).await.unwrap();
    let mut newer = service.publish(&first, 2).await;
    tokio::time::timeout(Duration::from_secs(5), older.closed())
        .await
        .expect("the older one is closed");
    send(&mut newer, 0..40).await.unwrap();
    eventually("both are listed whole", || {
        listed_video_frames(&playback) >= 70
    })
    .await;

    let back = service.authorizer.admit(request(&stream(&first), 1)).await;
    assert_eq!(back.err(), Some(Rejection::Conflict));
    assert!(
        send(&mut newer, 40..80).await.is_ok(),
        "the newer one continues"
    );
    eventually("health tells of it", || {
        playback
            .health()
            .is_some_and(|health| health.conflicts == 1)
    })
    .await;
    newer.end(Ended::Clean).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_publisher_begins_after_what_had_arrived_of_the_older_one() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    let (authorizer, stream) = (&service.authorizer, stream(&first));
    let mut older = authorizer.admit(request(&stream, 1)).await.unwrap();
    send(&mut older, 0..30).await.unwrap();

    let last_words = async {
        older.closed().await;
        let mut units: Vec<Unit> = (30..60).map(video_frame).collect();
        assert_eq!(older.deliver(&mut units).await, Err(Closed));
        older.end(Ended::Dropped).await;
    };
    let (newer, ()) = tokio::join!(authorizer.admit(request(&stream, 2)), last_words);
    let mut newer = newer.unwrap();
    send(&mut newer, 0..30).await.unwrap();
    eventually("the newer one is listed", || {
        listed_video_frames(&playback) > 70
    })
    .await;
    newer.end(Ended::Clean).await;
    let what = "60 frames of the older, 30 of the newer";
    eventually(what, || listed_video_frames(&playback) == 90).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_input_comes_back_with_everything_that_was_listed() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    eventually("most of it is listed", || {
        listed_video_frames(&playback) >= 90
    })
    .await;
    let (video_frames, before) = (listed_video_frames(&playback), msns(&playback));

    service.crash(&first).await;
    assert_eq!(listed_video_frames(&playback), video_frames);
    assert!(
        send(&mut session, 100..101).await.is_err(),
        "the encoder notices"
    );

    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..70).await.unwrap();
    session.end(Ended::Clean).await;
    eventually("the broadcast ends", || {
        playback.now().phase == Phase::Ended
    })
    .await;
    eventually("nothing is lost or doubled", || {
        listed_video_frames(&playback) == video_frames + 70
    })
    .await;
    assert!(msns(&playback).starts_with(&before));
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_service_serves_the_window_and_the_encoder_continues_it() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    let playback = service.playback(&first);
    eventually("whole segments are listed", || {
        playback.now().phase == Phase::Live
    })
    .await;
    service.stop().await;

    let (service, again) = start(dir.path()).await;
    assert!(again.is_none());
    let playback = service.playback(&first);
    assert_eq!(playback.now().phase, Phase::Reconnecting);
    assert_eq!(listed_video_frames(&playback), 100);
    let view = playback.now().view.clone().unwrap();
    for segment in view.window.segments() {
        let body = view
            .segment_store
            .segment(segment.msn)
            .expect("a listed segment answers");
        assert_eq!(body.len(), segment.len);
    }
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..70).await.unwrap();
    eventually("the playlist continues", || {
        listed_video_frames(&playback) >= 160
    })
    .await;
    session.end(Ended::Clean).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_disk_costs_viewers_nothing_and_is_made_good_later() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let folder = dir
        .path()
        .join("live")
        .join(first.live_input.id.to_string());
    std::fs::write(&folder, b"a file where the folder should be").unwrap();
    let playback = service.playback(&first);
    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..100).await.unwrap();
    eventually("the stream is listed from memory", || {
        listed_video_frames(&playback) >= 90
    })
    .await;
    eventually("health says why", || {
        playback
            .health()
            .is_some_and(|health| health.trouble.disk.is_some())
    })
    .await;

    std::fs::remove_file(&folder).unwrap();
    eventually("the folder is rebuilt", || {
        playback
            .health()
            .is_some_and(|health| health.trouble.disk.is_none())
    })
    .await;
    session.end(Ended::Dropped).await;
    eventually("all is listed", || listed_video_frames(&playback) == 100).await;
    service.stop().await;
    let (service, _) = start(dir.path()).await;
    let playback = service.playback(&first);
    assert_eq!(
        listed_video_frames(&playback),
        100,
        "what the disk missed was written later"
    );
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broadcast_longer_than_its_window_survives_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (service, first) = start(dir.path()).await;
    let first = first.unwrap();
    let playback = service.playback(&first);
    let mut session = service.publish(&first, 1).await;
    for second in 0..80 {
        send(&mut session, second * 30..(second + 1) * 30)
            .await
            .unwrap();
        eventually("the disk keeps up", || {
            last_video_frame(&playback) + 90 >= second * 30
        })
        .await;
    }
    eventually("segments have left the list", || {
        msns(&playback).first().is_some_and(|first| *first > 20)
    })
    .await;
    let folder = dir
        .path()
        .join("live")
        .join(first.live_input.id.to_string());
    let broadcast = std::fs::read_dir(&folder)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    service.stop().await;
    for msn in 1..=20 {
        // Some may never have been written: units come faster here than any disk takes them.
        let _ = std::fs::remove_file(broadcast.join(format!("{msn}.m4s")));
    }

    let (service, _) = start(dir.path()).await;
    let playback = service.playback(&first);
    assert_eq!(playback.now().phase, Phase::Reconnecting);
    let view = playback.now().view.clone().unwrap();
    assert!(view.window.segments().count() >= 6, "{:?}", msns(&playback));
    for segment in view.window.segments() {
        assert!(
            view.segment_store.segment(segment.msn).is_some(),
            "{} answers",
            segment.msn
        );
    }
    service.stop().await;
}
