//! Delivery over a real store, with a substitute for the compute pool.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use parking_lot::Mutex;
use sluice_media::{
    av::{AvTask, MediaFacts, VideoTrack},
    format::Format,
    task::{Done, Failure, FailureCode, ImageFacts, Task},
    variant::{AcceptClass, FRAME, VariantRequest, VariantSettings},
};
use sluice_store::{
    Store, StoreSettings, accounts, blobs,
    delivery_keys::{self, NewDeliveryKey},
    files::{self, FilePatch, NewFile, Role},
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{CdnSettings, Fetched, Images, Key, Problem, VariantJob};
use crate::{
    cluster::Peers,
    component::ComponentStatuses,
    compute::{self, Assignment, Finished},
    fixtures::{Performer, image_facts, until},
    subsystem::Subsystem as _,
    tree::{self, Root},
};

const NOW: i64 = 1_795_219_200_000;

/// Renders what the test says, one task for each permit.
#[derive(Clone)]
struct Fake {
    permits: Arc<Semaphore>,
    tasks: Arc<Mutex<Vec<Task>>>,
    fails: Arc<AtomicBool>,
    in_progress: Arc<AtomicUsize>,
}

impl Fake {
    fn open() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
            ..Self::closed()
        }
    }

    fn closed() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(0)),
            tasks: Arc::default(),
            fails: Arc::default(),
            in_progress: Arc::default(),
        }
    }

    fn tasks(&self) -> Vec<Task> {
        self.tasks.lock().clone()
    }
}

impl Performer for Fake {
    async fn perform(&self, assignment: Assignment) -> Result<Finished, compute::Error> {
        self.in_progress.fetch_add(1, SeqCst);
        self.tasks.lock().push(assignment.task.clone());
        self.permits.acquire().await.unwrap().forget();
        if self.fails.load(SeqCst) {
            let code = match assignment.task {
                Task::Av(_) => FailureCode::Impossible,
                _ => FailureCode::Undecodable,
            };
            let failure = Failure::new(code, "no image");
            return Err(compute::Error::Failed(failure));
        }
        let image = matches!(assignment.task, Task::Inspect { .. }).then(photo);
        let is_probe = matches!(&assignment.task, Task::Av(task) if **task == AvTask::Probe);
        let text = format!("{:?}", assignment.task);
        Ok(Finished {
            done: Done {
                image,
                media: is_probe.then(clip),
                ..Done::default()
            },
            bytes: vec![Bytes::from(text)],
        })
    }
}

/// Facts that the substitute returns of every file.
fn photo() -> ImageFacts {
    image_facts(Format::Heif, 4032, 3024)
}

/// Facts that it returns of every clip: a portrait video of a telephone.
fn clip() -> MediaFacts {
    let track = VideoTrack {
        codec: "h264".into(),
        width: 1920,
        height: 1080,
        rotation: 90,
        frame_rate: (30_000, 1001),
        ..VideoTrack::default()
    };
    MediaFacts {
        format: Some(Format::Mov),
        duration_ms: Some(12_500),
        video: vec![track],
        ..MediaFacts::default()
    }
}

/// A running delivery with one account, key and file.
struct Site {
    images: Images,
    fake: Fake,
    store: Store,
    account_id: Uuid,
    file_id: Uuid,
    key: Arc<Key>,
    root: kameo::actor::ActorRef<Root>,
    folder: Arc<tempfile::TempDir>,
}

impl Site {
    async fn open(fake: Fake) -> Self {
        Self::open_with(fake, "image/jpeg", CdnSettings::default()).await
    }

