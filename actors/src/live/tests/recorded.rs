//! Recordings whose media go to an object store, here a folder.

use std::fs;

use sluice_media::hls::names::MediaName;
use sluice_store::{
    blob::Source,
    live_inputs::RecordMode,
    live_segments,
    recordings::{self, RecordingStatus},
};

use super::*;
use crate::{
    fixtures::until,
    live::{Body, recording_folder},
    recording::{
        segment_list::{Payload, SegmentList},
        stored_media,
    },
};

/// Returns the only file of a recording: header and media.
fn movie(list: SegmentList) -> Vec<u8> {
    let mut cut = list.cut(0).unwrap().expect("there are media");
    assert_eq!(cut.next, None);
    let mut bytes = cut.header.bytes.clone();
    let mut payload = Payload::new(Arc::new(list), &mut cut);
    loop {
        let batch = payload.batch().unwrap();
        if batch.is_empty() {
            return bytes;
        }
        bytes.extend_from_slice(&batch);
    }
}

async fn stored_movie(store: &Store, broadcast: &str) -> Vec<u8> {
    let folder = recording_folder(store);
    let list = stored_media::segments(store, &folder, broadcast).await;
    let list = list.unwrap().expect("the media are somewhere");
    let made = tokio::task::spawn_blocking(move || movie(list));
    made.await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_made_of_objects_when_its_folder_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["data", "bucket"] {
        fs::create_dir(dir.path().join(folder)).unwrap();
    }
    let settings = StoreSettings {
        objects_url: format!("file://{}", dir.path().join("bucket").display()),
        ..StoreSettings::without_reserve(&dir.path().join("data"))
    };
    let (service, first) = start_on(settings, LiveSettings::default()).await;
    let first = first.unwrap();
    let mut row = first.live_input.clone();
    row.record_mode = RecordMode::Automatic;
    service.live.changed(row).await.unwrap();
    let playback = service.playback(&first);

    let mut session = service.publish(&first, 1).await;
    send(&mut session, 0..200).await.unwrap();
    session.end(Ended::Clean).await;
    eventually("the broadcast ends", || {
        let now = playback.now();
        now.view.as_ref().is_some_and(|view| view.window.is_ended())
    })
    .await;
    let view = playback.now().view.clone().unwrap();
    let broadcast = view.window.header().broadcast.clone();
    let store = service.store.clone();
    until("the recording is due to be stored", async || {
        let mut reader = store.read().await.unwrap();
        let row = recordings::by_broadcast(&mut reader, &broadcast).await;
        row.unwrap()
            .is_some_and(|row| row.status == RecordingStatus::Processing)
    })
    .await;

    let names: Vec<String> = view
        .window
        .segments()
        .map(|segment| MediaName::Segment(segment.msn).to_string())
        .collect();
    let mut reader = store.read().await.unwrap();
    let rows = live_segments::list(&mut reader, &broadcast).await.unwrap();
    drop(reader);
    for name in &names {
        assert!(rows.iter().any(|row| row.name == *name), "{name}: {rows:?}");
    }
    assert_eq!(rows.len(), names.len() + view.window.inits().len());

    let local = stored_movie(&store, &broadcast).await;
    let msn = view.window.segments().next().unwrap().msn;
    let writer = view.segment_store.recording_writer().unwrap();
    let Some(Body::Recorded(media)) = writer.body(MediaName::Segment(msn)) else {
        panic!("a recorded segment")
    };
    let opened = media.open().await.unwrap();
    assert!(matches!(opened, Source::File(_)));

    fs::remove_dir_all(recording_folder(&store).join(&broadcast)).unwrap();
    assert!(stored_movie(&store, &broadcast).await == local);
    let opened = media.open().await.unwrap();
    assert!(matches!(opened, Source::Pieces(_)));
    assert_eq!(opened.size().unwrap(), media.len());
    service.stop().await;
}
