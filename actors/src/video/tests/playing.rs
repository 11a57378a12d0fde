//! Playback of a stream while it is made, and its reported progress.

use sluice_store::video::StreamPatch;

use super::{
    super::playback::{MOST_SEGMENTS, Playbacks},
    *,
};

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_is_played_from_its_third_segment_on_and_is_ready_once() {
    let site = Site::open().await;
    let stream = site.create().await;
    assert_eq!(site.used().await, 1);
    site.until_running(1).await;
    for done in 1..=SEGMENTS {
        site.workers.play(1);
        site.until_recorded(stream.id, done).await;
        if done == SEGMENTS {
            break;
        }
        until("players see the round", async || {
            let playback = site.playback(&stream).await;
            let count = |track: &Track| track.segments.len() == done as usize;
            playback.tracks.iter().all(count) && playback.stream.playable == (done >= 3)
        })
        .await;
        let expected = u8::try_from(100 * done / SEGMENTS).unwrap();
        until("it is said how far it is", async || {
            let progress = site.streams.progress(&stream);
            progress.percent == expected && progress.status == StreamStatus::Processing
        })
        .await;
    }
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
    assert_eq!(
        (ready.width, ready.height, ready.duration_ms),
        (Some(320), Some(180), Some(30_000))
    );
    assert!(ready.has_poster && ready.has_storyboard);
    for file in ["poster.jpg", "storyboard.jpg", "storyboard.vtt"] {
        let bytes = std::fs::read(site.place(stream.id).join(file)).unwrap();
        assert_eq!(bytes, IMAGE, "{file}");
    }
    let (_, event) = site.events(stream.id).await.pop().unwrap();
    let url = format!(
        "https://media.example/video/v1/{}/master.m3u8",
        stream.playback_id
    );
    assert_eq!(event["manifestUrl"], url);
    assert_eq!(site.streams.progress(&ready), StreamProgress::of(&ready));
    assert_eq!(site.streams.counts().ready, 1);
    assert_eq!(site.used().await, 1);
    assert_eq!(site.stored_bytes().await, ready.size_bytes.unsigned_abs());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_follower_hears_of_the_way_and_of_the_end() {
    let site = Site::open().await;
    let stream = site.create().await;
    let mut follower = site.streams.follow(stream.id).unwrap();
    let mut heard = vec![follower.next().await.unwrap()];
    for _ in 0..SEGMENTS {
        site.workers.play(1);
        heard.push(follower.next().await.unwrap());
    }
    while !heard.last().unwrap().status.has_ended() {
        heard.push(follower.next().await.unwrap());
    }
    assert!(
        heard.is_sorted_by_key(|progress| progress.percent),
        "{heard:?}"
    );
    let last = heard.last().unwrap();
    assert_eq!((last.percent, last.playable), (100, true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_clip_and_one_without_frames_are_whole_too() {
    let site = Site::with(1).await;
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, 1).await;
    site.workers.without_video_frames();
    let stream = site.create().await;
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert_eq!((ready.width, ready.has_poster), (None, false));
    let playback = site.playback(&stream).await;
    let [track] = playback.tracks.as_slice() else {
        panic!("{playback:?}");
    };
    site.check_track(stream.id, 0, track, 1);
    assert_eq!(track.rendition.kind, RenditionKind::Audio);
}

#[tokio::test(flavor = "multi_thread")]
async fn players_see_a_change_at_once_and_strangers_see_nothing() {
    let site = Site::open().await;
    let stream = site.create().await;
    site.until_running(1).await;
    site.workers.play(1);
    site.until_recorded(stream.id, 1).await;
    for access in [Access::Signed, Access::Public, Access::Signed] {
        let patch = StreamPatch {
            access: Some(access),
            ..StreamPatch::default()
        };
        let changed = site.streams.update(site.account, stream.id, patch).await;
        assert_eq!(changed.unwrap().access, access);
        assert_eq!(site.playback(&stream).await.stream.access, access);
        site.workers.play(1);
    }
    site.until_recorded(stream.id, 4).await;
    assert_eq!(site.playback(&stream).await.stream.access, Access::Signed);
    site.workers.play(1);
    site.until_status(stream.id, StreamStatus::Ready).await;
    // The address of a signed one has a secret in it.
    let (_, event) = site.events(stream.id).await.pop().unwrap();
    assert_eq!(event["manifestUrl"], Value::Null);
    for unknown in ["", "pb_unknown", "pb_00000000000000000000"] {
        assert!(site.streams.playback(unknown).await.is_err(), "{unknown:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_are_read_again_once_others_took_their_place() {
    let site = Site::with(1).await;
    site.workers.play(100);
    let mut streams = Vec::new();
    for _ in 0..4 {
        let stream = site.create().await;
        site.until_status(stream.id, StreamStatus::Ready).await;
        streams.push(stream);
    }
    for _ in 0..2 {
        for stream in &streams {
            let playback = site.playback(stream).await;
            assert_eq!(playback.stream.id, stream.id);
            let again = site.playback(stream).await;
            assert!(Arc::ptr_eq(&playback, &again));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_of_long_streams_are_fewer() {
    let site = Site::with(1).await;
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    let playbacks = Playbacks::new(site.store.clone(), 10);
    let count = u32::try_from(MOST_SEGMENTS / 2).unwrap();
    for (name, segments) in [("pb_1", count), ("pb_2", count), ("pb_3", 1)] {
        let mut long = Playback::clone(&*site.playback(&stream).await);
        long.stream.playback_id = name.into();
        long.tracks = vec![track(0, RenditionKind::Video, segments)];
        playbacks.publish(long, playbacks.changes());
    }
    assert!(playbacks.get("pb_1").await.is_err(), "no row has this id");
    for name in ["pb_2", "pb_3"] {
        playbacks.get(name).await.unwrap();
    }
}

/// Checks what a node does with the changes of other nodes, which its own use cases do not bring.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_was_changed_elsewhere_is_read_again() {
    let site = Site::with(1).await;
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    let (account, id) = (site.account, stream.id);
    let patch = StreamPatch {
        title: Some("Another".into()),
        ..StreamPatch::default()
    };
    site.store
        .write(move |tx| {
            Box::pin(async move { video::update(tx, account, id, patch, now_ms()).await })
        })
        .await
        .unwrap();
    until("a change of another stream leaves it", async || {
        let before = site.playback(&stream).await;
        site.streams.changed(Some(&[Uuid::now_v7()]));
        Arc::ptr_eq(&before, &site.playback(&stream).await)
    })
    .await;
    for ids in [Some([id]), None] {
        let before = site.playback(&stream).await;
        site.streams.changed(ids.as_ref().map(|ids| ids.as_slice()));
        let after = site.playback(&stream).await;
        assert!(!Arc::ptr_eq(&before, &after));
        assert_eq!(after.stream.title, "Another");
    }
}
