//! Views and downloads of share links, and downloads that may continue under a limit; delay of their writing. They are counted in
//! memory and written together soon after, so that a look at a folder does not wait for the disk; a crash loses the last second's.
//! Only a link with a limit is counted in the database before its bytes go out.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use parking_lot::{Mutex, MutexGuard};
use sluice_store::{Error, Store, shares};
use uuid::Uuid;

/// Delay from a note to its writing.
pub(crate) const FLUSH_AFTER: Duration = Duration::from_secs(1);

/// Downloads of links with a bound that are remembered, so that they may continue. The oldest are forgotten.
pub(crate) const MAX_BEGUN_DOWNLOADS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Counts {
    noted: Mutex<HashMap<Uuid, Noted>>,
    /// True while a write is due.
    is_due: AtomicBool,
    pub(crate) begun: Mutex<Begun>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Noted {
    views: u32,
    downloads: u32,
}

/// A link, what is downloaded, and by whom.
pub(crate) type Download = (Uuid, Uuid, Option<IpAddr>);

#[derive(Debug, Default)]
pub(crate) struct Begun {
    pub(crate) known: HashSet<Download>,
    /// Oldest first.
    order: VecDeque<Download>,
}

impl Begun {
    pub(crate) fn add(&mut self, download: Download) {
        if !self.known.insert(download) {
            return;
        }
        self.order.push_back(download);
        if self.order.len() > MAX_BEGUN_DOWNLOADS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Counts {
    pub(crate) fn note_view(self: &Arc<Self>, store: &Store, id: Uuid) {
        self.note(store, id, |noted| {
            noted.views = noted.views.saturating_add(1)
        });
    }

    pub(crate) fn note_download(self: &Arc<Self>, store: &Store, id: Uuid) {
        self.note(store, id, |noted| {
            noted.downloads = noted.downloads.saturating_add(1);
        });
    }

    fn note(self: &Arc<Self>, store: &Store, id: Uuid, add: impl FnOnce(&mut Noted)) {
        add(locked(&self.noted).entry(id).or_default());
        if self.is_due.swap(true, SeqCst) {
            return;
        }
        let (counts, store) = (self.clone(), store.clone());
        tokio::spawn(async move {
            tokio::time::sleep(FLUSH_AFTER).await;
            counts.is_due.store(false, SeqCst);
            counts.flush(&store).await;
        });
    }

    /// Writes what was noted; what was not written stays for the next time.
    pub(crate) async fn flush(&self, store: &Store) {
        let noted = std::mem::take(&mut *locked(&self.noted));
        if noted.is_empty() {
            return;
        }
        let counted: Vec<(Uuid, Noted)> = noted.into_iter().collect();
        let mut writing = counted.clone();
        // Units beside each other take rows in one order, so that none waits for one that waits for it.
        writing.sort_unstable_by_key(|(id, _)| *id);
        let written = store.write_beside(move |tx| {
            Box::pin(async move {
                for (id, noted) in writing {
                    shares::count(tx, id, noted.views, noted.downloads).await?;
                }
                Ok(())
            })
        });
        let Err(error) = written.await else {
            return;
        };
        if matches!(error, Error::Unknown) {
            // They may have been counted. What a crash may lose, a lost commit may, too; nothing is counted twice.
            tracing::warn!(%error, "views and downloads of links may not be counted");
            return;
        }
        tracing::warn!(%error, "views and downloads of links are counted later");
        let mut noted = locked(&self.noted);
        for (id, late) in counted {
            let entry = noted.entry(id).or_default();
            entry.views = entry.views.saturating_add(late.views);
            entry.downloads = entry.downloads.saturating_add(late.downloads);
        }
    }
}

/// Each lock guards a few lines that leave nothing half done.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_download_is_forgotten_first() {
        let mut begun = Begun::default();
        let download = |number: usize| (Uuid::nil(), Uuid::from_u128(number as u128), None);
        for number in 0..=MAX_BEGUN_DOWNLOADS {
            begun.add(download(number));
            begun.add(download(number));
        }
        assert_eq!(begun.known.len(), MAX_BEGUN_DOWNLOADS);
        assert!(!begun.known.contains(&download(0)) && begun.known.contains(&download(1)));
    }
}
