//! Membership of this node: renews its row each second on a connection of its own, reads those of the others, measures the clock,
//! and has what dead nodes held given to others.
//!
//! A node that could not renew itself takes none for dead until it has for a whole lease: when the database comes back, the
//! leases of all are over. The same after a jump of the database's clock, by which leases end at once, or much too late.

use std::time::{Duration, Instant as Monotonic};

use parking_lot::Mutex;
use sqlx::{Connection as _, FromRow, PgConnection};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{Instant, sleep_until, timeout},
};
use tracing::{debug, info, warn};
use uuid::Uuid;

use super::{
    Cluster, ClusterSettings, LEASE, MOST_AHEAD, Node, NodeState, clock, takeover::TakeOver,
};
use crate::{
    Error, duration_ms,
    postgres::{Server, in_time},
    store::WeakStore,
};

/// Interval of renewals.
const RENEW_EVERY: Duration = Duration::from_secs(1);
/// Longest time for a renewal or a connection: a second one must fit into the lease.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);
/// Time behind the end of another node's lease at which this one looks.
const AFTER_LEASE: Duration = Duration::from_millis(20);
/// Longest time to say that this node leaves.
const LEAVE_WITHIN: Duration = Duration::from_secs(3);

/// Writes the row of this node. Returns the state in which it was before: `dead` when others have taken over what it held. The
/// row is locked before it is read: a take-over that is being committed is waited for, and a plain read would not see it.
const RENEW: &str = "WITH before AS MATERIALIZED (SELECT state FROM nodes WHERE id = $1 FOR NO KEY UPDATE)
     INSERT INTO nodes
         (id, name, address, roles, version, schema, state, started_at, renewed_at, lease_until, clock_offset_ms)
     SELECT $1, $2, $3, $4, $5, $6, $7, clock.now, clock.now, clock.now + $8, $9
     FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) clock LEFT JOIN before ON TRUE
     ON CONFLICT (id) DO UPDATE SET address = excluded.address, state = excluded.state, renewed_at = excluded.renewed_at,
         lease_until = excluded.lease_until, clock_offset_ms = excluded.clock_offset_ms
     RETURNING (SELECT before.state FROM before)";

/// Reads the clock and the nodes, `$1` among them.
const LOOK: &str = "SELECT clock.now AS now_ms, n.*
     FROM (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now) clock
     CROSS JOIN nodes n WHERE n.state <> 'dead' OR n.id = $1 ORDER BY n.id";

/// Ends the lease of this node now.
const LEAVE: &str = "UPDATE nodes SET state = 'draining', lease_until = renewed_at WHERE id = $1";

/// A row with the clock at which it was read.
#[derive(FromRow)]
struct Seen {
    now_ms: i64,
    #[sqlx(flatten)]
    node: Node,
}

