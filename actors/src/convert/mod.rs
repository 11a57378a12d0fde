//! Conversion jobs (`/api/convert`, `/api/compress`, media tools): submitting, cancelling, waiting, following; metrics
//! `jobs`, `files_converted`, `files_failed`.
//!
//! One actor runs each job under a registry; rows and leases are the truth.
//!
//! A job is committed first, with its charge, and then announced; a caller that waits for it waits for its row, and
//! learns of changes sooner through the batch's progress. A client that goes away does not lose the job.

mod archive;
mod batch;
mod events;
mod item;
mod pack;
mod progress;
mod settings;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use sluice_store::{
    Store, Tx, Work,
    blob::Sealed,
    duration_ms,
    jobs::{self, Job, JobState, NewJob, Submitted},
    now_ms,
    work::Lease,
};
use tokio::time::Instant;
use uuid::Uuid;

pub use crate::durable::workers::Workers;
use batch::ConversionBatch;
pub use progress::{JobProgress, JobTotals};
pub use settings::ConvertSettings;

use crate::{
    Error,
    component::Component,
    compute::Compute,
    durable::{
        elsewhere::SharedProgress,
        outcome_counters::OutcomeCounters,
        owner::RowTask,
        progress_channels::{self, Followers},
        registry_handle::RegistryHandle,
        shutdown::WorkGuard,
    },
    metric::Metric,
    registry::Entity,
    subsystem::Subsystem,
};

/// A follower of a job.
pub type Follower = progress_channels::Follower<JobProgress>;

/// The handle of conversion jobs for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Conversions {
    services: Arc<ConversionServices>,
    registry: RegistryHandle<Conversion>,
}

/// State that all batches share.
pub(crate) struct ConversionServices {
    settings: ConvertSettings,
    store: Store,
    workers: Arc<dyn Workers>,
    /// Makes a safe name of a member's name in an archive.
    clean: fn(&str) -> String,
    followers: Followers<JobProgress>,
    counters: OutcomeCounters<JobTotals>,
}

impl ConversionServices {
    fn keep_ms(&self) -> i64 {
        duration_ms(self.settings.keep_results)
    }

    /// Publishes a job's state to its followers.
    fn publish(&self, job: &Job) {
        self.followers
            .publish(job.account_id, job.id, JobProgress::of(job));
    }
}

impl Conversions {
    /// `clean` makes a safe name of a member's name in an archive.
    pub fn new(
        settings: ConvertSettings,
        store: Store,
        compute: Compute,
        clean: fn(&str) -> String,
    ) -> Self {
        Self::over(settings, store, Arc::new(compute), clean)
    }

    /// [`Self::new`] with other workers than the compute pool's, for tests.
    pub fn over(
        settings: ConvertSettings,
        store: Store,
        workers: Arc<dyn Workers>,
        clean: fn(&str) -> String,
    ) -> Self {
        Self {
            services: Arc::new(ConversionServices {
                followers: Followers::new(
                    store.clone(),
                    settings.max_followers,
                    "convert.max_followers is reached: following jobs",
                ),
                settings,
                store,
                workers,
                clean,
                counters: OutcomeCounters::default(),
            }),
            registry: RegistryHandle::new(),
        }
    }

    /// Commits a job with its charge and its uploads, and announces it; see [`jobs::submit`]. The uploads may go once this
    /// has returned.
    pub async fn submit(&self, new: NewJob, uploads: Vec<Sealed>) -> Result<Submitted, Error> {
        let submitted = self
            .services
            .store
            .write_for(new.account_id, move |tx| {
                Box::pin(async move { jobs::submit(tx, &new, &uploads, now_ms()).await })
            })
            .await?;
        if let Submitted::New(_) = submitted {
            self.registry.nudge();
        }
        Ok(submitted)
    }

