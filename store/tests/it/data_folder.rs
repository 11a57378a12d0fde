//! Data folder: private, locked, and the cases in which opening it is rejected.

use std::os::unix::fs::PermissionsExt;

use sluice_store::{Error, Store, StoreSettings, installation};

use crate::support::{add_account, count_accounts, settings, sqlite_settings};

#[tokio::test]
async fn a_second_process_learns_who_holds_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("deep/data");
    let store = Store::open(&settings(&data_dir)).await.unwrap();
    let Err(error) = Store::open(&settings(&data_dir)).await else {
        panic!("two stores in one folder");
    };
    let message = error.to_string();
    for part in [
        data_dir.to_str().unwrap(),
        &format!("process {}", std::process::id()),
        "stop",
        "store.data_dir",
    ] {
        assert!(message.contains(part), "{part} in {message}");
    }
    store.close().await;
    Store::open(&settings(&data_dir)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_command_writes_beside_a_running_service() {
    let folder = tempfile::tempdir().unwrap();
    let service = Store::open(&settings(folder.path())).await.unwrap();
    let command = Store::open_beside(&settings(folder.path())).await.unwrap();
    let write = |store: Store| {
        tokio::spawn(async move {
            for n in 0..50 {
                add_account(&store, &n.to_string()).await.unwrap();
            }
        })
    };
    let writes = [write(service.clone()), write(command.clone())];
    for write in writes {
        write.await.unwrap();
    }
    command.close().await;
    assert_eq!(count_accounts(&service).await, 100);
    add_account(&service, "continues").await.unwrap();
    assert!(
        matches!(
            Store::open(&settings(folder.path())).await,
            Err(Error::Locked { .. })
        ),
        "still locked"
    );
    service.close().await;

    let alone = Store::open_beside(&settings(folder.path())).await.unwrap();
    assert_eq!(count_accounts(&alone).await, 101);
    assert!(
        matches!(
            Store::open(&settings(folder.path())).await,
            Err(Error::Locked { .. })
        ),
        "it has the lock then"
    );
}

#[tokio::test]
async fn only_this_user_can_read_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let store = Store::open(&sqlite_settings(&data_dir)).await.unwrap();
    add_account(&store, "someone").await.unwrap();
    let mode = |name: &str| {
        std::fs::metadata(data_dir.join(name))
            .unwrap()
            .permissions()
            .mode()
            & 0o777
    };
    for (name, expected) in [
        ("", 0o700),
        ("sluice.db", 0o600),
        ("sluice.db-wal", 0o600),
        ("lock", 0o600),
    ] {
        assert_eq!(mode(name), expected, "{name}");
    }
}

#[tokio::test]
async fn what_was_written_and_the_installation_key_survive_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut keys = Vec::new();
    for start in 1..=3 {
        let store = Store::open(&settings(folder.path())).await.unwrap();
        add_account(&store, "one more").await.unwrap();
        assert_eq!(count_accounts(&store).await, start);
        let mut reader = store.read().await.unwrap();
        let installation = installation::get(&mut reader).await.unwrap();
        assert!(!format!("{installation:?}").contains("key"), "a secret");
        keys.push(installation.key().to_vec());
        drop(reader);
        store.close().await;
    }
    assert_eq!(keys[0].len(), 32);
    assert_ne!(keys[0], [0; 32]);
    assert!(keys.iter().all(|key| *key == keys[0]));
}

#[tokio::test]
async fn settings_that_cannot_work_stop_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        (
            "postgres://localhost:port/sluice",
            "store.database_url: expected postgres://USER:PASSWORD@HOST/DATABASE",
        ),
        (
            "mysql://localhost/sluice",
            "store.database_url: expected postgres://USER:PASSWORD@HOST/DATABASE, or empty",
        ),
    ];
    for (database_url, expected) in cases {
        let opened = Store::open(&StoreSettings {
            database_url: database_url.into(),
            ..settings(folder.path())
        })
        .await;
        let message = opened.err().expect(database_url).to_string();
        assert!(message.contains(expected), "{message}");
    }
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "nothing was made"
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_kept() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("sluice.db");
    let text = "this is no database, and long enough to be looked at ".repeat(40);
    std::fs::write(&database, &text).unwrap();
    assert!(matches!(
        Store::open(&sqlite_settings(folder.path())).await,
        Err(Error::Failing(_))
    ));
    assert_eq!(std::fs::read_to_string(&database).unwrap(), text);
}

#[tokio::test]
async fn the_disk_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    for (min_free, is_low) in [("0%", false), ("0 B", false), ("8000 PB", true)] {
        let store = Store::open(&StoreSettings {
            min_free: min_free.into(),
            ..settings(folder.path())
        })
        .await
        .unwrap();
        let disk = store.disk_space().unwrap();
        assert!(disk.total_bytes > 0);
        assert_eq!(disk.is_low(), is_low, "{min_free}: {disk:?}");
        store.close().await;
    }
}
