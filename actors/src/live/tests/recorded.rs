//! Recordings whose media go to an object store, here a folder.

use std::{fs, path::PathBuf};

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
    live::{Body, View, recording_folder},
    recording::{
        segment_list::{Payload, SegmentList},
        stored_media,
    },
};

/// Broadcast that is over, and whose recording is due to be stored.
struct Recorded {
    dir: tempfile::TempDir,
    service: Service,
    view: Arc<View>,
    broadcast: String,
}

impl Recorded {
    fn folder(&self) -> PathBuf {
        recording_folder(&self.service.store).join(&self.broadcast)
    }

    fn segments(&self) -> Vec<u64> {
        let segments = self.view.window.segments();
        segments.map(|segment| segment.msn).collect()
    }

    fn file(&self, name: MediaName) -> PathBuf {
        self.folder().join(name.to_string())
    }

    /// Returns the only file of the recording, none without media, and how many segments are lost.
    async fn movie(&self) -> (Option<Vec<u8>>, usize) {
        let store = &self.service.store;
        let folder = recording_folder(store);
        let list = stored_media::segments(store, &folder, &self.broadcast).await;
        let list = Arc::new(list.unwrap().expect("the media are somewhere"));
        let made = tokio::task::spawn_blocking(move || (movie(&list), list.lost_count()));
        made.await.unwrap()
    }
}

/// Returns the only file of a recording: header and media.
fn movie(list: &Arc<SegmentList>) -> Option<Vec<u8>> {
    let mut cut = list.cut(0).unwrap()?;
    assert_eq!(cut.next, None);
    let mut bytes = cut.header.bytes.clone();
    let mut payload = Payload::new(list.clone(), &mut cut);
    loop {
        let batch = payload.batch().unwrap();
        if batch.is_empty() {
            return Some(bytes);
        }
        bytes.extend_from_slice(&batch);
    }
}

/// Returns the files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found
}

async fn record() -> Recorded {
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
    Recorded {
        dir,
        service,
        view,
        broadcast,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_is_made_of_objects_when_its_folder_is_lost() {
    let recorded = record().await;
    let (view, store) = (&recorded.view, &recorded.service.store);
    let names: Vec<String> = recorded
        .segments()
        .into_iter()
        .map(|msn| MediaName::Segment(msn).to_string())
        .collect();
    let mut reader = store.read().await.unwrap();
    let rows = live_segments::list(&mut reader, &recorded.broadcast).await;
    let rows = rows.unwrap();
    drop(reader);
    for name in &names {
        assert!(rows.iter().any(|row| row.name == *name), "{name}: {rows:?}");
    }
    assert_eq!(rows.len(), names.len() + view.window.inits().len());

    let local = recorded.movie().await;
    assert!(local.0.is_some());
    let msn = recorded.segments()[0];
    let writer = view.segment_store.recording_writer().unwrap();
    let Some(Body::Recorded(media)) = writer.body(MediaName::Segment(msn)) else {
        panic!("a recorded segment")
    };
    let opened = media.open().await.unwrap();
    assert!(matches!(opened, Source::File(_)));

    fs::remove_dir_all(recorded.folder()).unwrap();
    assert!(recorded.movie().await == local);
    let opened = media.open().await.unwrap();
    assert!(matches!(opened, Source::Pieces(_)));
    assert_eq!(opened.size().unwrap(), media.len());
    recorded.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_are_read_instead_of_files_that_a_power_loss_damaged() {
    let recorded = record().await;
    let (whole, _) = recorded.movie().await;
    let (first, second) = (recorded.segments()[0], recorded.segments()[1]);
    let init = recorded.view.window.inits()[0].number;
    let zeros = [MediaName::Segment(first), MediaName::Init(init)].map(|name| recorded.file(name));
    for path in zeros {
        let len = fs::metadata(&path).unwrap().len();
        fs::write(&path, vec![0; len as usize]).unwrap();
    }
    fs::write(recorded.file(MediaName::Segment(second)), b"short").unwrap();
    assert!(recorded.movie().await == (whole, 0));
    recorded.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_segment_that_is_lost_is_a_gap_of_the_recording() {
    let recorded = record().await;
    let (whole, lost) = recorded.movie().await;
    let whole = whole.unwrap();
    assert_eq!(lost, 0);
    let msns = recorded.segments();
    assert!(msns.len() > 2, "{msns:?}");
    let segment = fs::read(recorded.file(MediaName::Segment(msns[1]))).unwrap();
    fs::remove_dir_all(recorded.folder()).unwrap();
    let objects = files(&recorded.dir.path().join("bucket/b"));
    let is_lost = |path: &&PathBuf| fs::read(path).unwrap() == segment;
    fs::remove_file(objects.iter().find(is_lost).expect("it is up")).unwrap();

    let (rest, lost) = recorded.movie().await;
    let rest = rest.unwrap();
    assert_eq!(lost, 1);
    assert!(rest.len() < whole.len(), "{} {}", rest.len(), whole.len());
    recorded.service.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_made_of_a_recording_that_is_lost() {
    let recorded = record().await;
    fs::remove_dir_all(recorded.folder()).unwrap();
    for path in files(&recorded.dir.path().join("bucket/b")) {
        fs::remove_file(path).unwrap();
    }
    let lost = recorded.segments().len();
    assert_eq!(recorded.movie().await, (None, lost));
    recorded.service.stop().await;
}
