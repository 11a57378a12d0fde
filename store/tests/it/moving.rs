//! Moves to PostgreSQL and an object store and back: everything arrives, what was interrupted is continued, what is damaged is
//! named, and no service starts where it must not. Moves to PostgreSQL need `SLUICE_TEST_POSTGRES`.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use bytes::Bytes;
use sluice_store::{
    Error, Store, StoreSettings,
    blob::BlobHash,
    events::{self, Audience, EventPosition, NewEvent},
    files,
    files::FilePatch,
    folders,
    live_inputs::{self, NewLiveInput},
    moving::{self, MoveOptions, MoveProgress, Moved},
    now_ms, storage,
    tus::{self, Bounds, Claim, NewTusUpload, Step},
    webhooks::{self, NewEndpoint},
    write_tx,
};
use sqlx::{
    ConnectOptions as _, Connection as _, SqliteConnection, query, query_scalar,
    sqlite::SqliteConnectOptions,
};
use tempfile::TempDir;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::{
    blobs::add_file,
    files::{add_folder, change},
    support::{NOW, add_account, settings, sqlite_settings},
};

/// Files of a scene, one of which has two pieces.
const FILES: usize = 30;
const LARGE: usize = (8 << 20) + 5;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A stopped service on SQLite, and places to which it moves.
struct Scene {
    data: TempDir,
    place: TempDir,
    account: Uuid,
    files: Vec<files::File>,
    folders: Vec<Uuid>,
    input: Uuid,
    /// Answers of its verbs before.
    before: Vec<String>,
}

fn content(number: usize) -> Vec<u8> {
    match number {
        0 => vec![7; LARGE],
        1 => Vec::new(),
        _ => format!("file {number}").into_bytes(),
    }
}

fn event(account_id: Uuid) -> NewEvent {
    NewEvent {
        account_id,
        event_type: "file.uploaded",
        audience: Audience::Everyone,
        also: Vec::new(),
        resource: "file:1".to_owned(),
        place: EventPosition::Next,
        data: serde_json::Map::new(),
    }
}

async fn note(store: &Store, account: Uuid) -> i64 {
    let event = event(account);
    let noted = store.write(move |tx| Box::pin(events::append(tx, event, NOW)));
    noted.await.unwrap().seq
}

