//! Sweeps of segments, rows of objects and folders of deleted or failed video streams. The schema's triggers note the streams in
//! the same transaction; a folder is left when a process died between a deletion, or a failure, and its removal.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::{
    folder::{self, Folder},
    objects::{delete_rows, stored_whole},
};
use crate::{
    Connection, Error, Store, Tx, rows,
    statement::{query, query_scalar},
    turns::in_turns,
};

/// Folders that are looked up at a time.
const PAGE: usize = 200;

/// Deletes the segments and the rows of objects of failed and deleted streams, in turns of the writer; returns how many rows.
pub(crate) async fn sweep_segments(store: &Store) -> Result<u64, Error> {
    in_turns(store, |tx, most| Box::pin(delete_discarded(tx, most))).await
}

/// Deletes at most `most` rows, stream by stream; returns how many. A stream is noted until the last of its rows is deleted, so
/// that the next turn, in this process or in another, continues where this one ended.
pub(super) async fn delete_discarded(tx: &mut Tx<'_>, most: u32) -> Result<u64, Error> {
    let most = u64::from(most);
    let mut rows = 0;
    while rows < most {
        let discarded: Option<Uuid> =
            query_scalar("SELECT stream_id FROM video_discarded ORDER BY stream_id LIMIT 1")
                .fetch_optional(tx)
                .await?;
        let Some(id) = discarded else { break };
        let room = most - rows;
        let segments = delete_segments(tx, id, room).await?;
        let objects = delete_rows(tx, id, room - segments).await?;
        rows += segments + objects;
        if segments + objects < room {
            query("DELETE FROM video_discarded WHERE stream_id = $1")
                .bind(id)
                .execute(tx)
                .await?;
            rows += 1;
        }
    }
    Ok(rows)
}

async fn delete_segments(tx: &mut Tx<'_>, stream_id: Uuid, most: u64) -> Result<u64, Error> {
    let deleted = query(
        "DELETE FROM video_segments WHERE stream_id = $1 AND (rendition, number) IN (
             SELECT rendition, number FROM video_segments WHERE stream_id = $1 ORDER BY rendition, number LIMIT $2)",
    )
    .bind(stream_id)
    .bind(i64::try_from(most).unwrap_or(i64::MAX))
    .execute(tx)
    .await?;
    Ok(deleted.rows_affected())
}

/// Removes the folders of failed and deleted streams, and of those that are ready and whose files are all in objects; returns how
/// many. A folder is made after its stream's row, and by the owner of the row only.
pub(crate) async fn sweep_folders(store: &Store) -> Result<u64, Error> {
    let data_dir = store.data_dir().to_owned();
    let found = store
        .blobs()
        .blocking(move || folder::all(&data_dir))
        .await?;
    let mut removed = 0;
    for page in found.chunks(PAGE) {
        let mut needed = needed(&mut store.read().await?, page).await?;
        if store.blobs().has_objects() {
            for id in stored_whole(&mut store.read().await?, page).await? {
                needed.remove(&id);
            }
        }
        for id in page.iter().filter(|id| !needed.contains(id)) {
            let folder = Folder::of(store, *id);
            store.blobs().blocking(move || folder.remove()).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

async fn needed(db: &mut impl Connection, streams: &[Uuid]) -> Result<BTreeSet<Uuid>, Error> {
    let needed: Vec<Uuid> = query_scalar(
        "SELECT v.id FROM json_each($1) j CROSS JOIN video_streams v ON v.id = unhex(j.value)
         WHERE v.status <> 'failed'",
    )
    .bind(rows::ids(streams)?)
    .fetch_all(db)
    .await?;
    Ok(needed.into_iter().collect())
}
