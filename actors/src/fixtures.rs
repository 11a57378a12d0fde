//! Fixtures of this crate's tests: a store in a temporary folder, faked workers and progress, waiting for a condition.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering::SeqCst},
    time::Duration,
};

use futures_util::future::{BoxFuture, FutureExt as _};
use sluice_media::{
    format::Format,
    task::{ImageFacts, Limits},
};
use sluice_store::{Error as StoreError, Store, StoreSettings, accounts, changes::Kind, now_ms};
use tempfile::TempDir;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::{
    compute::{Assignment, ComputeSettings, Error, Finished, Lane},
    durable::{in_flight::TaskShares, progress_channels::Report, workers::Workers},
};

/// Longest wait for a condition, on a machine with other work.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two checks of a condition.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// Waits until the condition holds.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let waiting = async {
        while !holds().await {
            sleep(LOOK_AGAIN).await;
        }
    };
    let waited = timeout(PATIENCE, waiting).await;
    assert!(waited.is_ok(), "waited in vain until {what}");
}

/// Opens a store in the folder, as a process does.
pub(crate) async fn open_store(folder: &TempDir) -> Store {
    let settings = StoreSettings::without_reserve(folder.path());
    Store::open(&settings).await.unwrap()
}

/// Creates an account in the store.
pub(crate) async fn account(store: &Store) -> Uuid {
    let made = store
        .write(|tx| Box::pin(async move { accounts::create(tx, "here", now_ms()).await }))
        .await;
    made.unwrap().id
}

/// Returns the facts of a plain image of that size.
pub(crate) fn image_facts(format: Format, width: u32, height: u32) -> ImageFacts {
    ImageFacts {
        format,
        width,
        height,
        orientation: 1,
        pages: 1,
        animated: false,
        has_alpha: false,
        bands: 3,
        bits_per_sample: 8,
        colour_space: "srgb".into(),
        profile: None,
        delays: Vec::new(),
        density_dpi: None,
        exif: BTreeMap::new(),
    }
}

/// Faked workers, two at a time, with the limits of real ones, whose results a test determines.
pub(crate) trait Performer: Send + Sync {
    fn perform(
        &self,
        assignment: Assignment,
    ) -> impl Future<Output = Result<Finished, Error>> + Send;

    /// See [`Workers::signs`].
    fn signs(&self) -> u64 {
        0
    }
}

impl<P: Performer> Workers for P {
    fn run(&self, _: Lane, assignment: Assignment) -> BoxFuture<'_, Result<Finished, Error>> {
        self.perform(assignment).boxed()
    }

    fn limits(&self) -> Limits {
        ComputeSettings::default().limits()
    }

    fn width(&self) -> usize {
        2
    }

    fn signs(&self) -> u64 {
        Performer::signs(self)
    }

    fn refused(&self) -> Option<String> {
        None
    }
}

/// A task of faked workers, for as long as it runs.
pub(crate) struct Running<'a>(&'a AtomicUsize);

impl<'a> Running<'a> {
    pub(crate) fn begin(running: &'a AtomicUsize) -> Self {
        running.fetch_add(1, SeqCst);
        Self(running)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Progress of a row that has no end: the number of its state, and the shares that were put beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FakeProgress {
    pub(crate) number: u32,
    pub(crate) shares: TaskShares,
    /// Thousandths of the report before.
    pub(crate) before: Option<u32>,
}

impl FakeProgress {
    /// Makes the progress that a row itself has.
    pub(crate) fn of_row(number: u32) -> Self {
        Self {
            number,
            shares: TaskShares::default(),
            before: None,
        }
    }
}

impl Report for FakeProgress {
    const KIND: Kind = Kind::Job;

    async fn look(_: &Store, _: Uuid) -> Result<Self, StoreError> {
        Err(StoreError::NotFound("row"))
    }

    fn has_ended(&self) -> bool {
        false
    }

    fn percent_done(&self) -> Option<u8> {
        None
    }

    fn queue_place(&self) -> Option<u32> {
        self.shares.queue_place
    }

    fn is_before(&self, _: &Self) -> bool {
        false
    }

    fn beside(self, shares: TaskShares, before: Option<&Self>) -> Self {
        Self {
            number: self.number,
            shares,
            before: before.map(|before| before.shares.thousandths),
        }
    }
}
