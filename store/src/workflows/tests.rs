//! Tests on a real database: an account with a workflow, and its runs.

mod addresses;
mod admission;
mod definitions;
mod endings;
mod journal;
mod lists;
mod measure;
mod plans;
mod reruns;
mod retention;
mod retries;
mod triggers;

use std::time::Duration;

use bytes::Bytes;
use uuid::Uuid;

use super::*;
use crate::{
    Connection, Error, Tx, Work,
    blob::{BlobHash, Sealed},
    blobs,
    files::{self, File, NewFile, Role},
    folders::{self, NewFolder},
    jobs::Allowance,
    operations,
    statement::query_scalar,
    webhooks::tests::World,
    work::{self, Claimed, Lane, Lease, Room},
};

pub(super) const NOW: i64 = crate::webhooks::tests::NOW;
/// Time at which [`Bench::claim`] claims: after everything was queued.
pub(super) const CLAIMED_AT: i64 = NOW + 10_000;
/// Retention of a run's input and output after its end.
pub(super) const KEEP_MS: i64 = 24 * 60 * 60 * 1000;
/// Admitted runs of a workflow by default.
pub(super) const MAX_ACTIVE: usize = 2;
pub(super) const LIMITS: RunLimits = RunLimits {
    max_active: MAX_ACTIVE,
    max_queued: 100,
};
pub(super) const TERMS: EndingTerms = EndingTerms {
    keep_ms: KEEP_MS,
    max_active: MAX_ACTIVE,
};

/// A store with an account, a workflow and a blob to run it with.
pub(super) struct Bench {
    pub world: World,
    pub account: Uuid,
    pub workflow: Uuid,
    pub input: BlobHash,
}

impl Bench {
    pub async fn new() -> Self {
        Self::of(World::new().await).await
    }

    pub async fn on_sqlite() -> Self {
        Self::of(World::on_sqlite().await).await
    }

    async fn of(world: World) -> Self {
        let account = world.account;
        let workflow = create_in(&world, account, new_workflow("first")).await;
        let input = record(&world, b"input").await;
        Self {
            account,
            workflow: workflow.id,
            input,
            world,
        }
    }

    pub async fn write<T: Send + 'static>(
        &self,
        work: impl for<'t> FnOnce(&'t mut Tx<'_>) -> Work<'t, T> + Send + 'static,
    ) -> Result<T, Error> {
        self.world.write(work).await
    }

    /// A number that a statement finds.
    pub async fn number(&self, statement: &'static str) -> i64 {
        number(&mut self.world.read().await, statement).await
    }

    /// Returns the operations that the account has used of the month.
    pub async fn used(&self) -> u64 {
        operations::used(&mut self.world.read().await, self.account, NOW)
            .await
            .unwrap()
            .operations
    }

    pub fn new_run(&self) -> NewRun {
        NewRun {
            account_id: self.account,
            workflow_id: self.workflow,
            version: None,
            rerun_of: None,
            trigger: Trigger::Api,
            lane: Lane::Batch,
            generation: 0,
            upload_source: "api".into(),
            input: RunInput {
                blob: self.input,
                filename: "photo.jpg".into(),
                size: 5,
                mime_type: "image/jpeg".into(),
            },
            source_file_id: None,
            allowance: Allowance::default(),
        }
    }

    pub async fn submit(&self, new: NewRun, now_ms: i64) -> Result<Submitted, Error> {
        self.submit_within(LIMITS, new, now_ms).await
    }

    pub async fn submit_within(
        &self,
        limits: RunLimits,
        new: NewRun,
        now_ms: i64,
    ) -> Result<Submitted, Error> {
        self.write(move |tx| Box::pin(async move { submit(tx, &new, limits, None, now_ms).await }))
            .await
    }

    /// A run of the workflow that is made `after` milliseconds from now.
    pub async fn run(&self, after: i64) -> Run {
        match self.submit(self.new_run(), NOW + after).await.unwrap() {
            Submitted::New(run) => *run,
            other => panic!("{other:?}"),
        }
    }

    /// Claims due runs, and begins them.
    pub async fn claim(&self) -> Claimed {
        let claim = self.write(|tx| {
            Box::pin(async move {
                let (owner, room) = (Uuid::now_v7(), Room::for_any(100));
                let lease = Duration::from_secs(15);
                let claimed = work::claim(tx, KIND, owner, room, lease, CLAIMED_AT).await?;
                for lease in &claimed.leases {
                    begin(tx, lease.id, CLAIMED_AT).await?;
                }
                Ok(claimed)
            })
        });
        claim.await.unwrap()
    }

    /// A run that is being worked on, the only one that is due.
    pub async fn begun(&self) -> (Run, Lease) {
        let run = self.run(0).await;
        let mut leases = self.claim().await.leases;
        assert_eq!(leases.len(), 1);
        (self.get(run.id).await, leases.remove(0))
    }

    pub async fn get(&self, id: Uuid) -> Run {
        by_id(&mut self.world.read().await, id).await.unwrap()
    }

    pub async fn complete(&self, lease: &Lease, completion: Completion) -> Result<Run, Error> {
        let lease = lease.clone();
        self.write(move |tx| {
            Box::pin(async move { complete(tx, &lease, completion, TERMS, NOW + 2_000).await })
        })
        .await
    }

    pub async fn fail(&self, lease: &Lease, steps: Vec<Step>) -> Result<Run, Error> {
        let (lease, failure) = (lease.clone(), failure(steps));
        self.write(move |tx| {
            Box::pin(async move { fail(tx, &lease, failure, TERMS, NOW + 2_000).await })
        })
        .await
    }

    pub async fn cancel(&self, id: Uuid) -> Result<Run, Error> {
        let account = self.account;
        self.write(move |tx| Box::pin(cancel(tx, account, id, TERMS, NOW + 2_000)))
            .await
    }

    pub async fn record_steps(&self, lease: &Lease, steps: Vec<Step>) -> Result<(), Error> {
        let lease = lease.clone();
        self.write(move |tx| Box::pin(async move { record_steps(tx, &lease, &steps).await }))
            .await
    }

    pub async fn steps(&self, id: Uuid) -> Vec<Step> {
        steps(&mut self.world.read().await, id).await.unwrap()
    }

    pub async fn set_active(&self, is_active: bool) -> Workflow {
        let (account, id) = (self.account, self.workflow);
        self.write(move |tx| Box::pin(set_active(tx, account, id, is_active, NOW + 1)))
            .await
            .unwrap()
    }

    pub async fn delete(&self, rows: u32) -> Result<Vec<Run>, Error> {
        let (account, id) = (self.account, self.workflow);
        self.write(move |tx| Box::pin(delete(tx, account, id, rows, TERMS, NOW + 3_000)))
            .await
    }

    pub async fn folder(&self, account: Uuid) -> Uuid {
        let new = NewFolder {
            name: "in".into(),
            color: None,
            parent_id: None,
        };
        self.write(move |tx| Box::pin(async move { folders::create(tx, account, new, NOW).await }))
            .await
            .unwrap()
            .id
    }

    pub async fn file(&self, folder_id: Option<Uuid>, generation: u32) -> File {
        let (account, new) = (self.account, self.new_file(folder_id, generation));
        self.write(move |tx| Box::pin(files::create(tx, account, new, NOW)))
            .await
            .unwrap()
    }

    pub fn new_file(&self, folder_id: Option<Uuid>, generation: u32) -> NewFile {
        NewFile {
            folder_id,
            filename: "a.png".into(),
            mime_type: "image/png".into(),
            size_bytes: 5,
            blob: self.input,
            role: Role::Uploaded,
            width: None,
            height: None,
            duration_ms: None,
            generation,
        }
    }
}

