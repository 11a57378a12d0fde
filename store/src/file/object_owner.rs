//! Owner of an object store: the object `owner/{id}` names the installation whose rows name the others. No other installation
//! starts on it, and none deletes objects as strays where it is not the only owner.
//!
//! Each installation has a key of its own, so that two that start at once both find the other one.

use bytes::Bytes;

use crate::{Error, Store, derived::DerivedTokens, objects::Objects};

const PREFIX: &str = "owner/";
/// Content for a person who looks into the bucket.
const NOTE: &str = "The objects beside this one belong to an installation of Sluice. See docs/guide/cluster.md before you delete it.\n";

/// Notes at the start that the object store is this installation's. Nothing to do without one.
///
/// `Error::Unsupported` when it is another one's.
pub(crate) async fn claim(store: &Store) -> Result<(), Error> {
    let Some(objects) = store.blobs().objects() else {
        return Ok(());
    };
    let own = own_key(store).await?;
    let before = owners(objects).await?;
    reject_others(objects, &before, &own)?;
    if !before.is_empty() {
        return Ok(());
    }
    objects
        .put(&own, Bytes::from_static(NOTE.as_bytes()))
        .await?;
    let after = owners(objects).await?;
    let rejected = reject_others(objects, &after, &own);
    if rejected.is_err() {
        objects.delete(&own).await?;
    }
    rejected
}

/// Returns whether the object store is this installation's alone.
pub(crate) async fn is_own(store: &Store, objects: &Objects) -> Result<bool, Error> {
    Ok(owners(objects).await? == [own_key(store).await?])
}

async fn own_key(store: &Store) -> Result<String, Error> {
    let derived = DerivedTokens::of(&mut store.read().await?).await?;
    Ok(format!("{PREFIX}{}", derived.object_owner()))
}

async fn owners(objects: &Objects) -> Result<Vec<String>, Error> {
    let listed = objects.list(PREFIX, None).await?;
    Ok(listed.into_iter().map(|entry| entry.key).collect())
}

fn reject_others(objects: &Objects, owners: &[String], own: &str) -> Result<(), Error> {
    match owners.iter().find(|owner| *owner != own) {
        None => Ok(()),
        Some(other) => Err(Error::Unsupported(format!(
            "store.objects_url: the objects at {} belong to another installation, as {other} says: choose another bucket or a prefix of \
             its own; only when that installation is gone for good and no file of it is needed, delete that object",
            objects.place()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;
    use crate::{StoreSettings, stray_objects};

    /// Milliseconds by which everything is old.
    const LATER_MS: i64 = 1 << 41;

    fn settings(folder: &Path, name: &str) -> StoreSettings {
        let (data, bucket) = (folder.join(name), folder.join("bucket"));
        fs::create_dir_all(&bucket).unwrap();
        StoreSettings {
            objects_url: format!("file://{}", bucket.display()),
            ..StoreSettings::on_sqlite(&data)
        }
    }

    fn key(number: u8) -> String {
        let base = uuid::Uuid::from_u128(0x0100_0000_0000_7000_8000_0000_0000_0000);
        format!(
            "b/{}/0-{}",
            base.simple(),
            format!("{number:02x}").repeat(8)
        )
    }

    #[tokio::test]
    async fn another_installation_neither_starts_nor_sweeps() {
        let folder = tempfile::tempdir().unwrap();
        let first = Store::open(&settings(folder.path(), "first"))
            .await
            .unwrap();
        let objects = first.blobs().objects().unwrap().clone();
        assert!(is_own(&first, &objects).await.unwrap());
        let other = Store::open(&settings(folder.path(), "other")).await.err();
        let text = other.expect("it is rejected").to_string();
        assert!(
            text.contains("another installation") && text.contains("owner/"),
            "{text}"
        );
        assert!(is_own(&first, &objects).await.unwrap(), "it left nothing");

        // A stray is deleted by its owner alone.
        objects.put(&key(1), "stray".into()).await.unwrap();
        objects.put("owner/another", "also".into()).await.unwrap();
        stray_objects::sweep(&first, LATER_MS).await.unwrap();
        assert_eq!(&objects.get(&key(1)).await.unwrap()[..], b"stray");
        objects.delete("owner/another").await.unwrap();
        stray_objects::sweep(&first, LATER_MS).await.unwrap();
        assert!(objects.get(&key(1)).await.is_err());
        first.close().await;
        let again = Store::open(&settings(folder.path(), "first"))
            .await
            .unwrap();
        again.close().await;
    }
}
