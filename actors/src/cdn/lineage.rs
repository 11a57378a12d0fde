//! Rows of what was rendered and dropped, written a moment later and together: no delivery waits for them.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering::SeqCst},
};

use sluice_store::{
    Store,
    variants::{self, Variant},
};
use tracing::debug;
use uuid::Uuid;

use super::disk::{Dropped, Name};

/// Notes that may wait; further ones are lost, and with them the row of a variant that is there.
const MOST_WAITING: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Lineage {
    waiting: Mutex<Waiting>,
    is_due: AtomicBool,
}

#[derive(Debug, Default)]
struct Waiting {
    made: Vec<Variant>,
    dropped: Vec<(Uuid, Vec<u8>)>,
}

impl Lineage {
    pub(super) fn made(&self, variant: Variant) {
        let mut waiting = self.locked();
        if waiting.made.len() < MOST_WAITING {
            waiting.made.push(variant);
        }
    }

    pub(super) fn dropped(&self, dropped: Dropped) {
        let mut waiting = self.locked();
        let room = MOST_WAITING.saturating_sub(waiting.dropped.len());
        let dropped = dropped.into_iter().take(room);
        waiting
            .dropped
            .extend(dropped.map(|(file_id, name): (Uuid, Name)| (file_id, name.to_vec())));
    }

    /// Whether a flush should be asked for; true until the next [`Lineage::flush`] for one caller only.
    pub(super) fn becomes_due(&self) -> bool {
        !self.is_due.swap(true, SeqCst)
    }

    pub(super) async fn flush(&self, store: &Store) {
        self.is_due.store(false, SeqCst);
        let Waiting { made, dropped } = std::mem::take(&mut *self.locked());
        if made.is_empty() && dropped.is_empty() {
            return;
        }
        let written = store
            .write(move |tx| {
                Box::pin(async move {
                    variants::record(tx, &made).await?;
                    variants::forget(tx, &dropped).await
                })
            })
            .await;
        if let Err(error) = written {
            debug!(%error, "the lineage of some variants was not noted");
        }
    }

    fn locked(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().expect("no panic under this lock")
    }
}
