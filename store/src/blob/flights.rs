//! Work that several callers wait for at a time, such as fetching a blob: done once for each key, on a task of its own that ends
//! when all callers leave before its turn.
//!
//! Once it has had a turn for a download it is done to its end.

use std::{
    collections::HashMap, error::Error as _, fs::File, future::Future, io, path::PathBuf, sync::Arc,
};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, watch};
use uuid::Uuid;

use super::{BlobHash, Blobs};
use crate::Error;

/// Subject of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Key {
    Blob(BlobHash),
    Piece(Uuid, u64),
}

/// Handle of work that is under way, or its outcome. Work that has had no turn for a download ends when all handles of it are
/// dropped.
pub(super) type Flight = watch::Receiver<Option<Outcome>>;

/// End of the work.
pub(super) type Outcome = Result<Arc<File>, Failed>;

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
pub(super) struct Flights(Mutex<HashMap<Key, Arc<watch::Sender<Option<Outcome>>>>>);

impl Flights {
    /// Returns how much work is under way.
    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }
}

impl Blobs {
    /// Starts work, or joins the work with the same key that is under way. Before its first request the work waits for
    /// [`Running::first_turn`], so that no download waits that all callers have left.
    pub(super) fn fly<F>(&self, key: Key, work: impl FnOnce(Running) -> F) -> Result<Flight, Error>
    where
        F: Future<Output = Result<Arc<File>, Error>> + Send + 'static,
    {
        let mut flights = self.remote()?.flights().0.lock();
        if let Some(ended) = flights.get(&key) {
            return Ok(ended.subscribe());
        }
        let (ended, flight) = watch::channel(None);
        let ended = Arc::new(ended);
        flights.insert(key, ended.clone());
        drop(flights);
        let running = Running {
            blobs: self.clone(),
            key,
            ended: ended.clone(),
        };
        let work = work(running);
        tokio::spawn(async move {
            // The work drops its `Running`: callers of now find the result in the cache, or begin again.
            let outcome = work.await.map_err(Failed::from);
            ended.send_replace(Some(outcome));
        });
        Ok(flight)
    }
}

/// Waits for the end of the work.
pub(super) async fn landed(mut flight: Flight) -> Result<Arc<File>, Error> {
    let outcome = match flight.wait_for(Option::is_some).await {
        Ok(ended) => ended.clone(),
        Err(_) => None,
    };
    match outcome {
        Some(outcome) => Ok(outcome?),
        None => Err(Error::Internal("work on the cache was cut short".into())),
    }
}

/// Work that is under way; dropped at its end, also by a panic.
pub(super) struct Running {
    blobs: Blobs,
    key: Key,
    ended: Arc<watch::Sender<Option<Outcome>>>,
}

impl Running {
    /// Waits for the work's first turn for a download, as [`Turns::turn`](super::turns::Turns::turn) does; ends with
    /// an error when all callers have left before.
    pub(super) async fn first_turn(&self) -> Result<OwnedSemaphorePermit, Error> {
        let downloads = self.blobs.remote()?.downloads();
        tokio::select! {
            biased;
            turn = downloads.turn() => turn,
            () = self.abandoned() => Err(Error::Objects("the download is not wanted any more".into())),
        }
    }

    /// Waits until all callers have left; no other one joins then.
    async fn abandoned(&self) {
        loop {
            self.ended.closed().await;
            if self.remove_if(|ended| ended.receiver_count() == 0) {
                return;
            }
        }
    }

    /// Removes the work from the list if it is so; returns whether it is not in the list.
    fn remove_if(&self, is_so: impl FnOnce(&watch::Sender<Option<Outcome>>) -> bool) -> bool {
        let Some(remote) = &self.blobs.shared.remote else {
            return true;
        };
        let mut flights = remote.flights().0.lock();
        // Later work may have the same key.
        let is_listed = flights
            .get(&self.key)
            .is_some_and(|ended| Arc::ptr_eq(ended, &self.ended));
        if is_listed && !is_so(&self.ended) {
            return false;
        }
        if is_listed {
            flights.remove(&self.key);
        }
        true
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.remove_if(|_| true);
    }
}
