//! Tests in which another process locks the database, or keeps the write-ahead log from shrinking, and releases it
//! again.

use std::{path::Path, time::Duration};

use bytesize::ByteSize;
use sluice_store::{Store, StoreSettings};
use sqlx::{ConnectOptions, Connection, SqliteConnection, query, sqlite::SqliteConnectOptions};

use crate::support::{add_account, count_accounts, sqlite_settings, until};

async fn stranger(data_dir: &Path) -> SqliteConnection {
    SqliteConnectOptions::new()
        .filename(data_dir.join("sluice.db"))
        .connect()
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_of_another_process_is_waited_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&StoreSettings {
        busy_timeout: Duration::from_millis(600),
        ..sqlite_settings(folder.path())
    })
    .await
    .unwrap();
    let mut stranger = stranger(folder.path()).await;
    query("BEGIN EXCLUSIVE")
        .execute(&mut stranger)
        .await
        .unwrap();

    let writes: Vec<_> = (0..300)
        .map(|n| {
            let store = store.clone();
            tokio::spawn(async move { add_account(&store, &n.to_string()).await })
        })
        .collect();
    for write in writes {
        let refused = write.await.unwrap().unwrap_err();
        assert!(refused.is_retryable(), "{refused}");
    }
    let write_failure = store.write_failure().expect("the lock is known");
    assert!(write_failure.reason.contains("locked"), "{write_failure:?}");
    assert_eq!(count_accounts(&store).await, 0, "reading continues");
    assert!(add_account(&store, "still locked").await.is_err());
    assert_eq!(
        store.write_failure().expect("still").since_ms,
        write_failure.since_ms
    );

    query("ROLLBACK").execute(&mut stranger).await.unwrap();
    until("the store has recovered by itself", async || {
        store.write_failure().is_none()
    })
    .await;
    add_account(&store, "free").await.unwrap();
    assert_eq!(count_accounts(&store).await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_lock_only_delays() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&sqlite_settings(folder.path())).await.unwrap();
    let mut stranger = stranger(folder.path()).await;
    query("BEGIN EXCLUSIVE")
        .execute(&mut stranger)
        .await
        .unwrap();
    let mut write = std::pin::pin!(add_account(&store, "patient"));
    tokio::select! {
        biased;
        early = &mut write => panic!("written in spite of the lock: {early:?}"),
        () = until("the writer has taken the unit", async || store.statistics().waiting == 0) => {}
    }
    query("ROLLBACK").execute(&mut stranger).await.unwrap();
    write.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_truncated_as_soon_as_readers_allow() {
    let folder = tempfile::tempdir().unwrap();
    let limit = ByteSize::mb(1);
    let store = Store::open(&StoreSettings {
        wal_truncate_above: limit,
        ..sqlite_settings(folder.path())
    })
    .await
    .unwrap();
    let mut stranger = stranger(folder.path()).await;
    query("BEGIN").execute(&mut stranger).await.unwrap();
    query("SELECT * FROM accounts")
        .fetch_all(&mut stranger)
        .await
        .unwrap();
    let long_name = "x".repeat(200_000);
    while store.statistics().wal_bytes <= 2 * limit.as_u64() {
        add_account(&store, &long_name).await.unwrap();
    }
    query("COMMIT").execute(&mut stranger).await.unwrap();
    stranger.close().await.unwrap();

    until("the log is short", async || {
        add_account(&store, "one more").await.unwrap();
        store.statistics().wal_bytes <= limit.as_u64()
    })
    .await;
    let log = std::fs::metadata(folder.path().join("sluice.db-wal")).unwrap();
    assert!(log.len() <= limit.as_u64(), "{} bytes", log.len());
}