/// Task of the membership. It ends with this handle.
pub(crate) struct Membership {
    leave: Mutex<Option<oneshot::Sender<()>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Membership {
    /// Says that this node leaves, so that others need not wait for the end of its lease, and ends the task.
    pub(crate) async fn leave(&self) {
        drop(self.leave.lock().take());
        let task = self.task.lock().take();
        if let Some(mut task) = task
            && timeout(LEAVE_WITHIN, &mut task).await.is_err()
        {
            task.abort();
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }
}

/// The membership after the first renewal, before its task runs.
pub(crate) struct Joined {
    keeper: Keeper,
}

/// Writes the row of this process, reads the others, and measures the clock.
pub(crate) async fn join(
    server: &Server,
    id: Uuid,
    settings: &ClusterSettings,
) -> Result<(Cluster, Joined), Error> {
    let cluster = Cluster::node(id, settings, server.log_age());
    let mut keeper = Keeper {
        server: server.clone(),
        cluster: cluster.clone(),
        connection: None,
        clock_offset_ms: 0,
        measured: None,
        renewals: Renewals::default(),
        is_failing: false,
        has_wrong_clock: false,
    };
    let seen = keeper.renew().await?;
    keeper.apply(seen);
    // With the offset, which was not known before.
    let seen = keeper.renew().await?;
    keeper.apply(seen);
    info!(node = %id, name = settings.name(), others = cluster.others().len(), "joined the cluster");
    Ok((cluster, Joined { keeper }))
}

impl Joined {
    /// Starts the task, which reaches the store to take over what dead nodes held.
    pub(crate) fn run(self, store: WeakStore) -> Membership {
        let (leave, left) = oneshot::channel();
        let task = tokio::spawn(self.keeper.run(store, left));
        Membership {
            leave: Mutex::new(Some(leave)),
            task: Mutex::new(Some(task)),
        }
    }
}

/// Keeper of this node's row.
struct Keeper {
    server: Server,
    cluster: Cluster,
    connection: Option<PgConnection>,
    clock_offset_ms: i64,
    /// The last measurement of the database's clock.
    measured: Option<clock::Sample>,
    renewals: Renewals,
    is_failing: bool,
    has_wrong_clock: bool,
}

impl Keeper {
    async fn run(mut self, store: WeakStore, mut left: oneshot::Receiver<()>) {
        let mut take_over = TakeOver::default();
        let mut next = Instant::now() + RENEW_EVERY;
        let shared = self.cluster.shared.clone();
        loop {
            tokio::select! {
                () = sleep_until(next) => {}
                () = shared.renew.notified() => {}
                _ = &mut left => break,
            }
            let began_at = Instant::now();
            match self.renew().await {
                Ok(seen) => {
                    let (dead, next_end) = self.apply(seen);
                    self.note_success();
                    next = began_at + RENEW_EVERY.min(next_end.unwrap_or(RENEW_EVERY));
                    if !dead.is_empty() && self.cluster.is_janitor() {
                        take_over.begin(&store, dead);
                    }
                }
                Err(error) => {
                    self.connection = None;
                    self.note_failure(&error);
                    next = began_at + RENEW_EVERY;
                }
            }
        }
        if let Err(error) = self.leave().await {
            debug!(%error, "other nodes wait for the end of this node's lease");
        }
    }

    /// Renews the row and reads all.
    async fn renew(&mut self) -> Result<Vec<Seen>, Error> {
        let began_at = Instant::now();
        let own = self.cluster.shared.own.lock().clone();
        let this = Node {
            state: own.state,
            address: own.address,
            clock_offset_ms: self.clock_offset_ms,
            ..self.cluster.this()
        };
        let connection = connected(&self.server, &mut self.connection).await?;
        let before = in_time(ANSWER_WITHIN, write(connection, &this)).await?;
        if before == Some(NodeState::Dead) {
            warn!("this node did not renew its lease in time: its work was given to other nodes");
        }
        let asked_at = Monotonic::now();
        let look = sqlx::query_as(LOOK).bind(this.id).fetch_all(connection);
        let seen: Vec<Seen> = in_time(ANSWER_WITHIN, look).await?;
        let answered_at = Monotonic::now();
        self.renewals.note(began_at);
        if let Some(first) = seen.first() {
            let sample = clock::Sample {
                asked_at,
                answered_at,
                database_ms: first.now_ms,
            };
            self.clock_offset_ms = clock::measured(sample);
            let before = self.measured.replace(sample);
            if before.is_some_and(|before| sample.is_after_jump(&before)) {
                warn!(
                    "the clock of the database has jumped: no node is taken for dead for one lease"
                );
                self.renewals.begin_again(began_at);
            }
        }
        *self.cluster.shared.renewed_at.lock() = Some(began_at);
        Ok(seen)
    }

    /// Publishes the list. Returns the dead nodes, and the time up to the next end of a lease.
    fn apply(&self, seen: Vec<Seen>) -> (Vec<Node>, Option<Duration>) {
        let now_ms = seen.first().map_or(0, |seen| seen.now_ms);
        let rows = seen.into_iter().map(|seen| seen.node).collect();
        let may_judge = self.renewals.are_unbroken(Instant::now());
        let (mut live, dead) = sort(rows, self.cluster.node_id(), now_ms, may_judge);
        let next_end = next_end(&live, self.cluster.node_id(), now_ms);
        // A state that was set since is published already.
        let own = self.cluster.shared.own.lock();
        match live
            .iter_mut()
            .find(|node| node.id == self.cluster.node_id())
        {
            Some(this) => {
                this.state = own.state;
                this.address.clone_from(&own.address);
            }
            None => live.push(self.cluster.this()),
        }
        self.cluster.publish(live);
        drop(own);
        (dead, next_end)
    }

    fn note_success(&mut self) {
        if std::mem::replace(&mut self.is_failing, false) {
            info!("the node's lease is renewed again");
        }
        let is_wrong = self.cluster.this().has_wrong_clock();
        if is_wrong && !self.has_wrong_clock {
            warn!(
                offset_ms = self.clock_offset_ms,
                "the machine's clock is wrong: the service takes the database's; set it, by NTP for instance"
            );
        }
        self.has_wrong_clock = is_wrong;
    }

    fn note_failure(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.is_failing, true) {
            warn!(%error, "the node's lease cannot be renewed");
        }
    }

    async fn leave(&mut self) -> Result<(), Error> {
        let connection = connected(&self.server, &mut self.connection).await?;
        let leave = sqlx::query(LEAVE)
            .bind(self.cluster.node_id())
            .execute(&mut *connection);
        in_time(ANSWER_WITHIN, leave).await?;
        if let Some(connection) = self.connection.take() {
            connection.close().await?;
        }
        Ok(())
    }
}

/// Writes the row of a node, with a new lease. Returns the state in which it was; `None` when there was no row.
async fn write(
    connection: &mut PgConnection,
    node: &Node,
) -> Result<Option<NodeState>, sqlx::Error> {
    let before: Option<String> = sqlx::query_scalar(RENEW)
        .bind(node.id)
        .bind(&node.name)
        .bind(&node.address)
        .bind(serde_json::to_string(&node.roles).expect("roles become JSON"))
        .bind(&node.version)
        .bind(node.schema)
        .bind(node.state.as_str())
        .bind(duration_ms(LEASE))
        .bind(node.clock_offset_ms)
        .fetch_one(connection)
        .await?;
    Ok(before.as_deref().map(NodeState::of_column))
}

/// Returns the open connection, or a new one.
async fn connected<'c>(
    server: &Server,
    connection: &'c mut Option<PgConnection>,
) -> Result<&'c mut PgConnection, Error> {
    let open = match connection.take() {
        Some(open) => open,
        None => in_time(ANSWER_WITHIN, server.connect()).await?,
    };
    Ok(connection.insert(open))
}

