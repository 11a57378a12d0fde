//! Files and subfolders of a folder, listed for ZIP archives, and opened with read-ahead.
//!
//! The list is read by one statement, so that it is consistent; the bytes are opened later, file by file, and only of
//! files that still exist.

use std::{collections::HashMap, num::NonZeroU64, ops::ControlFlow, os::fd::AsFd as _, sync::Arc};

use futures_util::{Stream, TryStreamExt as _};
use rustix::fs::{Advice, fadvise};
use uuid::Uuid;

use crate::{
    Connection, Error, Store,
    blob::{BlobHash, Source},
    rows,
    statement::{Builder, query_as},
};

/// Depth to which subfolders are listed; how deep folders may be nested is decided in [`crate::folders`].
const MAX_DEPTH: i64 = 100;
/// Rows after which other work on the same thread gets its turn.
const ROWS_PER_TURN: u32 = 256;
/// Bytes that the kernel is asked to read ahead when a file is opened.
const READ_AHEAD: NonZeroU64 = NonZeroU64::new(8 << 20).expect("more than nothing");

/// Subfolders of a folder, to a depth.
const SUBFOLDERS: &str = "WITH RECURSIVE below (id, depth) AS (
         SELECT $1, 0 UNION ALL
         SELECT f.id, depth + 1 FROM below b JOIN folders f ON f.parent_id = b.id WHERE depth < $2)
     SELECT f.id, f.parent_id, f.name, f.created_at FROM below b JOIN folders f ON f.id = b.id
     WHERE b.depth > 0 ORDER BY b.depth, f.created_at, f.id LIMIT $3";

/// Files of an account in a folder and its subfolders.
const MEMBERS: &str = "WITH RECURSIVE below (id) AS (
         SELECT $1 UNION SELECT f.id FROM folders f JOIN below b ON f.parent_id = b.id)
     SELECT f.id, f.folder_id, f.filename, f.size_bytes, f.blob_hash, b.crc32, f.created_at
     FROM files f JOIN blobs b ON b.hash = f.blob_hash
     WHERE f.account_id = $2 AND f.folder_id IN (SELECT id FROM below)
     ORDER BY f.folder_id, f.created_at, f.id";

/// Files of an account by their ids.
const CHOSEN: &str = "SELECT f.id, f.folder_id, f.filename, f.size_bytes, f.blob_hash, b.crc32, f.created_at
     FROM json_each($1) j CROSS JOIN files f ON f.id = unhex(j.value) JOIN blobs b ON b.hash = f.blob_hash
     WHERE f.account_id = $2 ORDER BY j.key";

/// Subfolder of the requested folder.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Subfolder {
    pub id: Uuid,
    pub parent_id: Uuid,
    pub name: String,
    pub created_at: i64,
}

/// A file in it or below.
#[derive(Clone, Debug, PartialEq, Eq, sqlx::FromRow)]
pub struct Member {
    pub id: Uuid,
    /// `None`: at the top.
    pub folder_id: Option<Uuid>,
    pub filename: String,
    pub size_bytes: i64,
    #[sqlx(rename = "blob_hash")]
    pub blob: BlobHash,
    #[sqlx(try_from = "i64")]
    pub crc32: u32,
    pub created_at: i64,
}

/// Calls back for the folders below a folder, parents before children, oldest first, at most `limit` and until the
/// callback breaks. They are never all in memory here.
pub async fn each_subfolder<B>(
    db: &mut impl Connection,
    root: Uuid,
    most: u32,
    show: impl FnMut(Subfolder) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let folders = query_as(SUBFOLDERS)
        .bind(root)
        .bind(MAX_DEPTH)
        .bind(most)
        .fetch(db);
    show_each(folders, show).await
}

/// Calls back for every file in a folder of the account and its subfolders, each folder's together, oldest first,
/// until the callback breaks. The rows come from an index in this order, and are never all in memory.
pub async fn each_member<B>(
    db: &mut impl Connection,
    account_id: Uuid,
    root: Uuid,
    show: impl FnMut(Member) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let members = query_as(MEMBERS).bind(root).bind(account_id).fetch(db);
    show_each(members, show).await
}

