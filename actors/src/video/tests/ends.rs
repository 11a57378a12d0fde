//! Streams that do not become ready leave nothing.

use sluice_media::task::FailureCode;
use sluice_store::work;

use super::*;

impl Site {
    /// The stream has failed once, with nothing left of it.
    async fn check_failed(&self, stream: &Stream, code: &str) {
        let failed = self.until_status(stream.id, StreamStatus::Failed).await;
        assert_eq!(failed.error_code.as_deref(), Some(code), "{failed:?}");
        assert_eq!((failed.source_blob, failed.size_bytes), (None, 0));
        until("its folder is gone", async || {
            !self.place(stream.id).exists()
        })
        .await;
        assert_eq!((self.used().await, self.stored_bytes().await), (0, 0));
        assert_eq!(
            self.event_types(stream.id).await,
            ["video.stream.started", "video.stream.failed"]
        );
        let (_, event) = self.events(stream.id).await.pop().unwrap();
        assert_eq!(event["error"], failed.error.unwrap());
        let playback = self.playback(stream).await;
        assert_eq!(playback.stream.status, StreamStatus::Failed);
        assert!(playback.tracks.is_empty() && !playback.stream.playable);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_fails_tells_it_once_and_costs_nothing() {
    let site = Site::open().await;
    site.workers.play(100);
    for (round, code, word) in [
        (0, FailureCode::Undecodable, "undecodable"),
        (4, FailureCode::TimedOut, "timed_out"),
    ] {
        site.workers.fail(round, code);
        let stream = site.create().await;
        site.check_failed(&stream, word).await;
    }
    // Two deaths without an explanation are one too many.
    site.workers.fail(2, FailureCode::DecodeFailed);
    site.workers.fail(2, FailureCode::DecodeFailed);
    let stream = site.create().await;
    site.check_failed(&stream, "decode_failed").await;
    assert_eq!(site.streams.counts().failed.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_without_room_in_the_accounts_storage_fails() {
    let site = Site::open().await;
    site.workers.play(100);
    let mut new = site.new_stream().await;
    new.allowance.storage_bytes = 1_000;
    let stream = site.submit(new).await;
    site.check_failed(&stream, "storage_used_up").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_that_cannot_be_taken_are_left_out() {
    let site = Site::open().await;
    site.workers.is_blind.store(true, SeqCst);
    site.workers.play(100);
    let stream = site.create().await;
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert!(!ready.has_poster && !ready.has_storyboard);
    assert!(!site.place(stream.id).join("poster.jpg").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_whose_owners_keep_dying_is_given_up() {
    let site = Site::open().await;
    site.workers.is_deadly.store(true, SeqCst);
    let stream = site.create().await;
    let failed = site.until_status(stream.id, StreamStatus::Failed).await;
    assert_eq!(failed.error_code.as_deref(), Some("crashed"));
    let begins = site.workers.began.lock().len();
    assert_eq!(begins, work::MOST_BEGINS as usize);
    assert_eq!(site.used().await, 0);
    assert_eq!(
        site.event_types(stream.id).await,
        ["video.stream.started", "video.stream.failed"]
    );
    site.store.sweep(now_ms()).await.unwrap();
    assert!(!site.place(stream.id).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_deleted_ends_its_work_at_once() {
    let site = Site::open().await;
    let stream = site.create().await;
    site.workers.play(2);
    site.until_recorded(stream.id, 2).await;
    site.streams.delete(site.account, stream.id).await.unwrap();
    until("its worker is gone", async || {
        site.workers.running.load(SeqCst) == 0
    })
    .await;
    assert!(!site.place(stream.id).exists());
    assert!(site.streams.playback(&stream.playback_id).await.is_err());
    assert_eq!((site.used().await, site.stored_bytes().await), (0, 0));
    assert_eq!(site.event_types(stream.id).await, ["video.stream.started"]);
    let again = site.streams.delete(site.account, stream.id).await;
    assert!(again.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sweep_removes_only_folders_of_no_stream() {
    let site = Site::with(1).await;
    site.workers.play(100);
    let stream = site.create().await;
    site.until_status(stream.id, StreamStatus::Ready).await;
    let orphan = site.place(Uuid::now_v7());
    std::fs::create_dir_all(orphan.join("deep")).unwrap();
    let foreign = site.folder.path().join("video/notes");
    std::fs::create_dir_all(&foreign).unwrap();
    site.store.sweep(now_ms()).await.unwrap();
    assert!(!orphan.exists() && foreign.exists());
    site.check_whole(stream.id, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paid_is_not_begun() {
    let site = Site::open().await;
    let mut new = site.new_stream().await;
    new.allowance.operations = 1;
    site.submit(new.clone()).await;
    let refused = site.streams.create(new, Vec::new()).await.unwrap();
    assert_eq!(refused, Submitted::UsedUp { used: 1 });
}

#[tokio::test(flavor = "multi_thread")]
async fn audio_that_is_never_heard_is_left_out() {
    let site = Site::open().await;
    site.workers.is_silent.store(true, SeqCst);
    site.workers.play(100);
    let stream = site.create().await;
    let ready = site.until_status(stream.id, StreamStatus::Ready).await;
    assert!(ready.playable);
    until("players see frames alone", async || {
        let playback = site.playback(&stream).await;
        let kinds = playback.tracks.iter().map(|it| it.rendition.kind);
        kinds.eq([RenditionKind::Video; 2])
    })
    .await;
    site.workers.without_video_frames();
    let silent = site.create().await;
    let failed = site.until_status(silent.id, StreamStatus::Failed).await;
    assert_eq!(failed.error_code.as_deref(), Some("internal"));
}
