//! Files of users in a backup: all that its database names, copied once, and reported when they are lost.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use sluice_store::{
    Error, Store,
    backup::{self, BackupProgress, Carried, Transfer},
    blob::BlobHash,
    files,
};
use sqlx::{ConnectOptions, Connection as _, query, sqlite::SqliteConnectOptions};
use tempfile::TempDir;
use uuid::Uuid;

use crate::{
    blobs::add_file,
    support::{NOW, add_account, sqlite_settings, sqlite_store, until},
};

/// A service with some files, and a place for backups of it.
struct Scene {
    store: Store,
    account: Uuid,
    data: TempDir,
    place: TempDir,
}

impl Scene {
    async fn with(contents: &[&str]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), contents).await
    }

    async fn at(place: TempDir, contents: &[&str]) -> Self {
        let (store, data) = sqlite_store().await;
        let account = add_account(&store, "someone").await.unwrap();
        let scene = Self {
            store,
            account,
            data,
            place,
        };
        for content in contents {
            scene.add(content).await;
        }
        scene
    }

    /// Stores a file whose name is its content.
    async fn add(&self, content: &str) -> files::File {
        add_file(&self.store, self.account, content.as_bytes(), content).await
    }

    fn dir(&self) -> PathBuf {
        self.place.path().join("backup")
    }

    async fn back_up(&self) -> Carried {
        self.back_up_by(Transfer::default()).await
    }

    async fn back_up_by(&self, transfer: Transfer) -> Carried {
        let made = backup::backup(&self.store, &self.dir(), transfer, NOW).await;
        made.unwrap().blobs
    }

    async fn restore(&self, name: &str) -> (PathBuf, Carried) {
        let data_dir = self.place.path().join(name);
        let restored =
            backup::restore(&self.dir(), &data_dir, false, Transfer::default(), NOW).await;
        (data_dir, restored.unwrap().blobs)
    }

    async fn delete(&self, file: files::File) {
        let deleted = self.store.write(move |tx| {
            Box::pin(async move { files::delete(tx, file.account_id, file.id).await })
        });
        deleted.await.unwrap();
    }
}

fn verifying() -> Transfer {
    Transfer {
        verify: true,
        ..Transfer::default()
    }
}

fn place_of(dir: &Path, hash: &BlobHash) -> PathBuf {
    let name = hash.to_string();
    dir.join("blobs").join(&name[..2]).join(&name[2..])
}

/// Returns the files in a folder of blobs, by name.
fn blobs_in(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for prefix in fs::read_dir(dir.join("blobs")).into_iter().flatten() {
        let prefix = prefix.unwrap();
        for file in fs::read_dir(prefix.path()).unwrap() {
            let file = file.unwrap();
            let name = format!(
                "{}{}",
                prefix.file_name().display(),
                file.file_name().display()
            );
            found.insert(name, fs::read(file.path()).unwrap());
        }
    }
    found
}

/// A folder on another file system than the scratch folder; `None` where there is none to write to.
fn elsewhere() -> Option<TempDir> {
    let here = tempfile::tempdir().unwrap();
    let other = TempDir::new_in("/dev/shm").ok()?;
    let device = |dir: &TempDir| fs::metadata(dir.path()).unwrap().dev();
    (device(&here) != device(&other)).then_some(other)
}

#[tokio::test]
async fn what_the_copied_database_names_comes_along_and_goes_back() {
    let copying = match elsewhere() {
        Some(place) => vec![Scene::at(place, &["", "a", "bb", "ccc"]).await],
        None => Vec::new(),
    };
    let linking = Scene::with(&["", "a", "bb", "ccc"]).await;
    for scene in copying.iter().chain([&linking]) {
        let carried = scene.back_up().await;
        assert_eq!((carried.count, carried.bytes), (4, 6));
        assert_eq!((carried.brought, carried.brought_bytes), (4, 6));
        assert_eq!(carried.lost, 0);
        let kept = blobs_in(&scene.dir());
        assert_eq!(kept, blobs_in(scene.data.path()));
        for name in kept.keys() {
            let place = place_of(&scene.dir(), &name.parse().unwrap());
            let blob = fs::metadata(place).unwrap();
            let is_linked = scene.place.path().parent() == scene.data.path().parent();
            assert_eq!(blob.nlink(), if is_linked { 2 } else { 1 });
            assert_eq!(blob.mode() & 0o077, 0, "for the owner only");
        }

        let (data_dir, carried) = scene.restore("restored").await;
        assert_eq!((carried.count, carried.brought), (4, 4));
        assert_eq!(blobs_in(&data_dir), kept);
        let restored = Store::open(&sqlite_settings(&data_dir)).await.unwrap();
        let file = add_file(&restored, scene.account, b"later", "later").await;
        restored.blobs().open(&file.blob).await.unwrap();
        restored.close().await;
    }
}

