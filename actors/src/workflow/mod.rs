//! Workflow runs (`/api/workflows/runs`): submitting, triggers, cancelling, retrying, waiting, following; metrics
//! `workflow_runs`, `workflow_runs_ended`.
//!
//! One actor makes each run under a registry; rows and leases are the truth.
//!
//! A run is committed first, with its charge and its input, and then announced; a caller that waits for it waits for
//! its row, and learns of changes sooner through its owner's progress. A client that goes away does not lose the run.
//! Every verb that ends a run emits its event in the same transaction, and the store admits the next run of the
//! workflow there.

mod buffer;
mod change;
mod definition;
mod events;
mod operation;
mod path;
mod progress;
mod run;
mod settings;
#[cfg(test)]
mod tests;
mod unreached;

use std::sync::Arc;

use futures_util::future::{BoxFuture, ready};
use sluice_store::{
    Error as StoreError, Store, Tx, Work,
    blob::Sealed,
    duration_ms,
    files::File,
    jobs::Allowance,
    now_ms,
    work::{Lane, Lease},
    workflows::{
        self, EndingTerms, Rerun, Retried, Retry, Run, RunLimits, RunStatus, Submitted, Trigger,
        TriggerLimits,
    },
};
use tokio::time::Instant;
use tracing::{Instrument as _, warn};
use uuid::Uuid;

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
        step_error::with_patience,
        workers::Workers,
    },
    metric::Metric,
    registry::Entity,
    subsystem::Subsystem,
    video::VideoStreams,
};
use run::WorkflowRun;

pub use progress::{RunProgress, RunTotals};
pub use run::naming::date as day;
pub use settings::WorkflowSettings;
pub use sluice_store::workflows::NewRun as Request;

/// A follower of a run.
pub type Follower = progress_channels::Follower<RunProgress>;

/// Most runs of a deleted workflow that one transaction cancels.
const CANCELLED_AT_ONCE: u32 = 100;

/// The handle of workflow runs for the façade. Clones share it; it exists before the actors run.
#[derive(Clone)]
pub struct Workflows {
    services: Arc<WorkflowServices>,
}

/// State that all runs share.
pub(crate) struct WorkflowServices {
    settings: WorkflowSettings,
    store: Store,
    workers: Arc<dyn Workers>,
    streams: VideoStreams,
    /// Makes a safe name of a pattern's result.
    clean: fn(&str) -> String,
    followers: Followers<RunProgress>,
    counters: OutcomeCounters<RunTotals>,
    registry: RegistryHandle<RunEntity>,
}

impl WorkflowServices {
    fn terms(&self) -> EndingTerms {
        EndingTerms {
            keep_ms: self.keep_ms(),
            max_active: self.settings.max_active_per_workflow,
        }
    }

    fn run_limits(&self) -> RunLimits {
        RunLimits {
            max_active: self.settings.max_active_per_workflow,
            max_queued: self.settings.max_queued,
        }
    }

    fn trigger_limits(&self, allowance: Allowance) -> TriggerLimits {
        TriggerLimits {
            allowance,
            runs: self.run_limits(),
            max_generation: self.settings.max_generation,
            keep_ms: self.keep_ms(),
        }
    }

    fn keep_ms(&self) -> i64 {
        duration_ms(self.settings.keep_results)
    }

    /// Publishes and counts the committed end of a run.
    fn ended(&self, run: &Run, steps_done: usize) {
        self.counters.note(|counts| counts.ended(run));
        self.followers.publish(
            run.account_id,
            run.id,
            RunProgress::at_rest(run, steps_done),
        );
    }
}

/// Version that a retried or repeated run follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryVersion {
    /// The version of the run.
    Ran,
    /// The present version of the workflow.
    Current,
}

impl Workflows {
    /// `clean` makes a safe name of a pattern's result.
    pub fn new(
        settings: WorkflowSettings,
        store: Store,
        compute: Compute,
        streams: VideoStreams,
        clean: fn(&str) -> String,
    ) -> Self {
        Self::over(settings, store, Arc::new(compute), streams, clean)
    }

