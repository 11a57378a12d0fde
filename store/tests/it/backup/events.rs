//! Feed of events over a restore.

use std::path::Path;

use sluice_store::{
    Store,
    backup::{self, Transfer},
    events::{self, Audience, EventPosition, NewEvent},
};
use uuid::Uuid;

use crate::support::{NOW, add_account, sqlite_settings, sqlite_store};

async fn note(store: &Store, account_id: Uuid) -> i64 {
    let event = NewEvent {
        account_id,
        event_type: "file.uploaded",
        audience: Audience::Everyone,
        also: Vec::new(),
        resource: "file:1".to_owned(),
        place: EventPosition::Only,
        data: serde_json::Map::new(),
    };
    let event = store.write(move |tx| Box::pin(events::append(tx, event, NOW)));
    event.await.unwrap().seq
}

async fn restored(from: &Path, to: &Path, now_ms: i64) -> Store {
    backup::restore(from, to, true, Transfer::default(), now_ms)
        .await
        .unwrap();
    Store::open(&sqlite_settings(to)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_that_was_ahead_of_the_backup_misses_nothing_after_a_restore() {
    for before in [0, 3] {
        let (store, _folder) = sqlite_store().await;
        let account = add_account(&store, "Default").await.unwrap();
        for _ in 0..before {
            note(&store, account).await;
        }
        let place = tempfile::tempdir().unwrap();
        backup::backup(&store, place.path(), Transfer::default(), NOW)
            .await
            .unwrap();
        let mut cursor = 0;
        for _ in 0..100 {
            cursor = note(&store, account).await;
        }

        let data = tempfile::tempdir().unwrap();
        // The second time with a reader who followed what was restored at first.
        for restored_at in [NOW, NOW + 60_000] {
            let store = restored(place.path(), data.path(), restored_at).await;
            let mut reader = store.read().await.unwrap();
            assert_eq!(events::newest(&mut reader, account).await.unwrap(), before);
            drop(reader);
            let first = note(&store, account).await;
            let mut reader = store.read().await.unwrap();
            let seen = events::after(&mut reader, account, cursor, 10).await;
            let seen: Vec<i64> = seen.unwrap().iter().map(|event| event.seq).collect();
            assert_eq!(seen, [first], "{before} events before the backup");
            drop(reader);
            for _ in 0..10 {
                cursor = note(&store, account).await;
            }
            store.close().await;
        }
    }
}