    async fn open_with(fake: Fake, mime_type: &str, settings: CdnSettings) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let store = open_store(&folder).await;
        let account = store
            .write(|tx| Box::pin(async move { accounts::create(tx, "Default", NOW).await }))
            .await
            .unwrap();
        let new = NewDeliveryKey::default();
        let (_, token) = store
            .write(move |tx| Box::pin(delivery_keys::create(tx, account.id, new, NOW)))
            .await
            .unwrap();
        let file_id = add_file(&store, account.id, mime_type).await;
        let (images, root) = start(&store, fake.clone(), settings).await;
        Self {
            key: images.key(token.expose()).unwrap(),
            images,
            fake,
            store,
            account_id: account.id,
            file_id,
            root,
            folder,
        }
    }

    async fn wanted(&self, query: &str) -> VariantJob {
        let accept = AcceptClass::default();
        let request = VariantRequest::parse(query, &VariantSettings::default()).unwrap();
        VariantJob {
            source: self.images.source(self.file_id).await.unwrap().unwrap(),
            cache_key: request.cache_key(accept).into(),
            request: Arc::new(request),
            accept,
        }
    }

    async fn fetch(&self, query: &str) -> Result<Fetched, Problem> {
        let wanted = self.wanted(query).await;
        self.images.fetch(wanted, self.key.clone()).await
    }

    fn published(&self, query: &str) -> bool {
        let request = VariantRequest::parse(query, &VariantSettings::default()).unwrap();
        let key = request.cache_key(AcceptClass::default());
        self.images.lookup(self.file_id, &key).is_some()
    }

    async fn stop(&self) {
        self.images.close().await;
        let _ = self.root.stop_gracefully().await;
        self.root.wait_for_shutdown().await;
    }

    /// A new delivery over the same store and folder.
    async fn restart(&mut self) {
        self.stop().await;
        let (images, root) = start(&self.store, self.fake.clone(), CdnSettings::default()).await;
        (self.images, self.root) = (images, root);
    }
}

async fn open_store(folder: &tempfile::TempDir) -> Store {
    let settings = StoreSettings::without_reserve(folder.path());
    Store::open(&settings).await.unwrap()
}

async fn add_file(store: &Store, account_id: Uuid, mime_type: &str) -> Uuid {
    let mut spool = store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(b"pixels")).await.unwrap();
    let sealed = spool.seal().await.unwrap();
    let new = NewFile {
        folder_id: None,
        filename: "photo".into(),
        mime_type: mime_type.into(),
        size_bytes: 6,
        blob: sealed.blob().hash,
        role: Role::Uploaded,
        width: None,
        height: None,
        duration_ms: None,
        generation: 0,
    };
    store
        .write(move |tx| {
            Box::pin(async move {
                blobs::record(tx, &sealed, NOW).await?;
                Ok(files::create(tx, account_id, new, NOW).await?.id)
            })
        })
        .await
        .unwrap()
}