/// Run of renewals without a gap.
#[derive(Default)]
struct Renewals {
    since: Option<Instant>,
    last: Option<Instant>,
}

impl Renewals {
    fn note(&mut self, at: Instant) {
        let is_gap = self.last.is_none_or(|last| at - last >= LEASE);
        if is_gap {
            self.since = Some(at);
        }
        self.last = Some(at);
    }

    /// Begins the run with this renewal, the last one: what leases said before it is no measure.
    fn begin_again(&mut self, at: Instant) {
        self.since = Some(at);
    }

    /// Returns whether this node was renewed for a whole lease, and may take others for dead.
    fn are_unbroken(&self, now: Instant) -> bool {
        let is_renewed = self.last.is_some_and(|last| now - last < LEASE);
        is_renewed && self.since.is_some_and(|since| now - since >= LEASE)
    }
}

/// Sorts rows into live nodes and those that are dead and not taken over yet. One that has left by itself needs no judgement.
fn sort(rows: Vec<Node>, own: Uuid, now_ms: i64, may_judge: bool) -> (Vec<Node>, Vec<Node>) {
    let (mut live, mut dead) = (Vec::new(), Vec::new());
    for node in rows {
        let has_left = node.lease_until <= node.renewed_at;
        let latest_end = now_ms.saturating_add(duration_ms(MOST_AHEAD));
        let has_lease = node.lease_until > now_ms && node.lease_until <= latest_end;
        if node.id == own || has_lease {
            live.push(node);
        } else if node.state != NodeState::Dead && (may_judge || has_left) {
            dead.push(node);
        } else if node.state != NodeState::Dead {
            live.push(node);
        }
    }
    (live, dead)
}

/// Returns the time up to the next end of another node's lease, if that may be its death.
fn next_end(live: &[Node], own: Uuid, now_ms: i64) -> Option<Duration> {
    let ends = live.iter().filter(|node| node.id != own);
    let ends = ends.filter(|node| node.lease_until > now_ms);
    let next = ends.map(|node| node.lease_until - now_ms).min()?;
    Some(Duration::from_millis(next.unsigned_abs()) + AFTER_LEASE)
}

#[cfg(test)]
mod tests {
    use super::{super::myself, *};
    use crate::{Store, StoreSettings};

    const NOW: i64 = 1_000_000;

    fn node(id: u128, lease_until: i64) -> Node {
        Node {
            renewed_at: lease_until - 5_000,
            lease_until,
            state: NodeState::Up,
            ..myself(Uuid::from_u128(id), &ClusterSettings::default())
        }
    }

    fn ids(nodes: &[Node]) -> Vec<u128> {
        nodes.iter().map(|node| node.id.as_u128()).collect()
    }

    #[test]
    fn nodes_are_dead_when_their_lease_is_over_and_this_one_may_judge() {
        let mut left = node(3, NOW - 1_000);
        left.renewed_at = left.lease_until;
        let mut taken_over = node(5, NOW - 9_000);
        taken_over.state = NodeState::Dead;
        let rows = vec![
            node(1, NOW - 1),
            node(2, NOW),
            left,
            node(4, NOW + 1),
            taken_over,
        ];
        let own = Uuid::from_u128(1);
        let (live, dead) = sort(rows.clone(), own, NOW, true);
        assert_eq!((ids(&live), ids(&dead)), (vec![1, 4], vec![2, 3]));
        let (live, dead) = sort(rows, own, NOW, false);
        assert_eq!((ids(&live), ids(&dead)), (vec![1, 2, 4], vec![3]));
    }