    /// [`Self::new`] with other workers than the compute pool's, for tests.
    pub fn over(
        settings: WorkflowSettings,
        store: Store,
        workers: Arc<dyn Workers>,
        streams: VideoStreams,
        clean: fn(&str) -> String,
    ) -> Self {
        Self {
            services: Arc::new(WorkflowServices {
                followers: Followers::new(
                    store.clone(),
                    settings.max_followers,
                    "workflows.max_followers is reached: following runs",
                ),
                settings,
                store,
                workers,
                streams,
                clean,
                counters: OutcomeCounters::default(),
                registry: RegistryHandle::new(),
            }),
        }
    }

    /// Commits a run with its charge and its upload, and announces it; see [`workflows::submit`]. The upload may go once
    /// this has returned.
    pub async fn submit(&self, new: Request, upload: Option<Sealed>) -> Result<Submitted, Error> {
        let handle = self.clone();
        let submitted = self
            .services
            .store
            .write_for(new.account_id, move |tx| {
                Box::pin(async move { handle.submit_in(tx, new, upload.as_ref()).await })
            })
            .await?;
        if let Submitted::New(_) = submitted {
            self.announce();
        }
        Ok(submitted)
    }

    /// Submits a run as [`Self::submit`] does, inside another transaction; [`Self::announce`] once it is committed.
    pub async fn submit_in(
        &self,
        tx: &mut Tx<'_>,
        new: Request,
        upload: Option<&Sealed>,
    ) -> Result<Submitted, StoreError> {
        workflows::submit(tx, &new, self.services.run_limits(), upload, now_ms()).await
    }

    /// Makes the runs that a stored file triggers, in the transaction that stores it; a run that cannot be charged is a
    /// failed one. [`Self::announce`] once it is committed.
    pub async fn stored(
        &self,
        tx: &mut Tx<'_>,
        file: &File,
        allowance: Allowance,
        now_ms: i64,
    ) -> Result<Vec<Run>, StoreError> {
        trigger(tx, file, &self.services.trigger_limits(allowance), now_ms).await
    }

    /// Announces that runs may be due. May be lost: the registry scans.
    pub fn announce(&self) {
        self.services.registry.nudge();
    }