#[tokio::test]
async fn a_later_backup_brings_what_is_new_and_drops_what_is_not_named() {
    let scene = Scene::with(&["stays"]).await;
    let goes = scene.add("goes").await;
    let (place, hash) = (place_of(&scene.dir(), &goes.blob), goes.blob);
    scene.back_up().await;
    fs::write(place.with_extension("partial"), "broken off").unwrap();
    fs::write(place.with_file_name("notes.txt"), "a person's").unwrap();
    let stays = scene.add("comes").await;
    scene.delete(goes).await;

    let reader = Store::open_for_backup(scene.data.path()).await.unwrap();
    let transfer = Transfer::default();
    let carried = backup::backup(&reader, &scene.dir(), transfer, NOW + 1)
        .await
        .unwrap();
    assert_eq!((carried.blobs.count, carried.blobs.brought), (2, 1));
    assert_eq!(carried.manifest.files.len(), 1);
    assert!(!place.exists() && !place.with_extension("partial").exists());
    assert!(place.with_file_name("notes.txt").exists());
    assert!(place_of(&scene.dir(), &stays.blob).exists());
    assert!(
        place_of(scene.data.path(), &hash).exists(),
        "a link of the backup's is not the service's"
    );
    assert_eq!(scene.back_up().await.brought, 0);
}

#[tokio::test]
async fn lost_blobs_are_named_and_the_rest_is_there() {
    type Corrupt = fn(&Path);
    let cases: [(&str, bool, &str, Corrupt); 5] = [
        ("gone", false, "is missing", |blob| {
            fs::remove_file(blob).unwrap();
        }),
        ("cut", false, "has 1 bytes instead of the 8", |blob| {
            fs::write(blob, "x").unwrap();
        }),
        ("a folder", false, "instead of the 8", |blob| {
            fs::remove_file(blob).unwrap();
            fs::create_dir(blob).unwrap();
        }),
        ("other bytes", true, "has other bytes", |blob| {
            fs::write(blob, "spoilt..").unwrap();
        }),
        ("a dead link", false, "is missing", |blob| {
            fs::remove_file(blob).unwrap();
            std::os::unix::fs::symlink("/nowhere", blob).unwrap();
        }),
    ];
    for (what, verify, why, damage) in cases {
        let scene = Scene::with(&["one", "two"]).await;
        let stale = scene.add("named before").await;
        scene.back_up().await;
        scene.delete(stale.clone()).await;
        let lost = scene.add("precious").await;
        damage(&place_of(scene.data.path(), &lost.blob));

        let transfer = Transfer {
            verify,
            ..Transfer::default()
        };
        let carried = scene.back_up_by(transfer).await;
        assert_eq!((carried.count, carried.lost), (3, 1), "{what}");
        let message = carried.lost_named[0].to_string();
        assert!(
            message.contains("\"precious\"") && message.contains(why),
            "{what}: {message}"
        );
        assert!(
            place_of(&scene.dir(), &stale.blob).exists(),
            "{what}: nothing is removed"
        );
        assert!(!place_of(&scene.dir(), &lost.blob).exists(), "{what}");

        // The rest is a backup, which reports the same.
        let (data_dir, carried) = scene.restore("restored").await;
        assert_eq!((carried.count, carried.lost), (3, 1), "{what}");
        assert_eq!(blobs_in(&data_dir).len(), 2, "{what}");
    }
}

#[tokio::test]
async fn verifying_finds_and_mends_what_changed_in_a_backup() {
    let scene = Scene::with(&["first", "second"]).await;
    let file = scene.add("third").await;
    scene.back_up().await;
    let place = place_of(&scene.dir(), &file.blob);
    // Not through the link: that would change the service's.
    fs::remove_file(&place).unwrap();
    fs::write(&place, "THIRD").unwrap();

    assert_eq!(
        scene.back_up().await.brought,
        0,
        "by its length it is whole"
    );
    let restoring = |transfer| {
        let data_dir = scene.place.path().join("verified");
        let dir = scene.dir();
        async move {
            let restored = backup::restore(&dir, &data_dir, true, transfer, NOW).await;
            restored.unwrap().blobs
        }
    };
    let carried = restoring(verifying()).await;
    assert_eq!((carried.lost, carried.brought), (1, 2));

    let carried = scene.back_up_by(verifying()).await;
    assert_eq!((carried.lost, carried.brought), (0, 1));
    assert_eq!(fs::read(&place).unwrap(), b"third");
    let carried = restoring(verifying()).await;
    assert_eq!((carried.lost, carried.brought), (0, 1));
}

