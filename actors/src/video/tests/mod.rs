//! Streams over a real store and faked workers: interrupted work continues, and nothing is doubled.

mod crashes;
mod ends;
mod fake;
mod objects;
mod playing;
mod waiting;

use std::sync::{Arc, atomic::Ordering::SeqCst};

use bytes::Bytes;
use kameo::actor::ActorRef;
use serde_json::Value;
use sluice_store::{
    Store, StoreSettings, blobs,
    jobs::Allowance,
    now_ms, operations, storage,
    video::{
        self, Access, CustomRendition, Folder, MediaFile, NewStream, Rendition, RenditionKind,
        Segment, Stream, StreamSource, StreamStatus, Submitted,
    },
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use self::fake::{Fake, IMAGE, INIT_BYTES, SEGMENT_BYTES, SEGMENT_S, content};
use super::{Playback, StreamProgress, StreamSettings, Track, VideoStreams};
use crate::{
    component::ComponentStatuses,
    durable::workers::Workers,
    events::tests::feed,
    fixtures::{account, until},
    subsystem::Subsystem as _,
    tree::{self, Root},
};

/// Segments of the streams of these tests.
const SEGMENTS: u32 = 5;

/// A process with a data folder: it can be killed and started again.
struct Site {
    folder: tempfile::TempDir,
    store: Store,
    workers: Arc<Fake>,
    streams: VideoStreams,
    root: ActorRef<Root>,
    account: Uuid,
}

impl Site {
    async fn open() -> Self {
        Self::with(SEGMENTS).await
    }

    async fn with(segments: u32) -> Self {
        Self::at(tempfile::tempdir().unwrap(), segments).await
    }

    async fn at(folder: tempfile::TempDir, segments: u32) -> Self {
        let (store, workers) = (open_store(&folder).await, Arc::new(Fake::of(segments)));
        let account = account(&store).await;
        let (streams, root) = start(&store, workers.clone());
        Self {
            folder,
            store,
            workers,
            streams,
            root,
            account,
        }
    }

    /// Ends everything without a word, and starts again on the same folder.
    async fn kill_and_start(&mut self) {
        self.kill().await;
        self.start().await;
    }

    async fn kill(&mut self) {
        self.root.kill();
        self.root.wait_for_shutdown().await;
        until("nothing runs", async || {
            self.workers.running.load(SeqCst) == 0
        })
        .await;
        self.store.close().await;
        let left = self.workers.rounds.available_permits();
        self.workers.rounds.forget_permits(left);
    }

    async fn start(&mut self) {
        self.start_with(self.workers.clone()).await;
    }

    async fn start_with(&mut self, workers: Arc<dyn Workers>) {
        self.store = open_store(&self.folder).await;
        (self.streams, self.root) = start(&self.store, workers);
    }

    /// Returns a stream with two video renditions, and audio.
    async fn new_stream(&self) -> NewStream {
        let mut spool = self.store.blobs().spool().await.unwrap();
        spool.write(Bytes::from_static(b"a clip")).await.unwrap();
        let sealed = spool.seal().await.unwrap();
        let blob = sealed.blob().hash;
        self.store
            .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, now_ms()).await }))
            .await
            .unwrap();
        let rendition = |height| CustomRendition {
            height,
            bitrate: None,
        };
        NewStream {
            account_id: self.account,
            source: StreamSource {
                blob,
                filename: "clip.mp4".into(),
                file_id: None,
            },
            title: "A clip".into(),
            profile: "custom".into(),
            custom_renditions: vec![rendition(90), rendition(180)],
            segment_duration_s: SEGMENT_S,
            access: Access::Public,
            token_ttl_s: None,
            allowed_domains: Vec::new(),
            allowance: Allowance::default(),
            idempotency: None,
        }
    }

    async fn create(&self) -> Stream {
        let new = self.new_stream().await;
        self.submit(new).await
    }

    async fn submit(&self, new: NewStream) -> Stream {
        match self.streams.create(new, Vec::new()).await.unwrap() {
            Submitted::New(stream) => *stream,
            other => panic!("{other:?}"),
        }
    }

    async fn stream(&self, id: Uuid) -> Stream {
        video::by_id(&mut self.store.read().await.unwrap(), id)
            .await
            .unwrap()
    }

    async fn until_status(&self, id: Uuid, status: StreamStatus) -> Stream {
        let what = format!("the stream is {}", status.as_str());
        until(&what, async || self.stream(id).await.status == status).await;
        self.stream(id).await
    }

    /// Until that many segments of every rendition have rows.
    async fn until_recorded(&self, id: Uuid, segments: u32) {
        let what = format!("{segments} segments of every rendition are recorded");
        until(&what, async || {
            let mut reader = self.store.read().await.unwrap();
            let renditions = video::renditions(&mut reader, id).await.unwrap();
            !renditions.is_empty() && renditions.iter().all(|it| it.segment_count >= segments)
        })
        .await;
    }

    /// Until a ladder waits for its next round.
    async fn until_running(&self, ladders: usize) {
        until("a ladder runs", async || {
            self.workers.began.lock().len() >= ladders
        })
        .await;
    }

    async fn playback(&self, stream: &Stream) -> Arc<Playback> {
        self.streams.playback(&stream.playback_id).await.unwrap()
    }

    async fn used(&self) -> u64 {
        let mut reader = self.store.read().await.unwrap();
        operations::used(&mut reader, self.account, now_ms())
            .await
            .unwrap()
            .operations
    }

    async fn stored_bytes(&self) -> u64 {
        let mut reader = self.store.read().await.unwrap();
        storage::totals(&mut reader, self.account)
            .await
            .unwrap()
            .bytes
    }

    /// Returns the events of a stream: their types, each with its data.
    async fn events(&self, id: Uuid) -> Vec<(String, Value)> {
        let mut events = feed(&self.store, self.account).await;
        events.retain(|(_, data)| data["streamId"] == id.to_string());
        events
    }

    async fn event_types(&self, id: Uuid) -> Vec<String> {
        let events = self.events(id).await.into_iter();
        events.map(|(event_type, _)| event_type).collect()
    }

    fn place(&self, id: Uuid) -> std::path::PathBuf {
        self.folder.path().join("video").join(id.to_string())
    }

    fn file(&self, id: Uuid, name: &str) -> std::path::PathBuf {
        let file = MediaFile::Rendition(name.to_owned());
        Folder::of(&self.store, id).path(&file)
    }

    /// Checks that the stream is as if nothing had happened.
    async fn check_whole(&self, id: Uuid, segments: u32) {
        let stream = self.stream(id).await;
        assert_eq!(stream.status, StreamStatus::Ready, "{stream:?}");
        assert!(stream.playable && stream.ready_at.is_some());
        assert_eq!((stream.progress, stream.source_blob), (100, None));
        let playback = self.playback(&stream).await;
        let names: Vec<_> = playback
            .tracks
            .iter()
            .map(|track| track.rendition.name.as_str())
            .collect();
        assert_eq!(names, ["90p", "180p", "audio"]);
        for (number, track) in playback.tracks.iter().enumerate() {
            self.check_track(id, number, track, segments);
        }
        let bytes = 3 * (INIT_BYTES + u64::from(segments) * SEGMENT_BYTES) + 3 * IMAGE.len() as u64;
        assert_eq!(stream.size_bytes.unsigned_abs(), bytes);
        assert_eq!(
            self.event_types(id).await,
            ["video.stream.started", "video.stream.ready"]
        );
    }

    /// Rows and file have each segment once.
    fn check_track(&self, id: Uuid, number: usize, track: &Track, segments: u32) {
        let file = std::fs::read(self.file(id, &track.rendition.name)).unwrap();
        let mut expected = vec![b'i'; INIT_BYTES as usize];
        for segment in 0..segments {
            expected.extend(content(number, segment));
        }
        assert!(file == expected, "{}", track.rendition.name);
        let numbers: Vec<u32> = track.segments.iter().map(|it| it.number).collect();
        assert_eq!(numbers, (0..segments).collect::<Vec<_>>());
        assert_eq!(track.rendition.segment_count, segments);
        assert_eq!(track.rendition.size_bytes.unsigned_abs(), file.len() as u64);
        for segment in &track.segments {
            let at = usize::try_from(segment.offset).unwrap();
            let bytes = &file[at..at + usize::try_from(segment.length).unwrap()];
            assert_eq!(bytes, content(number, segment.number));
        }
    }
}