impl Scene {
    async fn new() -> Self {
        let (data, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(place.path().join("objects")).unwrap();
        let store = Store::open(&sqlite_settings(data.path())).await.unwrap();
        let account = add_account(&store, "someone").await.unwrap();
        let top = add_folder(&store, account, "top", None).await.unwrap();
        let below = add_folder(&store, account, "below", Some(top.id))
            .await
            .unwrap();
        // An older row refers to a newer one.
        let late = add_folder(&store, account, "late", None).await.unwrap();
        crate::files::move_folder(&store, account, top.id, Some(late.id))
            .await
            .unwrap();
        let mut files = Vec::new();
        for number in 0..FILES {
            let name = format!("{number}.txt");
            files.push(add_file(&store, account, &content(number), &name).await);
        }
        let patch = FilePatch {
            folder_id: Some(Some(below.id)),
            tags: Some(vec!["sea".into(), "ü".into()]),
            focal_point: Some(Some((0.25, 0.75))),
            ..FilePatch::default()
        };
        files[2] = change(&store, account, files[2].id, patch).await.unwrap();
        let endpoint = NewEndpoint {
            url: "https://example.com/hook".into(),
            event_types: vec!["*".into()],
            description: None,
            is_active: true,
        };
        let made =
            store.write(move |tx| Box::pin(webhooks::create(tx, account, endpoint, 10, NOW)));
        made.await.unwrap();
        for _ in 0..5 {
            note(&store, account).await;
        }
        let input = NewLiveInput::default();
        let made = store.write(move |tx| Box::pin(live_inputs::create(tx, account, input, NOW)));
        let input = made.await.unwrap().0.id;
        let mut scene = Self {
            data,
            place,
            account,
            files,
            folders: vec![top.id, below.id, late.id],
            input,
            before: Vec::new(),
        };
        scene.before = scene.listed(&store).await;
        store.close().await;
        scene
    }

    fn settings(&self) -> StoreSettings {
        sqlite_settings(self.data.path())
    }

    /// The settings with the object store.
    fn with_objects(&self) -> StoreSettings {
        StoreSettings {
            objects_url: format!("file://{}", self.place.path().join("objects").display()),
            ..self.settings()
        }
    }

    /// The settings with the object store and PostgreSQL; `None` without one.
    fn on_postgres(&self) -> Option<StoreSettings> {
        let there = settings(self.place.path());
        there.is_on_postgres().then(|| StoreSettings {
            database_url: there.database_url,
            database_schema: there.database_schema,
            ..self.with_objects()
        })
    }

    fn back_folder(&self) -> PathBuf {
        self.place.path().join("back")
    }

    /// Lists what the verbs of a store say about everything.
    async fn listed(&self, store: &Store) -> Vec<String> {
        let mut listed = Vec::new();
        let mut reader = store.read().await.unwrap();
        for file in &self.files {
            let file = files::get(&mut reader, self.account, file.id).await;
            listed.push(format!("{:?}", file.unwrap()));
        }
        for folder in &self.folders {
            let folder = folders::get(&mut reader, self.account, *folder).await;
            listed.push(format!("{:?}", folder.unwrap()));
        }
        let input = live_inputs::get(&mut reader, self.account, self.input).await;
        listed.push(format!("{:?}", input.unwrap()));
        let totals = storage::totals(&mut reader, self.account).await;
        listed.push(format!("{:?}", totals.unwrap()));
        let feed = events::after(&mut reader, self.account, 0, 100).await;
        listed.push(format!("{:?}", feed.unwrap()));
        listed
    }

    /// Starts a service with what has arrived: it has everything, and continues.
    async fn check(&self, settings: &StoreSettings) {
        let store = Store::open(settings).await.unwrap();
        assert_eq!(self.listed(&store).await, self.before);
        for (number, file) in self.files.iter().enumerate() {
            assert_eq!(read(&store, &file.blob).await, content(number), "{number}");
        }
        let last = events::newest(&mut store.read().await.unwrap(), self.account).await;
        assert_eq!(note(&store, self.account).await, last.unwrap() + 1);
        // Triggers keep their sums.
        let folder = Some(Some(self.folders[0]));
        let patch = FilePatch {
            folder_id: folder,
            tags: Some(Vec::new()),
            ..FilePatch::default()
        };
        change(&store, self.account, self.files[2].id, patch)
            .await
            .unwrap();
        add_file(&store, self.account, b"another", "another").await;
        store.close().await;
    }

    fn blob(&self, number: usize) -> PathBuf {
        let name = self.files[number].blob.to_string();
        let blobs = self.data.path().join("blobs");
        blobs.join(&name[..2]).join(&name[2..])
    }

    async fn database(&self) -> SqliteConnection {
        database(self.data.path()).await
    }
}

async fn database(data_dir: &Path) -> SqliteConnection {
    let options = SqliteConnectOptions::new().filename(data_dir.join("sluice.db"));
    options.connect().await.unwrap()
}

/// Blobs whose bytes are only in the folder.
async fn in_folder(data_dir: &Path) -> i64 {
    let mut connection = database(data_dir).await;
    let count = query_scalar("SELECT count(*) FROM blobs WHERE base IS NULL")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    count
}

async fn read(store: &Store, hash: &BlobHash) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = store.blobs().open(hash).await.unwrap();
    file.read_to_end(&mut bytes).unwrap();
    bytes
}

async fn forward(from: &StoreSettings, to: &StoreSettings) -> Result<Moved, Error> {
    moving::forward(from, to, MoveOptions::default()).await
}

async fn back(from: &StoreSettings, folder: &Path) -> Result<Moved, Error> {
    moving::back(from, folder, MoveOptions::default()).await
}

fn skipping() -> MoveOptions {
    MoveOptions {
        skip_damaged: true,
        ..MoveOptions::default()
    }
}

/// Options of a move that is asked to stop at the first progress of a kind.
fn stopping(
    at: impl Fn(&MoveProgress) -> bool + Send + 'static,
) -> (MoveOptions, oneshot::Receiver<()>) {
    let (stop, stopped) = oneshot::channel();
    let mut stop = Some(stop);
    let options = MoveOptions {
        watch: Box::new(move |progress| {
            if at(&progress)
                && let Some(stop) = stop.take()
            {
                let _ = stop.send(());
            }
        }),
        ..MoveOptions::default()
    };
    (options, stopped)
}

