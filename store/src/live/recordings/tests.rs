//! Tests of recordings on a real database: work for the packager, files, and recordings without media.

use std::time::Duration;

use super::*;
use crate::{
    Store, StoreSettings, accounts, broadcasts, live_inputs,
    live_inputs::{NewLiveInput, RecordMode},
    work::Room,
};

const NOW: i64 = 1_800_000_000_000;

struct World {
    _folder: tempfile::TempDir,
    store: Store,
    input: LiveInput,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let store = Store::open(&settings).await.unwrap();
        let input = store
            .write(|tx| {
                Box::pin(async move {
                    let account = accounts::create(tx, "it", NOW).await?;
                    let new = NewLiveInput {
                        record_mode: RecordMode::Automatic,
                        ..NewLiveInput::default()
                    };
                    Ok(live_inputs::create(tx, account.id, new, NOW).await?.0)
                })
            })
            .await
            .unwrap();
        Self {
            _folder: folder,
            store,
            input,
        }
    }

    async fn begin(&self, broadcast: &'static str, at: i64) {
        let input = self.input.clone();
        self.store
            .write(move |tx| Box::pin(async move { begin(tx, &input, broadcast, at).await }))
            .await
            .unwrap();
    }

    async fn end(&self, broadcast: &'static str) {
        self.store
            .write(move |tx| Box::pin(async move { end(tx, broadcast, NOW + 5, NOW + 6).await }))
            .await
            .unwrap();
    }

    async fn row(&self, broadcast: &str) -> Option<Recording> {
        by_broadcast(&mut self.store.read().await.unwrap(), broadcast)
            .await
            .unwrap()
    }

    async fn claim(&self) -> Vec<Lease> {
        self.store
            .write(|tx| {
                Box::pin(async move {
                    let (owner, lease) = (Uuid::now_v7(), Duration::from_secs(15));
                    let room = Room::for_any(9);
                    let claimed = work::claim(tx, KIND, owner, room, lease, NOW + 10).await?;
                    Ok(claimed.leases)
                })
            })
            .await
            .unwrap()
    }

    async fn finish(&self, lease: Lease, files: u32) -> Result<Option<Recording>, Error> {
        self.finish_with(lease, files, None).await
    }

    async fn finish_with(
        &self,
        lease: Lease,
        files: u32,
        lack: Option<Failure>,
    ) -> Result<Option<Recording>, Error> {
        self.store
            .write(move |tx| {
                Box::pin(async move {
                    for number in 0..files {
                        let file = RecordingFile {
                            recording_id: lease.id,
                            number,
                            file_id: None,
                            stream_id: None,
                            filename: format!("{number}.mp4"),
                            size_bytes: 1,
                            duration_ms: 1,
                            width: None,
                            height: None,
                            is_settled: true,
                        };
                        stored(tx, &lease, &file).await?;
                    }
                    finish(tx, &lease, lack.as_ref(), NOW + 20).await
                })
            })
            .await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_becomes_work_once_and_is_ready_with_its_files() {
    let world = World::new().await;
    for _ in 0..2 {
        world.begin("b1", NOW).await;
    }
    assert_eq!(
        world.row("b1").await.unwrap().status,
        RecordingStatus::Recording
    );
    for _ in 0..2 {
        world.end("b1").await;
    }
    let leases = world.claim().await;
    assert_eq!(leases.len(), 1);
    let finished = world.finish(leases[0].clone(), 2).await.unwrap().unwrap();
    assert_eq!(finished.status, RecordingStatus::Ready);
    assert_eq!(finished.ended_at, Some(NOW + 5));
    // The lease is spent.
    assert!(world.finish(leases[0].clone(), 0).await.is_err());
    // Repeated, it changes nothing.
    world.begin("b1", NOW).await;
    world.end("b1").await;
    assert!(world.claim().await.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ready_recording_says_what_it_lacks() {
    let world = World::new().await;
    world.begin("b1", NOW).await;
    world.end("b1").await;
    let lease = world.claim().await.remove(0);
    let lack = Failure {
        code: "segments_lost".into(),
        message: "2 recorded segments are lost".into(),
    };
    let finished = world.finish_with(lease, 1, Some(lack.clone())).await;
    let finished = finished.unwrap().unwrap();
    assert_eq!(finished.status, RecordingStatus::Ready);
    assert_eq!(finished.error, Some(lack.message));
    assert_eq!(finished.error_code, Some(lack.code));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_a_node_that_uploaded_nothing_fails_until_the_node_comes_back() {
    let world = World::new().await;
    world.begin("b1", NOW).await;
    let input_id = world.input.id;
    let on_air = world.store.write(move |tx| {
        Box::pin(async move {
            broadcasts::begin(tx, "b1", input_id, 1, NOW).await?;
            // It has been dead for so long that its row is deleted.
            broadcasts::set_node(tx, "b1", Uuid::now_v7()).await
        })
    });
    on_air.await.unwrap();
    for ended in [1, 0] {
        let ending = world
            .store
            .write(|tx| Box::pin(async move { end_abandoned(tx, NOW + 50, NOW + 60).await }));
        assert_eq!(ending.await.unwrap(), ended);
    }
    let failed = world.row("b1").await.unwrap();
    assert!(failed.waits_for_node(), "{failed:?}");
    assert_eq!(failed.ended_at, Some(NOW + 60));
    assert!(failed.error.is_some());

    world.end("b1").await;
    let row = world.row("b1").await.unwrap();
    assert_eq!((row.status, row.error), (RecordingStatus::Processing, None));
    assert_eq!(world.claim().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_without_media_is_forgotten_and_lost_ones_are_ended() {
    let world = World::new().await;
    world.begin("empty", NOW).await;
    world.end("empty").await;
    let lease = world.claim().await.remove(0);
    assert_eq!(world.finish(lease, 0).await.unwrap(), None);
    assert_eq!(world.row("empty").await, None);

    for (broadcast, at) in [("lost", NOW), ("kept", NOW), ("new", NOW + 100)] {
        world.begin(broadcast, at).await;
    }
    let ended = world
        .store
        .write(|tx| {
            Box::pin(async move {
                end_lost(tx, Lost::OfAll, &["kept".into()], NOW + 50, NOW + 60).await
            })
        })
        .await
        .unwrap();
    assert_eq!(ended, 1);
    for (broadcast, status) in [
        ("lost", RecordingStatus::Processing),
        ("kept", RecordingStatus::Recording),
        ("new", RecordingStatus::Recording),
    ] {
        assert_eq!(world.row(broadcast).await.unwrap().status, status);
    }
}
