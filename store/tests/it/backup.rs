//! Backup beside a running service, and restore.

mod blobs;
mod events;
mod runs;
mod streams;

use std::{fs, path::Path};

use sluice_store::{
    Error, Store,
    backup::{self, Manifest, Transfer},
    installation,
};
use sqlx::{ConnectOptions, query_scalar, sqlite::SqliteConnectOptions};

use crate::support::{NOW, add_account, count_accounts, sqlite_settings, sqlite_store, until};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

async fn is_intact(data_dir: &Path) -> bool {
    let mut connection = SqliteConnectOptions::new()
        .filename(data_dir.join("sluice.db"))
        .connect()
        .await
        .unwrap();
    let verdict: String = query_scalar("PRAGMA integrity_check")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    verdict == "ok"
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_under_load_is_consistent_and_complete() {
    let (store, folder) = sqlite_store().await;
    let writing = {
        let store = store.clone();
        tokio::spawn(async move {
            loop {
                if add_account(&store, &"x".repeat(10_000)).await.is_err() {
                    return;
                }
            }
        })
    };
    let beside = Store::open_for_backup(folder.path()).await.unwrap();
    let refused = add_account(&beside, "no").await.unwrap_err();
    assert!(matches!(refused, Error::Unsupported(_)), "{refused}");
    let place = tempfile::tempdir().unwrap();
    for (n, source) in [&store, &beside, &store].into_iter().enumerate() {
        let enough = 20 * (n as i64 + 1);
        until("something was written", async || {
            count_accounts(&store).await >= enough
        })
        .await;
        let acknowledged = count_accounts(&store).await;
        let dir = place.path().join(format!("backup-{n}"));
        let manifest = backup::backup(source, &dir, Transfer::default(), NOW)
            .await
            .unwrap()
            .manifest;
        assert_eq!(names(&dir), ["manifest.json", "sluice.db"]);
        let schema = installation::schema_version(&mut store.read().await.unwrap()).await;
        assert_eq!(manifest.schema_version, schema.unwrap());
        assert_eq!(manifest.created_at_ms, NOW);

        let data_dir = place.path().join(format!("restored-{n}"));
        assert_eq!(
            backup::restore(&dir, &data_dir, false, Transfer::default(), NOW)
                .await
                .unwrap()
                .kept,
            None
        );
        assert!(is_intact(&data_dir).await);
        let restored = Store::open(&sqlite_settings(&data_dir)).await.unwrap();
        assert!(
            count_accounts(&restored).await >= acknowledged,
            "all that was acknowledged before"
        );
        let key_of = async |store: &Store| {
            installation::get(&mut store.read().await.unwrap())
                .await
                .unwrap()
                .key()
                .to_vec()
        };
        assert_eq!(
            key_of(&restored).await,
            key_of(&store).await,
            "tokens stay valid"
        );
        restored.close().await;
    }
    store.close().await;
    writing.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_whose_service_is_gone_can_be_backed_up() {
    let place = tempfile::tempdir().unwrap();
    let (store, folder) = sqlite_store().await;
    add_account(&store, "someone").await.unwrap();
    // A killed service leaves a database whose newest rows are in the log.
    let killed = place.path().join("killed");
    fs::create_dir(&killed).unwrap();
    for name in ["sluice.db", "sluice.db-wal"] {
        fs::copy(folder.path().join(name), killed.join(name)).unwrap();
    }
    store.close().await;

    for data_dir in [folder.path(), &killed] {
        let stopped = Store::open_for_backup(data_dir).await.unwrap();
        assert_eq!(count_accounts(&stopped).await, 1, "{}", data_dir.display());
        let dir = place
            .path()
            .join(data_dir.file_name().unwrap())
            .join("backup");
        backup::backup(&stopped, &dir, Transfer::default(), NOW)
            .await
            .unwrap();
        stopped.close().await;
        let restored = dir.with_extension("restored");
        backup::restore(&dir, &restored, false, Transfer::default(), NOW)
            .await
            .unwrap();
        let restored = Store::open(&sqlite_settings(&restored)).await.unwrap();
        assert_eq!(count_accounts(&restored).await, 1);
    }
    assert!(matches!(
        Store::open_for_backup(&place.path().join("nowhere")).await,
        Err(Error::File { .. })
    ));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_needs_a_folder_of_its_own() {
    let (store, _folder) = sqlite_store().await;
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("backup");
    backup::backup(&store, &dir, Transfer::default(), NOW)
        .await
        .unwrap();
    let before = fs::read(dir.join("manifest.json")).unwrap();
    let of_another_form = place.path().join("of another form");
    fs::create_dir(&of_another_form).unwrap();
    fs::write(of_another_form.join("manifest.json"), "{}").unwrap();
    let refused = backup::backup(&store, &of_another_form, Transfer::default(), NOW + 1).await;
    assert!(matches!(refused, Err(Error::Invalid(_))), "{refused:?}");

    // Another backup is at work there.
    let held = fs::File::create(dir.join("unfinished")).unwrap();
    held.lock().unwrap();
    for taken in [dir.as_path(), place.path(), store.data_dir()] {
        let refused = backup::backup(&store, taken, Transfer::default(), NOW + 1).await;
        assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    }
    assert_eq!(fs::read(dir.join("manifest.json")).unwrap(), before);
    // It broke off.
    drop(held);
    backup::backup(&store, &dir, Transfer::default(), NOW + 1)
        .await
        .unwrap();
    assert_eq!(names(&dir), ["manifest.json", "sluice.db"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_backup_changes_nothing() {
    let (store, _folder) = sqlite_store().await;
    add_account(&store, "someone").await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let intact = place.path().join("intact");
    backup::backup(&store, &intact, Transfer::default(), NOW)
        .await
        .unwrap();

    let with_manifest = |change: fn(&mut Manifest)| {
        move |dir: &Path| {
            let path = dir.join("manifest.json");
            let mut manifest: Manifest = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
            change(&mut manifest);
            fs::write(path, serde_json::to_vec(&manifest).unwrap()).unwrap();
        }
    };
    type Corrupt = Box<dyn Fn(&Path)>;
    let cases: [(&str, &str, Corrupt); 8] = [
        (
            "no manifest",
            "is no backup",
            Box::new(|dir| fs::remove_file(dir.join("manifest.json")).unwrap()),
        ),
        (
            "a broken manifest",
            "is no backup",
            Box::new(|dir| fs::write(dir.join("manifest.json"), "{").unwrap()),
        ),
        (
            "no database",
            "cannot open",
            Box::new(|dir| fs::remove_file(dir.join("sluice.db")).unwrap()),
        ),
        (
            "a cut database",
            "is damaged",
            Box::new(|dir| {
                let file = fs::OpenOptions::new()
                    .write(true)
                    .open(dir.join("sluice.db"))
                    .unwrap();
                file.set_len(4096).unwrap();
            }),
        ),
        (
            "a flipped bit",
            "is damaged",
            Box::new(|dir| {
                let mut bytes = fs::read(dir.join("sluice.db")).unwrap();
                *bytes.last_mut().unwrap() ^= 1;
                fs::write(dir.join("sluice.db"), bytes).unwrap();
            }),
        ),
        (
            "a later form",
            "its form is 2",
            Box::new(with_manifest(|manifest| manifest.format = 2)),
        ),
        (
            "a newer schema",
            "newer version",
            Box::new(with_manifest(|manifest| manifest.schema_version = 9_999)),
        ),
        (
            "a file without checksum",
            "is damaged",
            Box::new(with_manifest(|manifest| manifest.files.clear())),
        ),
    ];
    for (what, expected, damage) in cases {
        let dir = place.path().join(what);
        fs::create_dir(&dir).unwrap();
        for name in names(&intact) {
            fs::copy(intact.join(&name), dir.join(&name)).unwrap();
        }
        damage(&dir);
        let data_dir = place.path().join(format!("{what}, restored"));
        let error = backup::restore(&dir, &data_dir, false, Transfer::default(), NOW)
            .await
            .expect_err(what);
        assert!(error.to_string().contains(expected), "{what}: {error}");
        assert!(!data_dir.join("sluice.db").exists(), "{what}");
        // Nothing is left that would prevent another attempt.
        backup::restore(&intact, &data_dir, false, Transfer::default(), NOW)
            .await
            .expect(what);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restoring_over_a_database_is_asked_for_and_keeps_the_old_one() {
    let (store, folder) = sqlite_store().await;
    add_account(&store, "in the backup").await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let dir = place.path().join("backup");
    backup::backup(&store, &dir, Transfer::default(), NOW)
        .await
        .unwrap();
    add_account(&store, "after the backup").await.unwrap();

    let running = backup::restore(&dir, folder.path(), true, Transfer::default(), NOW).await;
    assert!(matches!(running, Err(Error::Locked { .. })), "{running:?}");
    store.close().await;
    let unasked = backup::restore(&dir, folder.path(), false, Transfer::default(), NOW).await;
    assert!(matches!(unasked, Err(Error::Conflict(_))), "{unasked:?}");

    let kept = backup::restore(&dir, folder.path(), true, Transfer::default(), NOW)
        .await
        .unwrap()
        .kept
        .expect("the old one");
    assert_eq!(
        kept,
        folder
            .path()
            .join("backups/before-restore-20261121T000000Z.db")
    );
    let store = Store::open(&sqlite_settings(folder.path())).await.unwrap();
    assert_eq!(count_accounts(&store).await, 1);
    store.close().await;
    fs::rename(&kept, folder.path().join("sluice.db")).unwrap();
    let store = Store::open(&sqlite_settings(folder.path())).await.unwrap();
    assert_eq!(count_accounts(&store).await, 2, "the old one is whole");
}