    #[test]
    fn a_lease_from_before_the_clock_was_set_back_ends_with_the_judgement() {
        let rows = vec![node(1, NOW + 5_000), node(2, NOW + 3_600_000)];
        let own = Uuid::from_u128(1);
        let (live, dead) = sort(rows.clone(), own, NOW, false);
        assert_eq!((ids(&live), ids(&dead)), (vec![1, 2], vec![]));
        let (live, dead) = sort(rows, own, NOW, true);
        assert_eq!((ids(&live), ids(&dead)), (vec![1], vec![2]));
    }

    #[test]
    fn a_node_judges_none_for_a_lease_after_a_jump_of_the_clock() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut renewals = Renewals::default();
        for second in 0..7 {
            renewals.note(at(second * 1_000));
        }
        assert!(renewals.are_unbroken(at(6_000)));
        renewals.begin_again(at(6_000));
        for second in 7..11 {
            renewals.note(at(second * 1_000));
            assert!(!renewals.are_unbroken(at(second * 1_000)), "{second}");
        }
        renewals.note(at(11_000));
        assert!(renewals.are_unbroken(at(11_000)));
    }

    #[test]
    fn a_node_that_was_not_renewed_judges_after_a_whole_lease() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut renewals = Renewals::default();
        assert!(!renewals.are_unbroken(at(0)));
        for ms in [0, 1_000, 2_000, 3_000, 4_000, 5_000] {
            renewals.note(at(ms));
        }
        assert!(!renewals.are_unbroken(at(4_999)));
        assert!(renewals.are_unbroken(at(5_000)));
        assert!(!renewals.are_unbroken(at(10_000)), "not renewed since");
        renewals.note(at(10_000));
        for ms in [11_000, 12_000, 14_999] {
            renewals.note(at(ms));
            assert!(!renewals.are_unbroken(at(ms)), "{ms}");
        }
        assert!(renewals.are_unbroken(at(15_000)));
    }

    #[test]
    fn the_next_look_comes_with_the_next_end_of_a_lease() {
        let own = Uuid::from_u128(1);
        let live = [node(1, NOW + 10), node(2, NOW + 400), node(3, NOW - 5)];
        assert_eq!(
            next_end(&live, own, NOW),
            Some(Duration::from_millis(400) + AFTER_LEASE)
        );
        assert_eq!(next_end(&live[..1], own, NOW), None);
    }

    /// With `SLUICE_TEST_POSTGRES`.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_renewal_that_waits_for_a_take_over_finds_that_it_was_taken_for_dead() {
        let folder = tempfile::tempdir().unwrap();
        let settings = StoreSettings::without_reserve(folder.path());
        let Some(server) = Server::of(&settings).unwrap() else {
            return;
        };
        let store = Store::open(&settings).await.unwrap();
        let mut taking_over = server.connect().await.unwrap();
        let mut renewing = server.connect().await.unwrap();
        let mut looking = server.connect().await.unwrap();
        let node = node(1, NOW);
        assert_eq!(write(&mut renewing, &node).await.unwrap(), None);
        assert_eq!(
            write(&mut renewing, &node).await.unwrap(),
            Some(NodeState::Up)
        );

        let process: i32 = sqlx::query_scalar("SELECT pg_backend_pid()")
            .fetch_one(&mut renewing)
            .await
            .unwrap();
        let mut taken_over = taking_over.begin().await.unwrap();
        sqlx::query("UPDATE nodes SET state = 'dead' WHERE id = $1")
            .bind(node.id)
            .execute(&mut *taken_over)
            .await
            .unwrap();
        let waiting = async {
            let is_waiting = "SELECT wait_event_type IS NOT DISTINCT FROM 'Lock'
                 FROM pg_stat_activity WHERE pid = $1";
            while !sqlx::query_scalar::<_, bool>(is_waiting)
                .bind(process)
                .fetch_one(&mut looking)
                .await
                .unwrap()
            {}
            taken_over.commit().await.unwrap();
        };
        let (before, ()) = tokio::join!(write(&mut renewing, &node), waiting);
        assert_eq!(before.unwrap(), Some(NodeState::Dead));
        assert_eq!(
            write(&mut renewing, &node).await.unwrap(),
            Some(NodeState::Up)
        );
        store.close().await;
    }
}
