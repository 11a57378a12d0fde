//! Uploads of recorded media with a real store, an object store in a folder, and made-up files.

use sluice_media::hls::{Header, StreamInfo, record::SegmentEntry};
use sluice_store::{
    StoreSettings, accounts, broadcasts,
    live_inputs::{self, NewLiveInput},
};
use tempfile::TempDir;
use uuid::Uuid;

use super::*;
use crate::fixtures::until;

const BROADCAST: &str = "0a0a";

struct Site {
    store: Store,
    uploads: Uploads,
    ledger: Ledger,
    upload: Arc<RecordingUpload>,
    dir: TempDir,
}

impl Site {
    async fn open() -> Self {
        Self::open_with(|_| {}).await
    }

    async fn open_with(change: impl FnOnce(&mut StoreSettings)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["data", "bucket", "recording"] {
            fs::create_dir(dir.path().join(folder)).unwrap();
        }
        let mut settings = StoreSettings {
            objects_url: format!("file://{}", dir.path().join("bucket").display()),
            ..StoreSettings::without_reserve(&dir.path().join("data"))
        };
        change(&mut settings);
        let store = Store::open(&settings).await.unwrap();
        let begun = store.write(|tx| {
            Box::pin(async move {
                let account = accounts::create(tx, "here", 1).await?;
                let (input, _) =
                    live_inputs::create(tx, account.id, NewLiveInput::default(), 1).await?;
                recordings::begin(tx, &input, BROADCAST, 1).await
            })
        });
        begun.await.unwrap();
        let uploads = Uploads::default();
        let folder = RecordedFolder::new(&store, &dir.path().join("recording"), BROADCAST);
        let site = Self {
            upload: uploads.add(folder, 1),
            uploads,
            ledger: Ledger::new(),
            store,
            dir,
        };
        site.index(&Entry::Begun {
            input: "input".into(),
            header: Header {
                broadcast: BROADCAST.into(),
                started_ms: 1,
                target_duration_s: 2,
                low_latency: false,
                fence: 1,
                boot_id: String::new(),
            },
        });
        site
    }

    /// Appends an entry to the index.
    fn index(&self, entry: &Entry) {
        let path = self.dir.path().join("recording").join(RECORDING_INDEX);
        let mut index = fs::read(&path).unwrap_or_default();
        record::encode(entry, &mut index);
        fs::write(path, index).unwrap();
    }

    fn file(&self, name: MediaName, bytes: &[u8]) {
        fs::write(self.upload.folder.file(name), bytes).unwrap();
    }

    /// Writes an init section.
    fn init(&self) {
        self.file(MediaName::Init(0), b"init");
        self.index(&Entry::Init {
            number: 0,
            info: StreamInfo {
                codecs: "avc1.64000d".into(),
                resolution: None,
                frame_rate: None,
                has_video: true,
                has_audio: false,
            },
        });
    }

    /// Writes a segment of four bytes with its entry, and returns the entry.
    fn segment(&self, msn: u64, len: u64) -> Entry {
        let entry = segment(msn, len);
        self.file(MediaName::Segment(msn), b"four");
        self.index(&entry);
        entry
    }

    async fn rounds(&self) {
        self.upload.state.lock().retry_at = None;
        while self.uploads.round(&self.store, &self.ledger).await {}
    }

    async fn names(&self) -> Vec<String> {
        let mut reader = self.store.read().await.unwrap();
        let rows = live_segments::list(&mut reader, BROADCAST).await.unwrap();
        rows.into_iter().map(|row| row.name).collect()
    }

    async fn status(&self) -> RecordingStatus {
        let mut reader = self.store.read().await.unwrap();
        let row = recordings::by_broadcast(&mut reader, BROADCAST).await;
        row.unwrap().unwrap().status
    }

    fn hide_bucket(&self, is_hidden: bool) {
        let (shown, hidden) = (self.dir.path().join("bucket"), self.dir.path().join("gone"));
        let (from, to) = match is_hidden {
            true => (shown, hidden),
            false => (hidden, shown),
        };
        fs::rename(from, to).unwrap();
    }
}