/// Without a bound of the disk, which tests share with others; with the object store `bucket` when there is one.
async fn open_store(folder: &tempfile::TempDir) -> Store {
    let mut settings = StoreSettings::without_reserve(folder.path());
    let bucket = folder.path().join("bucket");
    if bucket.exists() {
        settings.objects_url = format!("file://{}", bucket.display());
    }
    Store::open(&settings).await.unwrap()
}

fn start(store: &Store, workers: Arc<dyn Workers>) -> (VideoStreams, ActorRef<Root>) {
    let streams = VideoStreams::over(
        StreamSettings {
            max_cached: 2,
            ..StreamSettings::default()
        },
        store.clone(),
        workers,
        "https://media.example/".into(),
    );
    let root = Root::start(tree::Args {
        components: streams.components(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    });
    (streams, root)
}

/// A rendition with segments of 100 bytes and a second each, after an init section of 10 bytes.
pub(super) fn track(number: u8, kind: RenditionKind, count: u32) -> Track {
    let segments = (0..count).map(|at| Segment {
        rendition: number,
        number: at,
        offset: 10 + 100 * u64::from(at),
        length: 100,
        start_90k: 90_000 * i64::from(at),
        duration_90k: 90_000,
        key_length: 40,
    });
    Track {
        segments: segments.collect(),
        rendition: Rendition {
            stream_id: Uuid::nil(),
            number,
            name: format!("r{number}"),
            kind,
            width: None,
            height: None,
            bitrate: 1_000,
            max_bitrate: 1_500,
            is_copy: false,
            codecs: None,
            frame_rate: None,
            init_length: Some(10),
            segment_count: count,
            size_bytes: 10 + 100 * i64::from(count),
            duration_90k: 90_000 * i64::from(count),
        },
    }
}