#[tokio::test]
async fn progress_ends_with_all_files_and_bytes() {
    let Some(place) = elsewhere() else { return };
    let scene = Scene::at(place, &["1", "22", "333"]).await;
    let large = "x".repeat(1_000_000);
    add_file(&scene.store, scene.account, large.as_bytes(), "large").await;
    let seen: Arc<Mutex<Vec<BackupProgress>>> = Arc::default();
    let noted = seen.clone();
    let transfer = Transfer {
        verify: true,
        watch: Box::new(move |progress| noted.lock().push(progress)),
    };
    scene.back_up_by(transfer).await;
    let seen = seen.lock();
    assert!(seen.is_sorted_by_key(|it| (it.count, it.bytes)), "{seen:?}");
    assert!(seen.len() > 6, "within a large file, too: {}", seen.len());
    let last = seen.last().unwrap();
    assert_eq!((last.count, last.total_count), (4, 4));
    assert_eq!((last.bytes, last.total_bytes), (1_000_006, 1_000_006));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_file_is_missing_in_a_backup_taken_amid_uploads_and_sweeps() {
    let scene = Scene::with(&[]).await;
    let (store, account) = (scene.store.clone(), scene.account);
    let writing = tokio::spawn(async move {
        for n in 0_u32.. {
            let content = format!("number {n}");
            let file = add_file(&store, account, content.as_bytes(), &content).await;
            if n % 3 == 0 {
                let deleted = store.write(move |tx| {
                    Box::pin(async move { files::delete(tx, account, file.id).await })
                });
                deleted.await.unwrap();
                store.sweep(NOW).await.unwrap();
            }
        }
    });
    let beside = Store::open_for_backup(scene.data.path()).await.unwrap();
    for round in 1..=3 {
        until("there are more files", async || {
            blobs_in(scene.data.path()).len() > round * 60
        })
        .await;
        let carried = backup::backup(&beside, &scene.dir(), Transfer::default(), NOW)
            .await
            .unwrap();
        assert_eq!(carried.blobs.lost, 0);
        assert_eq!(
            blobs_in(&scene.dir()).len() as u64,
            carried.blobs.count,
            "all that are named, and no other"
        );
        let (_, carried) = scene.restore(&format!("restored {round}")).await;
        assert_eq!(carried.lost, 0);
    }
    writing.abort();
}

#[tokio::test]
async fn a_database_from_before_there_were_blobs_is_copied_alone() {
    let scene = Scene::with(&[]).await;
    let old = scene.place.path().join("old");
    fs::create_dir(&old).unwrap();
    let options = SqliteConnectOptions::new()
        .filename(old.join("sluice.db"))
        .create_if_missing(true);
    let mut connection = options.connect().await.unwrap();
    let made = query("CREATE TABLE accounts (id BLOB)");
    made.execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();

    let old = Store::open_for_backup(&old).await.unwrap();
    let made = backup::backup(&old, &scene.dir(), Transfer::default(), NOW).await;
    let made = made.unwrap();
    assert_eq!((made.manifest.schema_version, made.blobs.count), (0, 0));
    assert_eq!(blobs_in(&scene.dir()).len(), 0);
}

#[tokio::test]
async fn a_restore_that_broke_off_may_be_repeated() {
    let scene = Scene::with(&["kept"]).await;
    scene.back_up().await;
    let data_dir = scene.place.path().join("restored");
    fs::create_dir_all(data_dir.join("blobs/ab")).unwrap();
    let dir = scene.dir();
    let restore = || backup::restore(&dir, &data_dir, false, Transfer::default(), NOW);
    assert!(matches!(restore().await, Err(Error::Conflict(_))));
    fs::write(data_dir.join("sluice.restoring"), "half").unwrap();
    assert_eq!(restore().await.unwrap().blobs.brought, 1);
    assert!(matches!(restore().await, Err(Error::Conflict(_))));
}
