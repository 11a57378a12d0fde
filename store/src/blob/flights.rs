//! Work that several callers wait for at a time, such as fetching a blob: done once for each key, on a task of its own, whether
//! or not a caller leaves.

use std::{
    collections::HashMap, error::Error as _, fs::File, future::Future, io, path::PathBuf, sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use super::{BlobHash, Blobs};
use crate::Error;

/// Subject of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Blob(BlobHash),
    Piece(Uuid, u64),
}

/// Handle of work that is under way or has ended; clones share it.
pub(super) type Flight = watch::Receiver<Option<Outcome>>;

type Outcome = Result<Arc<File>, Failed>;

/// Error that many callers receive.
#[derive(Clone, Debug)]
pub(super) enum Failed {
    NotFound(&'static str),
    Busy(String),
    Full,
    Objects(String),
    Lost(String),
    File(&'static str, PathBuf, Arc<io::Error>),
    Other(String),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::NotFound(what),
            Error::Busy(why) => Self::Busy(why),
            Error::Full => Self::Full,
            Error::Objects(what) => Self::Objects(what),
            Error::Lost(what) => Self::Lost(what),
            Error::File {
                action,
                path,
                source,
            } => Self::File(action, path, Arc::new(source)),
            other => Self::Other(with_causes(&other)),
        }
    }
}

fn with_causes(error: &Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

impl From<Failed> for Error {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::NotFound(what) => Self::NotFound(what),
            Failed::Busy(why) => Self::Busy(why),
            Failed::Full => Self::Full,
            Failed::Objects(what) => Self::Objects(what),
            Failed::Lost(what) => Self::Lost(what),
            Failed::File(action, path, source) => Self::File {
                action,
                path,
                source: match source.raw_os_error() {
                    Some(code) => io::Error::from_raw_os_error(code),
                    None => io::Error::new(source.kind(), source.to_string()),
                },
            },
            Failed::Other(what) => Self::Internal(what),
        }
    }
}

/// The work that is under way.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<HashMap<Key, Flight>>);

impl Blobs {
    /// Starts work, or joins the work with the same key that is under way.
    pub(super) fn fly<F>(&self, key: Key, work: impl FnOnce() -> F) -> Result<Flight, Error>
    where
        F: Future<Output = Result<Arc<File>, Error>> + Send + 'static,
    {
        let mut running = self.remote()?.flights().0.lock();
        if let Some(flight) = running.get(&key) {
            return Ok(flight.clone());
        }
        let (ended, flight) = watch::channel(None);
        running.insert(key, flight.clone());
        drop(running);
        let (work, landing) = (work(), Landing(self.clone(), key));
        tokio::spawn(async move {
            let outcome = work.await.map_err(Failed::from);
            // Callers of now find the result in the cache, or begin again.
            drop(landing);
            ended.send_replace(Some(outcome));
        });
        Ok(flight)
    }
}

/// Waits for the end of the work.
pub(super) async fn landed(mut flight: Flight) -> Result<Arc<File>, Error> {
    let outcome = match flight.wait_for(Option::is_some).await {
        Ok(outcome) => (*outcome).clone(),
        Err(_) => None,
    };
    match outcome {
        Some(outcome) => Ok(outcome?),
        None => Err(Error::Internal("work on the cache was cut short".into())),
    }
}

/// Removes the work from the list when it ends, also by a panic.
struct Landing(Blobs, Key);

impl Drop for Landing {
    fn drop(&mut self) {
        if let Some(remote) = &self.0.shared.remote {
            remote.flights().0.lock().remove(&self.1);
        }
    }
}