    /// Cancels a run and ends its work at once; errors as [`workflows::cancel`].
    pub async fn cancel(&self, account_id: Uuid, id: Uuid) -> Result<Run, Error> {
        let terms = self.services.terms();
        let run = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    let now = now_ms();
                    let run = workflows::cancel(tx, account_id, id, terms, now).await?;
                    unreached::note(tx, &run, "not reached, because the run was cancelled").await?;
                    events::failed(tx, &run, now).await?;
                    Ok(run)
                })
            })
            .await?;
        self.withdrawn(&run).await;
        Ok(run)
    }

    /// Deletes a workflow and cancels its unfinished runs, also when the caller leaves before the answer; files that runs have
    /// stored are kept. Errors as [`workflows::delete`].
    pub async fn delete(&self, account_id: Uuid, id: Uuid) -> Result<(), Error> {
        let deletion = self.clone().delete_whole(account_id, id);
        let deletion = tokio::spawn(deletion.in_current_span());
        match deletion.await {
            Ok(deleted) => deleted,
            Err(error) => {
                Err(StoreError::Internal(format!("a deletion was not finished: {error}")).into())
            }
        }
    }

    async fn delete_whole(self, account_id: Uuid, id: Uuid) -> Result<(), Error> {
        let (store, terms) = (&self.services.store, self.services.terms());
        let cancelled = store
            .write(move |tx| {
                Box::pin(async move {
                    let (now, most) = (now_ms(), CANCELLED_AT_ONCE);
                    let runs = workflows::delete(tx, account_id, id, most, terms, now).await?;
                    events::all_failed(tx, runs, now).await
                })
            })
            .await?;
        self.cancel_deleted(account_id, id, cancelled).await;
        Ok(())
    }

    /// Cancels the unfinished runs of a deleted workflow, after the first of them.
    async fn cancel_deleted(self, account_id: Uuid, id: Uuid, mut cancelled: Vec<Run>) {
        let (store, terms) = (&self.services.store, self.services.terms());
        while !cancelled.is_empty() {
            for run in &cancelled {
                self.withdrawn(run).await;
            }
            let more = with_patience(|| {
                store.write_for(account_id, move |tx| {
                    Box::pin(async move {
                        let (now, most) = (now_ms(), CANCELLED_AT_ONCE);
                        let runs = workflows::cancel_deleted(tx, id, most, terms, now).await?;
                        events::all_failed(tx, runs, now).await
                    })
                })
            });
            cancelled = match more.await {
                Ok(more) => more,
                Err(error) => {
                    warn!(workflow = %id, %error, "runs of a deleted workflow are cancelled by the next sweep");
                    return;
                }
            };
        }
    }

    /// Ends the work of a run that was taken out of `work`.
    async fn withdrawn(&self, run: &Run) {
        self.services.registry.withdraw(run.id);
        let steps_done = self.steps_done(run.id).await.unwrap_or(0);
        self.services.ended(run, steps_done);
    }

    async fn steps_done(&self, run_id: Uuid) -> Result<usize, StoreError> {
        let steps = workflows::steps(&mut self.services.store.read().await?, run_id).await?;
        Ok(definition::done(steps).len())
    }

    /// Tries a run that failed or was cancelled again, from its first unfinished step; with the current version, only the
    /// steps are kept that it does in the same way. Errors as [`workflows::retry`].
    pub async fn retry(
        &self,
        account_id: Uuid,
        id: Uuid,
        version: RetryVersion,
        lane: Lane,
        allowance: Allowance,
    ) -> Result<Retried, Error> {
        let limits = self.services.run_limits();
        let retried = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    let run = workflows::get_run(tx, account_id, id).await?;
                    let (version, kept_positions) = match version {
                        RetryVersion::Ran => (None, u32::MAX),
                        RetryVersion::Current => definition::kept_of(tx, &run).await?,
                    };
                    let wanted = Retry {
                        version,
                        kept_positions,
                        lane,
                        allowance,
                        limits,
                    };
                    workflows::retry(tx, account_id, id, &wanted, now_ms()).await
                })
            })
            .await?;
        if let Retried::Queued(run) = &retried {
            let steps_done = self.steps_done(run.id).await.unwrap_or(0);
            let progress = RunProgress::at_rest(run, steps_done);
            self.services
                .followers
                .begin_again(run.account_id, run.id, progress);
            self.announce();
        }
        Ok(retried)
    }

    /// Makes a new run on the input of an ended one of the workflow; errors as [`workflows::rerun`].
    pub async fn rerun(
        &self,
        account_id: Uuid,
        workflow_id: Uuid,
        id: Uuid,
        version: RetryVersion,
        trigger: Trigger,
        allowance: Allowance,
    ) -> Result<Submitted, Error> {
        let wanted = Rerun {
            keeps_version: version == RetryVersion::Ran,
            trigger,
            lane: Lane::Interactive,
            allowance,
            limits: self.services.run_limits(),
        };
        let submitted = self
            .services
            .store
            .write_for(account_id, move |tx| {
                Box::pin(async move {
                    workflows::rerun(tx, account_id, workflow_id, id, &wanted, now_ms()).await
                })
            })
            .await?;
        if let Submitted::New(_) = submitted {
            self.announce();
        }
        Ok(submitted)
    }

    /// Returns the run once it has ended, or as it is at the deadline and when the service stops.
    pub async fn wait(&self, id: Uuid, deadline: Instant) -> Result<Run, Error> {
        tokio::select! {
            waited = self.services.followers.wait(id, deadline) => waited?,
            () = self.services.registry.drained() => {}
        }
        Ok(workflows::by_id(&mut self.services.store.read().await?, id).await?)
    }

    /// Follows a run from its present state on. [`Error::Busy`] when `workflows.max_followers` do so already.
    pub fn follow(&self, id: Uuid) -> Result<Follower, Error> {
        self.services.followers.follow(id)
    }

    /// Returns the reason why no run with a media step would make progress at present, for the operator.
    pub fn refused(&self) -> Option<String> {
        self.services.workers.refused()
    }

    /// Returns the counts of runs since the start.
    pub fn counts(&self) -> RunTotals {
        self.services.counters.now()
    }
}