async fn start(
    store: &Store,
    fake: Fake,
    settings: CdnSettings,
) -> (Images, kameo::actor::ActorRef<Root>) {
    let images = Images::new(
        settings,
        store.clone(),
        fake,
        BTreeMap::new(),
        Duration::from_secs(5),
        Peers::new(store),
    );
    images.load().await.unwrap();
    let root = Root::start(tree::Args {
        components: images.components(),
        component_statuses: ComponentStatuses::default(),
        lost: CancellationToken::new(),
    });
    until("the shards run", async || {
        images.shards.iter().all(|shard| shard.get().is_some())
    })
    .await;
    (images, root)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_equal_requests_make_one_render() {
    let site = Site::open(Fake::closed()).await;
    let wanted = site.wanted("w=100").await;
    let asking = (0..1000).map(|_| {
        let (images, wanted, key) = (site.images.clone(), wanted.clone(), site.key.clone());
        tokio::spawn(async move { images.fetch(wanted, key).await })
    });
    let asking: Vec<_> = asking.collect();
    until("a render is in progress", async || {
        site.fake.in_progress.load(SeqCst) > 0
    })
    .await;
    // Some leave before it is done; the others get it all the same.
    for leaving in &asking[..100] {
        leaving.abort();
    }
    site.fake.permits.add_permits(10);
    for outcome in join_all(asking).await {
        match outcome {
            Ok(fetched) => drop(fetched.unwrap()),
            Err(left) => assert!(left.is_cancelled()),
        }
    }
    assert_eq!(site.images.statistics().renders, 1);
    assert!(site.published("w=100"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_render_continues_when_everyone_has_left() {
    let site = Site::open(Fake::closed()).await;
    let wanted = site.wanted("w=100").await;
    let leaving = {
        let (images, key) = (site.images.clone(), site.key.clone());
        tokio::spawn(async move { images.fetch(wanted, key).await })
    };
    until("a render is in progress", async || {
        site.fake.in_progress.load(SeqCst) > 0
    })
    .await;
    leaving.abort();
    site.fake.permits.add_permits(1);
    until("it is published", async || site.published("w=100")).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_is_remembered_for_a_while() {
    let settings = CdnSettings {
        remember_failures: Duration::from_millis(200),
        ..CdnSettings::default()
    };
    let site = Site::open_with(Fake::open(), "image/jpeg", settings).await;
    site.fake.fails.store(true, SeqCst);
    for _ in 0..5 {
        assert!(matches!(site.fetch("w=100").await, Err(Problem::Failed(_))));
    }
    assert_eq!(site.fake.tasks().len(), 1);
    site.fake.fails.store(false, SeqCst);
    until("it is tried again", async || {
        site.fetch("w=100").await.is_ok()
    })
    .await;
    assert_eq!(site.fake.tasks().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_purge_reaches_memory_disk_and_what_is_on_its_way() {
    let site = Site::open(Fake::closed()).await;
    site.fake.permits.add_permits(1);
    site.fetch("w=1").await.unwrap();
    until("it is on disk", async || {
        site.images.statistics().disk_bytes > 0
    })
    .await;
    let on_its_way = {
        let (images, wanted, key) = (
            site.images.clone(),
            site.wanted("w=2").await,
            site.key.clone(),
        );
        tokio::spawn(async move { images.fetch(wanted, key).await })
    };
    until("a render is in progress", async || {
        site.fake.in_progress.load(SeqCst) == 2
    })
    .await;

    let before = site.wanted("w=3").await;
    assert_eq!(site.images.purge_file(site.file_id).await, 1);
    site.fake.permits.add_permits(9);
    assert_eq!(on_its_way.await.unwrap().unwrap_err(), Problem::Stale);
    assert!(!site.published("w=1") && !site.published("w=2"));
    assert_eq!(site.images.statistics().disk_bytes, 0);
    // What was known before the purge starts nothing any more.
    let late = site.images.fetch(before, site.key.clone()).await;
    assert_eq!(late.unwrap_err(), Problem::Stale);
    assert!(site.fetch("w=2").await.unwrap().rendered);
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_follow_the_file() {
    let site = Site::open(Fake::open()).await;
    let (account_id, file_id) = (site.account_id, site.file_id);
    let missing = Uuid::now_v7();
    assert!(site.images.source(missing).await.unwrap().is_none());
    let first = site.images.source(file_id).await.unwrap().unwrap();
    assert_eq!(first.focal_point, None);
    let patch = FilePatch {
        focal_point: Some(Some((0.25, 0.75))),
        ..FilePatch::default()
    };
    site.store
        .write(move |tx| Box::pin(files::patch(tx, account_id, file_id, patch, NOW + 1)))
        .await
        .unwrap();
    site.images.purge_file(file_id).await;
    let second = site.images.source(file_id).await.unwrap().unwrap();
    assert_eq!(second.focal_point, Some((0.25, 0.75)));
    assert!(!first.is_current() && second.is_current());
    assert_ne!(first.stamp(), second.stamp());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_disk_tier_survives_a_restart_and_damage_is_a_miss() {
    let mut site = Site::open(Fake::open()).await;
    let first = site.fetch("w=100&format=png").await.unwrap();
    until("it is on disk", async || {
        site.images.statistics().disk_bytes > 0
    })
    .await;
    site.restart().await;
    let again = site.fetch("format=png&w=100").await.unwrap();
    assert!(!again.rendered);
    assert_eq!(
        (
            &again.entry.body,
            &again.entry.etag,
            &again.entry.content_type
        ),
        (
            &first.entry.body,
            &first.entry.etag,
            &first.entry.content_type
        )
    );
    assert_eq!(again.entry.last_modified, first.entry.last_modified);

    let kept = walk(&site.folder.path().join("cache"));
    assert_eq!(kept.len(), 1, "{kept:?}");
    let image = std::fs::read(&kept[0]).unwrap();
    let mut flipped = image.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for damaged in [
        &image[..3],
        &image[..20],
        &image[..image.len() - 1],
        &flipped,
        b"",
    ] {
        std::fs::write(&kept[0], damaged).unwrap();
        site.restart().await;
        let renders = site.images.statistics().renders;
        assert!(site.fetch("w=100&format=png").await.unwrap().rendered);
        assert_eq!(site.images.statistics().renders, renders + 1);
        until("it is whole again", async || {
            std::fs::read(&kept[0]).is_ok_and(|now| now == image)
        })
        .await;
    }
}

/// Files below a folder.
fn walk(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(walk(&path));
        } else {
            found.push(path);
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn variants_of_files_that_are_gone_do_not_survive_a_start() {
    let mut site = Site::open(Fake::open()).await;
    site.fetch("w=100").await.unwrap();
    until("it is on disk", async || {
        site.images.statistics().disk_bytes > 0
    })
    .await;
    let (account_id, file_id) = (site.account_id, site.file_id);
    // A crash between the commit and the purge.
    site.store
        .write(move |tx| {
            Box::pin(async move { files::delete(tx, account_id, file_id).await.map(drop) })
        })
        .await
        .unwrap();
    site.restart().await;
    assert_eq!(site.images.statistics().disk_bytes, 0);
    assert_eq!(walk(&site.folder.path().join("cache")).len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn new_variants_are_bounded_and_known_ones_are_not() {
    let settings = CdnSettings {
        new_variants_per_minute: 2,
        ..CdnSettings::default()
    };
    let site = Site::open_with(Fake::open(), "image/jpeg", settings).await;
    for query in ["w=1", "w=2"] {
        site.fetch(query).await.unwrap();
    }
    let refused = site.fetch("w=3").await.unwrap_err();
    assert!(matches!(
        refused,
        Problem::TooManyNew {
            retry_after_s: 1..=60
        }
    ));
    site.fetch("w=1").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_costly_source_is_opened_once_for_all_small_variants() {
    let site = Site::open_with(Fake::open(), "image/heif", CdnSettings::default()).await;
    let widths = ["w=320", "w=640", "w=960", "w=1280"];
    for outcome in join_all(widths.map(|query| site.fetch(query))).await {
        outcome.unwrap();
    }
    let sources: Vec<Format> = site
        .fake
        .tasks()
        .iter()
        .map(|task| match task {
            Task::Inspect { format } => *format,
            Task::Render(render) => render.source,
            other => panic!("{other:?}"),
        })
        .collect();
    let count = |format| sources.iter().filter(|source| **source == format).count();
    // One look, one mezzanine, and every variant from that.
    assert_eq!((count(Format::Heif), count(Format::Jpg)), (2, 4));
    assert_eq!(site.images.statistics().mezzanines, 1);
    site.fetch("w=3000").await.unwrap();
    let Some(Task::Render(large)) = site.fake.tasks().pop() else {
        panic!("a render");
    };
    assert_eq!(large.source, Format::Heif);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_is_bounded_and_keeps_what_is_used() {
    let settings = CdnSettings {
        // 8 KiB for the part of this file; an entry takes about 2.
        memory: bytesize::ByteSize::kib(64),
        disk: bytesize::ByteSize(0),
        ..CdnSettings::default()
    };
    let site = Site::open_with(Fake::open(), "image/jpeg", settings).await;
    site.fetch("w=1").await.unwrap();
    for width in 2..50 {
        assert!(site.published("w=1"), "used again and again: {width}");
        site.fetch(&format!("w={width}")).await.unwrap();
    }
    assert!(!site.published("w=2"));
    assert!(site.images.statistics().memory_bytes <= 8 * 1024);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_image_is_said_so() {
    let site = Site::open_with(Fake::open(), "application/zip", CdnSettings::default()).await;
    for query in ["w=100", "format=json", "format=blurhash"] {
        let Err(Problem::Failed(failure)) = site.fetch(query).await else {
            panic!("{query}");
        };
        assert_eq!(failure.code, FailureCode::UnsupportedType);
    }
    assert_eq!(site.fake.tasks(), []);
}

/// Seconds of the frames that were taken out of clips, and how many images were made of them.
fn frames_and_renders(tasks: &[Task]) -> (Vec<f64>, usize) {
    let mut taken = Vec::new();
    let mut made = 0;
    for task in tasks {
        match task {
            Task::Av(task) => match &**task {
                AvTask::Still(still) => taken.push(still.at_s),
                other => panic!("{other:?}"),
            },
            Task::Render(render) => {
                assert_eq!(render.source, FRAME);
                made += 1;
            }
            Task::Placeholder { source, .. } => {
                assert_eq!(*source, FRAME);
                made += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    (taken, made)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_is_taken_out_of_a_clip_once() {
    let mut site = Site::open_with(Fake::open(), "video/mp4", CdnSettings::default()).await;
    for query in ["w=100", "w=50&t=1.0", "f=blurhash", "w=8000&f=png", "w=100"] {
        site.fetch(query).await.unwrap();
    }
    assert_eq!(frames_and_renders(&site.fake.tasks()), (vec![1.0], 4));
    site.fetch("w=100&t=2.5").await.unwrap();
    assert_eq!(frames_and_renders(&site.fake.tasks()), (vec![1.0, 2.5], 5));
    assert_eq!(site.images.statistics().mezzanines, 2);

    until("all of it is on disk", async || {
        walk(&site.folder.path().join("cache")).len() == 7
    })
    .await;
    site.restart().await;
    assert!(!site.fetch("w=100&t=2.5").await.unwrap().rendered);
    site.fetch("w=60&t=2.5").await.unwrap();
    assert_eq!(frames_and_renders(&site.fake.tasks()), (vec![1.0, 2.5], 6));

    site.images.purge_file(site.file_id).await;
    assert_eq!(walk(&site.folder.path().join("cache")).len(), 0);
    site.fetch("w=60&t=2.5").await.unwrap();
    assert_eq!(
        frames_and_renders(&site.fake.tasks()),
        (vec![1.0, 2.5, 2.5], 7)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_of_a_clip_are_those_of_its_frame_as_shown() {
    let site = Site::open_with(Fake::open(), "video/quicktime", CdnSettings::default()).await;
    let fetched = site.fetch("format=json&t=5").await.unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&fetched.entry.body).unwrap();
    assert_eq!(facts["width"], 1080);
    assert_eq!(facts["height"], 1920);
    assert_eq!(facts["duration"], 12.5);
    assert_eq!(facts["videoCodec"], "h264");
    assert_eq!(facts["audioCodec"], serde_json::Value::Null);
    assert!(!site.fetch("format=json").await.unwrap().rendered);
    assert_eq!(site.fake.tasks(), [Task::Av(Box::new(AvTask::Probe))]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audio_file_is_delivered_as_its_cover_and_nothing_without_one() {
    let site = Site::open_with(Fake::open(), "audio/mpeg", CdnSettings::default()).await;
    site.fetch("w=100").await.unwrap();
    site.fetch("w=50&t=9").await.unwrap();
    assert_eq!(frames_and_renders(&site.fake.tasks()), (vec![0.0], 2));
    site.images.purge_file(site.file_id).await;
    site.fake.fails.store(true, SeqCst);
    for _ in 0..3 {
        let Err(Problem::Failed(failure)) = site.fetch("w=100").await else {
            panic!("no cover, no image");
        };
        assert_eq!(failure.code, FailureCode::UnsupportedType);
    }
    // The failure is remembered.
    assert_eq!(site.fake.tasks().len(), 4);
}

/// Checks what a node does with the changes of other nodes, which its own use cases do not bring.
#[tokio::test(flavor = "multi_thread")]
async fn files_are_compared_with_their_rows_after_a_change_elsewhere() {
    let site = Site::open(Fake::open()).await;
    let (account_id, file_id) = (site.account_id, site.file_id);
    site.fetch("w=1").await.unwrap();
    let first = site.images.source(file_id).await.unwrap().unwrap();
    let renamed = FilePatch {
        filename: Some("other".into()),
        ..FilePatch::default()
    };
    let refocused = FilePatch {
        focal_point: Some(Some((0.25, 0.75))),
        ..FilePatch::default()
    };
    for (patch, is_kept) in [(renamed, true), (refocused, false)] {
        site.store
            .write(move |tx| Box::pin(files::patch(tx, account_id, file_id, patch, NOW + 1)))
            .await
            .unwrap();
        site.images.files_changed(&[file_id]).await.unwrap();
        assert_eq!(
            (first.is_current(), site.published("w=1")),
            (is_kept, is_kept)
        );
    }
    let second = site.images.source(file_id).await.unwrap().unwrap();
    assert_eq!(second.focal_point, Some((0.25, 0.75)));
    site.store
        .write(move |tx| Box::pin(files::delete(tx, account_id, file_id)))
        .await
        .unwrap();
    site.images.files_changed(&[file_id]).await.unwrap();
    assert!(!second.is_current());
    assert!(site.images.source(file_id).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_an_account_are_forgotten_and_those_of_others_are_not() {
    let site = Site::open(Fake::open()).await;
    site.fetch("w=1").await.unwrap();
    let source = site.images.source(site.file_id).await.unwrap().unwrap();
    site.images.forget_files(Some(Uuid::now_v7()));
    assert!(source.is_current() && site.published("w=1"));
    site.images.forget_files(Some(site.account_id));
    assert!(!source.is_current() && !site.published("w=1"));
    assert_eq!(site.images.statistics().memory_bytes, 0);
    let source = site.images.source(site.file_id).await.unwrap().unwrap();
    site.images.forget_files(None);
    assert!(!source.is_current());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_cut_off_compares_files_with_their_rows() {
    let site = Site::open(Fake::open()).await;
    let (account_id, file_id) = (site.account_id, site.file_id);
    site.fetch("w=1").await.unwrap();
    site.images.services.is_cut_off.store(true, SeqCst);
    assert!(!site.published("w=1"));
    let same = site.fetch("w=1").await.unwrap();
    assert!(!same.rendered, "its row is the same");
    let refocused = FilePatch {
        focal_point: Some(Some((0.25, 0.75))),
        ..FilePatch::default()
    };
    site.store
        .write(move |tx| Box::pin(files::patch(tx, account_id, file_id, refocused, NOW + 1)))
        .await
        .unwrap();
    assert!(site.fetch("w=1").await.unwrap().rendered, "it changed");
    site.store.close().await;
    let unread = site.images.source(file_id).await;
    assert!(matches!(unread, Err(crate::Error::Busy(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn another_node_is_answered_from_the_tiers_or_by_a_render() {
    let site = Site::open(Fake::open()).await;
    let source = site.images.source(site.file_id).await.unwrap().unwrap();
    let asked = |query: &str, may_render: u8, stamp: &str| {
        let flags = format!("avifInAuto=0&webp=1&avif=0&render={may_render}");
        let request = query.replace('=', "%3D");
        format!("{}?request={request}&{flags}&stamp={stamp}", source.id)
    };
    let stamp = source.stamp();
    for (query, may_render, stamp, status) in [
        ("w=1", 0, stamp.as_str(), 404),
        ("w=1", 1, stamp.as_str(), 201),
        ("w=1", 1, stamp.as_str(), 200),
        ("w=1", 0, stamp.as_str(), 200),
        ("w=1", 1, "another", 409),
        ("w=0", 1, stamp.as_str(), 400),
    ] {
        let asked = asked(query, may_render, stamp);
        let answer = site.images.answer_node(&asked).await;
        assert_eq!(answer.status, status, "{asked}");
        if status <= 201 {
            let accept = AcceptClass {
                webp: true,
                avif: false,
            };
            let request = VariantRequest::parse(query, &VariantSettings::default()).unwrap();
            let key = request.cache_key(accept);
            let read = super::disk::file::parse(answer.body, &source, &key).unwrap();
            let kept = site.images.lookup(source.id, &key).unwrap();
            assert_eq!(
                (read.body, read.etag),
                (kept.body.clone(), kept.etag.clone())
            );
        }
    }
    assert_eq!(site.images.statistics().renders, 1);
    site.fake.fails.store(true, SeqCst);
    let failed = site.images.answer_node(&asked("w=2", 1, &stamp)).await;
    assert_eq!(failed.status, 422);
    let failure: Failure = serde_json::from_slice(&failed.body).unwrap();
    assert_eq!(failure.code, FailureCode::Undecodable);
    site.store.close().await;
    let unread = site.images.answer_node(&asked("w=1", 1, "another")).await;
    assert_eq!(unread.status, 503, "what cannot be read has not changed");
}
