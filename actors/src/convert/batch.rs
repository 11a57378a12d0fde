//! `ConversionBatch`: one job, from its first unfinished file to its end.
//!
//! Nothing survives a restart but the row: a batch that is begun again goes on with the files that have no result yet.
//! Each result is recorded in one transaction with its blob, its file, its lineage and the lease that it was made under,
//! so that a kill at any moment neither loses nor doubles one. The actor itself only holds the work's task; its end ends
//! what runs in the workers. Mailbox 64, in which only the end of the work arrives.

use std::{any::Any, panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use kameo::{
    Actor,
    actor::ActorRef,
    error::Infallible,
    message::{Context, Message},
};
use sluice_store::{
    Error as StoreError,
    jobs::{self, Item, ItemState, Job},
    now_ms,
    work::{self, Lane, Lease},
};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::{
    Services, archive,
    item::{self, Outcome},
};

/// Tries to write a result that the busy database refused, before the job is given back.
const WRITE_TRIES: u32 = 5;
const WRITE_PAUSE: Duration = Duration::from_millis(200);

/// What a batch is started with.
pub(crate) struct Args {
    pub(super) services: Arc<Services>,
    pub(super) lease: Lease,
}

/// The actor; see the module documentation.
pub(crate) struct ConversionBatch {
    _work: AbortOnDropHandle<()>,
}

impl Actor for ConversionBatch {
    type Args = Args;
    type Error = Infallible;

    async fn on_start(args: Args, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let me = me.downgrade();
        let work = tokio::spawn(async move {
            let panic = AssertUnwindSafe(run(args)).catch_unwind().await.err();
            if let Some(me) = me.upgrade() {
                let _ = me.tell(Ended(panic)).await;
            }
        });
        Ok(Self {
            _work: AbortOnDropHandle::new(work),
        })
    }
}

/// The work is over, in order or by a panic.
struct Ended(Option<Box<dyn Any + Send>>);

impl Message<Ended> for ConversionBatch {
    type Reply = ();

    async fn handle(&mut self, Ended(panic): Ended, context: &mut Context<Self, ()>) {
        match panic {
            None => context.stop(),
            Some(panic) => std::panic::resume_unwind(panic),
        }
    }
}

/// Why a batch ends before its job does.
#[derive(Debug)]
pub(super) enum Stop {
    /// The row is somebody else's, or has ended.
    Lost,
    /// Nothing can be done at present; the text is for the log.
    Later(String),
    /// Something that waiting does not mend, such as an input that is gone: a few tries, and the job is given up.
    Broken(String),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Conflict(_) => Self::Lost,
            StoreError::Busy(_) | StoreError::Full => Self::Later(error.to_string()),
            other => Self::Broken(other.to_string()),
        }
    }
}

async fn run(Args { services, lease }: Args) {
    let (reason, counts) = match walk(&services, &lease).await {
        Ok(()) => return,
        Err(Stop::Lost) => {
            debug!(job = %lease.id, "the job has another owner or has ended");
            return;
        }
        Err(Stop::Later(reason)) => (reason, false),
        Err(Stop::Broken(reason)) => (reason, true),
    };
    warn!(job = %lease.id, reason, "the job is tried again after a pause");
    let id = lease.id;
    let given_back = services.store.write(move |tx| {
        Box::pin(async move {
            match counts {
                true => work::retry_after_crash(tx, &lease, now_ms()).await,
                false => work::retry(tx, &lease, now_ms()).await,
            }
        })
    });
    if let Err(error) = given_back.await {
        // Nobody prolongs the lease any more: it expires.
        debug!(job = %id, %error, "the job was not given back");
    }
}

/// Archives are opened, files converted, results packed, and the job ended.
async fn walk(services: &Services, lease: &Lease) -> Result<(), Stop> {
    let job = jobs::by_id(&mut services.store.read().await?, lease.id).await?;
    services.board.publish(&job);
    // Interactive work is no archive: that was looked at when it was made.
    if job.lane == Lane::Batch {
        for item in pending(services, &job).await? {
            archive::open(services, lease, &job, item).await?;
        }
    }
    let left = pending(services, &job).await?;
    stream::iter(left)
        .map(|item| convert(services, lease, &job, item))
        .buffer_unordered(services.workers.width())
        .try_collect::<()>()
        .await?;
    finish(services, lease).await
}

async fn pending(services: &Services, job: &Job) -> Result<Vec<Item>, Stop> {
    let mut items = jobs::items(&mut services.store.read().await?, job.id).await?;
    items.retain(|item| item.state == ItemState::Pending);
    Ok(items)
}

async fn convert(services: &Services, lease: &Lease, job: &Job, item: Item) -> Result<(), Stop> {
    let outcome = item::perform(services, job, &item).await?;
    record(services, lease, job, &item, outcome).await
}

/// Writes what became of a file and publishes it; with a job's last file, its end.
pub(super) async fn record(
    services: &Services,
    lease: &Lease,
    job: &Job,
    item: &Item,
    outcome: Outcome,
) -> Result<(), Stop> {
    let outcome = Arc::new(outcome);
    let mut tries = 1;
    let written = loop {
        match write(services, lease, job, item, outcome.clone()).await {
            Err(StoreError::Busy(_)) if tries < WRITE_TRIES => {
                tries += 1;
                tokio::time::sleep(WRITE_PAUSE).await;
            }
            written => break written,
        }
    };
    let (job, failure) = match written {
        Ok(job) => (job, outcome.code()),
        Err(error @ StoreError::OverQuota { .. }) => {
            let refusal = Outcome::Failed {
                code: "storage_used_up".to_owned(),
                message: error.to_string(),
            };
            let code = refusal.code();
            (
                write(services, lease, job, item, Arc::new(refusal)).await?,
                code,
            )
        }
        Err(error) => return Err(error.into()),
    };
    match failure {
        None => services.tally.converted(),
        Some(code) => services.tally.failed(&code),
    }
    services.board.publish(&job);
    Ok(())
}

async fn write(
    services: &Services,
    lease: &Lease,
    job: &Job,
    item: &Item,
    outcome: Arc<Outcome>,
) -> Result<Job, StoreError> {
    let (lease, job, item) = (lease.clone(), job.clone(), item.clone());
    let keep_ms = services.keep_ms();
    services
        .store
        .write(move |tx| {
            Box::pin(async move {
                let job = outcome.record(tx, &lease, &job, &item, now_ms()).await?;
                let is_last = job.completed_files + job.failed_files == job.total_files;
                if is_last && !job.archives {
                    return jobs::finish(tx, &lease, None, keep_ms, now_ms()).await;
                }
                Ok(job)
            })
        })
        .await
}

/// Ends the job, unless its last file did; packs the results first where that was asked for.
async fn finish(services: &Services, lease: &Lease) -> Result<(), Stop> {
    let job = jobs::by_id(&mut services.store.read().await?, lease.id).await?;
    if job.state.has_ended() {
        return Ok(());
    }
    let archive = match job.archives && job.completed_files > 0 {
        true => Some(archive::of_results(services, &job).await?),
        false => None,
    };
    let (lease, keep_ms) = (lease.clone(), services.keep_ms());
    let job = services
        .store
        .write(move |tx| {
            Box::pin(async move {
                let mut packed = None;
                if let Some(archive) = &archive {
                    sluice_store::blobs::record(tx, archive, now_ms()).await?;
                    packed = Some((archive.blob().hash, archive.blob().size));
                }
                jobs::finish(tx, &lease, packed, keep_ms, now_ms()).await
            })
        })
        .await?;
    services.board.publish(&job);
    Ok(())
}