impl Subsystem for Workflows {
    fn name(&self) -> &'static str {
        "workflow runs"
    }

    fn components(&self) -> Vec<Component> {
        let services = &self.services;
        vec![services.registry.component(
            self.name(),
            RunEntity(services.clone()),
            &services.store,
            services.settings.max_active,
            services.settings.lease,
        )]
    }

    /// Runs in flight stop at their next step, and callers that wait for a run are answered.
    fn drain(&self) -> BoxFuture<'_, ()> {
        self.services.registry.drain();
        Box::pin(ready(()))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.services.registry.close())
    }

    fn metrics(&self) -> BoxFuture<'_, Result<Vec<Metric>, Error>> {
        Box::pin(async {
            let unfinished =
                workflows::count_by_status(&mut self.services.store.read().await?).await?;
            let ended = self.counts();
            let failed: u64 = ended.failed.values().sum();
            Ok(vec![
                Metric::by_label(
                    "workflow_runs",
                    "Workflow runs that have not ended, by status; those that wait for another one of their workflow are waiting",
                    "status",
                    [
                        ("waiting", unfinished.waiting),
                        ("queued", unfinished.queued),
                        ("processing", unfinished.processing),
                    ],
                ),
                Metric::gauge(
                    "workflow_runs_active",
                    "Workflow runs that are worked on",
                    ended.active,
                ),
                Metric::by_label(
                    "workflow_runs_ended",
                    "Workflow runs that ended since the start, by outcome; those turned away did not meet the condition of their workflow",
                    "status",
                    [
                        ("completed", ended.completed - ended.turned_away),
                        ("turned_away", ended.turned_away),
                        ("failed", failed),
                        ("cancelled", ended.cancelled),
                    ],
                ),
                Metric::by_label(
                    "workflow_runs_failed",
                    "Workflow runs that failed since the start, by error code",
                    "code",
                    ended.failed,
                ),
            ])
        })
    }
}

/// Makes the runs that a file triggers, and emits the events of those that failed at once.
async fn trigger(
    tx: &mut Tx<'_>,
    file: &File,
    limits: &TriggerLimits,
    now_ms: i64,
) -> Result<Vec<Run>, StoreError> {
    let runs = workflows::triggered(tx, file, limits, now_ms).await?;
    for run in runs.iter().filter(|run| run.status == RunStatus::Failed) {
        events::failed(tx, run, now_ms).await?;
    }
    Ok(runs)
}

/// Workflow runs, as their registry sees them.
#[derive(Clone)]
pub(crate) struct RunEntity(Arc<WorkflowServices>);

impl Entity for RunEntity {
    const KIND: &'static str = workflows::KIND;
    type Owner = WorkflowRun;

    fn owner(&self, lease: Lease, guard: WorkGuard) -> RowTask<WorkflowServices> {
        RowTask::new(self.0.clone(), lease, guard)
    }

    fn begin<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        Box::pin(async move {
            workflows::begin(tx, id, now_ms).await?;
            Ok(())
        })
    }

    fn give_up<'t>(&self, tx: &'t mut Tx<'_>, id: Uuid, now_ms: i64) -> Work<'t, ()> {
        let (terms, counters) = (self.0.terms(), self.0.counters.clone());
        Box::pin(async move {
            if let Some(run) = workflows::give_up(tx, id, terms, now_ms).await? {
                unreached::note(tx, &run, "not reached, because the run was given up").await?;
                events::failed(tx, &run, now_ms).await?;
                counters.note(|counts| counts.ended(&run));
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