/// Runs a move until it is stopped; it is dropped then, as by a kill.
async fn interrupt(
    moved: impl Future<Output = Result<Moved, Error>>,
    stopped: oneshot::Receiver<()>,
) {
    tokio::select! {
        biased;
        _ = stopped => {}
        moved = moved => panic!("not stopped: {moved:?}"),
    }
}

fn conflict<T: std::fmt::Debug>(outcome: Result<T, Error>) -> String {
    match outcome {
        Err(Error::Conflict(text)) => text,
        other => panic!("{other:?}"),
    }
}

async fn start(settings: &StoreSettings) -> Result<(), Error> {
    let store = Store::open(settings).await?;
    store.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn files_move_to_an_object_store_in_place() {
    let scene = Scene::new().await;
    let target = scene.with_objects();
    let (options, stopped) = stopping(|progress| match progress {
        MoveProgress::Bytes(bytes) => bytes.count > 3,
        _ => false,
    });
    let settings = scene.settings();
    let moved = moving::forward(&settings, &target, options);
    interrupt(moved, stopped).await;

    let moved = forward(&scene.settings(), &target).await.unwrap();
    assert!(moved.is_finished && moved.rows == 0);
    assert!(moved.blobs.brought < FILES as u64, "{moved:?}");
    assert_eq!(in_folder(scene.data.path()).await, 0);
    let again = forward(&scene.settings(), &target).await.unwrap();
    assert_eq!(again.blobs.count, 0, "nothing is left to move");

    fs::remove_dir_all(scene.data.path().join("blobs")).unwrap();
    scene.check(&target).await;
}

/// The owner comes before the first object, and stays through a move back.
#[tokio::test(flavor = "multi_thread")]
async fn an_object_store_of_another_service_is_not_moved_to() {
    let scene = Scene::new().await;
    let target = scene.with_objects();
    let bucket = scene.place.path().join("objects");
    let owners = || {
        let owners = fs::read_dir(bucket.join("owner")).unwrap();
        let names: Vec<_> = owners.map(|owner| owner.unwrap().file_name()).collect();
        names
    };
    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Bytes(_)));
    let settings = scene.settings();
    interrupt(moving::forward(&settings, &target, options), stopped).await;
    let before = owners();
    assert_eq!(before.len(), 1);
    forward(&scene.settings(), &target).await.unwrap();

    let other = Scene::new().await;
    let theirs = StoreSettings {
        objects_url: target.objects_url.clone(),
        ..other.settings()
    };
    let error = forward(&other.settings(), &theirs).await.unwrap_err();
    assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    let text = error.to_string();
    assert!(
        text.contains("another installation") && text.contains("another bucket"),
        "{text}"
    );
    assert_eq!(in_folder(other.data.path()).await, FILES as i64);
    assert_eq!(owners(), before);
    start(&other.settings()).await.unwrap();

    // Back, and forward again from the new folder.
    let folder = scene.back_folder();
    assert!(back(&target, &folder).await.unwrap().is_finished);
    assert_eq!(owners(), before);
    let again = StoreSettings {
        data_dir: folder.clone(),
        ..target
    };
    let moved = forward(&sqlite_settings(&folder), &again).await.unwrap();
    assert!(moved.is_finished && owners() == before);
    scene.check(&again).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_with_an_object_store_moves_back_to_a_folder() {
    let scene = Scene::new().await;
    let source = scene.with_objects();
    // One is only in the folder.
    let damaged = fs::read(scene.blob(5)).unwrap();
    fs::write(scene.blob(5), "other bytes").unwrap();
    let moved = moving::forward(&scene.settings(), &source, skipping()).await;
    assert_eq!(moved.unwrap().blobs.lost, 1);
    fs::write(scene.blob(5), damaged).unwrap();
    for number in [0, 1, 2] {
        fs::remove_file(scene.blob(number)).unwrap();
    }

    let folder = scene.back_folder();
    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Rows { .. }));
    interrupt(moving::back(&source, &folder, options), stopped).await;
    let text = conflict(start(&sqlite_settings(&folder)).await);
    assert!(text.contains("has not ended"), "{text}");
    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Bytes(_)));
    interrupt(moving::back(&source, &folder, options), stopped).await;

    let moved = back(&source, &folder).await.unwrap();
    assert!(moved.is_finished && moved.rows > 50, "{moved:?}");
    assert_eq!(moved.blobs.count, FILES as u64);
    let text = conflict(start(&source).await);
    assert!(text.contains(&folder.display().to_string()), "{text}");
    assert_eq!(in_folder(&folder).await, FILES as i64);
    fs::remove_dir_all(scene.place.path().join("objects")).unwrap();
    scene.check(&sqlite_settings(&folder)).await;

    // It can be undone.
    fs::remove_file(scene.data.path().join("moved")).unwrap();
    start(&scene.settings()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_named_and_left_out_when_that_is_wanted() {
    let scene = Scene::new().await;
    let target = scene.with_objects();
    let large = fs::read(scene.blob(0)).unwrap();
    let mut changed = large.clone();
    changed[LARGE - 1] ^= 1;
    fs::write(scene.blob(0), changed).unwrap();
    fs::remove_file(scene.blob(3)).unwrap();
    fs::write(scene.blob(4), "short").unwrap();
    let moved = forward(&scene.settings(), &target).await.unwrap();
    assert!(!moved.is_finished);
    assert_eq!(
        (moved.blobs.lost, moved.blobs.brought),
        (3, FILES as u64 - 3)
    );
    let mut lost: Vec<String> = moved
        .blobs
        .lost_named
        .iter()
        .map(|lost| lost.to_string())
        .collect();
    lost.sort();
    for (text, parts) in lost.iter().zip([
        ["\"0.txt\"", "has other bytes"],
        ["\"3.txt\"", "is missing"],
        ["\"4.txt\"", "has 5 bytes"],
    ]) {
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    fs::write(scene.blob(0), large).unwrap();
    let moved = moving::forward(&scene.settings(), &target, skipping()).await;
    let moved = moved.unwrap();
    assert!(moved.is_finished);
    assert_eq!((moved.blobs.lost, moved.blobs.brought), (2, 1));
    assert_eq!(in_folder(scene.data.path()).await, 2);

    // An object that is gone does not come back.
    let objects = scene.place.path().join("objects").join("b");
    for base in fs::read_dir(&objects).unwrap() {
        fs::remove_dir_all(base.unwrap().path()).unwrap();
    }
    let moved = back(&target, &scene.back_folder()).await.unwrap();
    assert!(!moved.is_finished);
    // The empty file has no object.
    assert_eq!(moved.blobs.lost, FILES as u64 - 1);
    let text = conflict(start(&sqlite_settings(&scene.back_folder())).await);
    assert!(text.contains("has not ended"), "{text}");
    start(&target).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_use_is_neither_moved_nor_moved_to() {
    let scene = Scene::new().await;
    let (source, target) = (scene.settings(), scene.with_objects());
    let nowhere = forward(&source, &source).await.unwrap_err();
    assert!(matches!(nowhere, Error::Invalid(_)), "{nowhere:?}");
    let from_a_folder = back(&source, &scene.back_folder()).await.unwrap_err();
    assert!(
        matches!(from_a_folder, Error::Invalid(_)),
        "{from_a_folder:?}"
    );
    let other = StoreSettings {
        objects_url: format!("file://{}", scene.place.path().join("others").display()),
        ..source.clone()
    };
    let between = forward(&target, &other).await.unwrap_err();
    assert!(matches!(between, Error::Invalid(_)), "{between:?}");

    let store = Store::open(&source).await.unwrap();
    let running = forward(&source, &target).await.unwrap_err();
    assert!(matches!(running, Error::Locked { .. }), "{running:?}");
    store.close().await;

    forward(&source, &target).await.unwrap();
    let full = scene.place.path().join("full");
    fs::create_dir(&full).unwrap();
    fs::write(full.join("notes"), "mine").unwrap();
    let text = conflict(back(&target, &full).await);
    assert!(text.contains("not empty"), "{text}");
    assert!(!full.join("sluice.db").exists());
    conflict(back(&target, scene.data.path()).await);
    start(&target).await.unwrap();

    let empty = tempfile::tempdir().unwrap();
    let missing = forward(&sqlite_settings(empty.path()), &target).await;
    assert!(matches!(missing.unwrap_err(), Error::Invalid(_)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_moves_to_postgresql_and_back() {
    let scene = Scene::new().await;
    let Some(target) = scene.on_postgres() else {
        return;
    };
    let source = scene.settings();
    let (options, stopped) = stopping(|progress| match progress {
        MoveProgress::Rows { table, .. } => table == "folders",
        _ => false,
    });
    interrupt(moving::forward(&source, &target, options), stopped).await;
    let text = conflict(start(&target).await);
    assert!(text.contains("has not ended"), "{text}");
    // The source is as it was.
    start(&source).await.unwrap();

    let moved = forward(&source, &target).await.unwrap();
    assert!(moved.is_finished && moved.rows > 50, "{moved:?}");
    assert_eq!(moved.blobs.brought, FILES as u64);
    let text = conflict(start(&source).await);
    assert!(text.contains(&target.database_schema), "{text}");
    assert!(text.contains("moved"), "{text}");
    conflict(forward(&source, &target).await);
    fs::remove_dir_all(scene.data.path().join("blobs")).unwrap();

    // Before the service adds to it.
    let folder = scene.back_folder();
    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Bytes(_)));
    interrupt(moving::back(&target, &folder, options), stopped).await;
    let moved = back(&target, &folder).await.unwrap();
    assert!(moved.is_finished, "{moved:?}");
    let text = conflict(start(&target).await);
    assert!(text.contains("move_mark"), "{text}");
    scene.check(&sqlite_settings(&folder)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_continues_on_postgresql() {
    let scene = Scene::new().await;
    let Some(target) = scene.on_postgres() else {
        return;
    };
    let moved = forward(&scene.settings(), &target).await.unwrap();
    assert!(moved.is_finished);
    scene.check(&target).await;

    let other = Scene::new().await;
    let used = StoreSettings {
        data_dir: other.data.path().to_owned(),
        ..target.clone()
    };
    let text = conflict(forward(&other.settings(), &used).await);
    assert!(text.contains("another service"), "{text}");
    start(&other.settings()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_source_that_was_changed_in_the_middle_is_not_taken_for_the_same() {
    let scene = Scene::new().await;
    let Some(target) = scene.on_postgres() else {
        return;
    };
    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Bytes(_)));
    let settings = scene.settings();
    let moved = moving::forward(&settings, &target, options);
    interrupt(moved, stopped).await;
    let mut connection = scene.database().await;
    query("UPDATE accounts SET name = 'someone else'")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let text = conflict(forward(&scene.settings(), &target).await);
    assert!(text.contains("accounts"), "{text}");
    start(&scene.settings()).await.unwrap();
}

/// PostgreSQL has no NUL in texts, SQLite may.
#[tokio::test(flavor = "multi_thread")]
async fn a_text_that_postgresql_cannot_keep_is_named() {
    let scene = Scene::new().await;
    let Some(target) = scene.on_postgres() else {
        return;
    };
    let mut connection = scene.database().await;
    query("UPDATE accounts SET name = $1")
        .bind("no\0body")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let error = forward(&scene.settings(), &target).await.unwrap_err();
    let text = error.to_string();
    assert!(matches!(error, Error::Invalid(_)), "{error:?}");
    assert!(text.contains("accounts") && text.contains("NUL"), "{text}");
    // Corrected, the move continues.
    let mut connection = scene.database().await;
    query("UPDATE accounts SET name = 'someone'")
        .execute(&mut connection)
        .await
        .unwrap();
    connection.close().await.unwrap();
    let moved = forward(&scene.settings(), &target).await.unwrap();
    assert!(moved.is_finished);
    scene.check(&target).await;
}

/// Bytes of an upload with two pieces in the object store, or more.
fn upload_content() -> Vec<u8> {
    (0..LARGE as u32 + 1_000_000)
        .map(|n| (n.wrapping_mul(7919) >> 3) as u8)
        .collect()
}

/// Begins a resumable upload.
async fn begin_upload(store: &Store, account: Uuid, name: &str) -> Uuid {
    let new = NewTusUpload {
        folder_id: None,
        filename: name.to_owned(),
        metadata: String::new(),
        length_bytes: None,
        expires_at: now_ms() + DAY_MS,
    };
    let bounds = Bounds {
        unfinished: 9,
        storage_bytes: 0,
    };
    let made = write_tx!(store, |tx| {
        tus::create(tx, account, new, bounds, now_ms()).await
    });
    made.unwrap().id
}

/// Sends the bytes up to there of an upload, in one request that is acknowledged.
async fn send_upload(store: &Store, account: Uuid, id: Uuid, content: &[u8], to: usize) {
    let from = upload_offset(store, account, id).await;
    let wanted = Claim {
        offset: from as u64,
        brings_bytes: None,
        length_bytes: None,
        most_bytes: 1 << 30,
        expires_at: now_ms() + DAY_MS,
        storage_bytes: 0,
        owner: store.owner(),
    };
    let upload = write_tx!(store, |tx| {
        tus::claim(tx, account, id, wanted, now_ms()).await
    })
    .unwrap();
    let mut partial = store.blobs().partial(id, upload.progress()).await.unwrap();
    let bytes = Bytes::copy_from_slice(&content[from..to]);
    partial.write(&bytes).await.unwrap();
    partial.upload().await.unwrap();
    let progress = partial.sync().await.unwrap();
    let step = Step {
        is_last: true,
        expires_at: now_ms() + DAY_MS,
        storage_bytes: 0,
    };
    let saved = write_tx!(store, |tx| {
        tus::advance(tx, &upload, &progress, step, now_ms()).await
    });
    partial.settle(&saved);
    saved.unwrap();
}

async fn upload_offset(store: &Store, account: Uuid, id: Uuid) -> usize {
    let mut reader = store.read().await.unwrap();
    let upload = tus::get(&mut reader, account, id, now_ms()).await;
    upload.unwrap().offset() as usize
}

/// Sends the rest of an upload; the file that it becomes has the bytes of all requests.
async fn end_upload(store: &Store, account: Uuid, id: Uuid, content: &[u8], offset: usize) {
    assert_eq!(upload_offset(store, account, id).await, offset);
    let mut reader = store.read().await.unwrap();
    let upload = tus::get(&mut reader, account, id, now_ms()).await.unwrap();
    drop(reader);
    let mut partial = store.blobs().partial(id, upload.progress()).await.unwrap();
    assert!(!partial.is_hashed_again());
    let rest = Bytes::copy_from_slice(&content[offset..]);
    partial.write(&rest).await.unwrap();
    let mut bytes = Vec::new();
    let mut file = partial.reader().await.unwrap();
    file.read_to_end(&mut bytes).unwrap();
    assert!(bytes == content);
    let sealed = partial.seal().await.unwrap();
    let same = add_file(store, account, content, "same").await;
    assert_eq!(sealed.blob().hash, same.blob);
}

fn partial_file(data_dir: &Path, id: Uuid) -> PathBuf {
    data_dir.join("partial").join(id.to_string())
}

/// A stopped service with an object store, and three unfinished uploads.
struct UploadScene {
    scene: Scene,
    content: Vec<u8>,
    /// It began before the object store was there.
    in_folder: Uuid,
    /// Its bytes are a piece and a tail of two objects.
    in_objects: Uuid,
    empty: Uuid,
}

/// Bytes that were acknowledged.
const IN_FOLDER: usize = 300_000;
const IN_OBJECTS: usize = LARGE + 400_007;

impl UploadScene {
    async fn new() -> Self {
        let (scene, content) = (Scene::new().await, upload_content());
        let account = scene.account;
        let store = Store::open(&scene.settings()).await.unwrap();
        let in_folder = begin_upload(&store, account, "in-folder.bin").await;
        send_upload(&store, account, in_folder, &content, IN_FOLDER).await;
        store.close().await;
        let store = Store::open(&scene.with_objects()).await.unwrap();
        let in_objects = begin_upload(&store, account, "in-objects.bin").await;
        for to in [LARGE, LARGE + 400_000, IN_OBJECTS] {
            send_upload(&store, account, in_objects, &content, to).await;
        }
        let empty = begin_upload(&store, account, "empty.bin").await;
        store.close().await;
        // The file is a cache, which another node has not.
        fs::remove_file(partial_file(scene.data.path(), in_objects)).unwrap();
        Self {
            scene,
            content,
            in_folder,
            in_objects,
            empty,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_uploads_continue_after_a_move_back() {
    let uploads = UploadScene::new().await;
    let (scene, folder) = (&uploads.scene, uploads.scene.back_folder());
    let source = scene.with_objects();
    // What a request left beyond the offset does not count.
    let file = partial_file(scene.data.path(), uploads.in_folder);
    let mut longer = fs::read(&file).unwrap();
    longer.extend_from_slice(b"not acknowledged");
    fs::write(&file, longer).unwrap();

    let (options, stopped) = stopping(|progress| matches!(progress, MoveProgress::Uploads(_)));
    interrupt(moving::back(&source, &folder, options), stopped).await;
    let moved = back(&source, &folder).await.unwrap();
    assert!(moved.is_finished, "{moved:?}");
    let expected = (2, (IN_FOLDER + IN_OBJECTS) as u64, 0);
    let carried = &moved.uploads;
    assert_eq!((carried.count, carried.bytes, carried.lost), expected);
    fs::remove_dir_all(scene.place.path().join("objects")).unwrap();

    let store = Store::open(&sqlite_settings(&folder)).await.unwrap();
    for (id, offset) in [
        (uploads.in_folder, IN_FOLDER),
        (uploads.in_objects, IN_OBJECTS),
        (uploads.empty, 0),
    ] {
        let content = &uploads.content;
        if offset > 0 {
            let length = partial_file(&folder, id).metadata().unwrap().len();
            assert_eq!(length, offset as u64);
        }
        end_upload(&store, scene.account, id, content, offset).await;
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_bytes_are_lost_is_named_by_a_move_back() {
    let uploads = UploadScene::new().await;
    let (scene, folder) = (&uploads.scene, uploads.scene.back_folder());
    let source = scene.with_objects();
    // As on another node.
    let file = partial_file(scene.data.path(), uploads.in_folder);
    let elsewhere = scene.place.path().join("elsewhere");
    fs::rename(&file, &elsewhere).unwrap();
    fs::write(&file, &uploads.content[1..=IN_FOLDER]).unwrap();
    let objects = scene.place.path().join("objects").join("b");
    for base in fs::read_dir(&objects).unwrap() {
        for object in fs::read_dir(base.unwrap().path()).unwrap() {
            let path = object.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if name.starts_with('t') {
                // One that was superseded may be deleted in the background.
                let _ = fs::remove_file(path);
            }
        }
    }
    let moved = back(&source, &folder).await.unwrap();
    assert!(!moved.is_finished);
    assert_eq!((moved.uploads.count, moved.uploads.lost), (2, 2));
    let named = moved.uploads.lost_named.join("\n");
    for part in [
        "\"in-folder.bin\"",
        "other bytes",
        "\"in-objects.bin\"",
        "is missing",
    ] {
        assert!(named.contains(part), "{part}: {named}");
    }
    conflict(start(&sqlite_settings(&folder)).await);
    start(&source).await.unwrap();

    fs::remove_file(&file).unwrap();
    let moved = back(&source, &folder).await.unwrap();
    let named = moved.uploads.lost_named.join("\n");
    assert!(
        named.contains("data folder of the node that began it"),
        "{named}"
    );
    fs::rename(&elsewhere, &file).unwrap();
    let moved = moving::back(&source, &folder, skipping()).await.unwrap();
    assert!(moved.is_finished);
    assert_eq!((moved.uploads.count, moved.uploads.lost), (2, 1));
    let store = Store::open(&sqlite_settings(&folder)).await.unwrap();
    let (account, content) = (scene.account, &uploads.content);
    end_upload(&store, account, uploads.in_folder, content, IN_FOLDER).await;
    let mut reader = store.read().await.unwrap();
    let lost = tus::get(&mut reader, account, uploads.in_objects, now_ms()).await;
    drop(reader);
    let lost = lost.unwrap();
    let opened = store.blobs().partial(lost.id, lost.progress()).await;
    assert!(matches!(opened.unwrap_err(), Error::NotFound(_)));
    store.close().await;
}

/// They stay in the data folder, and so do the files that they become.
#[tokio::test(flavor = "multi_thread")]
async fn unfinished_uploads_continue_after_a_move_forward() {
    let (scene, content) = (Scene::new().await, upload_content());
    let account = scene.account;
    let store = Store::open(&scene.settings()).await.unwrap();
    let id = begin_upload(&store, account, "in-folder.bin").await;
    send_upload(&store, account, id, &content, IN_FOLDER).await;
    store.close().await;
    let target = match scene.on_postgres() {
        Some(target) => target,
        None => scene.with_objects(),
    };
    let moved = forward(&scene.settings(), &target).await.unwrap();
    assert!(moved.is_finished);
    assert_eq!(moved.uploads_in_folder, 1);
    let store = Store::open(&target).await.unwrap();
    end_upload(&store, account, id, &content, IN_FOLDER).await;
    store.close().await;
}