fn segment(msn: u64, len: u64) -> Entry {
    Entry::Segment(SegmentEntry {
        msn,
        init: 0,
        discontinuity: false,
        program_date_time_ms: 1,
        start_90k: 0,
        duration_90k: 90_000,
        len,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_ends_once_all_of_it_is_in_the_object_store() {
    let site = Site::open().await;
    site.init();
    site.segment(1, 4);
    site.segment(2, 0);
    site.index(&segment(3, 4));
    site.rounds().await;
    // Neither an open segment, nor one without a file.
    assert_eq!(site.names().await, ["1.m4s", "init0.mp4"]);

    let closed = site.segment(2, 4);
    site.upload.note(&segment(4, 0));
    site.upload.note(&closed);
    site.upload.note(&closed);
    site.rounds().await;
    assert_eq!(site.names().await, ["1.m4s", "2.m4s", "init0.mp4"]);
    assert_eq!(site.uploads.pending(), [BROADCAST]);

    // Its file is shorter than its entry says, and the last one was never closed.
    site.segment(5, 400);
    site.segment(6, 0);
    site.upload.end(7);
    assert_eq!(site.status().await, RecordingStatus::Recording);
    site.rounds().await;
    let all = ["1.m4s", "2.m4s", "5.m4s", "6.m4s", "init0.mp4"];
    assert_eq!(site.names().await, all);
    assert!(site.uploads.pending().is_empty());

    let stop = CancellationToken::new();
    let ledger =
        site.ledger
            .clone()
            .run(site.store.clone(), vec![BROADCAST.to_owned()], stop.clone());
    let ledger = tokio::spawn(ledger);
    until("the recording is due to be stored", async || {
        site.status().await == RecordingStatus::Processing
    })
    .await;
    stop.cancel();
    ledger.await.unwrap();

    // The next start finds nothing to do.
    let folder = RecordedFolder::new(&site.store, &site.upload.folder.path, BROADCAST);
    site.uploads.add(folder, 1).end(9);
    site.rounds().await;
    assert!(site.uploads.pending().is_empty());
    assert_eq!(site.names().await, all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_that_a_stop_cuts_short_ends_no_recording() {
    let site = Site::open().await;
    site.init();
    site.segment(1, 4);
    site.upload.end(7);
    assert!(site.upload.scan(&site.store).await.unwrap());
    assert_eq!(site.upload.next_entries().len(), 2, "the turn has them");

    let stop = CancellationToken::new();
    stop.cancel();
    let (store, ledger) = (site.store.clone(), site.ledger.clone());
    site.uploads.clone().run(store, ledger, stop).await;
    assert_eq!(site.names().await, ["1.m4s", "init0.mp4"]);
    assert_eq!(site.uploads.pending(), [BROADCAST]);
}

#[tokio::test(flavor = "multi_thread")]
async fn media_wait_on_the_disk_while_the_object_store_is_away() {
    let site = Site::open().await;
    site.rounds().await;
    site.hide_bucket(true);
    let count = QUEUE as u64 + 50;
    for msn in 0..count {
        let entry = site.segment(msn, 4);
        site.upload.note(&entry);
    }
    site.rounds().await;
    assert!(site.upload.failure().is_some());
    assert!(site.names().await.is_empty());
    assert!(site.upload.state.lock().waiting.len() <= QUEUE);
    site.upload.end(7);
    site.rounds().await;
    assert_eq!(site.uploads.pending(), [BROADCAST]);

    site.hide_bucket(false);
    site.rounds().await;
    assert_eq!(site.upload.failure(), None);
    assert_eq!(site.names().await.len() as u64, count);
    assert!(site.uploads.pending().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_the_disk_cannot_read_is_left_out_after_some_tries() {
    let site = Site::open().await;
    site.init();
    site.segment(1, 4);
    // A folder can be opened and not be read.
    let unreadable = site.upload.folder.file(MediaName::Segment(2));
    fs::create_dir_all(unreadable.join("more")).unwrap();
    site.index(&segment(2, 1));
    site.segment(3, 4);
    site.upload.end(7);
    for _ in 1..READ_TRIES {
        site.rounds().await;
        assert_eq!(site.uploads.pending(), [BROADCAST]);
        assert!(site.upload.failure().is_some());
    }
    assert_eq!(site.names().await, ["1.m4s", "3.m4s", "init0.mp4"]);
    site.rounds().await;
    assert_eq!(site.names().await, ["1.m4s", "3.m4s", "init0.mp4"]);
    assert!(site.uploads.pending().is_empty(), "the recording ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_the_disk_cannot_read_does_not_hold_up_the_end() {
    let site = Site::open().await;
    site.init();
    let noted = site.segment(1, 4);
    let index = site.upload.folder.path.join(RECORDING_INDEX);
    fs::remove_file(&index).unwrap();
    fs::create_dir(&index).unwrap();
    site.upload.note(&noted);
    site.upload.end(7);
    for _ in 1..READ_TRIES {
        site.rounds().await;
        assert_eq!(site.uploads.pending(), [BROADCAST]);
    }
    site.rounds().await;
    assert_eq!(site.names().await, ["1.m4s"]);
    assert!(site.uploads.pending().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_failed_while_its_node_was_away_is_continued() {
    let site = Site::open().await;
    site.init();
    site.segment(1, 4);
    let inputs = live_inputs::all(&mut site.store.read().await.unwrap()).await;
    let input_id = inputs.unwrap()[0].id;
    let away = site.store.write(move |tx| {
        Box::pin(async move {
            broadcasts::begin(tx, BROADCAST, input_id, 1, 1).await?;
            broadcasts::set_node(tx, BROADCAST, Uuid::from_u128(7)).await?;
            recordings::end_abandoned(tx, 8, 9).await
        })
    });
    assert_eq!(away.await.unwrap(), 1);
    assert_eq!(site.status().await, RecordingStatus::Failed);

    site.upload.end(7);
    site.rounds().await;
    assert_eq!(site.names().await, ["1.m4s", "init0.mp4"]);
    assert!(site.uploads.pending().is_empty());
    let ending = site
        .store
        .write(|tx| Box::pin(async move { recordings::end(tx, BROADCAST, 7, 10).await }));
    ending.await.unwrap();
    assert_eq!(site.status().await, RecordingStatus::Processing);
}

#[tokio::test(flavor = "multi_thread")]
async fn uploaded_segments_leave_a_disk_with_little_room() {
    let site = Site::open_with(|settings| {
        let free = rustix::fs::statvfs(&settings.data_dir).unwrap();
        let free = free.f_bavail * free.f_frsize;
        settings.min_free = format!("{} B", free / 4 * 3);
    })
    .await;
    site.init();
    site.segment(1, 4);
    site.rounds().await;
    assert_eq!(site.names().await, ["1.m4s", "init0.mp4"]);
    let is_there = |name| site.upload.folder.file(name).exists();
    assert!(!is_there(MediaName::Segment(1)) && is_there(MediaName::Init(0)));

    let media = site.upload.media(MediaName::Segment(1), 4);
    let opened = media.open().await.unwrap();
    assert_eq!(opened.size().unwrap(), 4);
    assert_eq!(media.bytes().await.unwrap(), "four");
}
