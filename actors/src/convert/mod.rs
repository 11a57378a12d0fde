//! Conversion jobs: one actor per job under a registry, rows and leases as the truth.
//!
//! A job is committed first, with its charge, and then announced; whoever waits for it waits for its row, and only hears
//! of changes sooner through what the batch publishes. A client that goes away does not lose the job.

mod archive;
mod batch;
mod board;
mod item;
mod settings;
#[cfg(test)]
mod tests;
mod workers;

use std::{fmt, sync::Arc, time::Duration};

use sluice_store::{
    Store, Tx, Work,
    blob::Sealed,
    jobs::{self, Job, NewJob, Submitted},
    now_ms,
    work::Lease,
};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};
use uuid::Uuid;

use crate::{
    Error,
    compute::Compute,
    concern::{Concern, Door},
    registry::{self, Entity, Nudge, Registry, Withdrawn},
};
use batch::ConversionBatch;
use board::{Board, Following, Tally};

pub use board::{Counts, Progress};
pub use settings::ConvertSettings;
pub use workers::Workers;

/// A row is looked at again after this, whatever was published: its owner may be gone.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// The handle of conversion jobs for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Conversions {
    services: Arc<Services>,
    door: Door<Registry<Conversion>>,
    followers: Arc<Semaphore>,
    /// Of this process's leases.
    owner: Uuid,
}

/// What all batches share.
struct Services {
    settings: ConvertSettings,
    store: Store,
    workers: Arc<dyn Workers>,
    /// Makes a safe name of what an archive calls its member.
    clean: fn(&str) -> String,
    board: Board,
    tally: Tally,
}

impl Services {
    fn keep_ms(&self) -> i64 {
        i64::try_from(self.settings.keep_results.as_millis()).unwrap_or(i64::MAX)
    }
}

impl fmt::Debug for Conversions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversions")
            .field("door", &self.door)
            .finish_non_exhaustive()
    }
}

impl Conversions {
    /// `clean` makes a safe name of what an archive calls its member.
    pub fn new(
        settings: ConvertSettings,
        store: Store,
        compute: Compute,
        clean: fn(&str) -> String,
    ) -> Self {
        Self::over(settings, store, Arc::new(compute), clean)
    }

    /// With other workers than the compute pool's, for tests.
    pub fn over(
        settings: ConvertSettings,
        store: Store,
        workers: Arc<dyn Workers>,
        clean: fn(&str) -> String,
    ) -> Self {
        Self {
            followers: Arc::new(Semaphore::new(settings.max_followers)),
            services: Arc::new(Services {
                settings,
                store,
                workers,
                clean,
                board: Board::default(),
                tally: Tally::default(),
            }),
            door: Door::default(),
            owner: Uuid::now_v7(),
        }
    }

    /// The concerns that run it.
    pub fn concerns(&self) -> Vec<Concern> {
        let args = registry::Args {
            entity: Conversion(self.services.clone()),
            store: self.services.store.clone(),
            owner: self.owner,
            max_active: self.services.settings.max_active,
            lease: self.services.settings.lease,
        };
        vec![Concern::of(
            "conversions",
            args,
            registry::MAILBOX,
            self.door.clone(),
        )]
    }

    /// Commits a job with its charge and its uploads, and announces it; see [`jobs::submit`]. The uploads may go once this
    /// has returned.
    pub async fn submit(&self, new: NewJob, uploads: Vec<Sealed>) -> Result<Submitted, Error> {
        let submitted = self
            .services
            .store
            .write(move |tx| {
                Box::pin(async move { jobs::submit(tx, &new, &uploads, now_ms()).await })
            })
            .await?;
        if let Submitted::New(_) = submitted {
            self.nudge();
        }
        Ok(submitted)
    }

    /// A nudge may be lost: the registry scans.
    fn nudge(&self) {
        if let Some(registry) = self.door.get() {
            let _ = registry.tell(Nudge).try_send();
        }
    }

    /// Cancels a job and ends what runs for it at once; errors as [`jobs::cancel`].
    pub async fn cancel(&self, account_id: Uuid, id: Uuid) -> Result<Job, Error> {
        let keep_ms = self.services.keep_ms();
        let job = self
            .services
            .store
            .write(move |tx| Box::pin(jobs::cancel(tx, account_id, id, keep_ms, now_ms())))
            .await?;
        // When this is lost, the batch hears of it with its next heartbeat or result.
        if let Some(registry) = self.door.get() {
            let _ = registry.tell(Withdrawn(id)).try_send();
        }
        self.services.board.publish(&job);
        Ok(job)
    }

    /// The job once it has ended, or as it is at the deadline.
    pub async fn wait(&self, id: Uuid, deadline: Instant) -> Result<Job, Error> {
        let mut follower = Follower {
            following: self.services.board.follow(id),
            store: self.services.store.clone(),
            job_id: id,
            last: None,
            _permit: None,
        };
        while let Ok(progress) = timeout_at(deadline, follower.next()).await {
            if progress?.state.has_ended() {
                break;
            }
        }
        Ok(jobs::by_id(&mut self.services.store.read().await?, id).await?)
    }

    /// Follows a job from its present state on. [`Error::Busy`] when `convert.max_followers` do so already.
    pub fn follow(&self, id: Uuid) -> Result<Follower, Error> {
        let permit = self
            .followers
            .clone()
            .try_acquire_owned()
            .map_err(|_| Error::Busy("convert.max_followers is reached: following jobs"))?;
        Ok(Follower {
            following: self.services.board.follow(id),
            store: self.services.store.clone(),
            job_id: id,
            last: None,
            _permit: Some(permit),
        })
    }

    /// Why no job would get anywhere at present, in words for the operator.
    pub fn refused(&self) -> Option<String> {
        self.services.workers.refused()
    }

    /// What has come of files since the start.
    pub fn counts(&self) -> Counts {
        self.services.tally.now()
    }
}

/// Somebody who follows a job.
pub struct Follower {
    following: Following,
    store: Store,
    job_id: Uuid,
    last: Option<Progress>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Follower {
    /// The present progress at first, then the next one that differs. Never resolves again after the end of the job.
    pub async fn next(&mut self) -> Result<Progress, Error> {
        loop {
            let progress = match self.last {
                None => self.look().await?,
                Some(_) => match tokio::time::timeout(LOOK_AGAIN, self.following.next()).await {
                    Ok(Some(progress)) => progress,
                    Ok(None) | Err(_) => self.look().await?,
                },
            };
            if self.last != Some(progress) {
                self.last = Some(progress);
                return Ok(progress);
            }
        }
    }

    async fn look(&self) -> Result<Progress, Error> {
        let job = jobs::by_id(&mut self.store.read().await?, self.job_id).await?;
        Ok(Progress::of(&job))
    }
}

/// Conversion jobs, as their registry sees them.
#[derive(Clone)]
pub(crate) struct Conversion(Arc<Services>);

impl Entity for Conversion {
    const KIND: &'static str = jobs::KIND;
    type Owner = ConversionBatch;

    fn owner(&self, lease: Lease) -> batch::Args {
        batch::Args {
            services: self.0.clone(),
            lease,
        }
    }

    fn begin<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(jobs::begin(tx, id, now_ms))
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(jobs::give_up(tx, id, self.0.keep_ms(), now_ms))
    }
}
