//! Object store of the bytes of files: an S3-compatible service or a shared folder (`store.objects_url`).
//!
//! - Asked of it: PUT, GET, DELETE and LIST of whole objects.
//! - No key is ever written with two contents, so that every request may be repeated.
//! - Only one installation stores there (`owner.rs`).
//! - Keys are of letters, digits, `.`, `-`, `_` and `/`; those of blobs are `b/{base}/{number}-{hash}` ([`PIECE`] bytes each).
//! - Nothing here knows what the bytes should be: callers compare hashes.

mod address;
mod connection;
mod examine;
mod failure;
mod folder;
mod limits;
mod owner;
mod probe;
mod s3;
mod sign;

use std::sync::Arc;

use bytes::Bytes;

pub(crate) use address::Address;
pub use examine::examine_objects;
pub(crate) use owner::Claimant;
pub use owner::ObjectOwner;
pub use probe::ObjectsReport;

use crate::{Error, StoreSettings};
use failure::Failure;
use folder::Folder;
use limits::Limits;
use s3::S3;

/// Bytes of every piece of a blob but the last.
pub(crate) const PIECE: usize = 8 << 20;
/// Bytes of the largest object that is read.
const MAX_OBJECT: usize = PIECE + 4096;
/// Objects of a list.
const MOST_LISTED: usize = 1000;

/// Object in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectEntry {
    pub(crate) key: String,
    pub(crate) size: u64,
    /// Time of its last change, in milliseconds since 1970 UTC; the present when the object store does not say.
    pub(crate) modified_ms: i64,
}

/// Object store. Clones share it.
///
/// Each request has `store.objects_timeout`, its repetitions included, and more for the bytes that a server takes or sends
/// meanwhile; `Error::Objects` when the object store cannot be used now.
#[derive(Clone)]
pub(crate) struct Objects(Arc<Backend>);

enum Backend {
    S3(Box<S3>),
    Folder(Folder),
}

impl Objects {
    /// Returns the object store of the settings; `None` without `store.objects_url`. Nothing is asked of it yet.
    pub(crate) fn of(settings: &StoreSettings) -> Result<Option<Self>, Error> {
        Self::with_limits(settings, Limits::of(settings))
    }

    fn with_limits(settings: &StoreSettings, limits: Limits) -> Result<Option<Self>, Error> {
        let backend = match Address::parse(&settings.objects_url)? {
            None => return Ok(None),
            Some(Address::S3 { bucket, prefix }) => {
                Backend::S3(Box::new(S3::new(settings, bucket, prefix, limits)?))
            }
            Some(Address::Folder(root)) => Backend::Folder(Folder::new(settings, root, limits)),
        };
        Ok(Some(Self(Arc::new(backend))))
    }

    /// Checks at the start that the object store can be used: writes, reads, lists and deletes an object under `probe/`. A full
    /// one passes.
    ///
    /// `Error::Unsupported` with the step that fails and what to change.
    pub(crate) async fn prepare(&self) -> Result<(), Error> {
        if let Backend::Folder(folder) = &*self.0 {
            // The probe says what is wrong with the folder.
            let _cleaned = folder.clean().await;
        }
        probe::check(&self.0).await.map(drop)
    }

    /// Returns its address or folder, for people.
    pub(crate) fn place(&self) -> String {
        self.0.place()
    }

    /// Writes an object; it is durable when this returns.
    pub(crate) async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Error> {
        check_key(key)?;
        Ok(self.0.put(key, bytes).await?)
    }

    /// Reads an object of up to [`PIECE`] bytes; `Error::NotFound` when there is none.
    pub(crate) async fn get(&self, key: &str) -> Result<Bytes, Error> {
        check_key(key)?;
        Ok(self.0.get(key).await?)
    }

    /// Deletes an object; a missing one is fine.
    pub(crate) async fn delete(&self, key: &str) -> Result<(), Error> {
        check_key(key)?;
        Ok(self.0.delete(key).await?)
    }

    /// Lists up to 1000 objects whose keys begin with `prefix` and are greater than `after`, in the order of the keys' bytes.
    /// Only an empty list is the end.
    ///
    /// `prefix` has at least one `/`, and keys up to two segments behind its last one.
    pub(crate) async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
    ) -> Result<Vec<ObjectEntry>, Error> {
        Ok(self.0.list(prefix, after).await?)
    }
}

impl Backend {
    fn place(&self) -> String {
        match self {
            Self::S3(s3) => s3.place(),
            Self::Folder(folder) => folder.place(),
        }
    }

    async fn put(&self, key: &str, bytes: Bytes) -> Result<(), Failure> {
        match self {
            Self::S3(s3) => s3.put(key, bytes).await,
            Self::Folder(folder) => folder.put(key, bytes).await,
        }
    }

    async fn get(&self, key: &str) -> Result<Bytes, Failure> {
        match self {
            Self::S3(s3) => s3.get(key).await,
            Self::Folder(folder) => folder.get(key).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<(), Failure> {
        match self {
            Self::S3(s3) => s3.delete(key).await,
            Self::Folder(folder) => folder.delete(key).await,
        }
    }

    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<ObjectEntry>, Failure> {
        match self {
            Self::S3(s3) => s3.list(prefix, after).await,
            Self::Folder(folder) => folder.list(prefix, after).await,
        }
    }
}

fn check_key(key: &str) -> Result<(), Error> {
    match address::is_key(key) {
        true => Ok(()),
        false => Err(Error::Internal(format!("{key:?} is no key of an object"))),
    }
}

#[cfg(test)]
mod fake;
#[cfg(test)]
mod tests;
