//! Loss of a blob's objects, found when the same bytes are stored again: missing ones by a list of keys and lengths, damaged ones by
//! what earlier reads noted.
//!
//! The new objects take the place of lost ones then ([`crate::blobs::record`]). A wrong answer costs nothing but the room of objects
//! that no row names any more.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{BlobHash, Blobs, pieces::prefix_of, remote::Stored};
use crate::Error;

impl Blobs {
    /// Returns the base of a blob's recorded objects when they are lost or damaged; `None` when they are not, as far as the object
    /// store can be asked now, and for a blob without any.
    pub(super) async fn lost_base(&self, hash: &BlobHash) -> Option<Uuid> {
        let lost = self.look_for_loss(hash).await;
        lost.unwrap_or_else(|error| {
            tracing::debug!(%error, %hash, "objects of a blob are not checked");
            None
        })
    }

    async fn look_for_loss(&self, hash: &BlobHash) -> Result<Option<Uuid>, Error> {
        let stored = match self.stored(hash).await {
            Err(Error::NotFound(_)) => return Ok(None),
            stored => stored?,
        };
        let base = stored.place.base;
        if !self.remote()?.is_damaged(base) && self.has_objects_of(&stored).await? {
            return Ok(None);
        }
        tracing::warn!(%hash, base = %base.simple(), "lost objects of a blob are replaced by the same bytes");
        Ok(Some(base))
    }

    /// Returns whether the object store has all objects of a blob with their lengths.
    async fn has_objects_of(&self, stored: &Stored) -> Result<bool, Error> {
        let Some(objects) = self.objects() else {
            return Ok(true);
        };
        let mut missing = BTreeMap::new();
        for number in 0..stored.place.pieces() {
            let piece = stored.place.piece(number, stored.size)?;
            missing.insert(piece.key, piece.len);
        }
        let (prefix, mut after) = (prefix_of(stored.place.base), None);
        while !missing.is_empty() {
            let page = objects.list(&prefix, after.as_deref()).await?;
            let Some(last) = page.last() else {
                return Ok(false);
            };
            after = Some(last.key.clone());
            for entry in &page {
                if missing.get(&entry.key) == Some(&entry.size) {
                    missing.remove(&entry.key);
                }
            }
        }
        Ok(true)
    }
}