pub(super) async fn number(db: &mut impl Connection, statement: &'static str) -> i64 {
    query_scalar(statement).fetch_one(db).await.unwrap()
}

pub(super) async fn sealed(world: &World, bytes: &'static [u8]) -> Sealed {
    let mut spool = world.store.blobs().spool().await.unwrap();
    spool.write(Bytes::from_static(bytes)).await.unwrap();
    spool.seal().await.unwrap()
}

/// A blob with a row.
pub(super) async fn record(world: &World, bytes: &'static [u8]) -> BlobHash {
    let sealed = sealed(world, bytes).await;
    let hash = sealed.blob().hash;
    world
        .write(move |tx| Box::pin(async move { blobs::record(tx, &sealed, NOW).await }))
        .await
        .unwrap();
    hash
}

pub(super) fn new_workflow(name: &str) -> NewWorkflow {
    NewWorkflow {
        name: name.into(),
        is_active: true,
        definition: r#"{"nodes":[],"edges":[],"x":1}"#.into(),
        template: None,
        output_format: None,
        compression_mode: None,
        trigger_folder_id: None,
        webhook_urls: Vec::new(),
    }
}

pub(super) async fn create_in(world: &World, account: Uuid, new: NewWorkflow) -> Workflow {
    world
        .write(move |tx| Box::pin(create(tx, account, new, 1_000, NOW)))
        .await
        .unwrap()
}

pub(super) fn failure(steps: Vec<Step>) -> Failure {
    Failure {
        gate: Some(true),
        node: Some("resize".into()),
        code: "decode_failed".into(),
        message: "step `Resize` (resize): the bytes do not decode".into(),
        steps,
    }
}

/// Returns a step with few fields set.
pub(super) fn step(position: u32, status: StepStatus) -> Step {
    Step {
        position,
        node_id: format!("n{position}"),
        kind: "resize".into(),
        title: "Resize".into(),
        status,
        branch: None,
        message: String::new(),
        skip_reason: None,
        skipped_by: None,
        facts: None,
        started_at: None,
        finished_at: None,
        bytes_in: None,
        bytes_out: None,
        output: None,
        stored_file_id: None,
    }
}