    /// Cancels a job and ends what runs for it at once; errors as [`jobs::cancel`].
    pub async fn cancel(&self, account_id: Uuid, id: Uuid) -> Result<Job, Error> {
        let keep_ms = self.services.keep_ms();
        let job = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let job = jobs::cancel(tx, account_id, id, keep_ms, now).await?;
                    events::ended(tx, &job, now).await?;
                    Ok(job)
                })
            })
            .await?;
        self.registry.withdraw(id);
        self.services.publish(&job);
        Ok(job)
    }

    /// Returns the job once it has ended, or as it is at the deadline.
    pub async fn wait(&self, id: Uuid, deadline: Instant) -> Result<Job, Error> {
        self.services.followers.wait(id, deadline).await?;
        Ok(jobs::by_id(&mut self.services.store.read().await?, id).await?)
    }

    /// Follows a job from its present state on. [`Error::Busy`] when `convert.max_followers` do so already.
    pub fn follow(&self, id: Uuid) -> Result<Follower, Error> {
        self.services.followers.follow(id)
    }

    /// Returns the progress of a job: its row, and its running files.
    pub fn progress(&self, job: &Job) -> JobProgress {
        self.services.followers.seen(job.id, JobProgress::of(job))
    }

    /// Returns the reason why no job would make progress at present, for the operator.
    pub fn refused(&self) -> Option<String> {
        self.services.workers.refused()
    }

    /// Returns the counts of files since the start.
    pub fn counts(&self) -> JobTotals {
        self.services.counters.now()
    }
}

impl Subsystem for Conversions {
    fn name(&self) -> &'static str {
        "conversions"
    }

    fn components(&self) -> Vec<Component> {
        let services = &self.services;
        vec![self.registry.component(
            self.name(),
            Conversion(services.clone()),
            &services.store,
            services.settings.max_active,
            services.settings.lease,
        )]
    }

    /// Gives jobs in flight back, for the next start to continue. Not when drained: clients may still wait for their files.
    fn close(&self) -> BoxFuture<'_, ()> {
        self.registry.drain();
        Box::pin(self.registry.close())
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        Box::pin(async {
            let jobs = jobs::count_by_state(&mut self.services.store.read().await?).await?;
            let in_state = |state: JobState| {
                let counted = jobs.iter().find(|(counted, _)| *counted == state);
                (state.as_str(), counted.map_or(0, |(_, count)| *count))
            };
            let files = self.counts();
            Ok(vec![
                Metric::by_label(
                    "jobs",
                    "Conversion jobs by status",
                    "status",
                    JobState::ALL.map(in_state),
                ),
                Metric::gauge(
                    "files_converted",
                    "Files that operations made since the start",
                    files.converted,
                ),
                Metric::by_label(
                    "files_failed",
                    "Files that operations failed on since the start, by error code",
                    "code",
                    files.failed,
                ),
            ])
        })
    }
}

/// Conversion jobs, as their registry sees them.
#[derive(Clone)]
pub(crate) struct Conversion(Arc<ConversionServices>);

impl Entity for Conversion {
    const KIND: &'static str = jobs::KIND;
    type Owner = ConversionBatch;

    fn owner(&self, lease: Lease, guard: WorkGuard) -> RowTask<ConversionServices> {
        RowTask::new(self.0.clone(), lease, guard)
    }

    fn begin<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(async move {
            if let Some(job) = jobs::begin(tx, id, now_ms).await? {
                events::began(tx, &job, now_ms).await?;
            }
            Ok(())
        })
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        let keep_ms = self.0.keep_ms();
        Box::pin(async move {
            if let Some(job) = jobs::give_up(tx, id, keep_ms, now_ms).await? {
                events::ended(tx, &job, now_ms).await?;
            }
            Ok(())
        })
    }

    fn startable(&self) -> usize {
        self.0.workers.startable()
    }

    fn progress(&self) -> Option<&dyn SharedProgress> {
        Some(&self.0.followers)
    }
}
