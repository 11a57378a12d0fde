//! Owner of a leased row: the actor that runs the row's task, and gives the lease back when the task stops before the row
//! has ended.
//!
//! Nothing survives a restart but the row. A task that stops before its row has ended gives the lease back, to be tried
//! again after a pause; one that panics takes its actor along, and the registry gives the lease back. The end of the
//! actor ends what runs for the row in the workers. Mailbox 64, in which only the end of the work arrives.

use std::{any::Any, marker::PhantomData, panic::AssertUnwindSafe, sync::Arc};

use futures_util::FutureExt as _;
use kameo::{
    Actor,
    actor::ActorRef,
    error::Infallible,
    message::{Context, Message},
};
use sluice_store::{
    Error as StoreError, Store, now_ms,
    work::{self, Lease},
};
use tokio::{runtime::Handle, sync::OnceCell};
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, warn};

use super::{shutdown::WorkGuard, step_error::OwnerError};

/// The services that work on the rows of one kind.
pub(crate) trait RowServices: Sized + Send + Sync + 'static {
    fn store(&self) -> &Store;

    /// Works on a row, from its present state to its end; an error is the reason why it has not ended.
    fn work(task: &RowTask<Self>) -> impl Future<Output = Result<(), OwnerError>> + Send;
}

/// The work on one row.
pub(crate) struct RowTask<S> {
    pub(crate) services: Arc<S>,
    /// The right to work on the row, by which every write goes.
    pub(crate) lease: Lease,
    /// Held until the row has ended or is given back.
    pub(crate) guard: WorkGuard,
}

impl<S> RowTask<S> {
    pub(crate) fn new(services: Arc<S>, lease: Lease, guard: WorkGuard) -> Self {
        Self {
            services,
            lease,
            guard,
        }
    }
}

/// The actor; see the module documentation.
pub(crate) struct RowOwner<S> {
    _work: AbortOnDropHandle<()>,
    services: PhantomData<fn() -> S>,
}

impl<S: RowServices> Actor for RowOwner<S> {
    type Args = RowTask<S>;
    type Error = Infallible;

    async fn on_start(task: RowTask<S>, me: ActorRef<Self>) -> Result<Self, Infallible> {
        let me = me.downgrade();
        let work = tokio::spawn(async move {
            let panic = AssertUnwindSafe(run(task)).catch_unwind().await.err();
            if let Some(me) = me.upgrade() {
                let _ = me.tell(Ended(panic)).await;
            }
        });
        Ok(Self {
            _work: AbortOnDropHandle::new(work),
            services: PhantomData,
        })
    }
}

/// The work is over, in order or by a panic.
struct Ended(Option<Box<dyn Any + Send>>);

impl<S: RowServices> Message<Ended> for RowOwner<S> {
    type Reply = ();

    async fn handle(&mut self, Ended(panic): Ended, context: &mut Context<Self, ()>) {
        match panic {
            None => context.stop(),
            Some(panic) => std::panic::resume_unwind(panic),
        }
    }
}

tokio::task_local! {
    /// Beginning of the row whose task this is.
    static BEGINNING: Beginning;
}

/// Notes once for a lease that work on its row begins to run ([`work::begin`]). The pool does so when a worker has the
/// first of the row's tasks ([`super::workers::run`]); work outside the pool calls [`begin`].
#[derive(Clone)]
pub(crate) struct Beginning {
    store: Store,
    lease: Lease,
    noted: Arc<OnceCell<()>>,
}

impl Beginning {
    fn of(task: &RowTask<impl RowServices>) -> Self {
        Self {
            store: task.services.store().clone(),
            lease: task.lease.clone(),
            noted: Arc::default(),
        }
    }

    /// Returns the beginning of the row on whose task the caller runs; `None` outside of one.
    pub(crate) fn current() -> Option<Self> {
        BEGINNING.try_with(Clone::clone).ok()
    }

    async fn note(&self) -> Result<(), StoreError> {
        let note = || {
            let lease = self.lease.clone();
            self.store
                .write_beside(move |tx| Box::pin(async move { work::begin(tx, &lease).await }))
        };
        self.noted.get_or_try_init(note).await.map(drop)
    }

    /// Notes it from a thread that may wait, outside of the runtime.
    pub(crate) fn on_thread(self) -> impl Fn() -> Result<(), String> + Send + Sync {
        let runtime = Handle::current();
        move || {
            let noted = runtime.block_on(self.note());
            noted.map_err(|error| error.to_string())
        }
    }
}

/// Commits that work on the row begins; called in its task before it works outside the pool, such as on files.
pub(crate) async fn begin() -> Result<(), StoreError> {
    match Beginning::current() {
        Some(beginning) => beginning.note().await,
        None => Ok(()),
    }
}

/// Ways to give a row back.
#[derive(Clone, Copy)]
enum Return {
    /// Unchanged, as before the claim.
    Untouched,
    /// To be tried again after a pause.
    Later,
    /// To be tried again after a pause, counted as an attempt after many of them.
    CountedLate,
    /// To be tried again after a pause, counted as an attempt.
    Counted,
}

async fn run<S: RowServices>(task: RowTask<S>) {
    let lease = task.lease.clone();
    let (kind, id) = (lease.kind.clone(), lease.id);
    let worked = BEGINNING.scope(Beginning::of(&task), S::work(&task));
    let (reason, how) = match worked.await {
        Ok(()) => return,
        Err(OwnerError::Lost) => {
            debug!(kind, %id, "the row has another owner or has ended");
            return;
        }
        Err(OwnerError::Drained) => (None, Return::Untouched),
        Err(OwnerError::Later(reason)) => (Some(reason), Return::Later),
        Err(OwnerError::Missing(reason)) => (Some(reason), Return::CountedLate),
        Err(OwnerError::Broken(reason)) => (Some(reason), Return::Counted),
    };
    if let Some(reason) = reason {
        warn!(kind, %id, reason, "the work is tried again after a pause");
    }
    let given_back = task.services.store().write_beside(move |tx| {
        Box::pin(async move {
            match how {
                Return::Untouched => work::release(tx, &lease).await,
                Return::Later => work::retry(tx, &lease, now_ms()).await,
                Return::CountedLate => work::retry_without_bytes(tx, &lease, now_ms()).await,
                Return::Counted => work::retry_after_crash(tx, &lease, now_ms()).await,
            }
        })
    });
    if let Err(error) = given_back.await {
        // The lease is not prolonged any more and expires.
        debug!(kind, %id, %error, "the row was not given back");
    }
}