/// Returns those files of the account that exist, in the requested order.
pub async fn chosen(
    db: &mut impl Connection,
    account_id: Uuid,
    ids: &[Uuid],
) -> Result<Vec<Member>, Error> {
    Ok(query_as(CHOSEN)
        .bind(rows::ids(ids)?)
        .bind(account_id)
        .fetch_all(db)
        .await?)
}

async fn show_each<R, B>(
    mut rows: impl Stream<Item = Result<R, sqlx::Error>> + Unpin,
    mut show: impl FnMut(R) -> ControlFlow<B>,
) -> Result<ControlFlow<B>, Error> {
    let mut shown: u32 = 0;
    while let Some(row) = rows.try_next().await? {
        if let ControlFlow::Break(why) = show(row) {
            return Ok(ControlFlow::Break(why));
        }
        shown = shown.wrapping_add(1);
        if shown.is_multiple_of(ROWS_PER_TURN) {
            tokio::task::yield_now().await;
        }
    }
    Ok(ControlFlow::Continue(()))
}

/// Opens files in the requested order, up to the first that does not exist any more, or that must be fetched from the object
/// store: that one is opened when it is the first, else its fetch begins. The kernel is asked to read ahead.
pub async fn open(store: &Store, ids: &[Uuid]) -> Result<Vec<Source>, Error> {
    let mut statement = Builder::new("SELECT id, blob_hash FROM files WHERE id IN (");
    statement.push_list(ids).push(")");
    let mut db = store.read().await?;
    let rows: Vec<(Uuid, BlobHash)> = statement.build_query_as().fetch_all(&mut db).await?;
    drop(db);
    let hashes: HashMap<Uuid, BlobHash> = rows.into_iter().collect();
    let present = ids.iter().map_while(|id| hashes.get(id).copied());
    let present: Vec<BlobHash> = present.collect();
    let (blobs, wanted) = (store.blobs().clone(), present.clone());
    let open = move || {
        let mut files = Vec::with_capacity(wanted.len());
        for hash in wanted {
            let Some(file) = blobs.local_file(&hash)? else {
                break;
            };
            // Only advice: the bytes can be read without it, too.
            let _ = fadvise(file.as_fd(), 0, Some(READ_AHEAD), Advice::WillNeed);
            files.push(Source::File(Arc::new(file)));
        }
        Ok(files)
    };
    let mut files = store.blobs().blocking(open).await?;
    let fetched = present.get(files.len());
    if let Some(hash) = fetched.filter(|_| store.blobs().has_objects()) {
        if files.is_empty() {
            match store.blobs().source(hash).await {
                Err(Error::NotFound(_)) => {}
                opened => files.push(opened?),
            }
        } else if let Err(error) = store.blobs().prefetch(hash).await {
            tracing::debug!(%error, "a file is not fetched ahead");
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        StoreSettings, accounts, blobs,
        files::{self, NewFile, Role},
        folders::{self, NewFolder},
    };

    async fn folder(store: &Store, account_id: Uuid, name: &str, parent_id: Option<Uuid>) -> Uuid {
        let new = NewFolder {
            name: name.to_owned(),
            color: None,
            parent_id,
        };
        let made = store.write(move |tx| {
            Box::pin(async move { folders::create(tx, account_id, new, 1).await })
        });
        made.await.unwrap().id
    }

    async fn file(store: &Store, account_id: Uuid, name: &str, folder_id: Uuid, at: i64) -> Uuid {
        let mut spool = store.blobs().spool().await.unwrap();
        spool.write(name.to_owned().into()).await.unwrap();
        let sealed = spool.seal().await.unwrap();
        let new = NewFile {
            folder_id: Some(folder_id),
            filename: name.to_owned(),
            mime_type: "text/plain".to_owned(),
            size_bytes: name.len() as u64,
            blob: sealed.blob().hash,
            role: Role::Uploaded,
            width: None,
            height: None,
            duration_ms: None,
            generation: 0,
        };
        let made = store.write(move |tx| {
            Box::pin(async move {
                blobs::record(tx, &sealed, at).await?;
                files::create(tx, account_id, new, at).await
            })
        });
        made.await.unwrap().id
    }

    #[tokio::test]
    async fn all_below_a_folder_is_found_in_order_and_opened_while_it_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(dir.path());
        let store = Store::open(&settings).await.unwrap();
        let account = store
            .write(|tx| Box::pin(async move { accounts::create(tx, "a", 0).await }))
            .await
            .unwrap()
            .id;
        let root = folder(&store, account, "root", None).await;
        let inner = folder(&store, account, "inner", Some(root)).await;
        let empty = folder(&store, account, "empty", Some(inner)).await;
        let beside = folder(&store, account, "beside", None).await;
        let late = file(&store, account, "late", root, 9).await;
        let early = file(&store, account, "early", root, 3).await;
        let deep = file(&store, account, "deep", inner, 1).await;
        file(&store, account, "beside", beside, 1).await;

        let mut db = store.read().await.unwrap();
        for (most, stop_after) in [(10, 10), (1, 10), (10, 1)] {
            let mut found = Vec::new();
            let ended = each_subfolder(&mut db, root, most, |folder| {
                found.push((folder.id, folder.parent_id));
                match found.len() < stop_after {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            assert_eq!(ended.await.unwrap().is_break(), stop_after == 1);
            let all = [(inner, root), (empty, inner)];
            let shown = (most as usize).min(stop_after).min(all.len());
            assert_eq!(found, all[..shown], "{most} {stop_after}");
        }
        let mut members = Vec::new();
        let ended = each_member(&mut db, account, root, |member| {
            assert_eq!(member.crc32, crc32fast::hash(member.filename.as_bytes()));
            members.push(member.id);
            ControlFlow::<()>::Continue(())
        });
        assert!(ended.await.unwrap().is_continue());
        assert_eq!(members, [early, late, deep]);
        let mut one = Vec::new();
        let ended = each_member(&mut db, account, root, |member| {
            one.push(member.id);
            ControlFlow::Break(member.filename)
        });
        let why = ended.await.unwrap();
        assert_eq!(
            (one, why),
            (vec![early], ControlFlow::Break("early".to_owned()))
        );
        drop(db);

        let lengths = |files: Vec<Source>| {
            let length = |file: Source| file.size().unwrap();
            files.into_iter().map(length).collect::<Vec<_>>()
        };
        let opened = open(&store, &[deep, late, early]).await.unwrap();
        assert_eq!(lengths(opened), [4, 4, 5]);
        store
            .write(move |tx| Box::pin(async move { files::delete(tx, account, late).await }))
            .await
            .unwrap();
        assert_eq!(
            lengths(open(&store, &[deep, late, early]).await.unwrap()),
            [4]
        );
    }

    /// A folder of a million files must not be sorted before its first one is shown.
    #[tokio::test]
    async fn members_come_from_an_index_without_a_sort() {
        let dir = tempfile::tempdir().unwrap();
        let settings = StoreSettings::on_sqlite(dir.path());
        let store = Store::open(&settings).await.unwrap();
        let mut db = store.read().await.unwrap();
        let explained = format!("EXPLAIN QUERY PLAN {MEMBERS}");
        let plan: Vec<(i64, i64, i64, String)> = query_as(explained)
            .bind(Uuid::nil())
            .bind(Uuid::nil())
            .fetch_all(&mut db)
            .await
            .unwrap();
        let plan: Vec<_> = plan.into_iter().map(|(_, _, _, step)| step).collect();
        assert!(plan.iter().any(|step| step.contains("files_by_folder")));
        assert!(!plan.iter().any(|step| step.contains("B-TREE")), "{plan:?}");
    }
}
