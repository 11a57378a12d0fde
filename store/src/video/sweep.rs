//! Folders that belong to no stream: a process died between a deletion, or a failure, and their removal.

use std::collections::BTreeSet;

use sqlx::query_scalar;
use uuid::Uuid;

use super::folder::{self, Folder};
use crate::{
    Connection, Error, Store,
    rows::{hex, json},
};

/// Folders that are asked about at a time.
const PAGE: usize = 200;

/// Removes the folders of streams that failed and of those that are gone; returns how many. A folder is made after its
/// stream's row, and by the owner of the row only.
pub(crate) async fn sweep(store: &Store) -> Result<u64, Error> {
    let data_dir = store.data_dir().to_owned();
    let found = store
        .blobs()
        .blocking(move || folder::all(&data_dir))
        .await?;
    let mut removed = 0;
    for page in found.chunks(PAGE) {
        let needed = needed(&mut store.read().await?, page).await?;
        for id in page.iter().filter(|id| !needed.contains(id)) {
            let folder = Folder::of(store, *id);
            store.blobs().blocking(move || folder.remove()).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

async fn needed(db: &mut impl Connection, streams: &[Uuid]) -> Result<BTreeSet<Uuid>, Error> {
    let ids: Vec<String> = streams.iter().map(|id| hex(*id)).collect();
    let needed: Vec<Uuid> = query_scalar(
        "SELECT v.id FROM json_each($1) j CROSS JOIN video_streams v ON v.id = unhex(j.value)
         WHERE v.status <> 'failed'",
    )
    .bind(json(&ids)?)
    .fetch_all(db.sqlite())
    .await?;
    Ok(needed.into_iter().collect())
}
