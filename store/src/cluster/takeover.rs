//! Take-over from dead nodes: what a node held is free once its lease is over, at the latest a second later; once for each death.

use std::time::Duration;

use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};
use tracing::{info, warn};
use uuid::Uuid;

use super::{MOST_AHEAD, Node};
use crate::{
    Error, Store, Tx, broadcasts, duration_ms, now_ms,
    statement::{query, query_as, query_scalar},
    store::WeakStore,
    tus, webhooks, work,
};

/// Deliveries of a dead node that are interrupted at a time: more than a node may have in flight.
const MOST_DELIVERIES: u32 = 1_024;
/// Time in which a node that runs renews itself, on a machine with other work.
const RENEWS_WITHIN: Duration = Duration::from_millis(2_500);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Deletes rows of nodes that died before the time `$1`, `$2` at most. Until then they are known to be dead.
pub(crate) const DELETE_DEAD: &str = "DELETE FROM nodes WHERE id IN (
     SELECT id FROM nodes WHERE state = 'dead' AND renewed_at < $1 LIMIT $2)";

/// The take-over that runs.
#[derive(Default)]
pub(super) struct TakeOver {
    task: Option<JoinHandle<()>>,
}

impl TakeOver {
    /// Takes over from these nodes, unless the take-over before is not finished. The next look finds those that are left.
    pub(super) fn begin(&mut self, store: &WeakStore, dead: Vec<Node>) {
        if self.task.as_ref().is_some_and(|task| !task.is_finished()) {
            return;
        }
        let Some(store) = store.upgrade() else {
            return;
        };
        self.task = Some(tokio::spawn(async move {
            for node in dead {
                match take_over(&store, node.id).await {
                    Ok(Some(freed)) => {
                        let Freed { leases, deliveries } = freed;
                        info!(node = %node.id, name = node.name, leases, deliveries, "a node is dead: what it held is free");
                        store.cluster().count_change();
                    }
                    Ok(None) => {}
                    Err(error) => warn!(%error, node = %node.id, "a dead node is taken over later"),
                }
            }
        }));
    }
}

impl Drop for TakeOver {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Counts of rows that a node held.
struct Freed {
    leases: u64,
    deliveries: u64,
}

/// Frees what a node held, and notes that it is dead. `None` when it lives, or another node was faster.
async fn take_over(store: &Store, node_id: Uuid) -> Result<Option<Freed>, Error> {
    let now = now_ms();
    store
        .write_beside(move |tx| {
            Box::pin(async move {
                // The node's own renewal locks the row, too: it waits, and finds afterwards that it was taken for dead.
                let is_dead: Option<i64> = query_scalar(
                    "SELECT lease_until FROM nodes WHERE id = $1 AND state <> 'dead'
                         AND (lease_until <= $2 OR lease_until > $3) /*lock*/",
                )
                .bind(node_id)
                .bind(now)
                .bind(now.saturating_add(duration_ms(MOST_AHEAD)))
                .fetch_optional(tx)
                .await?;
                if is_dead.is_none() {
                    return Ok(None);
                }
                let freed = free(tx, node_id, now).await?;
                query("UPDATE nodes SET state = 'dead' WHERE id = $1")
                    .bind(node_id)
                    .execute(tx)
                    .await?;
                Ok(Some(freed))
            })
        })
        .await
}

/// Frees work, deliveries and reserved storage of a process that has ended.
async fn free(tx: &mut Tx<'_>, owner: Uuid, now_ms: i64) -> Result<Freed, Error> {
    let leases = work::void_leases(tx, Some(owner), now_ms).await?;
    tus::release_all(tx, Some(owner)).await?;
    let mut deliveries = 0;
    loop {
        let interrupted = webhooks::interrupt(tx, Some(owner), MOST_DELIVERIES, now_ms).await?;
        deliveries += interrupted;
        if interrupted < u64::from(MOST_DELIVERIES) {
            return Ok(Freed { leases, deliveries });
        }
    }
}

/// Rejects a copy of the data folder of a node that runs, with `Error::Unsupported`: its process, which the folder names, renews
/// itself. One that was killed just now does not, and is waited for as long as that takes.
pub(crate) async fn reject_copy(store: &Store, former: Uuid) -> Result<(), Error> {
    let (began, mut first) = (Instant::now(), None);
    while began.elapsed() < RENEWS_WITHIN {
        let mut reader = store.read().await?;
        let node: Option<(String, i64)> =
            query_as("SELECT name, renewed_at FROM nodes WHERE id = $1 AND state <> 'dead'")
                .bind(former)
                .fetch_optional(&mut reader)
                .await?;
        drop(reader);
        let Some((name, renewed_at)) = node else {
            return Ok(());
        };
        if now_ms() - renewed_at > duration_ms(RENEWS_WITHIN) {
            return Ok(());
        }
        if *first.get_or_insert(renewed_at) != renewed_at {
            return Err(Error::Unsupported(format!(
                "the data folder is a copy of that of the node {name}, which runs: give this node an empty folder (store.data_dir)"
            )));
        }
        sleep(LOOK_EVERY).await;
    }
    Ok(())
}

/// Takes over from the process that had the data folder before, at the start of this one: the folder's lock shows that it has
/// ended, whatever its lease. What is on the disk of the folder continues under this process.
pub(crate) async fn inherit(store: &Store, from: Uuid) -> Result<(), Error> {
    let (to, now) = (store.owner(), now_ms());
    store
        .write(move |tx| {
            Box::pin(async move {
                free(tx, from, now).await?;
                broadcasts::inherit(tx, from, to).await?;
                query("UPDATE nodes SET state = 'dead' WHERE id = $1")
                    .bind(from)
                    .execute(tx)
                    .await?;
                Ok(())
            })
        })
        .await
}

/// Forgets all nodes, at the start of a process that has the database alone.
pub(crate) async fn forget_all(tx: &mut Tx<'_>) -> Result<(), Error> {
    query("DELETE FROM nodes").execute(tx).await?;
    Ok(())
}
