//! Processes that die at any moment: the next one continues behind the last boundary that all video renditions share.

use std::fs::OpenOptions;

use sluice_media::task::FailureCode;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_after_any_group_continues_behind_it() {
    let mut site = Site::open().await;
    for done in 0..SEGMENTS {
        let before = site.workers.began.lock().len();
        let stream = site.create().await;
        site.until_running(before + 1).await;
        site.workers.play(done as usize);
        site.until_recorded(stream.id, done).await;
        site.kill_and_start().await;
        site.until_running(before + 2).await;
        assert!(!site.stream(stream.id).await.playable);
        site.workers.play(SEGMENTS as usize);
        let ready = site.until_status(stream.id, StreamStatus::Ready).await;
        site.check_whole(stream.id, SEGMENTS).await;
        assert!(ready.has_poster && ready.has_storyboard);
        assert_eq!(site.workers.began.lock()[before..], [0, done]);
        let left = site.workers.rounds.available_permits();
        site.workers.rounds.forget_permits(left);
    }
    assert_eq!(site.used().await, u64::from(SEGMENTS));
    let probes = site.workers.probes.load(SeqCst);
    assert_eq!(probes, SEGMENTS as usize, "no source is looked at twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_killed_over_and_over_comes_to_its_end() {
    let mut site = Site::open().await;
    let stream = site.create().await;
    for done in 1..=SEGMENTS {
        site.workers.play(1);
        // The last one may have come to its end.
        until("a round is recorded, or it is ready", async || {
            let mut reader = site.store.read().await.unwrap();
            let renditions = video::renditions(&mut reader, stream.id).await.unwrap();
            !renditions.is_empty() && renditions.iter().all(|it| it.segment_count >= done)
        })
        .await;
        site.kill_and_start().await;
    }
    site.workers.play(SEGMENTS as usize);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_shorter_than_their_rows_are_believed() {
    let mut site = Site::open().await;
    let stream = site.create().await;
    site.workers.play(4);
    site.until_recorded(stream.id, 4).await;
    site.kill().await;
    let file = OpenOptions::new()
        .write(true)
        .open(site.file(stream.id, "180p"))
        .unwrap();
    file.set_len(INIT_BYTES + 3 * SEGMENT_BYTES - 1).unwrap();
    site.start().await;
    site.until_running(2).await;
    assert_eq!(*site.workers.began.lock(), [0, 2]);
    site.workers.play(SEGMENTS as usize);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_dies_is_followed_by_one_that_continues() {
    let site = Site::open().await;
    site.workers.fail(3, FailureCode::DecodeFailed);
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
    assert_eq!(*site.workers.began.lock(), [0, 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_stops_gives_a_stream_back_untouched() {
    let mut site = Site::open().await;
    let stream = site.create().await;
    site.workers.play(2);
    site.until_recorded(stream.id, 2).await;
    // More often than a row may be claimed without an end.
    for times in 1..5 {
        site.streams.drain().await;
        site.streams.close().await;
        assert_eq!(site.workers.running.load(SeqCst), 0);
        site.root.stop_gracefully().await.unwrap();
        site.kill_and_start().await;
        site.until_running(times + 1).await;
    }
    assert_eq!(site.workers.began.lock()[1..], [2; 4]);
    site.workers.play(SEGMENTS as usize);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
}

/// State after an upgrade, whose encoder begins a rendition in another way.
#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_gone_on_with_is_made_again() {
    let mut site = Site::open().await;
    let stream = site.create().await;
    site.workers.play(2);
    site.until_recorded(stream.id, 2).await;
    site.kill().await;
    site.workers.fail(2, FailureCode::Internal);
    site.start().await;
    site.workers.play(100);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
    assert_eq!(*site.workers.began.lock(), [0, 2, 0]);
}

/// The worker belongs to an owner that has lost the stream, and is ended a moment too late.
#[tokio::test(flavor = "multi_thread")]
async fn no_one_writes_beside_a_worker_that_has_not_ended() {
    let mut site = Site::open().await;
    let stream = site.create().await;
    site.workers.play(2);
    site.until_recorded(stream.id, 2).await;
    site.kill().await;
    let length = INIT_BYTES + 2 * SEGMENT_BYTES;
    let late = Folder::of(&site.store, stream.id)
        .open_at(&MediaFile::Rendition("180p".into()), length)
        .unwrap();
    site.workers.play(100);
    site.start().await;
    until("the next owner has begun", async || {
        let mut reader = site.store.read().await.unwrap();
        let renditions = video::renditions(&mut reader, stream.id).await.unwrap();
        renditions.iter().any(|it| it.segment_count == 0)
    })
    .await;
    assert_eq!(*site.workers.began.lock(), [0]);
    drop(late);
    site.until_status(stream.id, StreamStatus::Ready).await;
    site.check_whole(stream.id, SEGMENTS).await;
    assert_eq!(*site.workers.began.lock(), [0, 2]);
}
