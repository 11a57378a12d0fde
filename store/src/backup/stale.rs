//! Removes blobs and half-copied files that a backup's database no longer names.

use std::path::Path;

use super::{blob_copier::is_partial, index::BackupIndex, off_thread};
use crate::{Error, blob::HashPrefix, copy, folder};

/// Removes blobs that a backup's database does not name, and half-copied files left by a crash. One prefix at a time
/// is in memory; foreign files are kept.
pub(super) async fn remove(database: &Path, blobs: &Path) -> Result<(), Error> {
    let mut index = BackupIndex::open(database).await?;
    for prefix in HashPrefix::all() {
        let folder = blobs.join(prefix.to_string());
        if !folder.exists() {
            continue;
        }
        let mut stale = Vec::new();
        for name in folder::names_in(&folder)? {
            let is_stale = match prefix.blob(&name) {
                Some(hash) => !index.names(hash).await?,
                None => is_partial(Path::new(&name)),
            };
            if is_stale {
                stale.push(folder.join(name));
            }
        }
        off_thread(move || {
            stale
                .iter()
                .try_for_each(|path| copy::remove_if_there(path))
        })
        .await?;
    }
    index.close().await
}
