//! Views and downloads of links. They are noted in memory and written together soon after, so that no look at a folder waits for
//! the disk; a crash loses the last moment's. Only a link with a bound is counted in the database before its bytes go out.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    net::IpAddr,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use actix_web::web;
use sluice_actors::network::client_network;
use sluice_store::{Store, shares};
use uuid::Uuid;

use super::access::ShareAccess;
use crate::http::{context::AppState, error::ApiError};

/// From a note to its writing.
const FLUSH_AFTER: Duration = Duration::from_secs(1);
/// Downloads of links with a bound that are remembered, so that they may go on. The oldest are forgotten.
const MOST_BEGUN: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct Counts {
    noted: Mutex<HashMap<Uuid, Noted>>,
    /// Whether someone is about to write.
    is_due: AtomicBool,
    begun: Mutex<Begun>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Noted {
    views: u32,
    downloads: u32,
}

/// A link, what is downloaded, and by whom.
type Download = (Uuid, Uuid, Option<IpAddr>);

#[derive(Debug, Default)]
struct Begun {
    known: HashSet<Download>,
    /// Oldest first.
    order: VecDeque<Download>,
}

impl Begun {
    fn add(&mut self, download: Download) {
        if !self.known.insert(download) {
            return;
        }
        self.order.push_back(download);
        if self.order.len() > MOST_BEGUN
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

impl Counts {
    pub(super) fn note_view(&self, state: &web::Data<AppState>, id: Uuid) {
        self.note(state, id, |noted| {
            noted.views = noted.views.saturating_add(1)
        });
    }

    fn note_download(&self, state: &web::Data<AppState>, id: Uuid) {
        self.note(state, id, |noted| {
            noted.downloads = noted.downloads.saturating_add(1);
        });
    }

    fn note(&self, state: &web::Data<AppState>, id: Uuid, add: impl FnOnce(&mut Noted)) {
        add(locked(&self.noted).entry(id).or_default());
        if self.is_due.swap(true, SeqCst) {
            return;
        }
        let state = state.clone();
        actix_web::rt::spawn(async move {
            tokio::time::sleep(FLUSH_AFTER).await;
            let counts = &state.shares.counts;
            counts.is_due.store(false, SeqCst);
            counts.flush(&state.store).await;
        });
    }

    /// Writes what was noted; what cannot be written stays for the next time.
    pub(super) async fn flush(&self, store: &Store) {
        let noted = std::mem::take(&mut *locked(&self.noted));
        if noted.is_empty() {
            return;
        }
        let counted: Vec<(Uuid, Noted)> = noted.into_iter().collect();
        let writing = counted.clone();
        let written = store.write(move |tx| {
            Box::pin(async move {
                for (id, noted) in writing {
                    shares::count(tx, id, noted.views, noted.downloads).await?;
                }
                Ok(())
            })
        });
        let Err(error) = written.await else { return };
        tracing::warn!(%error, "views and downloads of links are counted later");
        let mut noted = locked(&self.noted);
        for (id, late) in counted {
            let entry = noted.entry(id).or_default();
            entry.views = entry.views.saturating_add(late.views);
            entry.downloads = entry.downloads.saturating_add(late.downloads);
        }
    }
}

impl ShareAccess {
    /// Admits a download of `what` (a file, or the folder of an archive) whose answer begins at `start`; `None`: nothing is sent
    /// (304). Every one that begins at 0 is counted, those that go on are not. HEAD is answered as GET would be, and never counted.
    ///
    /// 403 where the link is for looking only, 410 when as many downloads have begun as it allows. Under a link with a bound, only
    /// who has begun may go on: anything else counts as a beginning.
    pub(in crate::http) async fn admit_download(
        &self,
        state: &web::Data<AppState>,
        what: Uuid,
        start: Option<u64>,
    ) -> Result<(), ApiError> {
        if !self.share.allow_download {
            return Err(ApiError::NoShare {
                code: "downloads_off",
                message: "this link is for looking only: ask its owner for one that allows downloads",
            });
        }
        let (id, counts) = (self.share.id, &state.shares.counts);
        if self.share.download_limit.is_none() {
            if start == Some(0) && !self.is_head {
                counts.note_download(state, id);
            }
            return Ok(());
        }
        let download = (id, what, self.client().map(client_network));
        let goes_on = start != Some(0) && locked(&counts.begun).known.contains(&download);
        if goes_on {
            return Ok(());
        }
        if self.share.is_used_up() {
            return Err(ApiError::ShareUsedUp);
        }
        if start.is_none() || self.is_head {
            return Ok(());
        }
        let taken = state
            .store
            .write(move |tx| Box::pin(async move { shares::take_download(tx, id).await }));
        if !taken.await? {
            return Err(ApiError::ShareUsedUp);
        }
        locked(&counts.begun).add(download);
        Ok(())
    }
}

/// Each lock guards a few lines that leave nothing half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_download_is_forgotten_first() {
        let mut begun = Begun::default();
        let download = |number: usize| (Uuid::nil(), Uuid::from_u128(number as u128), None);
        for number in 0..=MOST_BEGUN {
            begun.add(download(number));
            begun.add(download(number));
        }
        assert_eq!(begun.known.len(), MOST_BEGUN);
        assert!(!begun.known.contains(&download(0)) && begun.known.contains(&download(1)));
    }
}
